"""Rows of questions: what an upgrade makes of decisions, and what tampering with the log shows."""

from datetime import timedelta
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, delete, text, update
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.choice import Option
from mailgateway.domain.decision_log import Broken, Chain
from mailgateway.domain.question import Question, QuestionEvent, QuestionKind, QuestionStatus
from mailgateway.ids import QuestionId, RouteId
from mailgateway.store import decision_log, question_changes, question_lists, questions, upkeep
from mailgateway.store.database import Tx, sqlite_database_engine, transact
from mailgateway.store.tables import decision_log as log_table
from mailgateway.store.upgrade import open_engine, upgrade
from tests.fakes.postgres import fresh_url
from tests.store.values import HERE, SESSION, introduce

OLD = (
    "INSERT INTO question (id, session_id, machine_id, blocking, status, subject, prompt, options,"
    " created_at, expires_at, settled_at) VALUES"
    " ('q-open', 's', 'm', true, 'open', 'S', 'P', '[{\"value\": \"a\", \"label\": \"A\"}]', 1, 99, NULL),"
    " ('q-done', 's', 'm', true, 'answered', 'S', 'P', '[]', 1, 99, 2),"
    " ('q-kept', 't', 'm', true, 'reserved', '', '', '[]', 1, NULL, NULL)"
)
OLD_ANSWER = (
    "INSERT INTO answer (id, question_id, revision, choice, text, answered_by, door, answered_at)"
    " VALUES ('n-1', 'q-done', 1, 'a', 'a, please', 'robin@example.org', 'mail', 2)"
)


class UpgradeTests(SynchronousTestCase):
    """Decisions of before."""

    def make_engine(self) -> Engine:
        """An empty database."""
        return sqlite_database_engine(None)

    def test_decisions_become_questions(self) -> None:
        """Each with its session as creator, its text as first revision, and its expiry as it was."""
        engine = self.make_engine()
        self.addCleanup(engine.dispose)
        config = Config()
        config.set_main_option("script_location", "mailgateway.store:migrations")
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0002")
            connection.exec_driver_sql(OLD)
            connection.execute(text(OLD_ANSWER))
        upgrade(engine)

        def work(tx: Tx) -> None:
            found = questions.find(tx, QuestionId("q-open"))
            assert found is not None
            self.assertEqual((found.kind, found.creator_id), (QuestionKind.DECISION, "s"))
            self.assertEqual((found.options, found.attention), ((Option("a", "A"),), True))
            self.assertIsNotNone(found.expires_at)
            self.assertEqual(question_changes.revisions(tx, found.id, [1])[1].prompt, "P")
            done = questions.find(tx, QuestionId("q-done"))
            assert done is not None
            self.assertFalse(done.attention)
            won = questions.answer_of(tx, done.id)
            assert won is not None
            self.assertEqual((won.values, won.choice, won.read_at), (("a",), "a", None))
            self.assertEqual(question_lists.count_attention(tx), 1)
            self.assertEqual(decision_log.machines(tx), ())

        transact(engine, work)


class PostgresUpgradeTests(UpgradeTests):
    """The same on PostgreSQL."""

    def make_engine(self) -> Engine:
        """An empty database."""
        return open_engine(fresh_url())


class LogTests(SynchronousTestCase):
    """Hands in the database."""

    def setUp(self) -> None:
        self.engine = sqlite_database_engine(None)
        self.addCleanup(self.engine.dispose)
        upgrade(self.engine)

        def work(tx: Tx) -> None:
            introduce(tx)
            for number in range(3):
                name = QuestionId(f"q-{number}")
                questions.reserve(tx, name, SESSION, HERE)
                questions.ask(
                    tx,
                    name,
                    subject="s",
                    prompt="p",
                    options=(),
                    recommendation="",
                    route_id=RouteId(f"abcde{number}"),
                    expires_at=tx.now + timedelta(hours=1),
                )
                questions.settle(tx, self.found(tx, name), QuestionEvent.CANCEL)

        transact(self.engine, work)

    def found(self, tx: Tx, name: QuestionId) -> Question:
        """One question."""
        found = questions.find(tx, name)
        assert found is not None
        return found

    def followed(self) -> Chain | Broken:
        """The chain, as it is read."""
        return transact(self.engine, lambda tx: Chain().follow(decision_log.page(tx, HERE, 0, 100)))

    def test_every_column_is_in_the_digest(self) -> None:
        """Whatever is written over in one row is found there."""
        whole = self.followed()
        assert isinstance(whole, Chain)
        self.assertEqual(whole.number, 6)
        changes: dict[str, Any] = {
            "question_id": "q-x",
            "act": "answered",
            "revision": 7,
            "owner_revision": 7,
            "by": "mallory",
            "door": "web",
            "details": "{",
            "digest": "0" * 64,
        }
        for name, value in changes.items():
            with self.engine.connect() as connection:
                connection.execute(update(log_table).where(log_table.c.number == 4).values({name: value}))
                read = decision_log.page(Tx(connection, None), HERE, 0, 100)  # type: ignore[arg-type]  # no clock
                broken = Chain().follow(read)
                connection.rollback()
            assert isinstance(broken, Broken)
            self.assertEqual(broken.number, 4, name)
        transact(self.engine, lambda tx: tx.execute(delete(log_table).where(log_table.c.number == 2)))
        broken = self.followed()
        assert isinstance(broken, Broken)
        self.assertEqual(broken.number, 2)

    def test_the_log_outlives_questions(self) -> None:
        """What is forgotten leaves its lines; what nobody has read is not forgotten yet."""

        def work(tx: Tx) -> int:
            return upkeep.prune_questions(tx, tx.now + timedelta(seconds=1))

        self.assertEqual(transact(self.engine, work), 3)
        whole = self.followed()
        assert isinstance(whole, Chain)
        self.assertEqual(whole.number, 6)
        self.assertIsNone(transact(self.engine, lambda tx: questions.find(tx, QuestionId("q-0"))))

    def test_a_reservation_is_nothing_that_was_decided(self) -> None:
        """It comes and goes without a line."""

        def work(tx: Tx) -> QuestionStatus:
            questions.reserve(tx, QuestionId("q-9"), SESSION, HERE)
            return questions.settle(tx, self.found(tx, QuestionId("q-9")), QuestionEvent.CANCEL).status

        self.assertEqual(transact(self.engine, work), QuestionStatus.CANCELLED)
        whole = self.followed()
        assert isinstance(whole, Chain)
        self.assertEqual(whole.number, 6)
