"""A database that works on the calling thread, at once: for set-up before the reactor runs.

Never on a running reactor, which it would block.
"""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from attrs import define
from sqlalchemy import Engine
from twisted.internet.defer import Deferred, execute
from twisted.python.failure import Failure

from mailgateway.store.database import Database, T, Tx, U, Work, transact


@define(eq=False)
class DirectDatabase:
    """Transactions on the calling thread; every Deferred has fired already."""

    engine: Engine
    offset: timedelta = timedelta(0)
    """How far the database's clock is ahead; for tests."""
    shared: bool = False

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` in one transaction; the Deferred has fired."""
        return execute(self.transact, work, reading=False)

    def run_then_read(self, work: Work[T], reading: Callable[[Tx, T], U]) -> Deferred[tuple[T, U | None]]:
        """Run ``work`` and ``reading``, each in one transaction; the Deferred has fired."""

        def then_read(result: T) -> Deferred[tuple[T, U | None]]:
            found: Deferred[U | None] = execute(self.transact, lambda tx: reading(tx, result), reading=True)
            return found.addErrback(lambda _: None).addCallback(lambda read: (result, read))

        return self.run(work).addCallback(then_read)

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``, which only reads; the Deferred has fired."""
        return execute(self.transact, work, reading=True)

    def transact(self, work: Work[T], *, reading: bool) -> T:
        """Run ``work``, and return or raise what comes of it."""
        return transact(self.engine, work, offset=self.offset, reading=reading)


def at_once(flow: Coroutine[Deferred[Any], Any, T]) -> T:
    """The result of a flow on a direct database, which waits for nothing; raises what it raises."""
    outcome: list[T | Failure] = []
    Deferred.fromCoroutine(flow).addBoth(outcome.append)
    [result] = outcome
    if isinstance(result, Failure):
        result.raiseException()
    return result


_proof: type[Database] = DirectDatabase
