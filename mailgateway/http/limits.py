"""Limits: how long a request may take to come, how large it may be, and how many may be connected.

Twisted's own idle timer is reset by every byte, so a client that dribbles stays for ever.  Here receiving has
an absolute deadline, and the number of connections has a bound: over it whoever has waited longest without
asking anything makes room, so that a flood of idle connections only ever pushes out itself.  Nor does Twisted
stop reading from a client that does not read its answers: here its next request waits.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel, datetimeToString
from twisted.web.http_headers import Headers

from mailgateway.contract import API_VERSION
from mailgateway.flows.uploads import UPLOAD_LIMIT
from mailgateway.flows.waiting import Timers
from mailgateway.http.keys import Bearer
from mailgateway.http.problems import Problem

if TYPE_CHECKING:
    from mailgateway.http.request import LimitedSite

HEADER_SECONDS = 20.0
BODY_SECONDS = 60.0
UPLOAD_SECONDS = 300.0
IDLE_SECONDS = 60.0
CLOSING_SECONDS = 15.0

LARGEST_BODY = 1_000_000
IN_MEMORY = 100_000
LARGEST_FORM = 100_000
"""Octets of a form of people's pages."""
SMALL_FORM = 4_000
"""Octets of a form that anybody may send; of larger ones there are few at a time."""
MOST_CONNECTIONS = 1_000

OWN_FILES = 50
"""Files that the service itself has open: the database, mail servers, its log, what it listens on."""
WANTED_FILES = 2_300
"""Files that the API has open when all its places are taken: connections, streams, bodies, uploads."""

COMMON_HEADER = (
    b"Server: mailgateway\r\n"
    b"Mailgateway-Api: %d\r\n"
    b"Cache-Control: no-store\r\n"
    b"X-Content-Type-Options: nosniff\r\n"
) % API_VERSION
"""On every answer, whoever gives it."""


TOO_LARGE = Problem("too_large", f"a body has at most {LARGEST_BODY:,} bytes, an upload {UPLOAD_LIMIT:,}")


def share_of(files: int) -> float:
    """The part of all places that there can be when the process may have so many ``files`` open, at most 1.

    Out of files nobody could come in any more, so the number of places keeps below that.
    """
    return min(1.0, max(0.02, (files - OWN_FILES) / WANTED_FILES))


class Phase(Enum):
    """Where a connection stands."""

    IDLE = auto()
    RECEIVING = auto()
    ANSWERING = auto()
    CLOSING = auto()


@define(eq=False)
class Connections:
    """Every open connection of every site; streams that stay on purpose are counted apart."""

    most: int = MOST_CONNECTIONS
    open: set["Channel"] = field(factory=set, init=False)
    waiting: dict["Channel", None] = field(factory=dict, init=False)
    """Those whose next request is not complete, longest waiting first."""
    streams: int = field(default=0, init=False)
    _emptied: Deferred[None] | None = field(default=None, init=False)

    def make_room(self) -> bool:
        """Whether one more may come; it may cost the one that waits longest its place.

        Whoever has shown a key goes last, so that strangers never part a session from its connection.
        """
        if len(self.open) - self.streams < self.most:
            return True
        oldest = next((each for each in self.waiting if not each.known), None) or next(
            iter(self.waiting), None
        )
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.abort()
        return True

    def leave(self, channel: "Channel") -> None:
        """Forget a connection."""
        self.open.discard(channel)
        self.waiting.pop(channel, None)
        if not self.open and self._emptied is not None:
            emptied, self._emptied = self._emptied, None
            emptied.callback(None)

    def emptied(self, timers: Timers, seconds: float) -> Deferred[None]:
        """Fire when nobody is connected any more; after ``seconds`` whoever is left is cut off."""
        emptied: Deferred[None] = Deferred()
        if not self.open:
            emptied.callback(None)
            return emptied
        self._emptied = emptied
        timer = timers.callLater(seconds, self._cut_off)
        return emptied.addBoth(lambda _: timer.cancel() if timer.active() else None)

    def _cut_off(self) -> None:
        for channel in tuple(self.open):
            channel.abort()
            self.leave(channel)


