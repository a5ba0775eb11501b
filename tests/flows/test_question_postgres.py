"""Questions on a real PostgreSQL: the same model and the same races."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import Engine
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.store.database import Tx, transact
from mailgateway.store.tables import metadata
from tests.flows import test_question_races
from tests.flows.test_outbound_postgres import OnPostgres, _engine
from tests.flows.test_question_model import Questions


class QuestionsOnPostgres(Questions):
    """The machine on one database, emptied before each run."""

    def make_engine(self) -> Engine:
        """The database, emptied."""

        def empty(tx: Tx) -> None:
            for table in reversed(metadata.sorted_tables):
                tx.execute(table.delete())

        transact(_engine(), empty)
        return _engine()


class ModelTests(SynchronousTestCase):
    """The model."""

    def test_questions(self) -> None:
        """Fewer runs: each commit goes over a socket."""
        run_state_machine_as_test(
            QuestionsOnPostgres, settings=settings(max_examples=8, stateful_step_count=30, deadline=None)
        )


class RaceTests(OnPostgres, test_question_races.RaceTests):
    """Decided by serialization."""
