"""The database of the running service: transactions on threads of their own, never on the reactor's.

A commit waits for the disk, whatever stood in the transaction.  So on SQLite, which has one writer anyway,
works that wait while another commits are committed together: each runs inside of a savepoint, so that one
that raises undoes itself alone, and no Deferred fires before the disk has them all.  Nobody is made to wait
for company.  When the common transaction cannot be had, each work is run again by itself, and only what
fails then has failed.

PostgreSQL commits from a few threads at once and does such things itself.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from attrs import define, field
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from mailgateway.errors import StoreUnavailable
from mailgateway.store.database import (
    Connects,
    Database,
    T,
    Transact,
    Tx,
    U,
    Work,
    begun,
    clock_of,
    transact,
    unavailability,
)
from mailgateway.store.kept import KeptConnection
from mailgateway.store.prepared import command
from mailgateway.store.workers import Workers

TOGETHER = 50
"""Works in one commit at most: what a reader of the first one's outcome waits for."""

QUEUE = 10_000
"""Works that may wait; one more is refused."""


@define(eq=False)
class _Waiting:
    """A work that was handed over, and who waits for it."""

    work: Work[Any]
    reading: Callable[[Tx, Any], Any] | None = None
    """What is read behind the commit; its outcome goes along."""
    done: Deferred[Any] = field(factory=Deferred)
    outcome: Any = None
    """What the work returned, or the ``Failure`` of what it raised."""


@define(eq=False)
class ThreadedDatabase:
    """Transactions on threads, outcomes as Deferreds on the reactor's."""

    _reactor: Any
    _engine: Engine
    _clock_offset: timedelta = timedelta(0)
    _transact: Transact = transact
    """How a transaction is run; with any but the usual one, each is run and committed by itself."""
    _writing: Connects = field(init=False)
    _reading: Connects = field(init=False)
    _writers: Workers[_Waiting] = field(init=False)
    _readers: Workers[_Waiting] = field(init=False)
    _closed: bool = field(default=False, init=False)
    _troubles: dict[str, str] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._writing = self._engine if self.shared else KeptConnection(self._engine)
        self._reading = self._engine if self.shared else KeptConnection(self._engine)
        together = 1 if self.shared or self._transact is not transact else TOGETHER
        self._writers = Workers("store-write", 4 if self.shared else 1, self._write, together)
        # on a file a second one would only take turns with the first, at the interpreter, and delay both
        self._readers = Workers("store-read", 2 if self.shared else 1, self._read)

    @property
    def shared(self) -> bool:
        """Whether other processes may write too."""
        return self._engine.dialect.name != "sqlite"

    @property
    def trouble(self) -> str:
        """What kept the database from being written or read when it was last tried; ``""``: nothing."""
        return self._troubles.get("write") or self._troubles.get("read") or ""

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` in one transaction, after those handed over before; fires after the commit."""
        return self._hand(self._writers, _Waiting(work))

    def run_then_read(self, work: Work[T], reading: Callable[[Tx, T], U]) -> Deferred[tuple[T, U | None]]:
        """Run ``work`` as ``run`` does, and ``reading`` right behind it: its rows and its thread are warm."""
        return self._hand(self._writers, _Waiting(work, reading))

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``, which only reads."""
        return self._hand(self._readers, _Waiting(work))

    def _hand(self, workers: Workers[_Waiting], waiting: _Waiting) -> Deferred[Any]:
        if self._closed:
            return fail(StoreUnavailable("the database is closed"))
        if workers.waiting >= QUEUE:
            return fail(StoreUnavailable("the database is too busy"))
        workers.hand(waiting)
        return waiting.done

    def _note(self, outcome: T, what: str) -> T:
        """Keep in mind whether the database could be used; who failed by himself says nothing of it."""
        if not isinstance(outcome, Failure):
            self._troubles[what] = ""
        elif isinstance(outcome.value, StoreUnavailable):
            self._troubles[what] = str(outcome.value)
        return outcome

    def _fire(self, batch: Sequence[_Waiting], what: str) -> None:
        """Tell those who wait."""
        for waiting in batch:
            waiting.done.callback(self._note(waiting.outcome, what))

    def close(self) -> Deferred[None]:
        """Finish what was handed over, then let go of threads and connections; safe to call again."""
        if self._closed:
            return succeed(None)
        self._closed = True

        def shut() -> None:
            self._writers.stop()
            self._readers.stop()
            for each in (self._writing, self._reading):
                if isinstance(each, KeptConnection):
                    each.close()
            self._engine.dispose()

        return deferToThreadPool(self._reactor, self._reactor.getThreadPool(), shut)

    # --- on the threads ---------------------------------------------------------------------------------

    def _write(self, batch: Sequence[_Waiting]) -> None:
        if len(batch) == 1 or not run_together(self._writing, batch, self._clock_offset):
            for waiting in batch:
                self._run_alone(self._writing, waiting)
        for waiting in batch:
            self._read_behind(waiting)
        self._reactor.callFromThread(self._fire, batch, "write")

    def _read(self, batch: Sequence[_Waiting]) -> None:
        for waiting in batch:
            self._run_alone(self._reading, waiting, reading=True)
        self._reactor.callFromThread(self._fire, batch, "read")

    def _read_behind(self, waiting: _Waiting) -> None:
        """Read what was to be read behind the commit; a failure is that of nobody, the work is done."""
        reading, outcome = waiting.reading, waiting.outcome
        if reading is None or isinstance(outcome, Failure):
            return
        found = None
        with suppress(Exception):  # whatever it is: who needs the rows reads again, and hears of it
            found = self._transact(
                self._writing, lambda tx: reading(tx, outcome), offset=self._clock_offset, reading=True
            )
        waiting.outcome = (outcome, found)

    def _run_alone(self, engine: Connects, waiting: _Waiting, *, reading: bool = False) -> None:
        try:
            waiting.outcome = self._transact(engine, waiting.work, offset=self._clock_offset, reading=reading)
        except BaseException:  # noqa: BLE001 (as in a thread pool: whatever was raised is its caller's to hear)
            waiting.outcome = Failure()


def run_together(engine: Connects, batch: Sequence[_Waiting], offset: timedelta) -> bool:
    """Run works in one transaction, each undone alone when it raises; whether the outcomes hold.

    ``False``: nothing was committed and every outcome is void.
    """
    try:
        with unavailability(), begun(engine, reading=False) as connection:
            for waiting in batch:
                command(connection, "SAVEPOINT work")
                try:
                    waiting.outcome = waiting.work(Tx(connection, clock_of(connection) + offset))
                except DBAPIError:
                    raise  # SQLite may have undone everything by itself: a full disk does that
                except BaseException:  # noqa: BLE001 (as above)
                    waiting.outcome = Failure()
                    command(connection, "ROLLBACK TO work")
                command(connection, "RELEASE work")
    except Exception:  # noqa: BLE001 (whatever it is, each work meets it again alone, and its caller hears of it)
        return False
    return True


_proof: type[Database] = ThreadedDatabase
