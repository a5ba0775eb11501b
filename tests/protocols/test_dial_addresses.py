"""A server with two addresses, one of which leads nowhere (row 54)."""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import Unreachable
from mailgateway.protocols.dial import Peer, dial
from mailgateway.settings import Tls
from tests.daemons.named import NamedNetwork

V6, V4 = "2001:db8::1", "192.0.2.1"


class BrokenPath(NamedNetwork):
    """Packets to some addresses vanish."""

    def __init__(self, *addresses: str, broken: str) -> None:
        super().__init__(*addresses)
        self.broken = broken
        self.tried: list[str] = []

    def connectTCP(self, host: str, port: int, factory: Any, *how: Any, **more: Any) -> Any:
        """Connect, or never answer."""
        self.tried.append(host)
        if host == self.broken:
            silent = _Silent()
            factory.startedConnecting(silent)
            return silent
        return super().connectTCP(host, port, factory, *how, **more)


class _Silent:
    """A connector whose attempt nobody answers."""

    def stopConnecting(self) -> None:
        """Give it up."""

    def getDestination(self) -> str:
        """Where nobody is."""
        return "nowhere"


class AddressTests(SynchronousTestCase):
    """One path is broken, the other is fine."""

    def dialling(self, *addresses: str, broken: str) -> "tuple[BrokenPath, Deferred[Any]]":
        """Dial a name with these addresses."""
        network = BrokenPath(*addresses, broken=broken)
        network.servers[143] = Protocol
        peer = Peer("imap.example.org", 143, Tls.STARTTLS)
        return network, dial(network, peer, Factory.forProtocol(Protocol), 30)

    def test_either_path(self) -> None:
        """The other one is tried within a second, and wins."""
        for broken in (V6, V4):
            network, connecting = self.dialling(V6, V4, broken=broken)
            for _ in range(10):
                network.advance(0.1)
            self.successResultOf(connecting)
            self.assertIn({V6: V4, V4: V6}[broken], network.tried)

    def test_both_paths(self) -> None:
        """The cap is half a minute for all addresses together."""
        network, connecting = self.dialling(V6, broken=V6)
        for _ in range(299):
            network.advance(0.1)
        self.assertNoResult(connecting)
        network.advance(0.2)
        self.failureResultOf(connecting, Unreachable)
