"""The sender's side: a mail is claimed before dialling, and no answer of a server sends it twice."""

from datetime import timedelta

from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import (
    OutboxState,
    RecipientOutcome,
    RecipientState,
    RecipientVerdict,
)
from mailgateway.domain.question import QuestionEvent, QuestionStatus
from mailgateway.flows import mode, outbox
from mailgateway.flows.bell import EventKind
from mailgateway.ids import AccountName, MachineId, OutboxId
from mailgateway.store import outbox as rows
from mailgateway.store import questions
from mailgateway.store.database import Tx
from mailgateway.store.tables import recipient
from tests.flows.outbound import ACCOUNT, IDENTITY, PERSON, S1, Interrupted, OutboundTestCase


class ClaimTests(OutboundTestCase):
    """One mail at a time, the oldest first, and only what may go."""

    def test_nothing_to_do(self) -> None:
        """An empty outbox has no next mail and no next time."""
        self.assertIsNone(self.claim_next())
        self.assertIsNone(self._next_due())

    def test_the_oldest_goes_first_and_only_once(self) -> None:
        """What is claimed is not claimed again, and its bytes are those that were composed."""
        first, second = self.submit(), self.submit("settle")
        claimed = self.claim()
        self.assertEqual((claimed.id, claimed.attempt, claimed.recipients), (first.outbox_id, 1, (PERSON,)))
        self.assertEqual(claimed.sender, "agent@example.org")
        self.assertIn(first.message_id.encode(), claimed.raw)
        self.assertEqual(self.claim().id, second.outbox_id)
        self.assertIsNone(self.claim_next())

    def test_other_accounts_and_machines_send_their_own(self) -> None:
        """A gateway that shares the database takes nothing of ours."""
        self.submit()
        database = self.gateway.database
        other = Identity(MachineId("machine-two"), "desktop", "2f" * 16)
        self.assertIsNone(self.now(outbox.claim_next(database, other, ACCOUNT, lease_seconds=9)))
        second = AccountName("second")
        self.assertIsNone(self.now(outbox.claim_next(database, IDENTITY, second, lease_seconds=9)))

    def test_nothing_leaves_while_the_mode_is_off(self) -> None:
        """What was queued waits, with no next time that keeps a loop busy; the bell tells when it may go."""
        self.submit()
        self._mode(Mode.OFF)
        self.assertIsNone(self.claim_next())
        self.assertIsNone(self._next_due())
        self.gateway.kinds()
        self._mode(Mode.ON)
        self.assertIn(EventKind.OUTBOX, self.gateway.kinds())
        self.claim()

    def test_a_claim_that_was_rolled_back_never_was(self) -> None:
        """Killed before the commit: the mail is still queued, with no attempt counted."""
        sent = self.submit()

        def work(tx: Tx) -> None:
            found = rows.find(tx, sent.outbox_id)
            assert found is not None
            rows.claim(tx, found, timedelta(seconds=60))
            raise Interrupted

        self.failureResultOf(self.gateway.database.run(work), Interrupted)
        self.assertEqual((self.row(sent).state, self.row(sent).attempts), (OutboxState.QUEUED, 0))

    def _next_due(self) -> object:
        return self.now(outbox.next_due(self.gateway.database, IDENTITY, ACCOUNT))

    def _mode(self, wanted: Mode) -> None:
        self.now(mode.change(self.gateway.database, self.gateway.bell, IDENTITY, wanted, by="person"))


