"""Limits: how long a request may take to come, how large it may be, and how many may be connected.

Twisted's own idle timer is reset by every byte, so a client that dribbles stays for ever, and its bodies
are stored without bound.  Here receiving has an absolute deadline, bodies are counted before they are
stored, and the number of connections has a bound.  Over that bound whoever has waited longest without
asking anything makes room: a flood of idle connections only ever pushes out itself.

Bodies of requests that the guards refused are counted and thrown away.  Uploads go to a file; its name is
ours, never the client's.
"""

import tempfile
from collections.abc import Callable
from enum import Enum, auto
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IAddress, IDelayedCall
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel, datetimeToString
from twisted.web.iweb import IRequest
from twisted.web.resource import IResource
from twisted.web.server import Request, Site

from mailgateway.errors import Refusal
from mailgateway.flows.waiting import Timers
from mailgateway.http.guards import API_VERSION, Guards
from mailgateway.http.keys import Bearer
from mailgateway.http.problems import Problem, problem_of

HEADER_SECONDS = 20.0
BODY_SECONDS = 60.0
UPLOAD_SECONDS = 300.0
IDLE_SECONDS = 60.0
CLOSING_SECONDS = 15.0

LARGEST_BODY = 1_000_000
LARGEST_UPLOAD = 25_000_000
IN_MEMORY = 100_000
MOST_CONNECTIONS = 1_000

COMMON_HEADERS = (
    (b"Server", b"mailgateway"),
    (b"Mailgateway-Api", b"%d" % API_VERSION),
    (b"Cache-Control", b"no-store"),
    (b"X-Content-Type-Options", b"nosniff"),
)
"""On every answer, whoever gives it."""


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
        """Whether one more may come; it may cost the one that waits longest its place."""
        if len(self.open) - self.streams < self.most:
            return True
        if not self.waiting:
            return False
        oldest = next(iter(self.waiting))
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
    _phase = Phase.IDLE
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
        request = self.requests[-1] if self.requests else None
        if self.length != 0 and isinstance(request, LimitedRequest) and self._phase is Phase.RECEIVING:
            self._wait(Phase.RECEIVING, UPLOAD_SECONDS if request.upload else BODY_SECONDS)

    def allContentReceived(self) -> None:
        """Stop the clock: now it is our turn."""
        if self._phase is Phase.RECEIVING:
            self._phase = Phase.ANSWERING
            self.site.connections.waiting.pop(self, None)
            self._stop_clock()
        HTTPChannel.allContentReceived(self)

    def requestDone(self, request: IRequest) -> None:
        """Wait for the next request, if there may be one."""
        if self.site.closing:
            self.persistent = False
        if self.persistent:
            self._wait(Phase.IDLE, IDLE_SECONDS)
        HTTPChannel.requestDone(self, request)

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
            *COMMON_HEADERS,
            *problem.headers().items(),
            (b"Date", datetimeToString()),
            (b"Content-Type", b"application/json"),
            (b"Content-Length", b"%d" % len(body)),
            (b"Connection", b"close"),
        ]
        head = b"".join(b"%s: %s\r\n" % each for each in headers)
        self.persistent = False
        self.transport.write(b"HTTP/1.1 %d Refused\r\n%s\r\n%s" % (problem.status, head, body))
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
        request = self.requests[-1]
        if not (isinstance(request, LimitedRequest) and request.over):
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


TOO_LARGE = Problem("too_large", f"a body has at most {LARGEST_BODY:,} bytes, an upload {LARGEST_UPLOAD:,}")


