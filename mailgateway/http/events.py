"""Server-sent events: what changed, as ids; a hint to read the tables (WHATWG HTML, section 9.2).

A client that reads slowly costs a bounded amount: while its connection is full, equal events become one, and
when too many different ones wait, they become one ``resync``, which asks to read everything again.  One that
has not read for half a minute, or is gone without a word, is cut off; a comment every 15 seconds finds out.

Ids are ``<run of the service>-<number>``.  A client that comes back with its last id gets what it missed, or
one ``resync`` when that is not known any more.
"""

import json
import re
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer
from twisted.web.http import Request
from zope.interface import implementer

from mailgateway.errors import Refusal
from mailgateway.flows.bell import PUBLIC, Event, Numbered
from mailgateway.http.doors import Doors
from mailgateway.http.keys import Bearer
from mailgateway.http.request import LimitedRequest
from mailgateway.http.routes import Call, Reply, Streamed
from mailgateway.ids import SessionId
from mailgateway.shapes import EventsQuery

CONTENT_TYPE = "text/event-stream; charset=utf-8"
PING_SECONDS = 15.0
PAUSED_SECONDS = 30.0
MOST_WAITING = 256

TOO_MANY = Refusal(
    "too_many_subscribers", "as many clients as may listen do so already; poll /pending with wait instead"
)


async def events(doors: Doors, call: Call) -> Reply | Streamed:
    """Tell what changes, until the client goes or the service stops."""
    asked = call.query(EventsQuery)
    if asked.session is not None:
        call.bearer.require(asked.session)
    if call.request.method == b"HEAD":
        return Reply(content=b"", content_type=CONTENT_TYPE)
    if doors.closed:
        raise Refusal("stopping", "the service is stopping; come back when it runs again")
    with doors.subscribing.place(call.bearer, TOO_MANY):
        stream = EventStream(doors, call.request, call.bearer, asked.session)
        try:
            last_id: bytes | None = call.request.getHeader(b"last-event-id")
            stream.begin(None if last_id is None else last_id.decode("latin-1"))
            await stream.ended
        finally:
            stream.stop()
    return Streamed()


@implementer(IPushProducer)
@define(eq=False)
class EventStream:
    """One subscriber: what it may see, what waits for it, and its two clocks."""

    _doors: Doors
    _request: LimitedRequest
    _bearer: Bearer
    _session: SessionId | None
    ended: Deferred[None] = field(factory=Deferred)
    _waiting: dict[Event, int] = field(factory=dict)
    """What could not be written yet, each event once with its last number."""
    _lost: bool = False
    """Whether more came than was kept: the client has to read everything again."""
    _paused: bool = False
    _ping: IDelayedCall | None = None
    _cut: IDelayedCall | None = None
    _unsubscribe: Any = None

    def begin(self, last_id: str | None) -> None:
        """Open the stream and tell what was missed since ``last_id``."""
        request, doors = self._request, self._doors
        doors.streams.add(self)
        doors.connections.streams += 1
        request.set_field(b"Content-Type", CONTENT_TYPE.encode())
        request.set_field(b"X-Accel-Buffering", b"no")
        Request.registerProducer(request, self, True)
        self._unsubscribe = doors.bell.subscribe(self._hear)
        Request.write(request, b"")  # the header
        if last_id is not None:
            self._catch_up(last_id)
        self._ping = doors.reactor.callLater(PING_SECONDS, self._say_ping)

    def stop(self) -> None:
        """Give everything back; the request itself is finished by whoever holds it."""
        self._doors.streams.discard(self)
        if self._unsubscribe is not None:
            self._doors.connections.streams -= 1
            self._unsubscribe()
            self._unsubscribe = None
            if not self._request._disconnected:  # noqa: SLF001 (there is no public way to ask)
                Request.unregisterProducer(self._request)
        for call in (self._ping, self._cut):
            if call is not None and call.active():
                call.cancel()
        self._ping = self._cut = None
        self._waiting.clear()

    def end(self) -> None:
        """Finish the answer, because the service stops."""
        if not self.ended.called:
            self.ended.callback(None)

    def pauseProducing(self) -> None:
        """Write nothing more: the connection is full."""
        self._paused = True
        if self._cut is None:
            self._cut = self._doors.reactor.callLater(PAUSED_SECONDS, self._cut_off)

    def resumeProducing(self) -> None:
        """Write what waits: the client has read."""
        self._paused = False
        if self._cut is not None:
            self._cut.cancel()
            self._cut = None
        if self._lost:
            self._lost = False
            self._waiting.clear()
            self._say("resync", {}, self._doors.bell.number)
        waiting, self._waiting = self._waiting, {}
        for event, number in waiting.items():
            self._tell(event, number)

    def stopProducing(self) -> None:
        """Notice that the connection is lost; the route is told by its request."""
        self._paused = True

    def _hear(self, numbered: Numbered) -> None:
        event = numbered.event
        if event.kind in PUBLIC and (event.session is None or self._concerns(event.session)):
            self._tell(event, numbered.number)

    def _concerns(self, session: SessionId) -> bool:
        return self._session in {None, session} and self._bearer.speaks_for(session)

    def _tell(self, event: Event, number: int) -> None:
        if not self._paused:
            data = {"id": event.id, "sessionId": event.session}
            self._say(event.kind, {name: value for name, value in data.items() if value}, number)
            return
        self._waiting.pop(event, None)
        self._waiting[event] = number
        if len(self._waiting) > MOST_WAITING:
            self._waiting.clear()
            self._lost = True

    def _catch_up(self, last_id: str) -> None:
        found = re.fullmatch(r"([0-9a-f]{8})-([0-9]{1,15})", last_id)
        missed = None
        if found is not None and found[1] == self._doors.started:
            missed = self._doors.bell.since(int(found[2]))
        if missed is None:
            self._say("resync", {}, self._doors.bell.number)
            return
        for numbered in missed:
            self._hear(numbered)

    def _say(self, kind: str, data: dict[str, Any], number: int) -> None:
        """Write one event; ``json`` escapes line ends, so that an id cannot end it early."""
        text = f"id: {self._doors.started}-{number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
        Request.write(self._request, text.encode("ascii"))

    def _say_ping(self) -> None:
        if not self._paused:
            Request.write(self._request, b": ping\n\n")
        self._ping = self._doors.reactor.callLater(PING_SECONDS, self._say_ping)

    def _cut_off(self) -> None:
        self._cut = None
        self._request.channel.abort()
