"""Stock ``IMAP4Client`` on a transport in memory."""

from typing import Any

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import ITLSTransport
from twisted.internet.testing import StringTransport
from twisted.mail.imap4 import IMAP4Client
from zope.interface import directlyProvides

GREETING = b"* OK [CAPABILITY IMAP4rev1] ready"


class TlsableTransport(StringTransport):
    """Counts what a real one would do; the bytes in the client's own buffer are the point."""

    tls = False

    def startTLS(self, contextFactory: object, normal: bool = True) -> None:  # noqa: N803 - Twisted's name
        """Note that TLS was begun."""
        del contextFactory, normal
        self.tls = True


class NotingClient(IMAP4Client):
    """The stock client, which notes the events that it is told."""

    def __init__(self) -> None:
        super().__init__(contextFactory=object())
        self.told: list[object] = []

    def newMessages(self, exists: int | None, recent: int | None) -> None:
        """Note EXISTS and RECENT."""
        self.told.append((exists, recent))

    def flagsChanged(self, changed: dict[int, list[str]]) -> None:
        """Note flags."""
        self.told.append(changed)


@define(eq=False)
class Connected:
    """A client that has been greeted."""

    client: NotingClient
    transport: TlsableTransport

    def feed(self, *lines: bytes) -> None:
        """Let the server say some lines, in one segment; TAG stands for the tag of the running command."""
        tag = self.client.waiting or b"?"
        self.client.dataReceived(b"".join(line + b"\r\n" for line in lines).replace(b"TAG", tag))

    def result(self, started: "Deferred[Any]") -> list[Any]:
        """Collect what a command gives or fails with, if it has ended."""
        outcome: list[Any] = []
        started.addBoth(outcome.append)
        return outcome

    @property
    def sent(self) -> bytes:
        """What the client has sent so far."""
        return bytes(self.transport.value())


def connected(greeting: bytes = GREETING) -> Connected:
    """Connect and greet."""
    client, transport = NotingClient(), TlsableTransport()
    directlyProvides(transport, ITLSTransport)
    client.makeConnection(transport)
    both = Connected(client, transport)
    both.feed(greeting)
    return both
