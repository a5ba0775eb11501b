"""A database that works on the calling thread, at once: for set-up before the reactor runs.

Never on a running reactor, which it would block.
"""

from datetime import timedelta

from attrs import define
from sqlalchemy import Engine
from twisted.internet.defer import Deferred, execute

from mailgateway.store.database import Database, T, Work, transact


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

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``, which only reads; the Deferred has fired."""
        return execute(self.transact, work, reading=True)

    def transact(self, work: Work[T], *, reading: bool) -> T:
        """Run ``work``, and return or raise what comes of it."""
        return transact(self.engine, work, offset=self.offset, reading=reading)


_proof: type[Database] = DirectDatabase