class Channel(HTTPChannel):
    """One connection, with deadlines for whatever the client has to do."""

    site: "LimitedSite"
    transport: Any  # Twisted's own class is typed as if it had none
    callLater: Callable[..., IDelayedCall]  # noqa: N815 (Twisted's name)
    known = False
    """Whether a request with a key has been answered."""
    _phase = Phase.IDLE
    _held = False
    """Whether the next request waits until the client has read the answers that are on their way."""
    _deadline: IDelayedCall | None = None

    def connectionMade(self) -> None:
        """Give the first request a deadline."""
        HTTPChannel.connectionMade(self)
        self.site.connections.open.add(self)
        self._wait(Phase.IDLE, HEADER_SECONDS)

    def dataReceived(self, data: bytes) -> None:
        """Start the clock of a request with its first byte."""
        if self._phase is Phase.IDLE:
            self._wait(Phase.RECEIVING, HEADER_SECONDS)
        HTTPChannel.dataReceived(self, data)

    def allHeadersReceived(self) -> None:
        """Give the body a deadline of its own."""
        HTTPChannel.allHeadersReceived(self)
        if self.length != 0 and self._phase is Phase.RECEIVING:
            self._wait(Phase.RECEIVING, UPLOAD_SECONDS if self.requests[-1].upload else BODY_SECONDS)

    def allContentReceived(self) -> None:
        """Stop the clock: now it is our turn."""
        if self._phase is Phase.RECEIVING:
            self._phase = Phase.ANSWERING
            self.site.connections.waiting.pop(self, None)
            self._stop_clock()
        HTTPChannel.allContentReceived(self)

    def requestDone(self, request: Any) -> None:
        """Wait for the next request, if there may be one."""
        self.known = self.known or bool(isinstance(request.verdict, Bearer) and request.verdict.role)
        if self.site.closing:
            self.persistent = False
        if self.persistent:
            self._wait(Phase.IDLE, IDLE_SECONDS)
        if not (self.persistent and self._waitingForTransport):
            HTTPChannel.requestDone(self, request)
            return
        # Twisted's would go on to the next request, and to what is still coming, so that whoever asks
        # without reading fills our memory with answers.
        self._networkProducer.pauseProducing()
        self.requests.remove(request)
        self._held = True

    def resumeProducing(self) -> None:
        """Go on with the next request when the client has read the answer to the last."""
        HTTPChannel.resumeProducing(self)
        if self._held:
            self._held = self._handlingRequest = False
            self._networkProducer.resumeProducing()
            data = b"".join(self._dataBuffer)
            self._dataBuffer = []
            HTTPChannel.setLineMode(self, data)

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """Write the header of an answer, with the fields that are on every answer in one piece."""
        if self.site.closing:
            headers.setRawHeaders(b"Connection", [b"close"])
        headers.removeHeader(b"Server")  # Twisted's own, with its version
        fields = [
            b"%s: %s\r\n" % (name, value) for name, values in headers.getAllRawHeaders() for value in values
        ]
        first = b"%s %s %s\r\n" % (version, code, reason)
        self.transport.writeSequence([first, COMMON_HEADER, *fields, b"\r\n"])

    def loseConnection(self) -> None:
        """Close when all is written, or without that when the client does not read."""
        self._wait(Phase.CLOSING, CLOSING_SECONDS)
        HTTPChannel.loseConnection(self)

    def abort(self) -> None:
        """Close now."""
        self._stop_clock()
        self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Give everything back."""
        self._stop_clock()
        self.site.connections.leave(self)
        HTTPChannel.connectionLost(self, reason)

    def lineLengthExceeded(self, line: bytes) -> None:  # noqa: ARG002 (Twisted's signature)
        """Refuse a header line of more than 16 kB."""
        self._respondToBadRequestAndDisconnect()

    def refuse(self, problem: Problem) -> None:
        """Answer before the request is complete, and close."""
        body = problem.body()
        headers = [
            *problem.headers().items(),
            (b"Date", datetimeToString()),
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Connection", b"close"),
        ]
        head = b"".join(b"%s: %s\r\n" % each for each in headers)
        self.persistent = False
        first = b"HTTP/1.1 %d Refused\r\n" % problem.status
        self.transport.writeSequence([first, COMMON_HEADER, head, b"\r\n", body])
        self.loseConnection()

    def is_idle(self) -> bool:
        """Whether nothing was asked that is not answered."""
        return self._phase in {Phase.IDLE, Phase.RECEIVING}

    def _wait(self, phase: Phase, seconds: float) -> None:
        self._phase = phase
        waiting = self.site.connections.waiting
        if phase is Phase.CLOSING:
            waiting.pop(self, None)
        elif self in self.site.connections.open:
            waiting.setdefault(self)
        if self._deadline is not None and self._deadline.active():
            self._deadline.reset(seconds)
        else:
            self._deadline = self.callLater(seconds, self._too_late)

    def _stop_clock(self) -> None:
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        match self._phase:
            case Phase.IDLE:
                self.loseConnection()
            case Phase.RECEIVING:
                self.refuse(Problem("timeout", "the request did not come in time; send it faster"))
            case Phase.ANSWERING | Phase.CLOSING:
                self.transport.abortConnection()

    def _send100Continue(self) -> None:
        if not self.requests[-1].over:
            HTTPChannel._send100Continue(self)  # noqa: SLF001 (it is ours by inheritance)

    def _maybeChooseTransferDecoder(self, header: bytes, data: bytes) -> bool:
        if header == b"Content-Length" and len(data) > 18 and data.isdigit():
            # Python refuses to read endless numbers, which would end in a traceback.
            self.refuse(TOO_LARGE)
            return False
        chosen = HTTPChannel._maybeChooseTransferDecoder(self, header, data)  # noqa: SLF001 (as above)
        return bool(chosen)

    def _respondToBadRequestAndDisconnect(self) -> None:
        self.refuse(Problem("malformed", "this is not a request of HTTP/1.1 within our limits"))
