"""Answering a question: the first answer wins, across all doors."""

from mailgateway.domain.question import (
    AlreadyResolved,
    Answered,
    NotOpen,
    QuestionEvent,
    QuestionStatus,
    Resolution,
    StaleRevision,
)
from mailgateway.flows import sessions
from mailgateway.flows.resolve import resolve
from mailgateway.ids import QuestionId, RouteId
from mailgateway.store import questions
from mailgateway.store.database import Tx, transact
from tests.flows.outbound import IDENTITY, PERSON, S1, OutboundTestCase


class ResolveTests(OutboundTestCase):
    """Every way that an answer may go."""

    def setUp(self) -> None:
        super().setUp()
        question_id = self.submit("decision", options=("SQLite", "PostgreSQL")).question_id
        assert question_id is not None
        self.question_id = question_id

    def test_the_first_answer_wins(self) -> None:
        """It is kept with who gave it; the session may ask anew."""
        first = self._resolve(choice="SQLite", note="It is simpler.")
        assert isinstance(first, Answered)
        self.assertEqual(
            (first.question.id, first.question.status), (self.question_id, QuestionStatus.ANSWERED)
        )
        kept = self.gateway.rows(lambda tx: questions.answer_of(tx, self.question_id))
        assert kept is not None
        self.assertEqual((kept.id, kept.choice, kept.note), (first.answer_id, "SQLite", "It is simpler."))
        self.assertIsNone(self.gateway.rows(lambda tx: questions.blocking(tx, S1)))

    def test_the_loser_is_told_who_won(self) -> None:
        """By whom, through which door, and when; nothing changes."""
        at = self.at()
        self._resolve(choice="SQLite")
        second = self._resolve(choice="PostgreSQL", door="web", by="kim@example.org")
        assert isinstance(second, AlreadyResolved)
        self.assertEqual((second.by, second.door), (PERSON, "mail"))
        self.assertLess(abs((second.at - at).total_seconds()), 5)

    def test_an_answer_to_an_older_text_does_not_count(self) -> None:
        """The revision must be the one that was shown."""
        self.assertEqual(self._resolve(revision=2), StaleRevision(1))

    def test_what_is_not_open_cannot_be_answered(self) -> None:
        """Unknown, reserved, cancelled, expired."""
        missing = self.gateway.rows(lambda tx: _resolve(tx, QuestionId("q-missing")))
        self.assertEqual(missing, NotOpen(None))
        self.gateway.later(hours=169)
        self.assertEqual(self._resolve(), NotOpen(QuestionStatus.EXPIRED))

        def cancel(tx: Tx) -> None:
            found = questions.find(tx, self.question_id)
            assert found is not None
            questions.settle(tx, found, QuestionEvent.CANCEL)

        self.gateway.rows(cancel)
        self.assertEqual(self._resolve(), NotOpen(QuestionStatus.CANCELLED))
        gateway = self.gateway
        self.question_id = self.now(sessions.reserve(gateway.database, gateway.bell, IDENTITY, S1, b"r" * 12))
        self.assertEqual(self._resolve(), NotOpen(QuestionStatus.RESERVED))

    def test_expired_questions_are_found(self) -> None:
        """The sweeper ends them, which frees the session."""
        self.assertEqual(self.gateway.rows(questions.expired), ())
        self.gateway.later(hours=169)
        (found,) = self.gateway.rows(questions.expired)
        self.gateway.rows(lambda tx: questions.settle(tx, found, QuestionEvent.EXPIRE))
        self.assertIsNone(self.gateway.rows(lambda tx: questions.blocking(tx, S1)))
        self.assertEqual(self.gateway.rows(questions.expired), ())

    def test_of_twenty_at_once_one_wins(self) -> None:
        """Threads on one file; nineteen are told about the one."""
        engine = self.contested_engine()
        question_id = QuestionId("q-1")

        def ask(tx: Tx) -> None:
            questions.reserve(tx, question_id, S1, IDENTITY.machine_id)
            questions.ask(
                tx,
                question_id,
                subject="s",
                prompt="p",
                options=(),
                recommendation="",
                route_id=RouteId("abcdef"),
                expires_at=tx.now.replace(year=tx.now.year + 1),
            )

        transact(engine, ask)
        results: list[Resolution] = []

        def go(number: int) -> None:
            results.append(
                transact(engine, lambda tx: _resolve(tx, question_id, random=bytes([number] * 12)))
            )

        self.at_once(20, go)
        self.assertEqual(sum(isinstance(result, Answered) for result in results), 1)
        self.assertEqual(sum(isinstance(result, AlreadyResolved) for result in results), 19)

    def _resolve(
        self,
        *,
        choice: str | None = None,
        note: str | None = None,
        door: str = "mail",
        by: str = PERSON,
        revision: int = 1,
    ) -> Resolution:
        return self.gateway.rows(
            lambda tx: resolve(
                tx,
                question_id=self.question_id,
                expected_revision=revision,
                values=() if choice is None else (choice,),
                note=note,
                text="the words",
                by=by,
                door=door,
                random=self.gateway.mint(12),
            )
        )


def _resolve(tx: Tx, question_id: QuestionId, random: bytes = b"n" * 12) -> Resolution:
    return resolve(
        tx,
        question_id=question_id,
        expected_revision=1,
        values=(),
        note=None,
        text="the words",
        by=PERSON,
        door="mail",
        random=random,
    )
