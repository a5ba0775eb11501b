"""Decisions that nobody has answered: reminded once, then daily, and sent to a second person."""

import email
import email.policy
from datetime import UTC, timedelta
from email.message import EmailMessage

from attrs import evolve
from twisted.internet.defer import Deferred

from mailgateway.domain.attention import REMINDERS_TO_A_PERSON, Attention, QuietHours
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import MailKind, OutboxEvent
from mailgateway.domain.question import Answered
from mailgateway.domain.route import Purpose
from mailgateway.flows import mode, outbox, reminders, resolve, sweep
from mailgateway.flows.submit import Submitted
from mailgateway.ids import OutboxId, SessionId
from mailgateway.store import outbox as rows
from mailgateway.store import questions, routes
from mailgateway.store import reminders as reminder_rows
from mailgateway.store.database import Tx
from tests.flows.outbound import IDENTITY, PERSON, S1, Interrupted, OutboundTestCase

SAM = "sam@example.org"
REMIND = Attention(remind_after=timedelta(hours=3))
SECOND = evolve(REMIND, escalate_after=timedelta(hours=8), escalate_to=SAM)


class ReminderTestCase(OutboundTestCase):
    """A session has asked, and its mail has left."""

    attention = REMIND

    def setUp(self) -> None:
        super().setUp()
        self.gateway.sender = evolve(self.gateway.sender, attention=self.attention)
        self.ping(title="Port the parser")
        self.asked = self.ask()

    def ask(self, session: SessionId = S1) -> Submitted:
        """A decision, and its mail leaves."""
        asked = self.submit("decision", session, options=("SQLite", "PostgreSQL"), recommendation="SQLite")
        self.conclude(self.claim())
        return asked

    def look(self) -> tuple[OutboxId, ...]:
        """What the service does when it looks."""
        gateway = self.gateway
        return self.now(
            reminders.due(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
        )

    def mail(self, outbox_id: OutboxId) -> EmailMessage:
        """A mail as it leaves."""
        raw = self.gateway.rows(lambda tx: rows.bytes_of(tx, outbox_id)).raw
        message = email.message_from_bytes(raw, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        return message

    def to(self, outbox_id: OutboxId) -> str:
        """Whom a mail goes to."""
        found = self.gateway.rows(lambda tx: rows.find(tx, outbox_id))
        assert found is not None
        self.assertEqual(found.kind, MailKind.REMINDER)
        (one,) = found.recipients
        return one.address

    def answer(self, asked: Submitted | None = None, by: str = PERSON) -> bool:
        """Somebody answers, by whatever door; whether the answer won."""
        question_id = (asked or self.asked).question_id
        assert question_id is not None

        def work(tx: Tx) -> bool:
            question = questions.find(tx, question_id)
            assert question is not None
            outcome = resolve.resolve(
                tx,
                question_id=question_id,
                expected_revision=question.revision,
                values=("SQLite",),
                note=None,
                text="1",
                by=by,
                door="terminal",
                random=b"\0" * 12,
            )
            return isinstance(outcome, Answered)

        return self.gateway.rows(work)

    def meanwhile(self) -> None:
        """Somebody answers in the last moment."""
        self.answer()

    def times(self) -> int:
        """How many rows tell of reminders."""
        return self.gateway.rows(
            lambda tx: sum(
                each.times
                for each in reminder_rows.unanswered(
                    tx, IDENTITY.machine_id, asked_before=tx.now, limit=1_000
                )
            )
        )


class RemindTests(ReminderTestCase):
    """The person who was asked."""

    def test_once_then_daily(self) -> None:
        """Three hours after the mail has left, and each day as long as it is open."""
        self.gateway.later(hours=2, minutes=59)
        self.assertEqual(self.look(), ())
        self.gateway.later(minutes=2)
        self.assertEqual([self.to(each) for each in self.look()], [PERSON])
        self.assertEqual(self.look(), ())
        for _ in range(6):
            self.gateway.later(hours=23, minutes=59)
            self.assertEqual(self.look(), ())
            self.gateway.later(minutes=2)
            self.assertEqual(len(self.look()), 1)
        self.gateway.later(hours=24)  # the route has lived its seven days
        self.assertEqual(self.look(), ())

    def test_it_stands_in_the_thread_and_can_be_answered(self) -> None:
        """The same tag and route, the options again, and since when it waits."""
        self.gateway.later(hours=3)
        (again,) = self.look()
        first, mail = self.mail(self.asked.outbox_id), self.mail(again)
        self.assertEqual(mail["Subject"], first["Subject"])
        self.assertEqual(mail["In-Reply-To"], first["Message-ID"])
        self.assertTrue(mail["References"].endswith(first["Message-ID"]))
        self.assertNotEqual(mail["Message-ID"], first["Message-ID"])
        text = mail.get_body(("plain",))
        page = mail.get_body(("html",))
        assert text is not None
        assert page is not None
        for words in ("1. SQLite (recommended)", "2. PostgreSQL", "3 hours ago", "Port the parser"):
            self.assertIn(words, text.get_content())
        self.assertIn(
            f"mailto:agent@example.org?subject=Re%3A%20%5Bmg%3A{self.asked.route_id}%5D", page.get_content()
        )

    def test_answered_is_not_reminded(self) -> None:
        """Whatever door it came through, also in the last moment."""
        self.gateway.later(hours=3)
        self.gateway.database.before_writing.append(self.meanwhile)
        self.assertEqual(self.look(), ())
        self.gateway.later(days=2)
        self.assertEqual(self.look(), ())

    def test_answered_before_the_reminder_has_left(self) -> None:
        """What waits for the mail server is not sent any more."""
        self.gateway.later(hours=3)
        (again,) = self.look()
        self.answer()
        self.assertIsNone(self.claim_next())
        row = self.now(outbox.row(self.gateway.database, again))
        self.assertEqual(row.state, "cancelled")

    def test_a_mail_that_has_not_left(self) -> None:
        """Nobody is reminded of what they never got."""
        other = self.submit("decision", SessionId("another"))
        self.conclude(self.claim(), "unclear", None)
        self.gateway.later(hours=3)
        self.assertEqual([self.to(each) for each in self.look()], [PERSON])
        self.assertEqual(self.row(other).state, "unclear")

    def test_without_an_hour(self) -> None:
        """Zero is never."""
        self.gateway.sender = evolve(self.gateway.sender, attention=Attention())
        self.gateway.later(days=5)
        self.assertEqual(self.look(), ())

    def test_never_by_night_and_never_while_off(self) -> None:
        """It waits, and leaves then."""
        now = self.at()
        begin = (now + timedelta(hours=2)).time().replace(microsecond=0)
        end = (now + timedelta(hours=10)).time().replace(microsecond=0)
        night = evolve(REMIND, quiet=QuietHours(begin, end, UTC))
        self.gateway.sender = evolve(self.gateway.sender, attention=night)
        self.gateway.later(hours=4)
        self.assertEqual(self.look(), ())
        self.gateway.later(hours=7)
        self.switch(Mode.OFF)
        self.assertEqual(self.look(), ())
        self.switch(Mode.ON)
        self.gateway.database.before_writing.append(lambda: self.switch(Mode.OFF))
        self.assertEqual(self.look(), ())
        self.switch(Mode.ON)
        self.assertEqual(len(self.look()), 1)

    def switch(self, wanted: Mode) -> None:
        """Change the mode."""
        gateway = self.gateway
        self.now(mode.change(gateway.database, gateway.bell, IDENTITY, wanted, by="session"))

    def test_not_too_many_for_one_person(self) -> None:
        """The oldest first; the others take their turn, and nobody is muted by it."""
        most, within = REMINDERS_TO_A_PERSON
        for number in range(most + 3):
            self.ask(SessionId(f"session-{number}"))
        self.gateway.later(hours=3)
        self.assertEqual(len(self.look()), most)
        self.assertEqual(self.look(), ())
        self.gateway.later(seconds=within.total_seconds() + 1)
        self.assertEqual(len(self.look()), 4)

    def test_a_crash_repeats_nothing_and_loses_nothing(self) -> None:
        """The mail and that it was sent are written in one transaction."""
        self.gateway.later(hours=3)
        gateway = self.gateway
        gateway.database.interrupted = True
        killed = reminders.due(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
        self.failureResultOf(Deferred.fromCoroutine(killed), Interrupted)
        self.assertEqual(self.times(), 0)
        self.assertEqual(len(self.look()), 1)
        self.assertEqual(self.look(), ())
        self.assertEqual(self.times(), 1)

    def test_two_looks_at_once(self) -> None:
        """Only one of them mails."""
        self.gateway.later(hours=3)
        found: list[tuple[OutboxId, ...]] = []
        self.gateway.database.before_writing.append(lambda: found.append(self.look()))
        found.append(self.look())
        self.assertEqual(sorted(map(len, found)), [0, 1])

    def test_the_person_to_notify_has_changed(self) -> None:
        """Who is told no more is not reminded."""
        self.gateway.sender = evolve(self.gateway.sender, recipient=SAM)
        self.gateway.later(hours=3)
        self.assertEqual(self.look(), ())

    def test_it_is_forgotten_with_its_question(self) -> None:
        """No row stays for a question that is over."""
        self.gateway.later(hours=3)
        self.look()
        self.answer()
        gateway = self.gateway
        self.now(
            sweep.sweep(
                gateway.database,
                gateway.bell,
                IDENTITY,
                bodies_days=30,
                route_ttl=timedelta(hours=168),
                alive=lambda _pid, _start: True,
                discard=lambda _path: None,
            )
        )
        self.assertEqual(self.gateway.rows(reminder_rows.prune), 0)


class SecondAddressTests(ReminderTestCase):
    """Whoever is asked when the first person says nothing."""

    attention = SECOND

    def test_once_under_its_own_route(self) -> None:
        """Beside the reminders of the first person, and with a tag of its own."""
        self.gateway.later(hours=7)
        self.assertEqual([self.to(each) for each in self.look()], [PERSON])
        self.gateway.later(hours=1)
        (second,) = self.look()
        self.assertEqual(self.to(second), SAM)
        self.assertEqual(self.look(), ())
        mail = self.mail(second)
        self.assertEqual(mail["To"], SAM)
        self.assertNotIn(self.asked.route_id, mail["Subject"])
        self.assertIsNone(mail["In-Reply-To"])
        row = self.gateway.rows(lambda tx: rows.find(tx, second))
        assert row is not None
        route = self.gateway.rows(lambda tx: routes.find(tx, row.route_id))
        assert route is not None
        self.assertEqual(
            (route.purpose, route.recipient, route.question_id),
            (Purpose.QUESTION, SAM, self.asked.question_id),
        )
        self.gateway.later(hours=23)
        self.assertEqual([self.to(each) for each in self.look()], [PERSON])
        self.gateway.later(days=3)
        self.assertEqual([self.to(each) for each in self.look()], [PERSON])

    def test_answered_goes_to_nobody(self) -> None:
        """Also between composing and queueing."""
        self.gateway.later(hours=9)
        self.gateway.database.before_writing.append(self.meanwhile)
        self.assertEqual(self.look(), ())

    def test_a_refused_mail_to_the_second_leaves_the_question(self) -> None:
        """It stays open for the first."""
        self.gateway.later(hours=9)
        (second,) = self.look()
        self.assertEqual(self.to(second), SAM)
        self.conclude(self.claim(), "rejected", 550)
        self.assertTrue(self.answer())

    def test_the_first_mail_came_back(self) -> None:
        """Who knows nothing of it is not reminded; the second person is asked."""

        def bounced(tx: Tx) -> None:
            found = rows.find(tx, self.asked.outbox_id)
            assert found is not None
            rows.move(tx, found, OutboxEvent.BOUNCED)

        self.gateway.rows(bounced)
        self.gateway.later(hours=4)
        self.assertEqual(self.look(), ())
        self.gateway.later(hours=4)
        self.assertEqual([self.to(each) for each in self.look()], [SAM])

    def test_whom_it_goes_to_already(self) -> None:
        """Nobody is asked twice for being in both places."""
        both = evolve(SECOND, escalate_to=PERSON)
        self.gateway.sender = evolve(self.gateway.sender, attention=both)
        self.gateway.later(hours=9)
        self.assertEqual([self.to(each) for each in self.look()], [PERSON])
        self.assertEqual(self.look(), ())


class ClockTests(ReminderTestCase):
    """A clock that is set."""

    def test_backwards(self) -> None:
        """Nobody is reminded twice for it."""
        self.gateway.later(hours=3)
        self.assertEqual(len(self.look()), 1)
        self.gateway.later(hours=-2)
        self.assertEqual(self.look(), ())
        self.gateway.later(hours=20)
        self.assertEqual(self.look(), ())
