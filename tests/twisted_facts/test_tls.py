"""A peer that hangs on a TLS connection."""

from typing import Any

import trustme
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.ssl import (
    Certificate,
    KeyPair,
    PrivateCertificate,
    optionsForClientTLS,
    trustRootFromCertificates,
)
from twisted.internet.testing import MemoryReactorClock
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure
from twisted.test.iosim import IOPump, connectedServerAndClient
from twisted.trial.unittest import SynchronousTestCase


class Noting(Protocol):
    """Notes that the connection is lost."""

    lost = False

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Note it."""
        del reason
        self.lost = True


def hung() -> tuple[Noting, Any, IOPump]:
    """Connect two ends with TLS in memory; from now on the server takes bytes and says nothing."""
    authority = trustme.CA()
    issued = authority.issue_cert("peer.example")
    certificate = Certificate.loadPEM(issued.cert_chain_pems[0].bytes())
    key = KeyPair.load(issued.private_key_pem.bytes(), 1)  # 1 is PEM
    server = PrivateCertificate.fromCertificateAndKeyPair(certificate, key).options()
    trust = trustRootFromCertificates([Certificate.loadPEM(authority.cert_pem.bytes())])
    client = optionsForClientTLS("peer.example", trust)
    clock = MemoryReactorClock()
    inner = Noting()
    ends = [
        TLSMemoryBIOFactory(server, False, Factory.forProtocol(Noting), clock),
        TLSMemoryBIOFactory(client, True, Factory.forProtocol(lambda: inner), clock),
    ]
    deaf: Any
    _, deaf, pump = connectedServerAndClient(
        lambda: ends[0].buildProtocol(None), lambda: ends[1].buildProtocol(None), greet=False, clock=clock
    )
    pump.flush()
    deaf.dataReceived = lambda _: None
    return inner, inner.transport, pump


class HungPeerTests(SynchronousTestCase):
    """What ends a connection whose other side does not answer."""

    def test_lose_connection_waits_for_ever(self) -> None:
        """``loseConnection`` waits for the peer's goodbye, which never comes."""
        inner, transport, pump = hung()
        transport.loseConnection()
        pump.flush()
        self.assertFalse(inner.lost)

    def test_abort_connection_ends_it(self) -> None:
        """``abortConnection`` is the only way out."""
        inner, transport, pump = hung()
        transport.abortConnection()
        pump.flush()
        self.assertTrue(inner.lost)
