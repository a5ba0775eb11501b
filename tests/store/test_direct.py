"""The database of the start: what a flow returns or raises is known at once."""

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import StoreUnavailable
from mailgateway.store.database import Tx
from mailgateway.store.direct import DirectDatabase, at_once
from tests.fakes.database import fresh_engine


class DirectTests(SynchronousTestCase):
    """Flows before the reactor runs."""

    def setUp(self) -> None:
        engine = fresh_engine()
        self.addCleanup(engine.dispose)
        self.database = DirectDatabase(engine)

    def test_a_result_is_returned(self) -> None:
        """The flow has ended when the call has."""

        async def flow() -> str:
            return await self.database.run(lambda tx: tx.dialect)

        self.assertEqual(at_once(flow()), "sqlite")

    def test_a_failure_is_raised(self) -> None:
        """A start that cannot write its rows must not go on as if it had."""

        def fail(_tx: Tx) -> None:
            raise StoreUnavailable("the disk is full")

        async def flow() -> None:
            await self.database.run(fail)

        with self.assertRaises(StoreUnavailable):
            at_once(flow())
