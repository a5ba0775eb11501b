"""The settled event: one mail when a turn is over and stays so, never two, never none."""

from datetime import datetime, timedelta

from attrs import evolve
from twisted.internet.defer import Deferred

from mailgateway.domain import policy
from mailgateway.domain.mode import Mode
from mailgateway.flows import mode, settle, start
from mailgateway.flows.bell import EventKind
from mailgateway.flows.counts import counts
from mailgateway.ids import MachineId, OutboxId, SessionId
from mailgateway.mail.secret_text import Guard, Known
from mailgateway.store import outbox as rows
from mailgateway.store import settles
from tests.flows.outbound import I1, IDENTITY, S1, S2, Interrupted, OutboundTestCase


class SettleTests(OutboundTestCase):
    """Waiting, replaced, cancelled, due."""

    def test_it_is_mailed_after_the_delay(self) -> None:
        """Once, exempt of the budget, under the session's title."""
        self.ping(title="Port the parser")
        for _ in range(10):
            self.submit()
        self._note("All **tests** pass.")
        self.assertEqual(self._due(), ())
        self.gateway.later(seconds=20)
        self.gateway.kinds()
        (outbox_id,) = self._due()
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX])
        self.assertEqual(self._due(), ())
        self.assertTrue(self._subject(outbox_id).endswith("] Done: All tests pass · laptop"))

    def test_one_that_is_too_much_waits(self) -> None:
        """A session that settles again and again is bounded; the last one is mailed when there is room."""
        for _ in range(policy.SETTLES_PER_MINUTE):
            self.submit("settle")
        self._note("The last one.")
        self._note("Another session's.", S2)
        self.gateway.later(seconds=20)
        self.assertEqual(len(self._due()), 1)
        self.assertEqual(self._due(), ())
        self.gateway.later(seconds=60)
        (outbox_id,) = self._due()
        self.assertTrue(self._subject(outbox_id).endswith("] Done: The last one · laptop"))

    def test_one_that_is_refused_waits(self) -> None:
        """Whatever the reason: it is tried again in ten minutes, and nobody spins over it."""
        self._note("Done.")
        self._note("Also done.", S2)
        self.gateway.later(seconds=20)
        usual = self.gateway.sender
        self.gateway.sender = evolve(usual, recipient="nobody\n@example.org")
        self.assertEqual(self._due(), ())
        due = self._next_due()
        assert due is not None
        wait = (due - self.gateway.rows(lambda tx: tx.now)).total_seconds()
        self.assertTrue(590 < wait <= 600, wait)
        self.gateway.sender = usual
        self.assertEqual(self._due(), ())
        self.gateway.later(seconds=600)
        self.assertEqual(len(self._due()), 2)

    def test_a_newer_one_replaces_it(self) -> None:
        """And the delay begins anew."""
        self._note("First.")
        self.gateway.later(seconds=15)
        self._note("Second.")
        self.gateway.later(seconds=15)
        self.assertEqual(self._due(), ())
        self.gateway.later(seconds=5)
        (outbox_id,) = self._due()
        self.assertTrue(self._subject(outbox_id).endswith("] Done: Second · laptop"))

    def test_sessions_settle_apart(self) -> None:
        """One by one, the earliest first."""
        self._note("One.", S1)
        self.gateway.later(seconds=1)
        self._note("Two.", S2)
        self.assertIsNotNone(self._next_due())
        self.gateway.later(seconds=20)
        subjects = [
            self._subject(outbox_id).partition("Done: ")[2].partition(" ")[0] for outbox_id in self._due()
        ]
        self.assertEqual(subjects, ["One", "Two"])
        self.assertIsNone(self._next_due())

    def test_it_outlives_the_process(self) -> None:
        """A restart within the delay loses nothing."""
        self._note("Done.")
        self.start()
        self.gateway.later(seconds=21)
        self.assertEqual(len(self._due()), 1)

    def test_a_crash_while_sending_leaves_it_waiting(self) -> None:
        """Its row and its mail change hands in one transaction."""
        self._note("Done.")
        self.gateway.later(seconds=21)
        gateway = self.gateway
        gateway.database.interrupted = True
        killed = settle.due(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
        self.failureResultOf(Deferred.fromCoroutine(killed), Interrupted)
        self.assertEqual(self.gateway.rows(lambda tx: rows.waiting(tx, IDENTITY.machine_id)), 0)
        self.assertEqual(len(self._due()), 1)
        self.assertEqual(self.gateway.rows(lambda tx: rows.waiting(tx, IDENTITY.machine_id)), 1)

    def test_cancelled_between_composing_and_queueing(self) -> None:
        """A session that works again in the last moment is believed."""
        self._note("Done.")
        self.gateway.later(seconds=21)
        self.gateway.database.before_writing.append(self._working)
        self.assertEqual(self._due(), ())
        self.assertEqual(self.gateway.rows(lambda tx: rows.waiting(tx, IDENTITY.machine_id)), 0)

    def test_aborted_turns_are_mailed_only_when_wanted(self) -> None:
        """An aborted turn also takes away the word that waited."""
        self._note("Done.")
        self._note("Half.", aborted=True)
        self.gateway.later(seconds=21)
        self.assertEqual(self._due(), ())
        self._note("Half.", aborted=True, on_aborted=True)
        self.gateway.later(seconds=21)
        (outbox_id,) = self._due()
        self.assertTrue(self._subject(outbox_id).endswith("] Stopped: Half · laptop"))

    def test_off_forgets_it(self) -> None:
        """By the time the mode is on again it is no news."""
        self._note("Done.")
        self.gateway.later(seconds=21)
        change = mode.change
        database, bell = self.gateway.database, self.gateway.bell
        self.now(change(database, bell, IDENTITY, Mode.OFF, by="session"))
        self.assertEqual(self._due(), ())
        self.now(change(database, bell, IDENTITY, Mode.ON, by="session"))
        self.assertEqual(self._due(), ())

    def test_a_mail_of_its_own_takes_its_place(self) -> None:
        """A session that says itself that it is done is not heard twice; another session's still waits."""
        self._note("Done.")
        self._note("Done, too.", S2)
        self.submit("settle", subject="Done: it is")
        self.gateway.later(seconds=21)
        (outbox_id,) = self._due()
        self.assertIn("Done: Done, too", self._subject(outbox_id))

    def test_a_summary_with_a_secret(self) -> None:
        """It is not mailed, not tried again, and told for a day; the next one is mailed."""
        key = "5e" * 32
        self.gateway.sender = evolve(self.gateway.sender, guard=Guard((Known("the session key", key),)))
        self._note(f"The key is {key}.")
        self.gateway.later(seconds=21)
        self.assertEqual(self._due(), ())
        self.assertIsNone(self._next_due())
        self.assertEqual(self.now(counts(self.gateway.database, IDENTITY)).withheld, 1)
        self._note("Done.")
        self.gateway.later(seconds=21)
        self.assertEqual(len(self._due()), 1)
        self.gateway.later(days=1)
        self.assertEqual(self.now(counts(self.gateway.database, IDENTITY)).withheld, 0)

    def test_it_is_mailed_where_it_was_said(self) -> None:
        """Two machines on one database: each mails what it was told, whichever knew the session first."""
        self.ping()
        gateway, other = self.gateway, evolve(IDENTITY, machine_id=MachineId("machine-two"), name="desk")
        self.now(start.introduce(gateway.database, other.machine_id, "desk"))
        note = settle.note(
            gateway.database, gateway.bell, other, S1, I1, "Done.", False, delay=timedelta(seconds=20)
        )
        self.now(note)
        gateway.later(seconds=21)
        self.assertEqual(self._due(), ())
        (outbox_id,) = self.now(
            settle.due(gateway.database, gateway.bell, other, gateway.sender, mint=gateway.mint)
        )
        self.assertTrue(self._subject(outbox_id).endswith(" · desk"))

    def test_flapping(self) -> None:
        """A session that stops and goes on all the time is mailed when it has stopped for good."""
        for _ in range(20):
            self._note("Done.")
            self.gateway.later(seconds=10)
            self.ping(state="working")
            self.gateway.later(seconds=15)
            self.assertEqual(self._due(), ())
        self._note("Done.")
        self.ping(state="idle")
        self.gateway.later(seconds=20)
        self.assertEqual(len(self._due()), 1)

    def test_what_the_subject_says(self) -> None:
        """The first sentence of the summary without its marks, else the title; and where."""
        self.ping(title="Port the parser", project="api")
        for summary, words in (
            ("14 tests fixed. And more.", "14 tests fixed"),
            ("## **Ported** the `parser`!\n\nAll of it.", "Ported the parser!"),
            ("- one\n- two", "one"),
            ("v2.1 is out", "v2.1 is out"),
            ("---\n\n***\n", "Port the parser"),
            ("", "Port the parser"),
        ):
            self._note(summary)
            self.gateway.later(seconds=21)
            (outbox_id,) = self._due()
            self.assertEqual(self._subject(outbox_id).partition("] ")[2], f"Done: {words} · api · laptop")

    def _note(
        self, summary: str, session: SessionId = S1, *, aborted: bool = False, on_aborted: bool = False
    ) -> None:
        self.now(
            settle.note(
                self.gateway.database,
                self.gateway.bell,
                IDENTITY,
                session,
                I1,
                summary,
                aborted,
                delay=timedelta(seconds=20),
                on_aborted=on_aborted,
            )
        )

    def _due(self) -> tuple[OutboxId, ...]:
        gateway = self.gateway
        return self.now(
            settle.due(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
        )

    def _next_due(self) -> datetime | None:
        return self.gateway.rows(lambda tx: settles.next_due(tx, IDENTITY.machine_id))

    def _working(self) -> None:
        self.ping(state="working")

    def _subject(self, outbox_id: OutboxId) -> str:
        found = self.gateway.rows(lambda tx: rows.find(tx, outbox_id))
        assert found is not None
        return found.subject
