"""A database that works on the calling thread, at once: for set-up before the reactor runs.

Never on a running reactor, which it would block.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from attrs import define
from sqlalchemy import Engine
from twisted.internet.defer import Deferred, execute

from mailgateway.store.database import Database, Work, transact

T = TypeVar("T")


@define(eq=False)
class DirectDatabase:
    """Transactions on the calling thread; every Deferred has fired already."""

    engine: Engine
    clock_offset: timedelta = timedelta(0)
    shared: bool = False

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` in one transaction."""
        return self._done(work, reading=False)

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``, which only reads."""
        return self._done(work, reading=True)

    def _done(self, work: Work[T], *, reading: bool) -> Deferred[T]:
        call: Callable[..., T] = transact
        return execute(call, self.engine, work, offset=self.clock_offset, reading=reading)


_proof: type[Database] = DirectDatabase
