"""Mails over the submission client: what arrives, and what each recipient is told."""

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.protocols.basic import FileSender

from mailgateway.errors import (
    LoginRefused,
    ProtocolViolation,
    Throttled,
)
from mailgateway.protocols.smtp import MAX_MAILS, SmtpConnection
from mailgateway.wire.smtp_outcome import (
    Accepted,
    Rejected,
    SubmissionResult,
    TryLater,
)
from tests.fakes.smtp_script import HANG, Script
from tests.protocols.smtp_talk import AGENT, LOCAL, MESSAGE, TalkTestCase, mail


class SendTests(TalkTestCase):
    """Mails that go out."""

    def test_one_mail(self) -> None:
        """The server gets sender, recipients and bytes as they were given, and we get its last word."""
        talk = self.open()
        result = self.sent(talk, mail("bob@example.org", "Eve+x@example.org"))
        accepted = Accepted(250, "2.0.0 queued as Q1")
        self.assertEqual(result, SubmissionResult((accepted, accepted), "2.0.0 queued as Q1", True))
        taken = talk.script.taken[0]
        self.assertEqual(taken.message, MESSAGE)
        self.assertEqual(taken.recipients, ["bob@example.org", "Eve+x@example.org"])
        self.assertEqual(taken.mail_line, b"MAIL FROM:<agent@example.org> SIZE=%d" % len(MESSAGE))

    def test_dialogue(self) -> None:
        """The commands of a burst: one login, EHLO again after it, RSET between mails, QUIT at the end."""
        talk = self.open()
        for _ in range(3):
            self.sent(talk)
        leaving = talk.start(talk.client.quit())
        self.successResultOf(leaving)
        transaction = ["MAIL", "RCPT", "DATA"]
        self.assertEqual(
            talk.script.verbs(),
            ["EHLO", "AUTH", "EHLO", *transaction, "RSET", *transaction, "RSET", *transaction, "QUIT"],
        )
        self.assertEqual(talk.script.commands[0], b"EHLO box.example")
        self.assertEqual(len(talk.script.taken), 3)
        self.assertTrue(talk.gone())

    def test_a_connection_has_its_share(self) -> None:
        """After that many mails it is no longer usable, and says so loudly if asked all the same."""
        talk = self.open()
        for _ in range(MAX_MAILS):
            self.assertTrue(talk.client.usable)
            self.sent(talk)
        self.assertFalse(talk.client.usable)
        self.failureResultOf(talk.start(talk.client.send(mail())), RuntimeError)

    def test_one_mail_at_a_time(self) -> None:
        """A second one beside the first is a mistake of the caller."""
        script = Script()
        script.answer("RCPT", HANG)
        talk = self.open(script)
        first = talk.start(talk.client.send(mail()))
        self.failureResultOf(talk.start(talk.client.send(mail())), RuntimeError)
        self.assertNoResult(first)

    def test_eight_bit(self) -> None:
        """BODY=8BITMIME goes with 8-bit bytes only."""
        talk = self.open()
        self.sent(talk, mail(message=b"\r\n\xe4\r\n"))
        self.assertEqual(talk.script.taken[0].mail_line.split()[-1], b"BODY=8BITMIME")

    def test_without_extensions(self) -> None:
        """A bare server gets bare commands."""
        talk = self.open(Script(extensions=["HELP"]), None)
        self.sent(talk, mail(message=b"\r\n\xe4\r\n"))
        self.assertEqual(talk.script.taken[0].mail_line, b"MAIL FROM:<agent@example.org>")

    def test_size_after_login_counts(self) -> None:
        """A server may offer more, or less, once it knows who asks."""
        script = Script()
        script.answer("EHLO", "250-a\r\n250-SIZE 10\r\n250 AUTH PLAIN", "250-a\r\n250 SIZE 10000")
        talk = self.open(script)
        self.assertIsInstance(self.sent(talk).outcomes[0], Accepted)

    def test_no_second_greeting_wanted(self) -> None:
        """A server that refuses EHLO after the login has said before what it offers."""
        script = Script()
        script.answer("EHLO", "250-a\r\n250-SIZE 10\r\n250 AUTH PLAIN", "503 5.5.1 duplicate EHLO")
        talk = self.open(script)
        self.assertEqual(talk.client.offered.size, 10)


