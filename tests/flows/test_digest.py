"""Quiet hours: what is held back, how it leaves, and that nothing is lost or told twice."""

import email
import email.policy
from datetime import UTC, datetime, time, timedelta
from email.message import EmailMessage

from attrs import evolve
from twisted.internet.defer import Deferred

from mailgateway.domain.attention import Attention, QuietHours
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import MailKind, OutboxEvent
from mailgateway.flows import attention, digest, mode, outbox, settle, sweep
from mailgateway.flows.bell import EventKind
from mailgateway.flows.submit import Submitted, first_attempt
from mailgateway.ids import OutboxId
from mailgateway.store import held_mails
from mailgateway.store import outbox as rows
from mailgateway.store.database import Tx
from tests.flows.outbound import ACCOUNT, I1, IDENTITY, S1, S2, Interrupted, OutboundTestCase

NIGHT = QuietHours(time(22), time(7), UTC)


class HeldTestCase(OutboundTestCase):
    """A night that begins at ten, and the looks of the service."""

    attention = Attention(quiet=NIGHT)

    def setUp(self) -> None:
        super().setUp()
        self.gateway.sender = evolve(self.gateway.sender, attention=self.attention)
        self.go_to("23:00")

    def go_to(self, clock: str) -> None:
        """Let time pass until the database's clock shows this next."""
        now = self.at()
        wanted = datetime.combine(now.date(), time.fromisoformat(clock), UTC)
        self.gateway.database.offset += wanted - now + timedelta(days=wanted <= now)

    def look(self) -> tuple[OutboxId, ...]:
        """What the service does when it looks."""
        gateway = self.gateway
        return self.now(
            digest.release(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
        )

    def mail(self, outbox_id: OutboxId) -> EmailMessage:
        """A mail as it leaves."""
        raw = self.gateway.rows(lambda tx: rows.bytes_of(tx, outbox_id)).raw
        message = email.message_from_bytes(raw, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        return message

    def text(self, outbox_id: OutboxId) -> str:
        """The plain text of a mail."""
        part = self.mail(outbox_id).get_body(("plain",))
        assert part is not None
        content: str = part.get_content()
        return content

    def held(self) -> int:
        """How many mails are held back."""
        return self.gateway.rows(lambda tx: held_mails.count(tx, IDENTITY.machine_id))[0]

    def switch(self, wanted: Mode) -> None:
        """Change the mode."""
        gateway = self.gateway
        self.now(mode.change(gateway.database, gateway.bell, IDENTITY, wanted, by="session"))


class QuietTests(HeldTestCase):
    """Held back over the night."""

    def test_a_notification_waits_for_the_morning(self) -> None:
        """It is answered as queued, with the time; it leaves as itself, and not before."""
        self.gateway.kinds()
        sent = self.submit()
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX, EventKind.HELD])
        seven = datetime.combine(self.at().date() + timedelta(days=1), time(7), UTC)
        self.assertEqual((sent.state, sent.held_until), ("queued", seven))
        self.assertEqual(self.row(sent).held_until, seven)
        self.assertEqual(self.look(), ())
        self.assertIsNone(self.claim_next())
        self.go_to("06:59")
        self.assertEqual(self.look(), ())
        self.go_to("07:00")
        self.assertEqual(self.look(), (sent.outbox_id,))
        self.assertEqual(self.look(), ())
        claimed = self.claim()
        self.assertEqual(claimed.id, sent.outbox_id)
        self.conclude(claimed)
        self.assertEqual((self.row(sent).state, self.row(sent).held_until, self.held()), ("sent", None, 0))

    def test_by_day_nothing_is_held(self) -> None:
        """As if there were no night."""
        self.go_to("12:00")
        self.assertIsNone(self.submit().held_until)
        self.claim()

    def test_decisions_leave_at_once(self) -> None:
        """A session waits, unless the person wants it to; then each leaves as itself."""
        decision = self.submit("decision", options=("a", "b"))
        self.assertIsNone(decision.held_until)
        self.assertEqual(self.claim().id, decision.outbox_id)
        strict = evolve(self.attention, quiet_decisions=True)
        self.gateway.sender = evolve(self.gateway.sender, attention=strict)
        waiting = self.submit("decision", S2)
        other = self.submit("notification", S2)
        self.assertIsNotNone(waiting.held_until)
        self.assertIsNone(self.claim_next())
        self.go_to("07:00")
        self.assertEqual(set(self.look()), {waiting.outbox_id, other.outbox_id})

    def test_nobody_waits_for_a_held_decision(self) -> None:
        """Its caller is answered at once: queued."""
        strict = evolve(self.attention, quiet_decisions=True)
        self.gateway.sender = evolve(self.gateway.sender, attention=strict)
        waiting = self.submit("decision")
        gateway = self.gateway
        answered = self.now(first_attempt(gateway.database, gateway.bell, gateway.timers, waiting.outbox_id))
        self.assertEqual((answered.state, answered.held_until), ("queued", waiting.held_until))

    def test_a_held_decision_fails_to_nobody(self) -> None:
        """Its caller has its answer already: a refused credential or attempt leaves it."""
        strict = evolve(self.attention, quiet_decisions=True)
        self.gateway.sender = evolve(self.gateway.sender, attention=strict)
        waiting = self.submit("decision")
        gateway = self.gateway
        self.now(outbox.hold(gateway.database, gateway.bell, IDENTITY, ACCOUNT, "refused"))
        self.go_to("07:00")
        self.look()
        self.conclude(self.claim(), "try-later", 451)
        self.assertEqual(self.row(waiting).state, "queued")

    def test_one_session_leaves_in_one_mail(self) -> None:
        """In its thread, with a tag: a reply reaches it."""
        self.ping(title="Port the parser", project="api")
        first = self.submit(subject="Halfway", text="Seven of **14** done.")
        self.gateway.later(minutes=1)
        second = self.submit(subject="Done with it", text="All 14 done.")
        self.go_to("07:00")
        (together,) = self.look()
        self.assertEqual(self.held(), 0)
        mail = self.mail(together)
        self.assertRegex(mail["Subject"], r"\A\[mg:[0-9a-f]{6}\] 2 messages: Done with it\Z")
        text = self.text(together)
        self.assertLess(text.index("Halfway"), text.index("All 14 done."))
        for sent in (first, second):
            self.assertEqual(self.row(sent).state, "queued")
            self.assertEqual(self.row(sent).carried_by, together)
        claimed = self.claim()
        self.assertEqual((claimed.id, claimed.kind), (together, MailKind.DIGEST))
        self.conclude(claimed)
        self.assertIsNone(self.claim_next())
        self.assertEqual([self.row(sent).state for sent in (first, second)], ["sent", "sent"])
        later = self.submit(subject="And now?")
        self.assertEqual(self.mail(later.outbox_id)["In-Reply-To"], mail["Message-ID"])

    def test_several_sessions_leave_in_a_digest(self) -> None:
        """Without a tag of its own, each message under its own."""
        self.ping(title="Port the parser")
        self.ping(S2, title="Write the guide")
        mine = self.submit(subject="Halfway")
        other = self.submit(subject="Chapter one", session=S2)
        last = self.submit(subject="Done with it")
        self.go_to("07:00")
        (together,) = self.look()
        self.assertEqual(self.mail(together)["Subject"], "3 messages from 2 sessions · laptop")
        text = self.text(together)
        places = [text.index(f"[mg:{sent.route_id}]") for sent in (mine, last, other)]
        self.assertEqual(places, sorted(places))
        for title in ("Port the parser", "Write the guide", "Halfway", "Chapter one", "Done with it"):
            self.assertIn(title, text)
        page = self.mail(together).get_body(("html",))
        assert page is not None
        for sent in (mine, last, other):
            self.assertIn(f"%5Bmg%3A{sent.route_id}%5D", page.get_content())

    def test_a_settled_turn_waits_too(self) -> None:
        """And one that is mailed directly takes the place of the one that waits."""
        gateway = self.gateway
        note = settle.note(
            gateway.database, gateway.bell, IDENTITY, S1, I1, "One.", False, delay=timedelta(seconds=20)
        )
        self.now(note)
        direct = self.submit("settle", subject="Done: two")
        self.assertIsNotNone(direct.held_until)
        gateway.later(seconds=30)
        again = settle.due(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
        self.assertEqual(self.now(again), ())
        self.assertEqual(self.held(), 1)

    def test_files_leave_with_their_own_mail(self) -> None:
        """What has attachments, or is too long, is not put together with others."""
        self.submit(subject="One")
        self.submit(subject="Two")
        big = self.submit(subject="Three", text="x " * 30_000)
        self.go_to("07:00")
        gone = self.look()
        self.assertEqual(len(gone), 2)
        self.assertIn(big.outbox_id, gone)

    def test_too_many_for_one_mail(self) -> None:
        """All of them leave, in as few mails as hold them."""
        self.gateway.sender = evolve(self.gateway.sender, budget_per_minute=1_000)
        for number in range(digest.MOST_IN_ONE + 2):
            self.submit(subject=f"Number {number}.")
        self.go_to("07:00")
        gone = self.look()
        self.assertEqual(len(gone), 2)
        said = "\n".join(self.text(each) for each in gone)
        for number in range(digest.MOST_IN_ONE + 2):
            self.assertIn(f"Number {number}.", said)

    def test_a_key_keeps_its_meaning(self) -> None:
        """Repeated while it is held, carried, and sent; and it counts in the budget."""
        first = self.submit(idempotency_key="k")
        self.assertEqual(self.submit(idempotency_key="k"), first)
        self.submit(subject="Another")
        for _ in range(8):
            self.submit()
        self.assertEqual(self.refused(self.submitting()).code, "send_budget")
        self.go_to("07:00")
        self.look()
        self.assertEqual(self.submit(idempotency_key="k").outbox_id, first.outbox_id)
        self.conclude(self.claim())
        self.assertEqual(self.submit(idempotency_key="k").state, "sent")

    def test_while_mail_is_off_all_stays(self) -> None:
        """It leaves together when it is on again, and not by night."""
        self.submit(subject="One")
        self.submit(subject="Two")
        self.switch(Mode.OFF)
        self.go_to("08:00")
        self.assertEqual((self.look(), self.held()), ((), 2))
        self.switch(Mode.ON)
        self.go_to("23:30")
        self.assertEqual((self.look(), self.held()), ((), 2))
        self.go_to("07:00")
        self.assertEqual(len(self.look()), 1)

    def test_switched_off_between_composing_and_queueing(self) -> None:
        """Nothing leaves."""
        self.submit(subject="One")
        self.submit(subject="Two")
        self.go_to("07:00")
        self.gateway.database.before_writing.append(lambda: self.switch(Mode.OFF))
        self.assertEqual((self.look(), self.held()), ((), 2))

    def test_a_crash_repeats_nothing_and_loses_nothing(self) -> None:
        """The mail that carries and those that are carried change hands in one transaction."""
        for several in (False, True):
            one = self.submit(subject="One")
            self.submit(subject="Two", session=S2 if several else S1)
            self.go_to("07:00")
            gateway = self.gateway
            gateway.database.interrupted = True
            killed = digest.release(
                gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint
            )
            self.failureResultOf(Deferred.fromCoroutine(killed), Interrupted)
            self.assertEqual(self.held(), 2)
            (carrier,) = self.look()
            self.assertEqual(self.row(one).carried_by, carrier)
            self.conclude(self.claim())
            self.assertIsNone(self.claim_next())
            self.go_to("23:00")

    def test_dropped_while_it_is_put_together(self) -> None:
        """Somebody takes one of them out: the next look sees what is left."""
        one, two = self.submit(subject="One"), self.submit(subject="Two")
        self.go_to("07:00")
        self.gateway.database.before_writing.append(lambda: self.drop(one))
        self.assertEqual(self.look(), ())
        self.assertEqual(self.look(), (two.outbox_id,))
        self.assertEqual(self.row(one).state, "cancelled")
        self.sweep()
        self.assertEqual(self.held(), 0)

    def drop(self, sent: Submitted) -> None:
        """Somebody drops a mail."""

        def work(tx: Tx) -> None:
            found = rows.find(tx, sent.outbox_id)
            assert found is not None
            rows.move(tx, found, OutboxEvent.CANCEL)

        self.gateway.rows(work)

    def sweep(self) -> None:
        """Sweep."""
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

    def test_it_is_forgotten_in_time(self) -> None:
        """Nothing of the night stays for ever."""
        self.submit(subject="One")
        self.submit(subject="Two", session=S2)
        self.go_to("07:00")
        self.look()
        self.conclude(self.claim())
        self.gateway.later(days=60)
        self.sweep()
        self.assertEqual(self.gateway.rows(lambda tx: rows.waiting(tx, IDENTITY.machine_id)), 0)

    def test_the_night_is_taken_out_of_the_settings(self) -> None:
        """What was held leaves at the next look."""
        self.submit(subject="One")
        self.gateway.sender = evolve(self.gateway.sender, attention=Attention())
        self.assertEqual(len(self.look()), 1)

    def test_the_night_is_made_longer(self) -> None:
        """What is held knows its new time."""
        sent = self.submit(subject="One")
        long = Attention(quiet=QuietHours(time(22), time(9), UTC))
        self.gateway.sender = evolve(self.gateway.sender, attention=long)
        self.assertEqual(self.look(), ())
        assert sent.held_until is not None
        self.assertEqual(self.row(sent).held_until, sent.held_until + timedelta(hours=2))

    def test_taken_in_hand_while_it_was_looked_at(self) -> None:
        """Somebody sends it by hand, and it fails: a look that began before does not hold it for ever."""
        sent = self.submit()
        [held] = self.gateway.rows(lambda tx: held_mails.waiting(tx, IDENTITY.machine_id, 10))
        self.assertTrue(self.gateway.rows(lambda tx: held_mails.let_go(tx, held)))
        self.conclude(self.claim(), "try-later", 450)
        self.gateway.rows(lambda tx: held_mails.hold_on(tx, held, held.hold))
        self.assertEqual(self.row(sent).held_until, None)
        self.assertIsNotNone(self.row(sent).next_attempt_at)

    def test_when_to_look_again(self) -> None:
        """At the end of the night by the database's clock, and each minute."""
        gateway = self.gateway

        def wait() -> float:
            return self.now(
                attention.attend(gateway.database, gateway.bell, IDENTITY, gateway.sender, mint=gateway.mint)
            )

        self.assertEqual(wait(), 60)
        self.submit()
        self.assertEqual(wait(), 60)
        self.go_to("06:59:30")
        self.assertTrue(25 < wait() <= 30)
        self.switch(Mode.OFF)
        self.go_to("07:30")
        self.assertEqual((wait(), self.held()), (60, 1), "looking more often frees nothing while it is off")
