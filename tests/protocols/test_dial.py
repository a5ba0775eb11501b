"""Dialling: whom we talk to is certain, and nobody keeps us waiting."""

import socket
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, ConnectionDone, DNSLookupError
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from mailgateway.errors import ConfigError, PeerError, TlsRefused, Unreachable
from mailgateway.protocols.dial import (
    KEEPALIVE_IDLE,
    KEEPALIVE_INTERVAL,
    KEEPALIVE_PROBES,
    USER_TIMEOUT_MILLISECONDS,
    Peer,
    client_tls,
    dial,
    failure_of,
    is_loopback,
)
from mailgateway.settings import Tls
from tests.fakes.certificates import Authority, self_signed, server_side

reactor: Any = global_reactor


class Greeter(Protocol):
    """A server that greets and leaves the rest to the client."""

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(b"hello")


class Visitor(Protocol):
    """A client that waits for the greeting, and for the end."""

    transport: Any

    def __init__(self) -> None:
        self.heard: Deferred[bytes] = Deferred()
        self.lost: Deferred[None] = Deferred()

    def dataReceived(self, data: bytes) -> None:
        if not self.heard.called:
            self.heard.callback(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if not self.heard.called:
            self.heard.errback(reason)
        self.lost.callback(None)


class PeerTests(SynchronousTestCase):
    """Names of servers."""

    def test_loopback(self) -> None:
        """By its spelling; a name that only resolves to this machine does not count."""
        for host in ("localhost", "LOCALHOST.", "127.0.0.1", "127.8.8.8", "::1"):
            self.assertTrue(is_loopback(host), host)
        for host in ("", "example.org", "localhost.example.org", "10.0.0.1", "0.0.0.0", "::"):
            self.assertFalse(is_loopback(host), host)

    def test_text(self) -> None:
        """For people; an IPv6 literal needs brackets."""
        self.assertEqual(str(Peer("imap.example.org", 993, Tls.IMPLICIT)), "imap.example.org:993")
        self.assertEqual(str(Peer("::1", 993, Tls.IMPLICIT)), "[::1]:993")

    def test_unreadable_trust(self) -> None:
        """The operator has to give another file."""
        for trust in (b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff"):
            with self.assertRaises(ConfigError):
                client_tls(Peer("localhost", 993, Tls.IMPLICIT, trust))


class FailureTests(SynchronousTestCase):
    """Reasons in the words of the error tree."""

    def test_table(self) -> None:
        """What is ours stays, what is the network's is transient, and the peer is named."""
        peer = Peer("imap.example.org", 993, Tls.IMPLICIT)
        own = TlsRefused("x")
        self.assertIs(failure_of(own, peer), own)
        for reason in (ConnectionDone(), ConnectError(), DNSLookupError("no"), OSError("?"), None):
            error = failure_of(reason, peer)
            self.assertIs(type(error), Unreachable)
            self.assertIn("imap.example.org:993", error.text)


class TimeTests(SynchronousTestCase):
    """Name resolution and connecting together have one deadline."""

    def test_deadline(self) -> None:
        """A connection that is never made fails in time, and leaves no timer."""
        memory = MemoryReactorClock()
        dialling = dial(memory, Peer("127.0.0.1", 993, Tls.NONE), Factory.forProtocol(Visitor), 30)
        memory.advance(29)
        self.assertNoResult(dialling)
        memory.advance(2)
        error = self.failureResultOf(dialling, Unreachable).value
        self.assertEqual(str(error), "no connection to 127.0.0.1:993 within 30 s")
        self.assertEqual(memory.getDelayedCalls(), [])

    def test_cancel(self) -> None:
        """Whoever cancels is not told that the peer is unreachable."""
        memory = MemoryReactorClock()
        dialling = dial(memory, Peer("127.0.0.1", 993, Tls.NONE), Factory.forProtocol(Visitor))
        dialling.cancel()
        self.failureResultOf(dialling, CancelledError)


class LoopbackTests(TestCase):
    """Real sockets and real certificates."""

    timeout = 20

    def listen(self, pem: bytes | None) -> int:
        """A greeting server on a free port."""
        factory = Factory.forProtocol(Greeter)
        if pem is None:
            port = reactor.listenTCP(0, factory, interface="127.0.0.1")
        else:
            port = reactor.listenSSL(0, factory, server_side(pem), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        number: int = port.getHost().port
        return number

    async def visit(self, peer: Peer) -> Visitor:
        """A connection that has heard the greeting; fails as the protocols would."""
        visitor: Any = await dial(reactor, peer, Factory.forProtocol(Visitor), 10)
        try:
            self.assertEqual(await visitor.heard, b"hello")
        except Exception as reason:
            raise failure_of(reason, peer) from reason
        assert isinstance(visitor, Visitor)
        self.addCleanup(lambda: visitor.lost)
        self.addCleanup(visitor.transport.abortConnection)
        return visitor

    async def refused(self, peer: Peer) -> PeerError:
        """The error that keeps us from talking to that peer."""
        try:
            await self.visit(peer)
        except PeerError as error:
            return error
        raise AssertionError("the peer was accepted")

    async def test_socket_options(self) -> None:
        """The kernel watches the connection, with TLS and without."""
        ca = Authority()
        for tls, pem in ((Tls.NONE, None), (Tls.IMPLICIT, ca.issue("127.0.0.1"))):
            visitor = await self.visit(Peer("127.0.0.1", self.listen(pem), tls, ca.pem))
            transport = visitor.transport
            handle = transport.getHandle() if pem is None else transport.transport.getHandle()
            for level, option, value in (
                (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
                (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
                (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE),
                (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL),
                (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES),
                (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MILLISECONDS),
            ):
                self.assertEqual(handle.getsockopt(level, option), value)

    async def test_known_authority(self) -> None:
        """By name and by address."""
        ca = Authority()
        port = self.listen(ca.issue("localhost", "127.0.0.1"))
        await self.visit(Peer("localhost", port, Tls.IMPLICIT, ca.pem))
        await self.visit(Peer("127.0.0.1", port, Tls.IMPLICIT, ca.pem))

    async def test_bundle(self) -> None:
        """Several anchors: any of them will do."""
        ca, other = Authority(), Authority()
        port = self.listen(ca.issue("127.0.0.1"))
        await self.visit(Peer("127.0.0.1", port, Tls.IMPLICIT, other.pem + ca.pem))

    async def test_bad_certificates(self) -> None:
        """Each is refused, and the text says what is wrong with it."""
        ca = Authority()
        good, lonely = ca.issue("127.0.0.1"), self_signed("127.0.0.1")[0]
        for pem, trust, why in (
            (good, Authority().pem, "unknown authority"),
            (good, None, "unknown authority"),
            (ca.issue("other.example"), ca.pem, "another name"),
            (ca.issue("127.0.0.1", expired=True), ca.pem, "expired"),
            (lonely, ca.pem, "self-signed"),
            (lonely, None, "self-signed"),
        ):
            peer = Peer("127.0.0.1", self.listen(pem), Tls.IMPLICIT, trust)
            error = await self.refused(peer)
            self.assertIsInstance(error, TlsRefused, why)
            self.assertIn(why, error.text)
            self.assertIn(str(peer), error.text)

    async def test_pinned(self) -> None:
        """One certificate that the server presents itself is believed whatever its name; a twin is not."""
        pem, pin = self_signed("bridge")
        await self.visit(Peer("127.0.0.1", self.listen(pem), Tls.IMPLICIT, pin))
        twin = self_signed("bridge")[0]
        error = await self.refused(Peer("127.0.0.1", self.listen(twin), Tls.IMPLICIT, pin))
        self.assertIsInstance(error, TlsRefused)

    async def test_pinned_leaf_of_an_authority(self) -> None:
        """The pin needs no authority; another leaf of the same authority is refused."""
        ca = Authority()
        pem = ca.issue("elsewhere.example")
        pin = pem[pem.index(b"-----BEGIN CERTIFICATE") :]
        await self.visit(Peer("127.0.0.1", self.listen(pem), Tls.IMPLICIT, pin))
        error = await self.refused(Peer("127.0.0.1", self.listen(ca.issue("127.0.0.1")), Tls.IMPLICIT, pin))
        self.assertIsInstance(error, TlsRefused)

    async def test_two_certificates_are_no_pin(self) -> None:
        """A leaf among several anchors is believed for its own names only."""
        ca = Authority()
        for name, good in (("elsewhere.example", False), ("127.0.0.1", True)):
            pem = ca.issue(name)
            trust = pem[pem.index(b"-----BEGIN CERTIFICATE") :] + Authority().pem
            peer = Peer("127.0.0.1", self.listen(pem), Tls.IMPLICIT, trust)
            if good:
                await self.visit(peer)
            else:
                self.assertIn("another name", (await self.refused(peer)).text)

    async def test_a_certificate_signed_by_the_pinned_one_needs_its_name(self) -> None:
        """One anchor is an anchor, too: what it has signed is checked by name."""
        ca = Authority()
        error = await self.refused(
            Peer("127.0.0.1", self.listen(ca.issue("other.example")), Tls.IMPLICIT, ca.pem)
        )
        self.assertIn("another name", error.text)

    async def test_no_tls_at_the_other_end(self) -> None:
        """A server that greets in clear on a TLS port."""
        error = await self.refused(Peer("127.0.0.1", self.listen(None), Tls.IMPLICIT))
        self.assertIsInstance(error, TlsRefused)

    async def test_nobody_there(self) -> None:
        """A closed port is told at once."""
        port = reactor.listenTCP(0, Factory.forProtocol(Greeter), interface="127.0.0.1")
        number = port.getHost().port
        await port.stopListening()
        error = await self.refused(Peer("127.0.0.1", number, Tls.NONE))
        self.assertIsInstance(error, Unreachable)
        self.assertIn(f"127.0.0.1:{number}", error.text)
