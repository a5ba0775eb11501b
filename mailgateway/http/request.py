"""One request: admitted by its header, counted while it comes, stored only when wanted; and its factory.

Twisted stores bodies without bound.  Here the guards look when the header is complete; bodies of requests
that they refused are counted and thrown away, all others are counted before they are stored.  Uploads go to
a file; its name is ours, never the client's.
"""

import tempfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from twisted.internet.interfaces import IAddress
from twisted.python.failure import Failure
from twisted.web.http import HTTPFactory, Request, datetimeToString

from mailgateway.errors import Refusal
from mailgateway.flows.uploads import UPLOAD_LIMIT
from mailgateway.http.folder import Upload
from mailgateway.http.guards import Guards
from mailgateway.http.keys import VISITOR, Bearer
from mailgateway.http.limits import (
    IN_MEMORY,
    LARGEST_BODY,
    LARGEST_FORM,
    SMALL_FORM,
    TOO_LARGE,
    Channel,
    Connections,
)
from mailgateway.http.places import Places
from mailgateway.http.problems import Problem, problem_of

NO_SPACE = Problem("store_unavailable", "the body cannot be stored now; nothing was changed, try again soon")
TOO_MANY = Refusal(
    "too_many_waiting",
    "as many large bodies as may come at a time, of this key or in all, do so already; try again later",
    {"retryAfter": 5},
)


