"""Replies to what leaves by the passing of time, through the whole of judging: they reach who was meant."""

from datetime import UTC, datetime, time, timedelta

from attrs import evolve

from mailgateway.domain.attention import Attention, QuietHours
from mailgateway.domain.outbox import OutboxRow
from mailgateway.flows import digest, reminders
from mailgateway.flows.counts import counts
from mailgateway.ids import OutboxId
from mailgateway.mail.own import Own
from mailgateway.store import outbox as rows
from mailgateway.store import questions
from tests.flows.inbound import AGENT, OWN, RESULTS, InboundTestCase, letter
from tests.flows.outbound import IDENTITY, PERSON, S1, S2
from tests.flows.test_bounces import report

SAM = "sam@example.org"
NIGHT = QuietHours(time(22), time(7), UTC)


class NightTestCase(InboundTestCase):
    """Two sessions wrote in the night; one has asked in the evening."""

    def setUp(self) -> None:
        super().setUp()
        attention = Attention(
            quiet=NIGHT,
            remind_after=timedelta(hours=3),
            escalate_after=timedelta(hours=12),
            escalate_to=SAM,
        )
        self.own = Own(
            addresses=[AGENT], allowed=[PERSON, SAM], trusted_authserv_ids=OWN.trusted_authserv_ids
        )
        self.gateway.sender = evolve(self.gateway.sender, attention=attention)
        self.conclude(self.claim())
        self.go_to("20:00")
        self.ping(S2)
        self.asked = self.submit("decision", options=("SQLite", "PostgreSQL"))
        self.conclude(self.claim())
        self.go_to("23:00")

    def go_to(self, clock: str) -> None:
        """Let time pass until the database's clock shows this next."""
        now = self.at()
        wanted = datetime.combine(now.date(), time.fromisoformat(clock), UTC)
        self.gateway.database.offset += wanted - now + timedelta(days=wanted <= now)

    def released(self) -> OutboxRow:
        """The one mail that leaves in the morning."""
        self.go_to("07:00")
        gateway = self.gateway
        (found,) = self.now(
            digest.release(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
        )
        return self.sent_as(found)

    def reminded(self) -> OutboxRow:
        """The one reminder that is due."""
        gateway = self.gateway
        (found,) = self.now(
            reminders.due(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
        )
        return self.sent_as(found)

    def sent_as(self, outbox_id: OutboxId) -> OutboxRow:
        """A mail of the outbox, which leaves."""
        self.conclude(self.claim())
        found = self.gateway.rows(lambda tx: rows.find(tx, outbox_id))
        assert found is not None
        return found

    def answering(self, mail: OutboxRow, words: str, *, subject: str = "", sender: str = PERSON) -> bytes:
        """A reply to a mail of ours."""
        results = RESULTS.replace("example.org", sender.partition("@")[2])
        return letter(
            words,
            subject=subject or f"Re: {mail.subject}",
            replies_to=mail.message_id,
            sender=sender,
            results=results,
        )

    def told(self) -> str:
        """The newest mail by the gateway itself."""
        claimed = self.claim()
        self.conclude(claimed)
        return claimed.raw.decode()

    def said(self, session: str) -> list[str]:
        """What waits for a session."""
        return [each.body.strip() for each in self.pending(session)]  # type: ignore[arg-type]  # a new type


class DigestTests(NightTestCase):
    """Several sessions in one mail."""

    def setUp(self) -> None:
        super().setUp()
        self.first = self.submit(subject="Halfway")
        self.second = self.submit(subject="Chapter *one*", session=S2)
        self.digest = self.released()

    def test_one_piece_is_answered(self) -> None:
        """By the mail that its link opens, and by a reply whose subject has the tag."""
        tag = f"[mg:{self.second.route_id}]"
        self.receive(letter("Go on", subject=f"Re: {tag} Chapter one"))
        self.receive(self.answering(self.digest, "And on", subject=f"Re: {tag} Chapter one"))
        self.assertEqual((self.said(S1), self.said(S2)), ([], ["Go on", "And on"]))

    def test_a_reply_to_the_whole_reaches_nobody_and_is_answered(self) -> None:
        """With the tags to use; once a day."""
        received = self.receive(self.answering(self.digest, "Go on"))
        self.assertEqual((self.said(S1), self.said(S2)), ([], []))
        self.assertEqual(dict(received.refused), {"no-token": 1})
        told = self.told()
        for sent, subject in ((self.first, "Halfway"), (self.second, "Chapter *one*")):
            self.assertIn(f"[mg:{sent.route_id}] ", told)
            self.assertIn(subject.replace("*", "\\*"), told)
        self.receive(self.answering(self.digest, "Go on, I said"))
        self.assertIsNone(self.claim_next())

    def test_a_command_is_a_command(self) -> None:
        """It is said to the gateway, whatever it replies to."""
        self.receive(self.answering(self.digest, "/status"))
        self.assertIn("auto-replied", self.told())

    def test_a_bounce_of_it_tells_no_session(self) -> None:
        """It belongs to none; the outbox says that it was not delivered."""
        self.assertEqual(self.row(self.first).state, "sent")
        self.receive(report(self.digest.message_id))
        self.assertEqual((self.pending(S1), self.pending(S2)), ((), ()))
        self.assertEqual(self.row(self.first).state, "failed")

    def test_the_numbers(self) -> None:
        """Nothing is held any more, and three were."""
        self.assertEqual(self.now(counts(self.gateway.database, IDENTITY)).held, 0)
        self.go_to("23:00")
        self.submit()
        found = self.now(counts(self.gateway.database, IDENTITY))
        self.assertEqual(found.held, 1)
        self.assertIsNotNone(found.held_until)


class OneSessionTests(NightTestCase):
    """Several words of one session in one mail."""

    def test_a_reply_reaches_it(self) -> None:
        """By the tag, and by the chain alone."""
        self.submit(subject="Halfway")
        self.submit(subject="Done with it")
        together = self.released()
        self.receive(self.answering(together, "Well done"))
        self.receive(self.answering(together, "Thank you", subject="Re: your mail"))
        self.assertEqual(self.said(S1), ["Well done", "Thank you"])


class ReminderReplyTests(NightTestCase):
    """Answers to what was brought to mind."""

    def test_an_answer_to_a_reminder(self) -> None:
        """It answers the question; the next reply is late."""
        self.go_to("07:30")
        reminder = self.reminded()
        self.receive(self.answering(reminder, "2, but not before Monday"))
        (delivery,) = self.pending(S1)
        self.assertEqual((delivery.question_id, delivery.choice), (self.asked.question_id, "PostgreSQL"))
        self.assertEqual(self.status(), "answered")

    def test_a_tap_on_a_reminder(self) -> None:
        """A mail of its own that has the tag alone."""
        self.go_to("07:30")
        self.reminded()
        self.receive(letter("1. SQLite", subject=f"Re: {self.asked.subject} (1)"))
        (delivery,) = self.pending(S1)
        self.assertEqual((delivery.question_id, delivery.choice), (self.asked.question_id, "SQLite"))

    def test_the_second_person_answers(self) -> None:
        """Who was not asked first, by the own tag; the first person's answer comes too late."""
        self.go_to("08:30")
        second = self.reminded()
        self.assertEqual(second.recipients[0].address, SAM)
        self.assertNotEqual(second.route_id, self.asked.route_id)
        self.receive(self.answering(second, "1", sender=SAM))
        (delivery,) = self.pending(S1)
        self.assertEqual((delivery.question_id, delivery.choice), (self.asked.question_id, "SQLite"))
        self.assertEqual(delivery.from_address, SAM)
        self.receive(self.reply("2", self.asked))
        self.assertEqual(len([each for each in self.pending(S1) if each.choice]), 1)

    def test_the_first_person_answers_after_the_second_was_asked(self) -> None:
        """The first answer wins, whoever gives it."""
        self.go_to("08:30")
        second = self.reminded()
        self.receive(self.reply("2", self.asked))
        (delivery,) = self.pending(S1)
        self.assertEqual(delivery.choice, "PostgreSQL")
        self.receive(self.answering(second, "1", sender=SAM))
        self.assertEqual(len([each for each in self.pending(S1) if each.choice]), 1)

    def status(self) -> str:
        """Where the question stands."""
        question_id = self.asked.question_id
        assert question_id is not None
        found = self.gateway.rows(lambda tx: questions.find(tx, question_id))
        assert found is not None
        return found.status