class LimitedRequest(Request):
    """One request: admitted by its header, counted while it comes, stored only when wanted."""

    site: "LimitedSite"
    channel: Any  # a Channel while connected, then None
    content: Any
    defaultContentType = b"application/json"  # noqa: N815 (Twisted's name)
    verdict: Bearer | Refusal
    upload: Path | None = None
    """Where the body is, when the route takes a file."""
    over = False
    """Whether the body was refused for its size; the answer is given, what still comes is ignored."""
    received = 0
    """Octets of the body so far."""
    _most = LARGEST_BODY

    def gotLength(self, length: int | None) -> None:
        """Let the guards look at the header, and choose where the body goes."""
        channel = self.channel
        site: LimitedSite = channel.site
        method, uri = channel._command, channel._path  # noqa: SLF001 (the only place that has them by now)
        self.verdict = site.guards.admit(self, method, uri)
        self.content = self._store(site, method, uri, length)
        if length is not None and length > self._most:
            self._refuse_size()

    def _store(self, site: "LimitedSite", method: bytes, uri: bytes, length: int | None) -> IO[bytes]:
        if isinstance(self.verdict, Bearer):
            if method == b"POST" and uri.split(b"?", 1)[0] == b"/attachments" and length != 0:
                self._most = LARGEST_UPLOAD
                if length is None or length <= LARGEST_UPLOAD:
                    self.upload, stream = site.new_upload()
                    return stream
            elif length is None or IN_MEMORY < length <= LARGEST_BODY:
                return tempfile.SpooledTemporaryFile(IN_MEMORY)
        return BytesIO()

    def handleContentChunk(self, data: bytes) -> None:
        """Count, then store."""
        if self.over:
            return
        self.received += len(data)
        if self.received > self._most:
            self._refuse_size()
        elif isinstance(self.verdict, Bearer):
            self.content.write(data)

    def _refuse_size(self) -> None:
        self.over = True
        self.discard_upload()
        self.channel.refuse(TOO_LARGE)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Go on when the request is complete, unless it was answered long ago."""
        if not self.over:
            Request.requestReceived(self, command, path, version)

    def process(self) -> None:
        """Answer what the guards refused, and hand on the rest."""
        if isinstance(self.verdict, Refusal):
            self.answer_problem(problem_of(self.verdict, ""))
        else:
            Request.process(self)

    def setHeader(self, name: bytes, value: bytes) -> None:
        """Set a field of the answer's header, except that we do not say which server this is."""
        if name != b"Server":
            Request.setHeader(self, name, value)

    def write(self, data: bytes) -> None:
        """Write a part of the answer; the first brings the fields that are on every answer."""
        if not self.startedWriting and self.channel is not None:
            for name, value in COMMON_HEADERS:
                self.responseHeaders.setRawHeaders(name, [value])
            if self.channel.site.closing:
                self.responseHeaders.setRawHeaders(b"Connection", [b"close"])
        Request.write(self, data)

    def getRequestHostname(self) -> bytes:
        """Say who was asked; the guards have looked at the Host field, which routing has no use for."""
        return b"localhost"

    def is_gone(self) -> bool:
        """Whether nobody listens any more."""
        return bool(self._disconnected or self.finished)

    def answer_problem(self, problem: Problem) -> None:
        """Answer with a problem, and be done."""
        self.site = self.channel.site
        self.setHeader(b"Date", datetimeToString())
        body = self.set_problem(problem)
        self.write(body)
        Request.finish(self)

    def set_problem(self, problem: Problem) -> bytes:
        """Set the status and header of a problem; the body that belongs to it."""
        body = problem.body()
        self.setResponseCode(problem.status)
        self.setHeader(b"Content-Type", b"application/json")
        for name, value in problem.headers().items():
            self.setHeader(name, value)
        self.setHeader(b"Content-Length", b"%d" % len(body))
        return body

    def processingFailed(self, reason: Failure) -> None:
        """Say that we failed, in the one shape."""
        error = reason.value
        problem = problem_of(error if isinstance(error, Exception) else Exception(), "the request")
        if self.startedWriting:
            Request.loseConnection(self)
        else:
            self.answer_problem(problem)

    def connectionLost(self, reason: Failure) -> None:
        """Forget a file that nobody will use."""
        if not self._complete():
            self.discard_upload()
        Request.connectionLost(self, reason)

    def _complete(self) -> bool:
        return self.args is not None

    def keep_upload(self) -> Path | None:
        """Take the file over: from now on it is not ours to remove."""
        self.upload, kept = None, self.upload
        if self.content is not None:
            self.content.flush()
        return kept

    def discard_upload(self) -> None:
        """Remove the file."""
        if self.upload is not None:
            self.upload.unlink(missing_ok=True)
            self.upload = None


class LimitedSite(Site):
    """The factory of limited connections; without HTTP/2, access log, sessions, or a clock of its own."""

    protocol: Any = Channel
    noisy = False
    closing = False
    """Set when the service stops: connections close after the answer they owe."""

    def __init__(
        self,
        resource: IResource,
        reactor: Any,
        guards: Guards,
        connections: Connections,
        new_upload: Callable[[], tuple[Path, IO[bytes]]],
    ) -> None:
        Site.__init__(
            self, resource, LimitedRequest, timeout=None, reactor=reactor, parsePOSTFormSubmission=False
        )
        self.guards = guards
        self.connections = connections
        self.new_upload = new_upload

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Accept a connection when there is room."""
        return Site.buildProtocol(self, addr) if self.connections.make_room() else None

    def startFactory(self) -> None:
        """Start nothing: Twisted's would wake up every second for a log that we do not write."""

    def stopFactory(self) -> None:
        """Stop nothing."""

    def log(self, request: Any) -> None:
        """Write no access log: paths and queries are nobody's business."""