class LimitedRequest(Request):
    """One request: admitted by its header, counted while it comes, stored only when wanted."""

    channel: Any  # a Channel while connected, then None
    content: Any
    verdict: Bearer | Refusal
    upload: Upload | None = None
    """Where the body goes, when the route takes a file."""
    over = False
    """Whether the body was refused; the answer is given, what still comes is ignored."""
    received = 0
    """Octets of the body so far."""
    path: bytes
    _most = LARGEST_BODY
    _free = IN_MEMORY
    """Octets of the body that need no place."""
    _place: Callable[[], None] | None = None
    """Gives back the place that a large body takes."""

    def gotLength(self, length: int | None) -> None:
        """Let the guards look at the header, and choose where the body goes."""
        channel = self.channel
        site: LimitedSite = channel.site
        method, uri = channel._command, channel._path  # noqa: SLF001 (the only place that has them by now)
        self.verdict = site.guards.admit(self, method, uri)
        self.content = BytesIO()
        try:
            self.content = self._store(site, method, uri, length)
        except OSError:
            self._refuse(NO_SPACE)
        except Refusal as refusal:
            self._refuse(problem_of(refusal, ""))
        if not self.over and length is not None and length > self._most:
            self._refuse(TOO_LARGE)

    def _store(self, site: "LimitedSite", method: bytes, uri: bytes, length: int | None) -> IO[bytes]:
        if self.verdict is VISITOR:
            self._most, self._free = LARGEST_FORM, SMALL_FORM
        elif isinstance(self.verdict, Bearer):
            if method == b"POST" and uri.split(b"?", 1)[0] == b"/attachments" and length != 0:
                self._most = UPLOAD_LIMIT
                if length is None or length <= UPLOAD_LIMIT:
                    self.upload = site.begin_upload(self.verdict, length)
                    return self.upload.stream
            elif length is None or IN_MEMORY < length <= LARGEST_BODY:
                return tempfile.SpooledTemporaryFile(IN_MEMORY)
        return BytesIO()

    def handleContentChunk(self, data: bytes) -> None:
        """Count, then store."""
        if self.over:
            return
        self.received += len(data)
        if self.received > self._most:
            self._refuse(TOO_LARGE)
        elif isinstance(self.verdict, Bearer):
            try:
                if self.received > self._free and self.upload is None:
                    self._take_place(self.verdict)
                (self.upload or self.content).write(data)
            except OSError:
                self._refuse(NO_SPACE)
            except Refusal as refusal:
                self._refuse(problem_of(refusal, ""))

    def _take_place(self, bearer: Bearer) -> None:
        if self._place is None:
            bodies: Places = self.channel.site.bodies
            if not bodies.take(bearer):
                raise TOO_MANY
            self._place = lambda: bodies.give_back(bearer)

    def _give_back_place(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            place()

    def _refuse(self, problem: Problem) -> None:
        self.over = True
        self.discard_upload()
        self._give_back_place()
        self.channel.refuse(problem)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Go on when the request is complete, unless it was answered long ago."""
        if not self.over:
            Request.requestReceived(self, command, path, version)

    def process(self) -> None:
        """Answer what the guards refused, and hand on the rest."""
        if isinstance(self.verdict, Refusal):
            self.answer_problem(problem_of(self.verdict, ""))
            return
        self.set_field(b"Date", datetimeToString())
        try:
            self.channel.site.answer(self)
        except Exception:  # noqa: BLE001 (a defect in what begins to answer: the client gets its answer)
            self.processingFailed(Failure())

    def finish(self) -> None:
        """Be done: the body is not needed any more."""
        self._give_back_place()
        Request.finish(self)

    def is_gone(self) -> bool:
        """Whether nobody listens any more."""
        return bool(self._disconnected or self.finished)

    def set_field(self, name: bytes, value: bytes) -> None:
        """Set a field of the answer's header."""
        self.responseHeaders.setRawHeaders(name, [value])

    def answer_problem(self, problem: Problem) -> None:
        """Answer with a problem, and be done."""
        self.set_field(b"Date", datetimeToString())
        body = self.set_problem(problem)
        Request.write(self, body)
        self.finish()

    def set_problem(self, problem: Problem) -> bytes:
        """Set the status and header of a problem; the body that belongs to it."""
        body = problem.body()
        self.setResponseCode(problem.status)
        self.set_field(b"Content-Type", b"application/json")
        for name, value in problem.headers().items():
            self.set_field(name, value)
        self.set_field(b"Content-Length", b"%d" % len(body))
        return body

    def processingFailed(self, reason: Failure) -> None:
        """Say that we failed, in the one shape."""
        self.discard_upload()
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
        self._give_back_place()
        Request.connectionLost(self, reason)

    def _complete(self) -> bool:
        return self.args is not None

    def keep_upload(self) -> Path | None:
        """Take the file over: from now on it is not ours to remove."""
        upload = self.upload
        self.upload = None
        try:
            return None if upload is None else upload.keep()
        except OSError:
            raise Refusal(NO_SPACE.code, NO_SPACE.message) from None

    def discard_upload(self) -> None:
        """Remove the file."""
        upload = self.upload
        self.upload = None
        if upload is not None:
            upload.discard()


class LimitedSite(HTTPFactory):
    """The factory of limited connections; without HTTP/2, access log, or a clock of its own."""

    protocol: Any = Channel
    noisy = False
    closing = False
    """Set when the service stops: connections close after the answer they owe."""

    def __init__(
        self,
        answer: "Callable[[LimitedRequest], None]",
        reactor: Any,
        guards: Guards,
        connections: Connections,
        begin_upload: Callable[[Bearer, int | None], Upload],
        bodies: Places,
    ) -> None:
        without_end: Any = None  # what Twisted understands, and its types do not tell
        HTTPFactory.__init__(self, timeout=without_end, reactor=reactor)
        self.answer = answer
        self.guards = guards
        self.connections = connections
        self.begin_upload = begin_upload
        self.bodies = bodies

    def buildProtocol(self, addr: IAddress | None) -> Any:
        """Accept a connection when there is room."""
        if not self.connections.make_room():
            return None
        channel: Any = HTTPFactory.buildProtocol(self, addr)
        channel.requestFactory = _unparsed
        channel.site = self
        return channel

    def startFactory(self) -> None:
        """Start nothing: Twisted's would wake up every second for a log that we do not write."""

    def stopFactory(self) -> None:
        """Stop nothing."""

    def log(self, request: Any) -> None:
        """Write no access log: paths and queries are nobody's business."""


def _unparsed(channel: Any, queued: object) -> LimitedRequest:  # noqa: ARG001 (Twisted's signature)
    """A request whose body nobody takes for a form."""
    return LimitedRequest(channel, parsePOSTFormSubmission=False)
