"""What stock Twisted's SMTP client does wrong."""

from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.interfaces import ITLSTransport
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.mail.smtp import ESMTPSender, ESMTPSenderFactory, SMTPClient, sendmail
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import directlyProvides

PASSWORD = b"correct-horse"


class TlsableTransport(StringTransport):
    """Notes that TLS was begun."""

    tls = False

    def startTLS(self, contextFactory: object, normal: bool = True) -> None:  # noqa: N803 - Twisted's name
        """Note it."""
        del contextFactory, normal
        self.tls = True


@define(eq=False)
class Connector:
    """Counts how often a connection is asked for."""

    attempts: int = 0

    def connect(self) -> None:
        """Count."""
        self.attempts += 1


@define(eq=False)
class Sending:
    """A stock sender of one small mail, and how it ended."""

    sender: ESMTPSender
    transport: TlsableTransport
    factory: ESMTPSenderFactory
    outcome: list[Any]

    def feed(self, *lines: bytes) -> bytes:
        """Let the server say some lines, in one segment; what the sender says to that."""
        self.transport.clear()
        self.sender.dataReceived(b"".join(line + b"\r\n" for line in lines))
        return bytes(self.transport.value())


def sending(**options: Any) -> Sending:
    """Connect a sender; without options it needs no TLS and logs in."""
    options = {"requireTransportSecurity": False, "contextFactory": object(), **options}
    done: Deferred[Any] = Deferred()
    mail = BytesIO(b"Subject: x\n\nbody\n")
    factory = ESMTPSenderFactory(b"user", PASSWORD, "a@example.org", "b@example.net", mail, done, **options)
    outcome: list[Any] = []
    done.addBoth(outcome.append)
    transport = TlsableTransport()
    directlyProvides(transport, ITLSTransport)
    sender = factory.buildProtocol(None)
    sender.makeConnection(transport)
    return Sending(sender, transport, factory, outcome)


class DotTests(SynchronousTestCase):
    """Dot-stuffing (RFC 5321 section 4.5.2), which is done for each chunk by itself."""

    def test_at_the_border_of_two_chunks(self) -> None:
        """A line that begins a chunk with a dot ends the message, and what follows are commands."""
        client = SMTPClient(b"host")
        client.setTimeout(None)
        wire = client.transformChunk(b"x\n") + client.transformChunk(b".\nMAIL FROM:<evil@example.com>\n")
        self.assertIn(b"\r\n.\r\nMAIL FROM:<evil@example.com>\r\n", wire)

    def test_at_the_beginning(self) -> None:
        """A dot as the first byte of all is not doubled."""
        self.assertEqual(SMTPClient(b"host").transformChunk(b".\n"), b".\r\n")

    def test_line_ends(self) -> None:
        """A mail that has the line ends of mail already gets others."""
        self.assertEqual(SMTPClient(b"host").transformChunk(b"a\r\nb\r"), b"a\r\r\nb\r")

    def test_the_injection_reaches_the_wire(self) -> None:
        """With the chunk size of the stock file sender, a mail's text becomes commands of its own."""
        s = sending()
        evil = b".\nMAIL FROM:<evil@example.com>\n"
        s.factory.file = BytesIO(b"x" * (2**14 - 1) + b"\n" + evil)
        for line in (b"220 hi", b"250 AUTH PLAIN", b"235 in", b"250 from", b"250 to"):
            s.feed(line)
        wire = s.feed(b"354 go on")
        while s.transport.producer is not None:
            s.transport.producer.resumeProducing()
        wire = bytes(s.transport.value())
        self.assertIn(b"x\r\n.\r\nMAIL FROM:<evil@example.com>\r\n", wire)


