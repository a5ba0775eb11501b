"""A database in memory, for flows without a reactor: the real rows and rules, and a clock in hand.

It is the ``DirectDatabase`` of the start on SQLite in memory; underneath is the same ``transact`` as in the
running service, which the suite in ``tests.store`` proves.
"""

from datetime import timedelta
from functools import lru_cache
from typing import Any

from attrs import define, field
from sqlalchemy import Connection, Engine

from mailgateway.store.database import T, Work, sqlite_database_engine
from mailgateway.store.direct import DirectDatabase
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
class ImmediateDatabase(DirectDatabase):
    """A database in memory whose clock moves when told; tests let time pass by ``offset``."""

    engine: Engine = field(factory=fresh_engine)
    offset: timedelta = timedelta(0)
    shared: bool = False
    failures: list[Exception] = field(factory=list)
    """Raised one by one instead of running, to play a database that cannot be used."""

    def advance(self, **life: float) -> None:
        """Let time pass by the database's clock (``seconds=``, ``days=``)."""
        self.offset += timedelta(**life)

    def now(self, work: Work[T]) -> T:
        """Run ``work`` and return its result; for tests that look at rows."""
        return DirectDatabase.transact(self, work, reading=False)

    def close(self) -> None:
        """Forget everything."""
        self.engine.dispose()

    def transact(self, work: Work[T], *, reading: bool) -> T:
        """Run ``work``, unless a failure is due."""
        if self.failures:
            raise self.failures.pop(0)
        return DirectDatabase.transact(self, work, reading=reading)
