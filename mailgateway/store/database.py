"""One transaction, on a thread of its own, as one Deferred.

A use case hands a synchronous function to ``run``; it is executed with one open transaction and committed
when it returns.  The function must be a function of its arguments and of the rows: it may be executed again
(a serialization conflict), so it draws no random numbers, reads no clock but ``Tx.now`` and sends nothing.

SQLite is written by one thread (``store.threaded``), with write-ahead log, ``synchronous=FULL`` and ``BEGIN
IMMEDIATE``: the sqlite3 default begins no transaction for a SELECT and loses updates.  PostgreSQL runs
SERIALIZABLE on a small pool and repeats what conflicted, so the same function is right on both.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar, overload

from attrs import define
from sqlalchemy import Connection, CursorResult, Dialect, Engine, Executable, create_engine, event, text
from sqlalchemy.exc import DatabaseError, DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import QueuePool
from twisted.internet.defer import Deferred

from mailgateway.errors import StoreUnavailable
from mailgateway.store.prepared import Prepared, Rows, command

T = TypeVar("T")
U = TypeVar("U")

CONFLICTS = frozenset({"40001", "40P01", "23505"})
"""SQLSTATE of a serialization failure, a deadlock, and a unique key that a concurrent transaction took
first (PostgreSQL may report the race so): the transaction did not happen, and reads anew when tried again."""

TRIES = 20
BUSY_SECONDS = 10.0


@define(eq=False)
class Tx:
    """One open transaction: its connection, and the time by the database's clock."""

    connection: Connection
    now: datetime
    """When the transaction began: aware, UTC, by the database's clock (all gateways of one store agree)."""

    @overload
    def execute(self, statement: Prepared, parameters: Any = None) -> Rows: ...

    @overload
    def execute(self, statement: Executable, parameters: Any = None) -> CursorResult[Any]: ...

    def execute(self, statement: Any, parameters: Any = None) -> Any:
        """Execute one statement (with a list of parameters: once for each)."""
        if isinstance(statement, Prepared):
            return statement.execute(self.connection, parameters)
        return self.connection.execute(statement, parameters)

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``, for the few statements that stand side by side."""
        return self.connection.dialect.name


Work = Callable[[Tx], T]


class Connects(Protocol):
    """Where connections come from: an engine, or what keeps one of its connections."""

    @property
    def dialect(self) -> Dialect:
        """Which database it is."""

    def connect(self) -> AbstractContextManager[Connection]:
        """A connection without a transaction."""


class Transact(Protocol):
    """How one transaction is run: ``transact``, or what a test puts in its place."""

    def __call__(
        self, engine: Connects, work: Work[T], *, offset: timedelta = timedelta(0), reading: bool = False
    ) -> T:
        """Run ``work`` in one transaction on the calling thread."""


class Database(Protocol):
    """Where rows live; the seam between use cases and SQL."""

    @property
    def shared(self) -> bool:
        """Whether other processes may write too, so that waiting needs polling beside the bell."""

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` in one transaction; fires with its result after the commit.

        Fails with what ``work`` raised (rolled back), or with ``StoreUnavailable``.
        """

    def run_then_read(self, work: Work[T], reading: Callable[[Tx, T], U]) -> Deferred[tuple[T, U | None]]:
        """Run ``work`` as ``run`` does, and right behind its commit ``reading``, on the same thread.

        ``reading`` gets a transaction of its own, which only reads, and what ``work`` has returned.  Fires
        with what both returned; ``None`` where ``reading`` has failed, since by then the work is done.
        """

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``, which only reads, without keeping writers waiting."""


def sqlite_database_engine(path: Path | None) -> Engine:
    """An engine on a file (``None``: in memory, for tests), set up for durable, serialized writing."""
    if path is None:
        engine = create_engine(
            "sqlite://",
            poolclass=QueuePool,  # one connection, kept for good: it is the database
            pool_size=1,
            max_overflow=0,
            pool_timeout=BUSY_SECONDS,
            hide_parameters=True,
            connect_args={"check_same_thread": False, "isolation_level": None},
        )
    else:
        engine = create_engine(
            f"sqlite:///{path}",
            hide_parameters=True,  # they are people's mail, and must not stand in an exception's text
            connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False, "isolation_level": None},
            pool_size=2,
            max_overflow=2,
        )

    def connected(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA journal_size_limit=4194304")
        cursor.close()

    event.listen(engine, "connect", connected)
    return engine


def postgres_database_engine(url: str) -> Engine:
    """An engine on a PostgreSQL ``postgresql://`` URL: SERIALIZABLE, dead connections noticed before use.

    Nobody waits for ever for a lock or a server that is gone, and a gateway that fell asleep inside of a
    transaction (a suspended machine) loses it, so that the others need not wait until it wakes.
    """
    engine = create_engine(
        url.replace("postgresql://", "postgresql+psycopg://", 1),
        isolation_level="SERIALIZABLE",
        hide_parameters=True,
        pool_pre_ping=True,
        pool_size=4,
        max_overflow=0,
        connect_args={
            "connect_timeout": 10,
            "application_name": "mailgateway",
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
        },
    )

    def connected(connection: Any, _record: object) -> None:
        for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
            connection.execute(f"SET {name} = '{BUSY_SECONDS:g}s'")
        connection.commit()

    event.listen(engine, "connect", connected)
    return engine


def transact(
    engine: Connects, work: Work[T], *, offset: timedelta = timedelta(0), reading: bool = False
) -> T:
    """Run ``work`` in one transaction on the calling thread; repeat it when the database asks for it.

    ``offset`` shifts the database's clock, for tests of leases and lives.
    """
    for attempt in range(TRIES):
        try:
            with unavailability(), begun(engine, reading) as connection:
                return work(Tx(connection, clock_of(connection) + offset))
        except DBAPIError as error:
            taken = attempt + 1 == TRIES and isinstance(error, IntegrityError)  # not by a race: for good
            if taken or not _conflicted(error):
                raise
        time.sleep(0.001 * 2 ** min(attempt, 6))
    raise StoreUnavailable("the database is too busy")


@contextmanager
def begun(engine: Connects, reading: bool) -> Iterator[Connection]:
    """A connection with an open transaction, committed at the end or rolled back."""
    with engine.connect() as connection:
        if reading and engine.dialect.name == "postgresql":
            connection.execution_options(postgresql_readonly=True)
        with begin(connection, reading=reading):
            yield connection


@contextmanager
def begin(connection: Connection, *, reading: bool = False) -> Iterator[None]:
    """A transaction on a connection that has none; SQLite's driver does not begin any by itself."""
    with connection.begin():
        if connection.dialect.name == "sqlite":
            command(connection, "BEGIN" if reading else "BEGIN IMMEDIATE")
        yield


