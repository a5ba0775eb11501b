"""The IMAP client over real sockets and TLS, against Twisted's own server and against a scripted one."""

from datetime import UTC, datetime
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase

from mailgateway.demo.server import MailServer
from mailgateway.errors import LoginRefused, PeerError, TlsRefused
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.imap import CountChanged, FetchedHeaders, ImapConnection, UidSet
from mailgateway.settings import Tls
from mailgateway.wire.sasl import Password
from tests.fakes.certificates import Authority, server_side

reactor: Any = global_reactor

ANN = "ann@example.com"
MAIL = b"From: bob@example.com\r\nSubject: lunch\r\n\r\nAt noon?\r\n"


class Told(Protocol):
    """A server that says one thing at once, another after the first bytes, and tells when it is left."""

    transport: Any

    def __init__(self, greeting: bytes, answer: bytes) -> None:
        self.greeting = greeting
        self.answer = answer
        self.heard = b""
        self.made: Deferred[None] = Deferred()
        self.lost: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        self.transport.write(self.greeting)
        self.made.callback(None)

    def dataReceived(self, data: bytes) -> None:
        if not self.heard:
            self.transport.write(self.answer)
        self.heard += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:  # noqa: ARG002 - Twisted's signature
        self.lost.callback(None)


class Only(Factory):
    """Serves with one protocol, made before."""

    noisy = False

    def __init__(self, protocol: Protocol) -> None:
        self.only = protocol

    def buildProtocol(self, addr: object) -> Protocol:  # noqa: ARG002 - Twisted's signature
        return self.only


class LoopbackTests(TestCase):
    """What needs a reactor."""

    timeout = 30

    def listen(self, protocol: Protocol, tls: Tls = Tls.NONE) -> Peer:
        """Serve with ``protocol``; how to dial it."""
        authority = Authority()
        if tls is Tls.IMPLICIT:
            port = reactor.listenSSL(
                0, Only(protocol), server_side(authority.issue("localhost")), interface="127.0.0.1"
            )
        else:
            port = reactor.listenTCP(0, Only(protocol), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        return Peer("localhost", port.getHost().port, tls, authority.pem)

    async def test_a_session_with_twisteds_server(self) -> None:
        """A server that we have not written: TLS, login, headers, a small body, IDLE, flags, search."""
        server = MailServer({ANN: "pass word"})
        inbox = server.mailboxes[ANN]
        inbox.file(MAIL)
        news: Deferred[object] = Deferred()
        connection = await ImapConnection.connect(
            reactor, self.listen(server.imap(), Tls.IMPLICIT), on_event=lambda event: tell(news, event)
        )
        self.addCleanup(connection.abort)
        await connection.login(Password(ANN, "pass word"))
        selected = await connection.select("INBOX")
        self.assertEqual((selected.exists, selected.uid_next, selected.read_only), (1, 2, False))
        messages: list[FetchedHeaders] = []
        await connection.fetch_headers(1, None, ["Subject"], messages.append, small_body=1000)
        self.assertEqual(messages[0].header, b"Subject: lunch\r\n\r\n")
        self.assertEqual(messages[0].body, MAIL)
        received = messages[0].internal_date
        assert received is not None
        self.assertLess(abs((datetime.now(UTC) - received).total_seconds()), 60)
        connection.pause()
        connection.resume()
        await connection.idle()
        inbox.file(MAIL)
        self.assertEqual(await news, CountChanged(2))
        await connection.done()
        self.assertEqual(await connection.fetch_message(2, 10), MAIL[:10])
        self.assertIsNone(await connection.fetch_message(7, 10))
        await connection.add_seen([2])
        self.assertIn("\\Seen", inbox.letters[1].getFlags())
        self.assertEqual(await connection.search_uid([2, 3, 9]), UidSet.of([2]))
        await connection.logout()
        self.assertFalse(connection.alive)

    async def test_a_wrong_password(self) -> None:
        """Is refused once, and the connection can still take its leave."""
        server = MailServer({ANN: "pass word"})
        connection = await ImapConnection.connect(reactor, self.listen(server.imap()))
        with self.assertRaises(LoginRefused):
            await connection.login(Password(ANN, "wrong"))
        await connection.logout()

    async def test_plain_text_slipped_in_behind_starttls(self) -> None:
        """Over a real socket, too, nothing behind the agreement is read, and no handshake begins."""
        told = Told(
            b"* OK [CAPABILITY IMAP4rev1 STARTTLS] hi\r\n", b"A1 OK go\r\n* CAPABILITY AUTH=PLAIN\r\n"
        )
        peer = self.listen(told)
        with self.assertRaises(TlsRefused):
            await ImapConnection.connect(reactor, Peer(peer.host, peer.port, Tls.STARTTLS, peer.trust))
        await told.lost
        self.assertEqual(told.heard, b"A1 STARTTLS\r\n")

    async def test_a_certificate_that_nobody_vouches_for(self) -> None:
        """No greeting is believed."""
        peer = self.listen(Told(b"* OK hi\r\n", b""), Tls.IMPLICIT)
        with self.assertRaises(TlsRefused):
            await ImapConnection.connect(reactor, Peer(peer.host, peer.port, peer.tls))

    async def test_cancelling_while_the_server_is_silent(self) -> None:
        """Whoever gives up leaves no connection behind."""
        told = Told(b"", b"")
        connecting = Deferred.fromCoroutine(ImapConnection.connect(reactor, self.listen(told)))
        await told.made
        connecting.cancel()
        try:
            await connecting
        except (CancelledError, PeerError):
            await told.lost
        else:
            self.fail("connected to a server that did not greet")


def tell(news: "Deferred[object]", event: object) -> None:
    """Fire once."""
    if not news.called:
        news.callback(event)
