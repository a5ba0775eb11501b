"""An owner for coroutines: keeps their Deferreds, logs their failures, and ends them on stop.

No coroutine of the service runs without one, so nothing is forgotten, and a stop ends everything.
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailgateway.errors import Fault, MailgatewayError, place_of

T = TypeVar("T")


@define(eq=False)
class Tasks:
    """Running coroutines of one owner."""

    _running: set[Deferred[Any]] = field(factory=set, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def start(self, work: Coroutine[Deferred[Any], Any, T], what: str) -> Deferred[None]:
        """Run ``work``; the Deferred fires when it has ended, however it ended, and never fails.

        Cancelling it ends the work, and the wait: work that is in the middle of what must be finished
        (``to_the_end``) may go on for a moment, still owned.
        A failure is logged in one line under the name ``what``: the words of an expected one, the place of
        a defect of ours, whose own words may quote people's mail.
        """
        running = Deferred.fromCoroutine(work)
        ended: Deferred[None] = Deferred(lambda _: running.cancel())
        ended.addErrback(_forgive)
        self._running.add(running)

        def over(result: object) -> None:
            self._running.discard(running)
            if isinstance(result, Failure) and not result.check(CancelledError):
                self._report(result, what)
            if not ended.called:
                ended.callback(None)

        running.addBoth(over)
        return ended

    def _report(self, failure: Failure, what: str) -> None:
        if isinstance(failure.value, MailgatewayError):
            self._log.warn("{what}: {error}", what=what, error=str(failure.value))
        else:
            self._log.failure("{what} failed", failure=fault_of(failure), what=what)

    def stop(self) -> Deferred[None]:
        """End all that runs; fires when all have ended."""
        running = tuple(self._running)
        waiting: Deferred[Any] = DeferredList([_ended(each) for each in running])
        for each in running:
            each.cancel()
        return waiting.addCallback(lambda _: None)


def fault_of(failure: Failure) -> Failure:
    """What may be logged of a defect: its class and place; its traceback may be gone, its frames are kept."""
    if failure.value is not None and failure.value.__traceback__ is not None:
        return Failure(Fault(place_of(failure.value)))
    way = " < ".join(f"{path}:{line} {name}" for name, path, line, *_ in reversed(failure.frames[-8:]))
    return Failure(Fault(f"{type(failure.value).__name__} at {way}"))


async def to_the_end(work: Coroutine[Deferred[Any], Any, T]) -> T:
    """The result of ``work``, which a stop does not cut off: for what must be known once it has happened.

    A transaction that was begun is committed whether anybody waits for it or not.  A cancelling is put off:
    ``CancelledError`` is raised when ``work`` has ended, unless that failed itself.
    """
    running = Deferred.fromCoroutine(work)
    outcomes: list[T | Failure] = []
    running.addBoth(outcomes.append)  # a failure cannot be awaited from within its own callbacks
    cancelled: CancelledError | None = None
    while not outcomes:
        try:
            await _ended(running)
        except CancelledError as error:
            cancelled = error
    (outcome,) = outcomes
    if isinstance(outcome, Failure):
        outcome.raiseException()
    if cancelled is not None:
        raise cancelled
    return outcome


def _forgive(failure: Failure) -> None:
    """Take the cancelling of a wait for its end."""
    failure.trap(CancelledError)


def _ended(running: Deferred[Any]) -> Deferred[None]:
    """A Deferred that fires when the other has, without touching its result."""
    ended: Deferred[None] = Deferred()

    def over(result: T) -> T:
        ended.callback(None)
        return result

    running.addBoth(over)
    return ended
