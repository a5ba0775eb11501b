"""One connection of an engine, kept by a thread from one transaction to the next.

To take a connection out of a pool and to give it back costs more than a small transaction itself.  On SQLite
nothing is gained by it: nobody ends such a connection but us.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field
from sqlalchemy import Connection, Dialect, Engine


@define(eq=False)
class KeptConnection:
    """Stands for the engine where one thread at a time transacts; see ``store.database.Connects``."""

    _engine: Engine
    _connection: Connection | None = field(default=None, init=False)

    @property
    def dialect(self) -> Dialect:
        """That of the engine."""
        return self._engine.dialect

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """The same connection as last time; another one after anything went wrong with that."""
        if self._connection is None:
            self._connection = self._engine.connect()
        try:
            yield self._connection
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give it back to the pool, which undoes what was not committed."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
