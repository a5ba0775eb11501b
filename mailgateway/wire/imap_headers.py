"""Puts together what a UID FETCH brought, message by message, keyed by UID.

Servers mix other news into the answer, split one message over two responses, repeat messages, and answer
``n:*`` with the last message even if its UID lies below n (RFC 3501 section 6.4.8).  So a message is handed
on once, when everything that was asked for is there, and only if it was asked for.
"""

from collections.abc import Callable
from datetime import datetime

from attrs import define, evolve, field, frozen

from mailgateway.errors import ProtocolViolation
from mailgateway.wire.imap_event import Event
from mailgateway.wire.imap_fetch import Fetched, Unreadable, parse_internal_date
from mailgateway.wire.uid_set import MAX_UID

MAX_INCOMPLETE = 10_000
"""How many messages may be half there at a time."""


@frozen
class FetchedHeaders:
    """The facts and header fields of one message.

    ``body`` is the whole message with all its headers, if it was asked for and is no larger than asked for.
    """

    uid: int
    size: int
    """RFC822.SIZE in octets; a hint (servers tell wrong sizes), 0 if the server did not tell."""
    internal_date: datetime | None
    """When the server received it, aware; None if the server told no readable time."""
    header: bytes = field(repr=False)
    body: bytes | None = field(default=None, repr=False)


@define(eq=False)
class HeaderCollector:
    """Takes the events of one UID FETCH of headers and calls ``on_message`` once for each message.

    ``wanted`` hears of each before, by UID and header fields; for those to which it says no nothing is made.
    """

    first: int
    last: int | None
    small_body: int
    on_message: Callable[[FetchedHeaders], None]
    wanted: Callable[[int, bytes], bool] | None = None
    unreadable: list[Unreadable] = field(factory=list, init=False)
    _incomplete: dict[int, Fetched] = field(factory=dict, init=False, repr=False)
    _seen: set[int] = field(factory=set, init=False, repr=False)

    def take(self, event: Event) -> None:
        """Take what may be a part of the answer; ``ProtocolViolation`` if nothing becomes complete."""
        if isinstance(event, Fetched):
            uid = event.uid
            if uid is not None and uid not in self._seen and self._asked(uid):
                self._take(uid, event)
        elif isinstance(event, Unreadable) and event.keyword == b"FETCH":
            if event.uid is not None and not self._asked(event.uid):
                return
            if len(self.unreadable) >= MAX_INCOMPLETE:
                raise ProtocolViolation("too many messages cannot be read")
            self.unreadable.append(event)

    def finish(self) -> tuple[Unreadable, ...]:
        """The answer is complete: hand on what lacks only facts; what could not be read, to be reported.

        A message that was named without its header fields is there, and is reported too.
        """
        for uid, fetched in self._incomplete.items():
            if fetched.header is not None:
                self._deliver(uid, fetched, fetched.header)
            else:
                self.unreadable.append(Unreadable(b"FETCH", uid, "it came without its header fields"))
        self._incomplete.clear()
        return tuple(self.unreadable)

    def _take(self, uid: int, fetched: Fetched) -> None:
        if uid in self._incomplete:
            fetched = merged(self._incomplete.pop(uid), fetched)
        header = fetched.header
        if header is None or fetched.size is None or (self.small_body and fetched.body is None):
            if len(self._incomplete) >= MAX_INCOMPLETE:
                raise ProtocolViolation("the server began too many messages and finished none")
            self._incomplete[uid] = fetched
        else:
            self._deliver(uid, fetched, header)

    def _asked(self, uid: int) -> bool:
        """Whether this message was asked for."""
        return self.first <= uid <= (self.last or MAX_UID)

    def _deliver(self, uid: int, fetched: Fetched, header: bytes) -> None:
        """Hand a message on, once."""
        self._seen.add(uid)
        if self.wanted is not None and not self.wanted(uid, header):
            return
        body = fetched.body
        if body is not None and len(body) > self.small_body:
            body = None
        self.on_message(
            FetchedHeaders(
                uid,
                fetched.size or 0,
                parse_internal_date(fetched.internal_date),
                header,
                body,
            )
        )


@define(eq=False)
class BodyCollector:
    """Takes the events of a UID FETCH of one message."""

    uid: int
    body: bytes | None = field(default=None, init=False, repr=False)

    def take(self, event: Event) -> None:
        """Take what may be the message; ``ProtocolViolation`` if it was there and could not be read."""
        if isinstance(event, Fetched) and event.uid == self.uid and event.body is not None:
            self.body = event.body
        elif isinstance(event, Unreadable) and event.keyword == b"FETCH" and event.uid in {None, self.uid}:
            raise ProtocolViolation(f"UID FETCH {self.uid}: {event.reason}")


def merged(older: Fetched, newer: Fetched) -> Fetched:
    """What both say of one message; the newer word counts."""
    return evolve(
        older,
        size=older.size if newer.size is None else newer.size,
        internal_date=newer.internal_date or older.internal_date,
        header=older.header if newer.header is None else newer.header,
        body=older.body if newer.body is None else newer.body,
    )
