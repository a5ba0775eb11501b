"""A scripted IMAP server in memory: what it says is written line by line in the test.

``ScriptedServer`` holds the server's end of an ``ImapConnection``.  ``expect`` checks what the client has
sent since the last time and remembers its tag; ``say`` sends lines, in which ``TAG`` stands for that tag.
Time is a ``task.Clock``: nothing waits.
"""

import re
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import PeerError
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.imap import ConnectionEvent, ImapConnection
from mailgateway.settings import Tls

T = TypeVar("T")

CAPABILITIES = b"IMAP4rev1 IDLE SASL-IR ID AUTH=PLAIN AUTH=XOAUTH2"


class MemoryTransport(StringTransport):
    """The client's transport: keeps what is written, and tells of a loss at once, like TCP after an abort."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = False
        self.tls_started = False
        self.client: ImapConnection | None = None

    def abortConnection(self) -> None:
        self.aborted = True
        self.lose(ConnectionDone())

    def startTLS(self, creator: object, normal: bool = True) -> None:  # noqa: ARG002 - the interface
        self.tls_started = True

    def lose(self, reason: BaseException) -> None:
        """The connection is gone."""
        client, self.client = self.client, None
        if client is not None:
            client.connectionLost(Failure(reason))


class ImapCase(SynchronousTestCase):
    """What tests of the IMAP connection share."""

    def failed(self, running: "Deferred[Any]", kind: type[PeerError]) -> Any:
        """The error, of exactly this type, that a coroutine has ended with."""
        error = self.failureResultOf(running).value
        self.assertIs(type(error), kind, error)
        return error


class ScriptedServer:
    """The server's end; the client is ``connection``, with its events in ``events``."""

    def __init__(self, tls: Tls = Tls.IMPLICIT, host: str = "mail.example.com") -> None:
        self.clock = Clock()
        self.connection = ImapConnection(self.clock, Peer(host, 993, tls))
        self.events: list[ConnectionEvent] = []
        self.connection.on_event = self.events.append
        self.transport = MemoryTransport()
        self.transport.client = self.connection
        self.connection.makeConnection(self.transport)
        self.tag = b""
        self.cut: Callable[[bytes], list[bytes]] = lambda data: [data]

    def expect(self, *parts: bytes) -> bytes:
        """What the client has sent: one command that holds each of these parts; gives the whole."""
        sent: bytes = self.transport.value()
        self.transport.clear()
        assert sent.endswith(b"\r\n"), sent
        if tagged := re.match(rb"A\d+(?= )", sent):
            self.tag = tagged.group()
        for part in parts:
            assert part in sent, (part, sent)
        return sent

    def silent(self) -> None:
        """The client has sent nothing."""
        assert self.transport.value() == b"", self.transport.value()

    def say(self, *lines: bytes) -> None:
        """Send lines, in one go."""
        self.raw(b"".join(line.replace(b"TAG", self.tag) + b"\r\n" for line in lines))

    def raw(self, data: bytes) -> None:
        """Send bytes, cut as ``cut`` says."""
        for piece in self.cut(data):
            if self.transport.client is not None:
                self.connection.dataReceived(piece)

    def hang_up(self, reason: BaseException | None = None) -> None:
        """Close the connection."""
        self.transport.lose(reason or ConnectionDone())

    def start(self, coroutine: Coroutine[Any, Any, T]) -> "Deferred[T]":
        """Run the client's coroutine as far as it goes."""
        return Deferred.fromCoroutine(coroutine)

    def opened(self, capabilities: bytes = CAPABILITIES) -> "ScriptedServer":
        """Greet, with these capabilities."""
        opening = self.start(self.connection.open())
        self.say(b"* OK [CAPABILITY " + capabilities + b"] ready")
        assert opening.called
        return self

    def preauthenticated(self, capabilities: bytes = CAPABILITIES) -> "ScriptedServer":
        """Greet a client that need not log in."""
        opening = self.start(self.connection.open())
        self.say(b"* PREAUTH [CAPABILITY " + capabilities + b"] welcome")
        assert opening.called
        return self

    def selected(self, exists: int = 9, capabilities: bytes = CAPABILITIES) -> "ScriptedServer":
        """Bring the client to the state where INBOX is selected."""
        self.preauthenticated(capabilities)
        selecting = self.start(self.connection.select("INBOX"))
        self.expect(b"SELECT INBOX")
        self.say(
            b"* %d EXISTS" % exists,
            b"* OK [UIDVALIDITY 3857529045] UIDs valid",
            b"* OK [UIDNEXT 4392] next",
            b"TAG OK [READ-WRITE] selected",
        )
        assert selecting.called
        return self
