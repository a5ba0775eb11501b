"""Submitting: one transaction, one mail for a key, one decision for a session, a budget for notifications."""

import os
from email import message_from_bytes, policy
from email.message import EmailMessage

from twisted.internet.defer import Deferred

from mailgateway.domain import policy as policy_rules
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import MailKind, OutboxState
from mailgateway.domain.policy import OF_ONE_KEY_PER_MINUTE
from mailgateway.domain.question import QuestionStatus
from mailgateway.domain.route import Purpose
from mailgateway.errors import Refusal
from mailgateway.flows import letters, mode, sessions, uploads
from mailgateway.flows.bell import EventKind
from mailgateway.flows.submit import SmtpFailed, Submitted, first_attempt, place
from mailgateway.ids import AttachmentId, SessionId
from mailgateway.mail.tag import parse_own_message_id
from mailgateway.store import machines, modes, questions, routes, threads
from mailgateway.store import outbox as rows
from mailgateway.store.database import Tx, transact
from mailgateway.store.tables import metadata
from tests.flows.outbound import IDENTITY, PERSON, S1, S2, SENDER, Interrupted, OutboundTestCase


class SubmitTests(OutboundTestCase):
    """A mail enters the outbox with everything that a reply to it needs."""

    def test_mail_route_and_thread_are_written_together(self) -> None:
        """What is queued is a whole mail whose tag and Message-ID lead back to its session."""
        self.ping(title="Port the parser", project="parser", branch="main")
        sent = self.submit(text="It **works**.", subject="News")
        self.assertEqual(self.gateway.kinds()[-1], EventKind.OUTBOX)
        self.assertEqual((sent.state, sent.question_id), ("queued", None))
        self.assertEqual(sent.subject, f"[mg:{sent.route_id}] News")
        route = self.gateway.rows(lambda tx: routes.find(tx, sent.route_id))
        assert route is not None
        self.assertEqual((route.purpose, route.session_id, route.recipient), (Purpose.SESSION, S1, PERSON))
        self.assertIsNone(route.revision)
        own = parse_own_message_id(sent.message_id)
        assert own is not None
        self.assertEqual(own.route, sent.route_id)
        thread = self.gateway.rows(lambda tx: threads.find(tx, [sent.message_id]))[sent.message_id]
        self.assertEqual(thread.route, route)
        self.assertIn("works", thread.sent_text)
        mail = self._mail()
        self.assertEqual((mail["To"], mail["Message-ID"]), (PERSON, sent.message_id))
        self.assertEqual(mail["X-Mailgateway-Instance"], IDENTITY.instance)
        self.assertIn("Port the parser", thread.sent_text)

    def test_the_mails_of_a_session_are_one_thread(self) -> None:
        """A later mail names the earlier ones that left, but no refused one and none of another session."""
        first = self.submit()
        self.conclude(self.claim())
        self.submit(session=S2)
        self.conclude(self.claim())
        refused = self.submit("decision")
        self.conclude(self.claim(), "rejected", 550)
        second = self.submit()
        self.assertEqual(self._mail()["In-Reply-To"], first.message_id)
        self.submit()
        mail = self._mail()
        self.assertEqual(mail["In-Reply-To"], second.message_id)
        self.assertEqual(mail["References"].split(), [first.message_id, second.message_id])
        self.assertNotIn(refused.message_id, mail["References"])

    def test_a_taken_route_id_makes_a_longer_one(self) -> None:
        """Ids are never issued twice: on a collision the next has 8 digits."""
        taken = self.submit()
        self.assertEqual(len(taken.route_id), 6)
        self.gateway.drawn = [*_chance(bytes.fromhex(taken.route_id)), b"\1\2\3\4"]
        self.assertEqual(self.submit().route_id, "01020304")

    def test_a_route_taken_between_composing_and_placing_is_drawn_anew(self) -> None:
        """Two that drew the same id at the same moment both get their mail, under different ids."""
        faster: list[Submitted] = []

        def be_faster() -> None:
            self.gateway.drawn = _chance(b"\1\2\3")
            faster.append(self.submit(session=S2))

        request = self.submitting()
        self.gateway.drawn = [*_chance(b"\1\2\3"), *[bytes([number] * 4) for number in range(4)]]
        self.gateway.database.before_writing.append(be_faster)
        slower = self.now(request)
        self.assertEqual(faster[0].route_id, "010203")
        self.assertNotEqual(slower.route_id, "010203")
        self.assertEqual(self.claim().id, faster[0].outbox_id)
        self.assertEqual(self.claim().id, slower.outbox_id)

    def test_nothing_is_left_of_a_transaction_that_broke(self) -> None:
        """Killed after the last statement, before the commit: no route, no thread, no question; then once."""
        before = self._everything()
        self.gateway.database.interrupted = True
        killed = Deferred.fromCoroutine(self.submitting("decision", idempotency_key="k"))
        self.failureResultOf(killed, Interrupted)
        self.assertEqual(self._everything(), before)
        self.assertEqual(self.gateway.kinds(), [], "nobody hears of what did not happen")
        self.submit("decision", idempotency_key="k")
        self.submit("decision", idempotency_key="k")
        self.assertEqual(self._everything()["outbox"], 1)

    def test_off_refuses_every_kind(self) -> None:
        """While the mode is off nothing may be submitted, and nothing changes."""
        database, bell = self.gateway.database, self.gateway.bell
        self.now(mode.change(database, bell, IDENTITY, Mode.OFF, by="session"))
        before = self._everything()
        for kind in ("notification", "settle", "decision"):
            self.assertEqual(self.refused(self.submitting(kind)).code, "mode_off")
        self.assertEqual(self._everything(), before)

    def test_attachments_go_along(self) -> None:
        """An uploaded file becomes a part of the mail, under its name."""
        self._upload("a-1", "plan.md", b"# Plan")
        self.submit(attachments=("a-1",))
        parts = list(self._mail().iter_attachments())
        self.assertEqual([part.get_filename() for part in parts], ["plan.md"])
        self.assertEqual(parts[0].get_payload(decode=True), b"# Plan")

    def test_foreign_missing_and_huge_attachments_are_refused(self) -> None:
        """A session attaches what it uploaded itself, while it is there, and not too much of it."""
        self._upload("a-1", "plan.md", b"# Plan")
        self._upload("a-3", "huge.bin", b"", size=letters.ATTACHMENTS_LIMIT + 1)
        for session, attachment, code in (
            (S2, "a-1", "unknown"),
            (S1, "a-2", "unknown"),
            (S1, "a-3", "too_large"),
        ):
            refusal = self.refused(self.submitting(session=session, attachments=(attachment,)))
            self.assertEqual(refusal.code, code)
        self.gateway.files.clear()
        self.assertEqual(self.refused(self.submitting(attachments=("a-1",))).code, "unknown")

    def _upload(self, upload_id: str, name: str, data: bytes, size: int | None = None) -> None:
        self.gateway.files[f"/state/{upload_id}"] = data
        self.now(
            uploads.add(
                self.gateway.database,
                IDENTITY,
                S1,
                AttachmentId(upload_id),
                name,
                len(data) if size is None else size,
                f"/state/{upload_id}",
            )
        )

    def _mail(self) -> EmailMessage:
        """The mail that was submitted last."""
        table = metadata.tables["outbox"]
        raw = self.gateway.rows(
            lambda tx: tx.execute(table.select().order_by(table.c.number.desc()).limit(1)).one().raw
        )
        mail = message_from_bytes(raw, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        return mail

    def _everything(self) -> dict[str, int]:
        """How many rows each table has."""
        return self.gateway.rows(
            lambda tx: {
                name: len(tx.execute(table.select()).all()) for name, table in metadata.tables.items()
            }
        )


class KeyTests(OutboundTestCase):
    """The same idempotency key is the same mail."""

    def test_the_same_key_gives_the_same_answer(self) -> None:
        """Also after a restart, also over the budget, also while the mode is off."""
        first = self.submit(idempotency_key="k")
        self.assertEqual(self.submit(idempotency_key="k"), first)
        for _ in range(9):
            self.submit()
        self.assertEqual(self.refused(self.submitting()).code, "send_budget")
        self.start()
        self.assertEqual(self.submit(idempotency_key="k"), first)
        self.now(mode.change(self.gateway.database, self.gateway.bell, IDENTITY, Mode.OFF, by="person"))
        self.assertEqual(self.submit(idempotency_key="k"), first)

    def test_a_repeated_decision_is_no_second_one(self) -> None:
        """The caller whose answer got lost asks again and learns of its open question."""
        first = self.submit("decision", idempotency_key="k")
        self.assertEqual(self.submit("decision", idempotency_key="k"), first)

    def test_the_answer_tells_when_it_was_sent_meanwhile(self) -> None:
        """The state is the mail's, not that of the first answer."""
        self.submit(idempotency_key="k")
        self.conclude(self.claim())
        self.assertEqual(self.submit(idempotency_key="k").state, "sent")

    def test_other_content_is_refused(self) -> None:
        """A key that says something else is a mistake of the caller."""
        self.submit(idempotency_key="k")
        for other in ({"text": "other"}, {"subject": "other"}, {"options": ("x",)}, {"kind": "settle"}):
            refusal = self.refused(self.submitting(**{"idempotency_key": "k", **other}))  # type: ignore[arg-type]
            self.assertEqual(refusal.code, "key_reused")

    def test_keys_belong_to_a_session(self) -> None:
        """Two sessions may use the same key."""
        ids = {self.submit(session=session, idempotency_key="k").outbox_id for session in (S1, S2)}
        self.assertEqual(len(ids), 2)

    def test_a_refused_decision_frees_its_key(self) -> None:
        """A refused submission has changed nothing, so the same key may try again."""
        first = self.submit("decision", idempotency_key="k")
        self.conclude(self.claim(), "try-later", 451)
        again = self.submit("decision", idempotency_key="k")
        self.assertNotEqual(again.outbox_id, first.outbox_id)


class BudgetTests(OutboundTestCase):
    """Ten notifications a minute; the others are exempt."""

    def test_the_eleventh_waits(self) -> None:
        """The refusal says for how long, and then one more is taken."""
        for _ in range(10):
            self.submit()
        refusal = self.refused(self.submitting())
        self.assertEqual(refusal.code, "send_budget")
        self.assertTrue(0 < refusal.details["retryAfter"] <= 60)
        self.submit("settle")
        self.submit("decision")
        self.gateway.later(seconds=refusal.details["retryAfter"])
        self.submit()

    def test_each_key_has_its_own(self) -> None:
        """Whoever holds one key cannot use up what the others may send."""
        for _ in range(10):
            self.submit(by="builder")
        self.assertEqual(self.refused(self.submitting(by="builder")).code, "send_budget")
        self.submit(by="session")
        self.submit()

    def test_invented_sessions(self) -> None:
        """A key that makes up a session for each decision, or each settle, comes to an end; others go on."""
        for kind in ("decision", "settle"):
            for number in range(OF_ONE_KEY_PER_MINUTE):
                self.submit(kind, SessionId(f"{kind}-{number}"), by="builder")
            refusal = self.refused(self.submitting(kind, SessionId("one more"), by="builder"))
            self.assertEqual(refusal.code, "send_budget")
            self.submit(kind, SessionId(f"{kind} of another"), by="session")
        self.gateway.later(seconds=61)
        self.submit("decision", SessionId("one more"), by="builder")

    def test_settles_of_one_session_are_bounded(self) -> None:
        """They need no budget, but a loop of them ends; other sessions settle on."""
        for _ in range(policy_rules.SETTLES_PER_MINUTE):
            self.submit("settle")
        refusal = self.refused(self.submitting("settle"))
        self.assertEqual(refusal.code, "send_budget")
        self.submit("settle", S2)
        self.gateway.later(seconds=refusal.details["retryAfter"])
        self.submit("settle")


class DecisionTests(OutboundTestCase):
    """One blocking decision for a session, reserved in the transaction that submits it."""

    def test_a_decision_opens_a_question(self) -> None:
        """It carries the options, and its route leads to it."""
        sent = self.submit("decision", options=("SQLite", "PostgreSQL"), recommendation="SQLite")
        assert sent.question_id is not None
        question_id = sent.question_id
        self.assertEqual(self.gateway.kinds(), [EventKind.OUTBOX, EventKind.QUESTION])
        question = self.gateway.rows(lambda tx: questions.find(tx, question_id))
        assert question is not None
        self.assertEqual(
            (question.status, question.blocking, question.revision), (QuestionStatus.OPEN, True, 1)
        )
        self.assertEqual([option.value for option in question.options], ["SQLite", "PostgreSQL"])
        route = self.gateway.rows(lambda tx: routes.find(tx, sent.route_id))
        assert route is not None
        self.assertEqual(
            (route.purpose, route.question_id, route.revision), (Purpose.QUESTION, question_id, 1)
        )
        self.assertEqual(question.expires_at, route.expires_at)

    def test_a_second_one_is_refused_while_the_first_is_open(self) -> None:
        """Another session may; the same may when it was freed, and the first stays answerable."""
        first = self.submit("decision")
        self.assertEqual(self.refused(self.submitting("decision")).code, "decision_outstanding")
        self.submit("decision", session=S2)
        self.now(sessions.free(self.gateway.database, self.gateway.bell, S1))
        self.submit("decision")
        question = self.gateway.rows(lambda tx: questions.find(tx, first.question_id or ""))  # type: ignore[arg-type]
        assert question is not None
        self.assertEqual((question.status, question.blocking), (QuestionStatus.OPEN, False))

    def test_a_reservation_is_used(self) -> None:
        """The session's own unused reservation becomes the question."""
        database, bell = self.gateway.database, self.gateway.bell
        reserved = self.now(sessions.reserve(database, bell, IDENTITY, S1, b"r" * 12))
        self.assertEqual(self.submit("decision").question_id, reserved)
        self.assertEqual(self.gateway.rows(lambda tx: questions.count_blocking(tx, IDENTITY.machine_id)), 1)

    def test_of_twenty_at_once_one_wins(self) -> None:
        """Threads that submit a decision of one session at the same moment: one question, one mail."""
        engine = self.contested_engine()
        results: list[str] = []

        def go(number: int) -> None:
            chance = letters.Chance.draw(lambda size: (number + 1).to_bytes(size, "little"))
            request = letters.SendRequest(kind=MailKind.DECISION, session=S1, subject="s", text="t")

            def work(tx: Tx) -> None:
                ready = letters.prepare(tx, IDENTITY, SENDER, request, chance, self.gateway.read_upload)
                place(tx, IDENTITY, SENDER, request, ready)

            try:
                transact(engine, work)
                results.append("placed")
            except Refusal as refusal:
                results.append(refusal.code)

        transact(engine, _introduce)
        self.at_once(20, go)
        self.assertEqual(sorted(results), ["decision_outstanding"] * 19 + ["placed"])
        self.assertEqual(transact(engine, lambda tx: rows.waiting(tx, IDENTITY.machine_id)), 1)


class FirstAttemptTests(OutboundTestCase):
    """A decision's caller learns how the first attempt went."""

    def setUp(self) -> None:
        super().setUp()
        self.sent = self.submit("decision")

    def _waiting(self) -> Deferred[Submitted]:
        gateway = self.gateway
        return Deferred.fromCoroutine(
            first_attempt(gateway.database, gateway.bell, gateway.timers, self.sent.outbox_id)
        )

    def test_accepted(self) -> None:
        """It waits until the server has the mail."""
        waiting = self._waiting()
        claimed = self.claim()
        self.assertNoResult(waiting)
        self.conclude(claimed)
        self.assertEqual(self.successResultOf(waiting).state, "sent")

    def test_refused(self) -> None:
        """Any refusal raises, says whether trying again helps, and reserves nothing."""
        for verdict, code, temporary in (
            ("rejected", 550, False),
            ("try-later", 451, True),
            ("try-later", None, True),
        ):
            waiting = self._waiting()
            self.conclude(self.claim(), verdict, code, error="the server said no")
            failed = self.failureResultOf(waiting, SmtpFailed).value
            self.assertEqual((failed.smtp_code, failed.temporary), (code, temporary))
            self.assertIn("the server said no", failed.text)
            self.assertEqual(self.row(self.sent).state, OutboxState.CANCELLED)
            self.assertIsNone(self.gateway.rows(lambda tx: questions.blocking(tx, S1)))
            self.gateway.later(hours=3)
            self.assertIsNone(self.claim_next(), "a refused decision is never sent later by itself")
            self.sent = self.submit("decision")

    def test_no_outcome(self) -> None:
        """After a minute the mail stays queued, and the reservation with it."""
        waiting = self._waiting()
        self.claim()
        self.gateway.timers.advance(59)
        self.assertNoResult(waiting)
        self.gateway.timers.advance(2)
        self.assertEqual(self.successResultOf(waiting).state, "queued")
        self.assertIsNotNone(self.gateway.rows(lambda tx: questions.blocking(tx, S1)))

    def test_unclear(self) -> None:
        """Lost after the final dot: queued, and the reservation stays."""
        waiting = self._waiting()
        self.assertEqual(self.conclude(self.claim(), "unclear", None), OutboxState.UNCLEAR)
        self.assertEqual(self.successResultOf(waiting).state, "queued")
        self.assertIsNotNone(self.gateway.rows(lambda tx: questions.blocking(tx, S1)))

    def test_a_refusal_after_the_caller_has_gone_is_retried(self) -> None:
        """Who was told ``queued`` relies on it."""
        claimed = self.claim()
        self.gateway.later(seconds=61)
        self.assertEqual(self.conclude(claimed, "try-later", 451), OutboxState.QUEUED)
        self.assertIsNotNone(self.gateway.rows(lambda tx: questions.blocking(tx, S1)))


def _introduce(tx: Tx) -> None:
    machines.introduce(tx, IDENTITY.machine_id, IDENTITY.name)
    modes.start(tx, IDENTITY.machine_id)


def _chance(route: bytes) -> list[bytes]:
    """What is drawn for one mail, up to its first route id."""
    return [os.urandom(12), os.urandom(12), os.urandom(8), route]