class TlsTests(SynchronousTestCase):
    """STARTTLS."""

    def test_bytes_before_the_handshake_count_as_safe(self) -> None:
        """Answers in the clear behind the 220 are taken for the server's answers over TLS."""
        s = sending(requireTransportSecurity=True)
        s.feed(b"220 hi")
        self.assertEqual(s.feed(b"250 STARTTLS"), b"STARTTLS\r\n")
        said = s.feed(b"220 go ahead", b"250 AUTH PLAIN", b"235 you are in", b"250 sender fine", b"250 fine")
        self.assertTrue(s.transport.tls)
        self.assertTrue(said.endswith(b"DATA\r\n"), said)

    def test_the_plain_function_sends_passwords_in_clear(self) -> None:
        """``sendmail`` with a password asks for no TLS unless told so: a stripped STARTTLS goes unnoticed."""
        reactor = MemoryReactorClock()
        done = sendmail(
            "host", "a@example.org", "b@example.net", b"x", username="u", password="secret", reactor=reactor
        )
        factory = reactor.tcpClients[0][2]
        transport = StringTransport()
        sender: Any = factory.buildProtocol(None)
        sender.makeConnection(transport)
        for line in (b"220 hi", b"250 AUTH PLAIN"):
            sender.dataReceived(line + b"\r\n")
        self.assertIn(b"secret", b64decode(transport.value().split(b"AUTH PLAIN ")[1].strip()))
        self.assertNoResult(done)


class AuthTests(SynchronousTestCase):
    """Logins."""

    def test_a_refused_password_is_tried_again(self) -> None:
        """PLAIN is tried in two forms, so that each try counts twice towards being locked out."""
        s = sending()
        s.feed(b"220 hi")
        first = s.feed(b"250 AUTH PLAIN")
        second = s.feed(b"535 5.7.8 no")
        for said in (first, second):
            self.assertIn(PASSWORD, b64decode(said.removeprefix(b"AUTH PLAIN ").strip()))
        self.assertNotEqual(first, second)

    def test_the_exception_holds_the_password(self) -> None:
        """The text of the error repeats what was sent, so that whoever logs it logs the credential."""
        s = sending()
        for line in (b"220 hi", b"250 AUTH PLAIN", b"535 5.7.8 no", b"535 5.7.8 no"):
            s.feed(line)
        (failure,) = s.outcome
        self.assertIn(b64encode(b"\0user\0" + PASSWORD).decode(), str(failure.value))

    def test_names_in_lower_case_are_not_known(self) -> None:
        """EHLO keywords are case-insensitive, and the old form with an equals sign is in use."""
        for offered in (b"250 auth plain", b"250 AUTH=PLAIN LOGIN"):
            s = sending()
            s.feed(b"220 hi")
            self.assertNotIn(b"AUTH PLAIN", s.feed(offered))
            self.assertEqual(len(s.outcome), 1, "it gave up: no AUTH was seen")

    def test_an_empty_line_breaks_out(self) -> None:
        """An EHLO line without text raises into the transport, and nobody is told."""
        s = sending()
        s.feed(b"220 hi")
        self.assertRaises(IndexError, s.feed, b"250-host", b"250-", b"250 AUTH PLAIN")
        self.assertEqual(s.outcome, [])


class RetryTests(SynchronousTestCase):
    """What happens when a connection is lost."""

    def test_five_more_deliveries(self) -> None:
        """Lost after the final dot the mail is sent again at once, five times, though it may have arrived."""
        s = sending()
        for line in (b"220 hi", b"250 AUTH PLAIN", b"235 in", b"250 from", b"250 to"):
            s.feed(line)
        s.feed(b"354 go on")
        while s.transport.producer is not None:
            s.transport.producer.resumeProducing()
        self.assertTrue(s.transport.value().endswith(b"\r\n.\r\n"))
        connector = Connector()
        for _ in range(6):
            s.factory.clientConnectionLost(connector, Failure(ConnectionLost()))
        self.assertEqual((connector.attempts, len(s.outcome)), (5, 1))

    def test_no_deadline(self) -> None:
        """A server that falls silent is waited for without end."""
        self.assertIsNone(SMTPClient.timeout)
        self.assertIsNone(sending().sender.timeout)

    def test_the_queue_id_is_lost(self) -> None:
        """What the server says at the end, by which it knows the mail, is not in the result."""
        s = sending()
        for line in (b"220 hi", b"250 AUTH PLAIN", b"235 in", b"250 from", b"250 to", b"354 go on"):
            s.feed(line)
        while s.transport.producer is not None:
            s.transport.producer.resumeProducing()
        s.feed(b"250 2.0.0 queued as 4711")
        self.assertNotIn("4711", repr(s.outcome))
        self.assertEqual(s.outcome[0][0], 1)