@contextmanager
def unavailability() -> Iterator[None]:
    """Turn what says that the database cannot be used now into ``StoreUnavailable``.

    What is wrong with a statement, and what asks for the transaction to be repeated, passes unchanged.
    """
    try:
        yield
    except PoolTimeout:
        raise StoreUnavailable("the database is too busy") from None
    except (IntegrityError, ProgrammingError):
        raise
    except DBAPIError as error:
        if not _conflicted(error) and (
            isinstance(error, OperationalError) or error.connection_invalidated or _broken(error)
        ):
            raise StoreUnavailable(_reason(error)) from None
        raise


def clock_of(connection: Connection) -> datetime:
    """The time by the database's clock; SQLite lives in this process, so its clock is ours."""
    if connection.dialect.name == "sqlite":
        return datetime.now(UTC)
    moment: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    return moment.astimezone(UTC)


def _conflicted(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) in CONFLICTS


def _broken(error: DBAPIError) -> bool:
    """Whether the database is read-only or damaged; SQLite says the latter by its most general error."""
    if type(error.orig).__module__.startswith("sqlite3"):
        return type(error) is DatabaseError
    state = getattr(error.orig, "sqlstate", None) or ""
    return state == "25006" or state[:2] in {"08", "53", "57", "58", "XX"}


def _reason(error: DBAPIError) -> str:
    """The driver's own words without the statement and its parameters, which may hold people's mail."""
    words = str(error.orig).splitlines() or [type(error.orig).__name__]
    return f"the database cannot be used: {words[0]}"
