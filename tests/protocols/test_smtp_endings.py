"""The submission client when the other side falls silent, goes away, or is left."""

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionLost
from twisted.python.failure import Failure

from mailgateway.errors import (
    ProtocolViolation,
    Unreachable,
)
from mailgateway.protocols.smtp_session import DEADLINES
from mailgateway.wire.smtp_outcome import (
    Phase,
    Rejected,
    Unclear,
)
from tests.fakes.smtp_script import DROP, HANG, Script
from tests.protocols.smtp_talk import REMOTE, Talk, TalkTestCase, bare_client, mail

BEFORE_THE_MAIL = (("GREETING", Phase.GREETING), ("EHLO", Phase.EHLO), ("LOGIN", Phase.AUTH))
IN_THE_MAIL = (
    ("MAIL", Phase.MAIL),
    ("RCPT", Phase.RCPT),
    ("DATA", Phase.DATA),
    ("END", Phase.END),
)


class LossTests(TalkTestCase):
    """The connection is lost, at each point."""

    def test_before_the_first_mail(self) -> None:
        """There is no connection, and nothing of it is left."""
        for point, phase in BEFORE_THE_MAIL:
            script = Script()
            script.answer(point, DROP)
            error = self.unopened(Talk(script))
            self.assertIsInstance(error, Unreachable)
            self.assertIn(phase, error.text)

    def test_in_a_mail(self) -> None:
        """Before the final dot nobody has the mail; after it nobody knows."""
        for point, _ in IN_THE_MAIL:
            script = Script()
            script.answer(point, DROP)
            talk = self.open(script)
            if point == "END":
                result = self.sent(talk, mail("a@x.org", "b@x.org"))
                self.assertEqual([type(each) for each in result.outcomes], [Unclear, Unclear])
                self.assertTrue(result.dot_written)
            else:
                self.assertIsInstance(self.unsent(talk), Unreachable)
                self.assertFalse(talk.client.dot_written)
            self.assertTrue(talk.gone())
            self.assertFalse(talk.client.usable)

    def test_unclear_for_the_accepted_only(self) -> None:
        """Who was refused before, was refused."""
        script = Script()
        script.answer("RCPT", "550 5.1.1 unknown")
        script.answer("END", DROP)
        result = self.sent(self.open(script), mail("a@x.org", "b@x.org"))
        self.assertEqual([type(each) for each in result.outcomes], [Rejected, Unclear])

    def test_in_the_message(self) -> None:
        """Half a message is none."""
        client, transport, _ = bare_client()
        running = Deferred.fromCoroutine(client.send(mail(message=b"x\r\n" * 20_000)))
        for reply in (b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"):
            client.dataReceived(reply)
        producer: Any = transport.producer
        producer.resumeProducing()
        client.connectionLost(Failure(ConnectionLost()))
        producer.stopProducing()  # as a real transport tells it, too
        self.assertIsInstance(self.error_of(running), Unreachable)
        self.assertNotIn(b"\r\n.\r\n", transport.value())

    def test_between_mails(self) -> None:
        """An idle connection that went away is found out at the next mail, which is untouched."""
        talk = self.open()
        self.sent(talk)
        talk.server.sendLine(b"421 4.4.2 idle for too long")
        talk.pump.flush()
        self.assertFalse(talk.client.usable)
        self.assertIsInstance(self.unsent(talk), Unreachable)
        self.assertEqual(len(talk.script.taken), 1)

    def test_chatter_between_mails(self) -> None:
        """A server that answers what was not asked is out of step, and not trusted with a mail."""
        talk = self.open()
        talk.server.sendLine(b"250 queued")
        talk.pump.flush()
        self.assertIsInstance(self.unsent(talk), ProtocolViolation)


class DeadlineTests(TalkTestCase):
    """The server says nothing any more, at each point."""

    def hang(self, talk: Talk, phase: Phase, running: Deferred[Any]) -> None:
        """Nothing happens until the deadline of the phase, and then the connection is aborted."""
        self.assertNoResult(running)
        talk.clock.advance(DEADLINES[phase] - 1)
        talk.pump.flush()
        self.assertNoResult(running)
        self.assertFalse(talk.gone())
        talk.clock.advance(1)
        self.assertTrue(talk.gone())

    def test_before_the_first_mail(self) -> None:
        """Greeting, EHLO, login."""
        for point, phase in BEFORE_THE_MAIL:
            script = Script()
            script.answer(point, HANG)
            talk = Talk(script)
            opened = talk.start(talk.client.opened())
            self.hang(talk, phase, opened)
            self.assertIsInstance(self.error_of(opened), Unreachable)

    def test_starttls(self) -> None:
        """The answer to STARTTLS."""
        script = Script(extensions=["STARTTLS"])
        script.answer("STARTTLS", HANG)
        talk = Talk(script, peer=REMOTE)
        opened = talk.start(talk.client.opened())
        self.hang(talk, Phase.STARTTLS, opened)
        self.failureResultOf(opened, Unreachable)

    def test_in_a_mail(self) -> None:
        """MAIL, RCPT, DATA; and the final dot, which has ten minutes and leaves the mail unclear."""
        for point, phase in IN_THE_MAIL:
            script = Script()
            script.answer(point, HANG)
            talk = self.open(script)
            running = talk.start(talk.client.send(mail()))
            self.hang(talk, phase, running)
            if point == "END":
                result = self.successResultOf(running)
                self.assertIsInstance(result.outcomes[0], Unclear)
                self.assertIn("600 s", result.text)
            else:
                self.assertIsInstance(self.error_of(running), Unreachable)

    def test_between_mails(self) -> None:
        """The answer to RSET."""
        script = Script()
        script.answer("RSET", HANG)
        talk = self.open(script)
        self.sent(talk)
        running = talk.start(talk.client.send(mail()))
        self.hang(talk, Phase.RSET, running)
        self.assertIsInstance(self.error_of(running), Unreachable)

    def test_a_block_that_does_not_go_out(self) -> None:
        """Each block of the message starts the deadline anew; the last one that went out counts."""
        client, transport, clock = bare_client()
        running = Deferred.fromCoroutine(client.send(mail(message=b"x\r\n" * 20_000)))
        for reply in (b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"):
            client.dataReceived(reply)
        producer: Any = transport.producer
        for _ in range(2):
            producer.resumeProducing()
            clock.advance(DEADLINES[Phase.BODY] - 1)
        self.assertNoResult(running)
        clock.advance(1)
        self.failureResultOf(running, Unreachable)
        self.assertTrue(transport.disconnected)
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_half_a_reply_buys_no_time(self) -> None:
        """A server cannot hold us with one line of a reply a minute."""
        script = Script()
        script.answer("MAIL", HANG)
        talk = self.open(script)
        running = talk.start(talk.client.send(mail()))
        for _ in range(4):
            talk.server.sendLine(b"250-wait")
            talk.pump.flush()
            talk.clock.advance(DEADLINES[Phase.MAIL] / 4)
        self.assertIsInstance(self.error_of(running), Unreachable)

    def test_idle_needs_no_timer(self) -> None:
        """Who keeps a connection idle decides how long."""
        talk = self.open()
        self.sent(talk)
        self.assertEqual(talk.clock.getDelayedCalls(), [])


class EndTests(TalkTestCase):
    """Leaving, politely or not."""

    def test_quit_with_a_server_that_hangs(self) -> None:
        """Leaving has a deadline, and never fails."""
        script = Script()
        script.answer("QUIT", HANG)
        talk = self.open(script)
        leaving = talk.start(talk.client.quit())
        self.assertNoResult(leaving)
        talk.clock.advance(DEADLINES[Phase.QUIT])
        self.successResultOf(leaving)
        self.assertTrue(talk.gone())

    def test_quit_with_a_server_that_does_not_close(self) -> None:
        """After its answer to QUIT the connection is gone within the same time again."""
        client, transport, clock = bare_client()
        leaving = Deferred.fromCoroutine(client.quit())
        client.dataReceived(b"221 bye\r\n")
        self.assertTrue(transport.disconnecting)
        self.assertNoResult(leaving)
        clock.advance(DEADLINES[Phase.QUIT])
        self.successResultOf(leaving)
        self.assertTrue(transport.disconnected)

    def test_quit_of_a_dead_connection(self) -> None:
        """There is nothing to do."""
        talk = self.open()
        talk.client.abort()
        self.successResultOf(talk.start(talk.client.quit()))

    def test_quit_in_a_mail(self) -> None:
        """It does not wait for the mail, which ends as if the connection had been lost."""
        script = Script()
        script.answer("DATA", HANG)
        talk = self.open(script)
        running = talk.start(talk.client.send(mail()))
        self.successResultOf(talk.start(talk.client.quit()))
        self.assertIsInstance(self.error_of(running), Unreachable)

    def test_cancelled_mail(self) -> None:
        """The owner lets go; ``dot_written`` says whether that came too late."""
        for point, late in (("RCPT", False), ("END", True)):
            script = Script()
            script.answer(point, HANG)
            talk = self.open(script)
            running = talk.start(talk.client.send(mail()))
            running.cancel()
            self.failureResultOf(running, CancelledError)
            self.assertEqual(talk.client.dot_written, late)
            self.assertTrue(talk.gone())

    def test_cancelled_opening(self) -> None:
        """So it does while it waits for the server."""
        script = Script()
        script.answer("EHLO", HANG)
        talk = Talk(script)
        opened = talk.start(talk.client.opened())
        opened.cancel()
        self.failureResultOf(opened, CancelledError)
        self.assertTrue(talk.gone())
