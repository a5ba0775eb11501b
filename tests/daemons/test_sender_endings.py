"""Sending, when connections, processes or the database end in the middle: nothing is sent twice."""

from mailgateway.daemons.sender import ATTEMPT_SECONDS, LEASE_SECONDS, Sender
from mailgateway.domain.outbox import OutboxState
from mailgateway.errors import StoreUnavailable
from mailgateway.flows.submit import Submitted
from mailgateway.protocols.smtp_session import DEADLINES
from mailgateway.wire.smtp_outcome import Phase
from tests.daemons.sending import THINK, SenderTestCase
from tests.daemons.world import Run, SlowDatabase
from tests.fakes.smtp_script import DROP, HANG


class EndingTests(SenderTestCase):
    """Connections and processes that end in the middle."""

    def test_lost_before_the_dot(self) -> None:
        """Nobody has got it: it waits for its next attempt."""
        self.script.answer("DATA", DROP)
        sent = self.submit()
        self.assertEqual(self.state(sent), OutboxState.QUEUED)

    def test_lost_after_the_dot(self) -> None:
        """The server may have it: it rests, and goes once more with the same Message-ID at most."""
        self.script.answer("END", DROP)
        sent = self.submit()
        self.assertEqual(self.state(sent), OutboxState.UNCLEAR)
        self.later(590)
        self.assertEqual(self.copies(), 1)
        self.later(15)
        self.assertEqual((self.state(sent), self.copies()), (OutboxState.SENT, 2))

    def test_a_claim_outlives_every_attempt(self) -> None:
        """Else a mail that is still being sent would be called unclear, and sent by somebody else."""
        self.assertGreater(LEASE_SECONDS, ATTEMPT_SECONDS + 2 * DEADLINES[Phase.QUIT])

    def test_stopped_after_the_dot(self) -> None:
        """The stop does not wait for the answer, and the mail is not sent again at once."""
        self.script.answer("END", HANG)
        sent = self.submit()
        self.restart()
        self.assertEqual((self.state(sent), self.copies()), (OutboxState.UNCLEAR, 1))

    def test_stopped_before_the_dot(self) -> None:
        """A notification stays queued; a decision fails to its caller."""
        for kind, state in (("notification", OutboxState.QUEUED), ("decision", OutboxState.CANCELLED)):
            self.script.answer("MAIL", HANG)
            sent = self.submit(kind)
            self.assertEqual(self.state(sent), OutboxState.SENDING)
            self.restart()
            self.assertEqual(self.state(sent), state)

    def test_stopped_while_dialling_after_an_earlier_mail(self) -> None:
        """The final dot of the last mail says nothing of the next one."""
        self.script.answer("END", THINK)
        first = self.submit()
        second = self.submit()
        self.script.answer("RSET", HANG)
        self.answer(b"250 2.0.0 ok")
        self.assertEqual((self.state(first), self.state(second)), (OutboxState.SENT, OutboxState.SENDING))
        self.restart()
        self.assertEqual(self.state(second), OutboxState.QUEUED)


class SlowStoreTests(SenderTestCase):
    """A stop while transactions are under way; they are committed, whoever waits."""

    def setUp(self) -> None:
        super().setUp()
        self.end(self.senders[-1])
        self.slow = SlowDatabase(self.gateway.database.engine)

    def begin_slowly(self) -> Sender:
        """Send with a database that makes the sender wait."""
        run = Run(self.network, self.slow)
        gateway = self.gateway
        self.slow.slow = True
        sender = Sender(self.network, self.slow, gateway.bell, gateway.identity, run.logins, "box.example")
        sender.startService()
        self.network.settle()
        return sender

    def test_stopped_while_claiming(self) -> None:
        """The mail is given back: a reload must not leave it behind as being sent."""
        sent = self.submit()
        stopping = self.begin_slowly().stopService()
        self.assertNoResult(stopping)
        self.slow.let_go()
        self.successResultOf(stopping)
        self.assertEqual((self.state(sent), self.network.dialled), (OutboxState.QUEUED, []))

    def test_stopped_while_concluding(self) -> None:
        """The outcome stands, and the next mail is not begun."""
        sent, other = self.submit(), self.submit()
        self.script.answer("END", THINK)
        sender = self.begin_slowly()
        self.slow.let_go()
        self.network.settle()
        self.slow.let_go()
        self.slow.slow = True
        self.answer(b"250 2.0.0 ok")
        stopping = sender.stopService()
        self.slow.let_go()
        self.network.settle()
        self.successResultOf(stopping)
        self.assertEqual((self.state(sent), self.state(other)), (OutboxState.SENT, OutboxState.QUEUED))


class StoreTests(SenderTestCase):
    """A database that cannot be used for a while."""

    def deliver_on_a_full_disk(self, failures: int) -> Submitted:
        """Let a mail be taken by the server while the disk is full."""
        self.script.answer("END", THINK)
        sent = self.submit()
        self.gateway.database.failures = [StoreUnavailable("disk full") for _ in range(failures)]
        self.answer(b"250 2.0.0 queued as Q1")
        return sent

    def test_a_mail_that_was_taken_is_not_sent_again(self) -> None:
        """The outcome is kept in mind and written as soon as the database takes it."""
        sent = self.deliver_on_a_full_disk(3)
        self.assertEqual(len(self.gateway.database.failures), 2)
        for _ in range(10):
            self.later(30)
        self.assertEqual((self.state(sent), self.copies()), (OutboxState.SENT, 1))

    def test_a_mail_that_was_taken_is_not_sent_again_after_a_lease(self) -> None:
        """When the database comes back after the claim has ended, the late word still counts."""
        sent = self.deliver_on_a_full_disk(1_000)
        self.later(1_300)
        self.gateway.database.failures = []
        for _ in range(3):
            self.later(30)
        self.assertEqual((self.state(sent), self.copies()), (OutboxState.SENT, 1))

    def test_stopped_while_the_outcome_cannot_be_written(self) -> None:
        """The stop does not hang; the next start calls the mail unclear, and it rests ten minutes."""
        sent = self.deliver_on_a_full_disk(3)
        self.end(self.senders[-1])
        self.gateway.database.failures = []
        self.start()
        self.begin()
        self.assertEqual((self.state(sent), self.copies()), (OutboxState.UNCLEAR, 1))

    def test_a_failing_claim_is_made_again(self) -> None:
        """The sender does not go deaf because the database did once."""
        self.end(self.senders[-1])
        sent = self.submit()
        self.gateway.database.failures = [StoreUnavailable("disk full")] * 2
        self.begin(remembering=False)
        self.assertEqual(self.state(sent), OutboxState.QUEUED)
        for _ in range(3):
            self.later(2)
        self.assertEqual(self.state(sent), OutboxState.SENT)