class ChunkTests(TalkTestCase):
    """What a message holds never becomes a command, wherever the blocks of the transfer end."""

    EVIL = b"\r\n.\r\nMAIL FROM:<evil@evil.example>\r\n..\r\n.x\r\n"

    def test_every_border_of_the_real_block_size(self) -> None:
        """The text that would end the mail, shifted across the end of the first block."""
        talk = self.open()
        for shift in range(8):
            before = b"x" * (FileSender.CHUNK_SIZE - len(b"A: b\r\n\r\n") - shift)
            message = b"A: b\r\n\r\n" + before + self.EVIL
            self.assertIsInstance(self.sent(talk, mail(message=message)).outcomes[0], Accepted)
            self.assertEqual(talk.script.taken[-1].message, message)
        self.assertNotIn(b"evil", b"".join(talk.script.commands))

    @settings(max_examples=50)
    @given(st.lists(st.sampled_from([b".", b"\r\n", b"x", EVIL]), max_size=12), st.integers(1, 7))
    def test_any_message_in_any_blocks(self, pieces: list[bytes], size: int) -> None:
        """The same for any arrangement, and blocks of a few bytes."""
        self.patch(FileSender, "CHUNK_SIZE", size)
        message = b"".join(pieces) + b"\r\n"
        talk = self.open()
        self.sent(talk, mail(message=message))
        self.sent(talk, mail(message=message))
        self.assertEqual([taken.message for taken in talk.script.taken], [message, message])
        self.assertNotIn(b"evil", b"".join(talk.script.commands))

    def test_replies_byte_by_byte(self) -> None:
        """It does not matter how the server's bytes are cut."""
        client = SmtpConnection(Clock(), LOCAL, AGENT, "box")
        transport = StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 587))
        client.makeConnection(transport)
        opened = Deferred.fromCoroutine(client.opened())
        replies = b"220-hi\r\n220 ho\r\n", b"250-a\r\n250 AUTH PLAIN\r\n", b"235 ok\r\n", b"250 a\r\n"
        for reply in replies:
            for at in range(len(reply)):
                client.dataReceived(reply[at : at + 1])
        self.successResultOf(opened)
        self.assertEqual(len(transport.value().splitlines()), 3)