class ConcludeTests(OutboundTestCase):
    """What the server's answers do to a mail."""

    def test_accepted(self) -> None:
        """It is sent, for good."""
        sent = self.submit()
        self.gateway.kinds()
        self.assertEqual(self.conclude(self.claim()), OutboxState.SENT)
        row = self.row(sent)
        self.assertEqual((row.state, row.attempts, row.last_error), (OutboxState.SENT, 1, ""))
        self.assertEqual([one.state for one in row.recipients], [RecipientState.ACCEPTED])
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX])
        self.gateway.later(days=3)
        self.assertIsNone(self.claim_next())

    def test_try_later_waits_longer_and_longer(self) -> None:
        """5, 15, 30, 60 minutes, then every 2 hours, and after two days it has failed."""
        sent = self.submit()
        waits = []
        while (claimed := self.claim_next()) is not None:
            if self.conclude(claimed, "try-later", 451, error="451 later") is not OutboxState.QUEUED:
                break
            due = self.row(sent).next_attempt_at
            waits.append(round((due - self.at()).total_seconds() / 60))
            self.gateway.later(minutes=waits[-1] - 1)
            self.assertIsNone(self.claim_next(), "not before its time")
            self.gateway.later(minutes=1.1)
        self.assertEqual(waits[:6], [5, 15, 30, 60, 120, 120])
        self.assertEqual(sum(waits) // 60, 47)
        row = self.row(sent)
        self.assertEqual((row.state, row.last_error, row.last_code), (OutboxState.FAILED, "451 later", 451))

    def test_unreachable_is_try_later(self) -> None:
        """No outcome for a recipient means that the connection never came so far."""
        sent = self.submit()
        self.assertEqual(self.conclude(self.claim(), outcomes=[], error="no route"), OutboxState.QUEUED)
        self.assertEqual((self.row(sent).last_error, self.row(sent).last_code), ("no route", None))

    def test_rejected_fails_at_once(self) -> None:
        """A 5xx ends it with one attempt."""
        sent = self.submit()
        self.assertEqual(self.conclude(self.claim(), "rejected", 550, error="5.1.1 no"), OutboxState.FAILED)
        self.assertEqual(self.row(sent).last_error, "550 5.1.1 no", "people look for the number")
        self.assertEqual((self.row(sent).attempts, self.row(sent).last_code), (1, 550))

    def test_who_has_it_gets_it_no_second_time(self) -> None:
        """Of three recipients only the one that was put off is tried again."""
        people = ("a@example.org", "b@example.org", "c@example.org")
        sent = self.submit()
        self._recipients(sent.outbox_id, people)
        verdicts = (RecipientVerdict.ACCEPTED, RecipientVerdict.TRY_LATER, RecipientVerdict.REJECTED)
        outcomes = [RecipientOutcome(*pair) for pair in zip(people, verdicts, strict=True)]
        self.assertEqual(self.conclude(self.claim(), outcomes=outcomes), OutboxState.QUEUED)
        self.gateway.later(minutes=6)
        again = self.claim()
        self.assertEqual(again.recipients, ("b@example.org",))
        self.assertEqual(self.conclude(again), OutboxState.SENT)
        self.assertEqual(
            [one.state for one in self.row(sent).recipients],
            [RecipientState.ACCEPTED, RecipientState.ACCEPTED, RecipientState.REJECTED],
        )

    def test_late_news_of_an_earlier_attempt_changes_nothing(self) -> None:
        """Only the attempt that is under way may conclude."""
        sent = self.submit()
        first = self.claim()
        self.conclude(first, "try-later", 451)
        self.gateway.later(minutes=6)
        self.claim()
        self.assertEqual(self.conclude(first, "rejected", 550), OutboxState.SENDING)
        self.assertEqual(self.row(sent).state, OutboxState.SENDING)

    def test_an_unknown_mail(self) -> None:
        """The outbox says so."""
        missing = outbox.row(self.gateway.database, OutboxId("o-missing"))
        self.assertEqual(self.refused(missing).code, "unknown")

    def _recipients(self, outbox_id: OutboxId, people: tuple[str, ...]) -> None:
        table = recipient

        def work(tx: Tx) -> None:
            tx.execute(table.delete())
            for address in people:
                tx.execute(table.insert(), {"outbox_id": outbox_id, "address": address, "state": "waiting"})

        self.gateway.rows(work)


class UnclearTests(OutboundTestCase):
    """Lost after the final dot: at most two copies, and ten minutes between them."""

    def setUp(self) -> None:
        super().setUp()
        self.sent = self.submit()
        self.assertEqual(self.conclude(self.claim(), "unclear", None), OutboxState.UNCLEAR)

    def test_it_rests_ten_minutes_also_over_restarts(self) -> None:
        """Then it goes once more, the same bytes."""
        for _ in range(2):
            self.start()
            self.gateway.later(minutes=4.9)
            self.assertIsNone(self.claim_next())
        self.gateway.later(minutes=0.3)
        again = self.claim()
        self.assertEqual(again.attempt, 2)
        self.assertIn(self.sent.message_id.encode(), again.raw)
        self.assertEqual(self.conclude(again), OutboxState.SENT)

    def test_twice_unclear_is_failed(self) -> None:
        """There is no third copy."""
        self.gateway.later(minutes=11)
        self.assertEqual(self.conclude(self.claim(), "unclear", None), OutboxState.FAILED)
        self.gateway.later(days=1)
        self.assertIsNone(self.claim_next())

    def test_the_doubt_outlives_an_attempt_that_came_to_nothing(self) -> None:
        """Unclear, then put off, then unclear again: still no third copy."""
        self.gateway.later(minutes=11)
        self.assertEqual(self.conclude(self.claim(), "try-later", 451), OutboxState.QUEUED)
        self.gateway.later(minutes=16)
        self.assertEqual(self.conclude(self.claim(), "unclear", None), OutboxState.FAILED)

    def test_a_reply_shows_that_it_arrived(self) -> None:
        """Then it is sent, and not sent again."""
        sent = self.gateway.rows(lambda tx: rows.arrived(tx, self.sent.route_id))
        self.assertEqual(sent, ((self.sent.outbox_id, self.sent.route_id),))
        row = self.row(self.sent)
        self.assertEqual((row.state, row.recipients[0].state), (OutboxState.SENT, RecipientState.ACCEPTED))
        self.gateway.later(minutes=11)
        self.assertIsNone(self.claim_next())
        self.assertEqual(self.gateway.rows(lambda tx: rows.arrived(tx, self.sent.route_id)), ())

    def test_a_reply_during_the_second_attempt_settles_it(self) -> None:
        """What the attempt brings afterwards changes nothing."""
        self.gateway.later(minutes=11)
        again = self.claim()
        self.gateway.rows(lambda tx: rows.arrived(tx, self.sent.route_id))
        self.assertEqual(self.conclude(again, "rejected", 550), OutboxState.SENT)


class CrashTests(OutboundTestCase):
    """A sender that was interrupted leaves a mark, and nobody guesses how far it came."""

    def test_a_restart_makes_it_unclear(self) -> None:
        """Killed while sending: it rests, and then goes once more."""
        sent = self.submit()
        self.claim()
        self.start()
        self.assertEqual(self.row(sent).state, OutboxState.UNCLEAR)
        self.assertIsNone(self.claim_next())
        self.gateway.later(minutes=10.1)
        self.assertEqual(self.conclude(self.claim()), OutboxState.SENT)

    def test_killed_in_both_attempts_is_failed(self) -> None:
        """Two interrupted attempts may be two copies."""
        sent = self.submit()
        for _ in range(2):
            self.claim()
            self.start()
            self.gateway.later(minutes=10.1)
        self.assertEqual(self.row(sent).state, OutboxState.FAILED)

    def test_a_lease_that_ended_makes_it_unclear(self) -> None:
        """The sweeper finds it; before that it is left alone."""
        sent = self.submit()
        claimed = self.claim()
        self.assertEqual(self._recover(), 0)
        self.gateway.later(seconds=901)
        self.gateway.kinds()
        self.assertEqual(self._recover(), 1)
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX])
        self.assertEqual(self.row(sent).state, OutboxState.UNCLEAR)
        self.assertEqual(self.conclude(claimed, "unclear", None), OutboxState.UNCLEAR)
        self.assertEqual(self.conclude(claimed), OutboxState.SENT, "a late clear answer still counts")

    def _recover(self) -> int:
        return self.now(outbox.recover(self.gateway.database, self.gateway.bell, IDENTITY))


