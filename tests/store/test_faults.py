"""Fault points: what may be named, and that nothing is in the way when nothing is named.

That the service dies of them is shown by ``tests.acceptance.test_crash``.
"""

from collections.abc import Callable

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import ConfigError
from mailgateway.store.database import Tx, sqlite_database_engine, transact
from mailgateway.store.faults import VARIABLE, point_of, transact_of


class FaultTests(SynchronousTestCase):
    """The variable in the environment."""

    def test_without_it_transactions_are_run_as_always(self) -> None:
        """Not even a call lies between."""
        self.assertIs(transact_of({}), transact)
        self.assertIs(transact_of({VARIABLE: ""}), transact)

    def test_what_names_no_point(self) -> None:
        """It is refused at the start: a test that never dies would prove nothing."""
        for wanted in (
            "deliver.ack",
            "ack:before-commit",
            "deliver.ack:before-commit:0",
            "deliver.ack:later",
        ):
            self.assertRaises(ConfigError, transact_of, {VARIABLE: wanted})

    def test_points_are_named_by_their_use_case(self) -> None:
        """By module and function, wherever in it the work stands."""

        def work(_tx: Tx) -> None:
            pass

        self.assertEqual(point_of(work), "test_faults.test_points_are_named_by_their_use_case")

    def test_other_transactions_and_earlier_executions_pass(self) -> None:
        """Only the one that is meant is fatal."""
        engine = sqlite_database_engine(None)
        self.addCleanup(engine.dispose)
        for wanted in ("elsewhere.work:before-commit", "test_faults.count:sleep-after-commit:2"):
            self.assertEqual(transact_of({VARIABLE: wanted})(engine, count()), 6)


def count() -> Callable[[Tx], int]:
    """Something with a transaction in it."""

    def work(tx: Tx) -> int:
        return len(tx.dialect)

    return work
