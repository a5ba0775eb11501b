"""A network whose servers have names."""

from typing import Any

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IHostnameResolver, IReactorPluggableNameResolver
from zope.interface import implementer

from tests.daemons.world import Network

Address = IPv4Address | IPv6Address


@implementer(IHostnameResolver)
class Names:
    """Every name has the same addresses."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self.addresses = addresses

    def resolveHostName(
        self,
        resolutionReceiver: Any,  # noqa: N803 (Twisted's)
        hostName: str,  # noqa: ARG002, N803 (Twisted's)
        portNumber: int = 0,  # noqa: N803 (Twisted's)
        addressTypes: object = None,  # noqa: ARG002, N803 (Twisted's)
        transportSemantics: str = "TCP",  # noqa: ARG002, N803 (Twisted's)
    ) -> Any:
        """Tell them at once."""
        resolutionReceiver.resolutionBegan(None)
        for address in self.addresses:
            kind = IPv6Address if ":" in address else IPv4Address
            resolutionReceiver.addressResolved(kind("TCP", address, portNumber))
        resolutionReceiver.resolutionComplete()
        return resolutionReceiver


@implementer(IReactorPluggableNameResolver)
class NamedNetwork(Network):
    """All names lead to the servers of this network."""

    def __init__(self, *addresses: str) -> None:
        super().__init__()
        self.nameResolver = Names(addresses or ("127.0.0.1",))

    def installNameResolver(self, resolver: Any) -> Any:
        """Not needed."""
        return resolver
