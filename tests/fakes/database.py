"""A database that answers at once: the real rows and rules on SQLite in memory, without a thread.

``run`` has done its work when it returns, and its Deferred has fired, so that flows can be tested without a
reactor.  Underneath is the same ``transact`` as in the real thing, which the suite in ``tests.store`` proves.
"""

from datetime import timedelta
from functools import lru_cache
from typing import Any

from attrs import define, field
from sqlalchemy import Connection, Engine
from twisted.internet.defer import Deferred, fail, succeed
from twisted.python.failure import Failure

from mailgateway.store.database import Database, T, Work, sqlite_database_engine, transact
from mailgateway.store.upgrade import upgrade


@lru_cache(maxsize=1)
def _template() -> bytes:
    """An empty database as SQLite would write it to a file: making the tables once saves most of the time."""
    engine = sqlite_database_engine(None)
    upgrade(engine)
    with engine.connect() as connection:
        image: bytes = _driver(connection).serialize()
    engine.dispose()
    return image


def fresh_engine() -> Engine:
    """An engine on an empty database in memory, its tables made."""
    engine = sqlite_database_engine(None)
    with engine.connect() as connection:
        _driver(connection).deserialize(_template())
    return engine


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


@define(eq=False)
class ImmediateDatabase:
    """Runs work at once, on the calling thread."""

    engine: Engine = field(factory=fresh_engine)
    offset: timedelta = timedelta(0)
    """How far the database's clock is ahead; tests move it to let leases and lives end."""
    shared: bool = False
    failures: list[Exception] = field(factory=list)
    """Raised one by one instead of running, to play a database that cannot be used."""

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` in one transaction; the Deferred has fired."""
        return self._transact(work, reading=False)

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``, which only reads; the Deferred has fired."""
        return self._transact(work, reading=True)

    def advance(self, **life: float) -> None:
        """Let time pass by the database's clock (``seconds=``, ``days=``)."""
        self.offset += timedelta(**life)

    def now(self, work: Work[T]) -> T:
        """Run ``work`` and return its result; for tests that look at rows."""
        return transact(self.engine, work, offset=self.offset)

    def close(self) -> None:
        """Forget everything."""
        self.engine.dispose()

    def _transact(self, work: Work[T], *, reading: bool) -> Deferred[T]:
        try:
            if self.failures:
                raise self.failures.pop(0)
            return succeed(transact(self.engine, work, offset=self.offset, reading=reading))
        except Exception:  # noqa: BLE001 (like a thread pool: whatever is raised fails the Deferred)
            return fail(Failure())


_proof: type[Database] = ImmediateDatabase
