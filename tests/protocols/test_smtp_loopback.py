"""The submission client over real sockets and TLS, against aiosmtpd and against a scripted server."""

from pathlib import Path
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.trial.unittest import TestCase

from mailgateway.errors import LoginRefused, PeerError, TlsRefused
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.smtp import SmtpConnection, connect
from mailgateway.settings import Tls
from mailgateway.wire.sasl import BearerToken, Credential, Password
from mailgateway.wire.smtp_outcome import Accepted, Rejected
from mailgateway.wire.submission import Submission
from tests.fakes.authority import Authority
from tests.fakes.certificates import Authority as Issuer
from tests.fakes.certificates import server_side
from tests.fakes.smtp_script import Script
from tests.fakes.smtp_sink import SmtpSink

reactor: Any = global_reactor

AGENT = Password("agent@example.org", "sécret")
MESSAGE = b"Subject: hi\r\n\r\n" + b".\r\n..\r\n.x\r\nMAIL FROM:<evil@evil.example>\r\n" * 20_000


class LoopbackTestCase(TestCase):
    """What the tests below share."""

    timeout = 30

    async def connected(self, peer: Peer, credential: Credential | None = AGENT) -> SmtpConnection:
        """A connection that is ready for mails, and is gone after the test."""
        connection = await connect(reactor, peer, credential, "box.example")
        self.addCleanup(connection.abort)
        return connection

    async def refused(self, peer: Peer, credential: Credential | None = AGENT) -> PeerError:
        """Why there is no connection."""
        try:
            await self.connected(peer, credential)
        except PeerError as error:
            return error
        raise AssertionError("the connection was made")


class AiosmtpdTests(LoopbackTestCase):
    """A server that we have not written."""

    def sink(self, tls: Tls, **more: Any) -> tuple[SmtpSink, Peer]:
        """A server on a free port, and how to dial it."""
        authority = Authority.make(Path(self.mktemp()))
        sink = SmtpSink(tls=tls.value, authority=authority, **more).start()
        self.addCleanup(sink.stop)
        return sink, Peer("127.0.0.1", sink.port, tls, authority.anchor.read_bytes())

    async def test_mails_by_password(self) -> None:
        """Two mails over one connection, byte for byte, with a recipient who is refused."""
        for tls in (Tls.IMPLICIT, Tls.STARTTLS):
            sink, peer = self.sink(
                tls, users={AGENT.username: AGENT.password}, refused={"no@example.org": "550 5.1.1 nobody"}
            )
            connection = await self.connected(peer)
            for number in (1, 2):
                recipients = ("yes@example.org", "no@example.org")
                result = await connection.send(Submission("agent@example.org", recipients, MESSAGE))
                queued = f"2.0.0 queued as Q{number}"
                self.assertEqual(result.outcomes, (Accepted(250, queued), Rejected(550, "5.1.1 nobody")))
                self.assertEqual(result.text, queued)
            await connection.quit()
            self.assertFalse(connection.usable)
            for received in sink.mails:
                self.assertEqual(received.raw, MESSAGE)
                self.assertEqual(received.recipients, ("yes@example.org",))
                self.assertEqual(received.sender, "agent@example.org")
                self.assertEqual(received.login, AGENT.username)
                self.assertTrue(received.encrypted or tls is Tls.IMPLICIT)
            self.assertEqual(len(sink.mails), 2)

    async def test_mail_by_token(self) -> None:
        """A bearer token, longer than an AUTH line may be."""
        token = "ya29." + "x" * 600
        sink, peer = self.sink(Tls.IMPLICIT, tokens={"agent@example.org": token})
        credential = BearerToken("agent@example.org", peer.host, peer.port, token)
        connection = await self.connected(peer, credential)
        await connection.send(Submission("agent@example.org", ("yes@example.org",), b"\r\n"))
        await connection.quit()
        self.assertEqual(sink.mails[0].mechanism, "OAUTHBEARER")

    async def test_wrong_password(self) -> None:
        """It is tried once."""
        sink, peer = self.sink(Tls.STARTTLS, users={AGENT.username: "another"})
        self.assertIsInstance(await self.refused(peer), LoginRefused)
        self.assertEqual(sink.logins_refused, 1)


class StartTlsTests(LoopbackTestCase):
    """STARTTLS with a real handshake."""

    def listen(self, script: Script, issuer: Issuer, name: str) -> Peer:
        """A scripted server with a certificate for a name."""
        script.tls = server_side(issuer.issue(name))
        port = reactor.listenTCP(0, script.factory(), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        return Peer("127.0.0.1", port.getHost().port, Tls.STARTTLS, issuer.pem)

    async def test_extensions_are_read_again(self) -> None:
        """What was offered in clear counts for nothing."""
        script = Script(
            users={AGENT.username: AGENT.password},
            extensions=["STARTTLS", "SIZE 1", "SMTPUTF8", "AUTH GSSAPI"],
            after_tls=["AUTH PLAIN"],
        )
        connection = await self.connected(self.listen(script, Issuer(), "127.0.0.1"))
        self.assertIsNone(connection.offered.size)
        self.assertFalse(connection.offered.utf8)
        self.assertEqual(script.verbs(), ["EHLO", "STARTTLS", "EHLO", "AUTH", "EHLO"])
        await connection.quit()

    async def test_certificate_for_another_name(self) -> None:
        """The handshake ends it, and nothing is said inside TLS."""
        script = Script(extensions=["STARTTLS", "AUTH PLAIN"])
        error = await self.refused(self.listen(script, Issuer(), "other.example"))
        self.assertIsInstance(error, TlsRefused)
        self.assertIn("another name", error.text)
        self.assertEqual(script.verbs(), ["EHLO", "STARTTLS"])

    async def test_unknown_authority(self) -> None:
        """So does an authority that is not ours."""
        script = Script(extensions=["STARTTLS", "AUTH PLAIN"])
        peer = self.listen(script, Issuer(), "127.0.0.1")
        error = await self.refused(Peer(peer.host, peer.port, peer.tls, Issuer().pem))
        self.assertIsInstance(error, TlsRefused)
        self.assertEqual(script.logins, 0)