class RefusalTests(TalkTestCase):
    """A server that says no, to a mail or to one of its recipients."""

    def test_each_point(self) -> None:
        """Every place where a mail can be refused, for now and for good; the connection stays usable."""
        later, never = "451 4.3.0 later", "550 5.7.1 never"
        for point in ("MAIL", "RCPT", "DATA", "END"):
            for reply, outcome in (
                (later, TryLater(451, "4.3.0 later")),
                (never, Rejected(550, "5.7.1 never")),
            ):
                script = Script()
                script.answer(point, reply)
                talk = self.open(script)
                result = self.sent(talk)
                self.assertEqual(result.outcomes, (outcome,), (point, reply))
                self.assertEqual(result.dot_written, point == "END")
                self.assertIn(reply[4:], result.text)
                self.assertTrue(talk.client.usable)
                self.assertIsInstance(self.sent(talk).outcomes[0], Accepted)

    def test_some_recipients(self) -> None:
        """Those who were accepted get the mail, the others keep their own answers."""
        script = Script()
        script.answer("RCPT", "250 ok", "450 4.2.0 greylisted", "550 5.1.1 unknown", "251 forwarded")
        result = self.sent(self.open(script), mail("a@x.org", "b@x.org", "c@x.org", "d@x.org"))
        accepted = Accepted(250, "2.0.0 queued as Q1")
        self.assertEqual(
            result.outcomes,
            (accepted, TryLater(450, "4.2.0 greylisted"), Rejected(550, "5.1.1 unknown"), accepted),
        )

    def test_the_dot_refused_for_some(self) -> None:
        """What the final dot decides holds for the accepted ones only."""
        script = Script()
        script.answer("RCPT", "550 5.1.1 unknown", "250 ok")
        script.answer("END", "452 4.2.2 full")
        result = self.sent(self.open(script), mail("a@x.org", "b@x.org"))
        self.assertEqual(result.outcomes, (Rejected(550, "5.1.1 unknown"), TryLater(452, "4.2.2 full")))

    def test_421_at_each_point(self) -> None:
        """The server closes: nobody got the mail, it may go later, and the connection is over."""
        for point in ("MAIL", "RCPT", "DATA", "END"):
            script = Script()
            script.answer(point, "421 4.7.0 too many messages")
            talk = self.open(script)
            result = self.sent(talk, mail("a@x.org", "b@x.org"))
            later = TryLater(421, "4.7.0 too many messages")
            self.assertEqual(result.outcomes, (later, later), point)
            self.assertFalse(talk.client.usable)
            self.assertTrue(talk.gone())
            self.assertIsInstance(self.unsent(talk), Throttled)

    def test_421_keeps_what_was_refused_for_good(self) -> None:
        """One recipient was unknown before the server closed, and stays so."""
        script = Script()
        script.answer("RCPT", "550 5.1.1 unknown", "421 4.3.2 closing")
        result = self.sent(self.open(script), mail("a@x.org", "b@x.org", "c@x.org"))
        later = TryLater(421, "4.3.2 closing")
        self.assertEqual(result.outcomes, (Rejected(550, "5.1.1 unknown"), later, later))

    def test_421_between_mails(self) -> None:
        """The next mail has not been begun, so it is the connection's failure."""
        script = Script()
        script.answer("RSET", "421 4.7.0 too many messages")
        talk = self.open(script)
        self.sent(talk)
        self.assertIsInstance(self.unsent(talk), Throttled)

    def test_login_called_for(self) -> None:
        """530 is about us and not about the mail."""
        for point in ("MAIL", "RCPT"):
            script = Script()
            script.answer(point, "530 5.7.0 authentication required")
            self.assertIsInstance(self.unsent(self.open(script, None)), LoginRefused)

    def test_refused_in_the_middle(self) -> None:
        """An answer before the final dot ends the connection, since the dialogue is out of step."""
        script = Script()
        script.answer("BODY", "552 5.3.4 too much")
        talk = self.open(script)
        result = self.sent(talk, mail(message=b"x\r\n" * 30_000))
        self.assertEqual(result.outcomes, (Rejected(552, "5.3.4 too much"),))
        self.assertFalse(result.dot_written)
        self.assertTrue(talk.gone())

    def test_a_yes_to_another_question(self) -> None:
        """A server that answers DATA with 250 has lost the thread; it gets no message."""
        script = Script()
        script.answer("DATA", "250 2.0.0 queued")
        talk = self.open(script)
        self.assertIsInstance(self.unsent(talk), ProtocolViolation)
        self.assertTrue(talk.gone())

    def test_accepted_in_the_middle(self) -> None:
        """A yes before the final dot cannot mean this mail."""
        script = Script()
        script.answer("BODY", "250 queued")
        talk = self.open(script)
        self.assertIsInstance(self.unsent(talk, mail(message=b"x\r\n" * 30_000)), ProtocolViolation)


class LocalRefusalTests(TalkTestCase):
    """What cannot be sent as it stands is told without asking the server."""

    def test_whole_mail(self) -> None:
        """Too large, not well-formed, or from an address that cannot be written."""
        talk = self.open(Script(extensions=["SIZE 100", "AUTH PLAIN"]))
        for submission, code in (
            (mail(message=b"x" * 99 + b"\r\n"), 552),
            (mail(message=b"a\nb\r\n"), 554),
            (mail(message=b"a\rb\r\n"), 554),
            (mail(sender="me@x> SIZE=1"), 553),
            (mail(sender=""), 553),
            (mail(sender="jörg@example.org"), 553),
        ):
            before = len(talk.script.commands)
            result = self.sent(talk, submission)
            assert isinstance(result.outcomes[0], Rejected)
            self.assertEqual(result.outcomes[0].code, code)
            self.assertFalse(result.dot_written)
            self.assertEqual(len(talk.script.commands), before)
        self.assertTrue(talk.client.usable)

    def test_one_recipient(self) -> None:
        """The others still get the mail, and each keeps its place."""
        talk = self.open()
        result = self.sent(talk, mail("a@x\r\nDATA", "b@x.org", "jörg@x.org"))
        self.assertEqual([type(each) for each in result.outcomes], [Rejected, Accepted, Rejected])
        self.assertEqual(talk.script.taken[0].recipients, ["b@x.org"])

    def test_international(self) -> None:
        """A server with SMTPUTF8 takes the address, and is told so."""
        talk = self.open(Script(extensions=["SMTPUTF8", "AUTH PLAIN"]))
        self.assertIsInstance(self.sent(talk, mail("jörg@bücher.example")).outcomes[0], Accepted)
        self.assertEqual(talk.script.taken[0].recipients, ["jörg@xn--bcher-kva.example"])
        self.assertEqual(talk.script.taken[0].mail_line.split()[-1], b"SMTPUTF8")
