"""What an attempt means for a mail, as a function of outcomes and times."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.outbox import (
    GIVE_UP,
    MOVES,
    RETRIES,
    UNCLEAR_REST,
    Conclusion,
    MailKind,
    OutboxEvent,
    OutboxState,
    RecipientOutcome,
    RecipientRow,
    RecipientState,
    RecipientVerdict,
    advance,
    conclude,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)

ACCEPTED, TRY_LATER = RecipientVerdict.ACCEPTED, RecipientVerdict.TRY_LATER
REJECTED, UNCLEAR = RecipientVerdict.REJECTED, RecipientVerdict.UNCLEAR


def _conclude(
    *verdicts: RecipientVerdict | None,
    kind: MailKind = MailKind.NOTIFICATION,
    attempt: int = 1,
    age: timedelta = timedelta(0),
    before: RecipientState = RecipientState.WAITING,
) -> Conclusion:
    """The conclusion for as many recipients as there are verdicts; ``None``: never reached."""
    names = [f"p{number}@example.org" for number in range(len(verdicts))]
    outcomes = {
        name: RecipientOutcome(name, verdict)
        for name, verdict in zip(names, verdicts, strict=True)
        if verdict is not None
    }
    rows = [RecipientRow(name, before) for name in names]
    return conclude(kind, attempt=attempt, created_at=NOW - age, now=NOW, before=rows, outcomes=outcomes)


class MovesTests(SynchronousTestCase):
    """The table of moves."""

    def test_what_ended_stays_ended(self) -> None:
        """No event leads out of an end, but news that what was sent came back, and the wish to try anew."""
        for state in (OutboxState.SENT, OutboxState.FAILED, OutboxState.CANCELLED):
            for event in OutboxEvent:
                after = {
                    (OutboxState.SENT, OutboxEvent.BOUNCED): OutboxState.FAILED,
                    (OutboxState.FAILED, OutboxEvent.RETRY): OutboxState.QUEUED,
                }
                self.assertEqual(advance(state, event), after.get((state, event)))

    def test_nothing_is_sent_that_was_not_claimed(self) -> None:
        """From ``queued`` only a claim leads to a server; a reply may show that an earlier copy arrived."""
        reachable = {event for (state, event) in MOVES if state is OutboxState.QUEUED}
        away = {OutboxEvent.CANCEL, OutboxEvent.ARRIVED, OutboxEvent.CARRY, OutboxEvent.DROP}
        self.assertEqual(reachable, {OutboxEvent.CLAIM, OutboxEvent.RETRY, *away})
        self.assertEqual(advance(OutboxState.QUEUED, OutboxEvent.RETRY), OutboxState.QUEUED)


class ConclusionTests(SynchronousTestCase):
    """One attempt, one conclusion."""

    def test_all_accepted(self) -> None:
        """Sent."""
        self.assertEqual(_conclude(ACCEPTED, ACCEPTED).event, OutboxEvent.ACCEPTED)

    def test_some_put_off(self) -> None:
        """Again, and only for those."""
        done = _conclude(ACCEPTED, TRY_LATER, REJECTED)
        self.assertEqual((done.event, done.next_attempt_at), (OutboxEvent.TRY_LATER, NOW + RETRIES[0]))
        states = [row.state for row in done.recipients]
        self.assertEqual(states, [RecipientState.ACCEPTED, RecipientState.WAITING, RecipientState.REJECTED])

    def test_some_accepted_the_rest_refused(self) -> None:
        """Sent, to those who took it."""
        self.assertEqual(_conclude(ACCEPTED, REJECTED).event, OutboxEvent.ACCEPTED)

    def test_never_reached(self) -> None:
        """No connection: again."""
        self.assertEqual(_conclude(None, None).event, OutboxEvent.TRY_LATER)

    def test_the_schedule(self) -> None:
        """Longer and longer, and then every two hours."""
        for attempt in (1, 2, 3, 4, 5, 6, 20):
            pause = RETRIES[min(attempt, 5) - 1]
            self.assertEqual(_conclude(TRY_LATER, attempt=attempt).next_attempt_at, NOW + pause)

    def test_giving_up(self) -> None:
        """When the next attempt would come too late."""
        age = GIVE_UP - RETRIES[-1]
        self.assertEqual(_conclude(TRY_LATER, attempt=9, age=age).event, OutboxEvent.TRY_LATER)
        late = _conclude(TRY_LATER, attempt=9, age=age + timedelta(seconds=1))
        self.assertEqual((late.event, late.doubtful), (OutboxEvent.REJECTED, False))

    def test_unclear_rests(self) -> None:
        """Ten minutes, whatever the schedule says."""
        for attempt in (1, 9):
            done = _conclude(UNCLEAR, attempt=attempt)
            self.assertEqual((done.event, done.next_attempt_at), (OutboxEvent.LOST_SIGHT, NOW + UNCLEAR_REST))

    def test_unclear_twice(self) -> None:
        """Failed, and yet it may have arrived."""
        done = _conclude(UNCLEAR, attempt=2, before=RecipientState.UNCLEAR)
        self.assertEqual((done.event, done.doubtful), (OutboxEvent.REJECTED, True))
        self.assertEqual(done.recipients[0].state, RecipientState.LOST)

    def test_a_doubt_outlives_a_delay(self) -> None:
        """Put off after an unclear attempt: still in doubt."""
        done = _conclude(TRY_LATER, attempt=2, before=RecipientState.UNCLEAR)
        self.assertEqual(done.event, OutboxEvent.TRY_LATER)
        self.assertEqual(done.recipients[0].state, RecipientState.UNCLEAR)

    def test_a_decision_whose_caller_waits(self) -> None:
        """Any refusal of its first attempt cancels it; an acceptance or a doubt does not."""
        for verdict in (TRY_LATER, REJECTED, None):
            self.assertEqual(_conclude(verdict, kind=MailKind.DECISION).event, OutboxEvent.CANCEL)
        self.assertEqual(_conclude(ACCEPTED, kind=MailKind.DECISION).event, OutboxEvent.ACCEPTED)
        self.assertEqual(_conclude(UNCLEAR, kind=MailKind.DECISION).event, OutboxEvent.LOST_SIGHT)

    def test_a_decision_whose_caller_has_gone(self) -> None:
        """It is a mail like any other: by time, or by attempt."""
        late = timedelta(seconds=61)
        self.assertEqual(_conclude(TRY_LATER, kind=MailKind.DECISION, age=late).event, OutboxEvent.TRY_LATER)
        again = _conclude(TRY_LATER, kind=MailKind.DECISION, attempt=2)
        self.assertEqual(again.event, OutboxEvent.TRY_LATER)

    @given(st.data())
    def test_never_more_than_two_copies(self, data: st.DataObject) -> None:
        """However the attempts go, nobody gets a third copy, and an end comes."""
        names = [f"p{number}@example.org" for number in range(data.draw(st.integers(1, 3)))]
        rows = {name: RecipientRow(name, RecipientState.WAITING) for name in names}
        copies = dict.fromkeys(names, 0)
        kind = data.draw(st.sampled_from(MailKind))
        now, state = NOW, OutboxState.QUEUED
        for attempt in range(1, 60):
            open_to = [
                name for name in names if rows[name].state in {RecipientState.WAITING, RecipientState.UNCLEAR}
            ]
            outcomes = {
                name: RecipientOutcome(name, data.draw(st.sampled_from(RecipientVerdict))) for name in open_to
            }
            for name, outcome in outcomes.items():
                copies[name] += outcome.verdict in {ACCEPTED, UNCLEAR}
            done = conclude(
                kind, attempt=attempt, created_at=NOW, now=now, before=list(rows.values()), outcomes=outcomes
            )
            rows.update({row.address: row for row in done.recipients})
            moved = advance(OutboxState.SENDING, done.event)
            assert moved is not None
            state = moved
            if done.next_attempt_at is None:
                break
            self.assertIn(state, {OutboxState.QUEUED, OutboxState.UNCLEAR})
            self.assertGreater(done.next_attempt_at, now)
            now = done.next_attempt_at
        self.assertIn(state, {OutboxState.SENT, OutboxState.FAILED, OutboxState.CANCELLED})
        self.assertTrue(all(number <= 2 for number in copies.values()), copies)