class DecisionTests(OutboundTestCase):
    """What becomes of a decision's question when its mail does not go."""

    def test_refused_later_cancels_the_question(self) -> None:
        """The caller was told ``queued``; when the mail fails for good, the session may ask anew."""
        self.submit("decision")
        claimed = self.claim()
        self.gateway.later(minutes=2)
        self.gateway.kinds()
        self.assertEqual(self.conclude(claimed, "rejected", 550), OutboxState.FAILED)
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX, EventKind.QUESTION])
        self.submit("decision")

    def test_twice_unclear_keeps_it_answerable(self) -> None:
        """The person may have the mail: the question stops blocking and can still be answered."""
        sent = self.submit("decision")
        question_id = sent.question_id
        assert question_id is not None
        self.conclude(self.claim(), "unclear", None)
        self.gateway.later(minutes=11)
        self.conclude(self.claim(), "unclear", None)
        self.assertIsNone(self.gateway.rows(lambda tx: questions.blocking(tx, S1)))
        question = self.gateway.rows(lambda tx: questions.find(tx, question_id))
        assert question is not None
        self.assertEqual(question.status, QuestionStatus.OPEN)

    def test_a_question_that_is_settled_stays_as_it_is(self) -> None:
        """Its mail's failure comes too late to matter."""
        sent = self.submit("decision")
        question_id = sent.question_id
        assert question_id is not None

        def cancel(tx: Tx) -> None:
            found = questions.find(tx, question_id)
            assert found is not None
            questions.settle(tx, found, QuestionEvent.CANCEL)

        claimed = self.claim()
        self.gateway.rows(cancel)
        self.assertEqual(self.conclude(claimed, "rejected", 550), OutboxState.CANCELLED)

    def test_an_account_on_hold_fails_its_decisions_at_once(self) -> None:
        """Nobody waits a minute for a password that is known to be wrong; other mails stay queued."""
        decision, notification = self.submit("decision"), self.submit()
        self.gateway.kinds()
        held = self.now(
            outbox.hold(
                self.gateway.database, self.gateway.bell, IDENTITY, ACCOUNT, "the login was refused", code=535
            )
        )
        self.assertEqual(held, (decision.outbox_id,))
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX, EventKind.QUESTION])
        row = self.row(decision)
        self.assertEqual((row.state, row.last_code, row.temporary), (OutboxState.CANCELLED, 535, False))
        self.assertEqual(self.row(notification).state, OutboxState.QUEUED)
        self.submit("decision")

    def test_hold_leaves_alone_what_nobody_waits_for(self) -> None:
        """A decision whose caller was told ``queued`` stays queued."""
        decision = self.submit("decision")
        self.gateway.later(minutes=2)
        hold = outbox.hold(self.gateway.database, self.gateway.bell, IDENTITY, ACCOUNT, "refused")
        self.assertEqual(self.now(hold), ())
        self.assertEqual(self.row(decision).state, OutboxState.QUEUED)
