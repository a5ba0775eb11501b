"""What a stop does not cut off, and what its caller hears."""

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.tasks import to_the_end
from mailgateway.errors import StoreUnavailable


class ToTheEndTests(SynchronousTestCase):
    """Work that must be known once it has happened."""

    def setUp(self) -> None:
        self.step: Deferred[str] = Deferred()

        async def work() -> str:
            return await self.step

        self.waiting = Deferred.fromCoroutine(to_the_end(work()))

    def test_its_result(self) -> None:
        """As if there were nothing in between."""
        self.step.callback("done")
        self.assertEqual(self.successResultOf(self.waiting), "done")

    def test_its_failure(self) -> None:
        """The very failure: by its class callers know whether to try again."""
        self.step.errback(StoreUnavailable("locked"))
        self.failureResultOf(self.waiting, StoreUnavailable)

    def test_a_cancelling_waits(self) -> None:
        """It is told when the work has ended, and the work does not hear of it."""
        self.waiting.cancel()
        self.assertNoResult(self.waiting)
        self.step.callback("done")
        self.failureResultOf(self.waiting, CancelledError)

    def test_a_failure_counts_more_than_a_cancelling(self) -> None:
        """What has happened is what must be known."""
        self.waiting.cancel()
        self.step.errback(StoreUnavailable("locked"))
        self.failureResultOf(self.waiting, StoreUnavailable)
