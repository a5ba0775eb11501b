"""The threads of a database, and the connection that one keeps."""

import threading
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import text
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import Fault
from mailgateway.store.database import sqlite_database_engine, transact
from mailgateway.store.kept import KeptConnection
from mailgateway.store.workers import Workers


class WorkersTests(SynchronousTestCase):
    """What is handed over is done on other threads, and all of it before they end."""

    def setUp(self) -> None:
        self.taken: list[Sequence[int]] = []
        self.threads: set[int] = set()
        self.entered, self.second, self.gate = threading.Event(), threading.Event(), threading.Event()

    def work(self, pieces: Sequence[int]) -> None:
        """Note what was taken; 0 waits for the gate, and whatever is negative is a defect."""
        self.threads.add(threading.get_ident())
        self.taken.append(pieces)
        if 0 in pieces:
            self.entered.set()
            self.gate.wait(10)
        if 2 in pieces:
            self.second.set()
        if min(pieces) < 0:
            raise ValueError

    def test_what_waits_is_taken_together(self) -> None:
        """In order, up to the bound, on one thread; stopping waits for all of it."""
        workers = Workers("test", 1, self.work, 3)
        workers.hand(0)
        self.entered.wait(10)
        for piece in range(1, 6):
            workers.hand(piece)
        self.assertEqual(workers.waiting, 5)
        self.gate.set()
        workers.stop()
        self.assertEqual(self.taken, [[0], [1, 2, 3], [4, 5]])
        self.assertEqual(len(self.threads), 1)
        self.assertNotIn(threading.get_ident(), self.threads)

    def test_several_threads(self) -> None:
        """While one is busy another takes what comes."""
        workers = Workers("test", 2, self.work)
        workers.hand(0)
        self.entered.wait(10)
        workers.hand(1)
        workers.hand(2)
        self.second.wait(10)
        self.gate.set()
        workers.stop()
        self.assertEqual(sorted(self.taken), [[0], [1], [2]])
        self.assertEqual(len(self.threads), 2)

    def test_a_defect_ends_no_thread(self) -> None:
        """What comes behind it is done by the same thread."""
        workers = Workers("test", 1, self.work)
        workers.hand(-1)
        workers.hand(5)
        workers.stop()
        self.assertEqual(self.taken, [[-1], [5]])
        self.assertEqual(len(self.threads), 1)
        self.assertEqual(len(self.flushLoggedErrors(Fault)), 1)

    def test_nothing_runs_before_there_is_work(self) -> None:
        """A process may fork until then."""
        before = threading.active_count()
        Workers("test", 4, self.work).stop()
        self.assertEqual(threading.active_count(), before)


class KeptConnectionTests(SynchronousTestCase):
    """One connection for many transactions."""

    def setUp(self) -> None:
        self.engine = sqlite_database_engine(Path(self.mktemp()).absolute())
        self.addCleanup(self.engine.dispose)
        self.kept = KeptConnection(self.engine)
        self.addCleanup(self.kept.close)
        transact(self.kept, lambda tx: tx.execute(text("CREATE TABLE t (n INTEGER)")))

    def count(self) -> int:
        """How many rows another connection sees."""
        return transact(
            self.engine, lambda tx: int(tx.execute(text("SELECT count(*) FROM t")).scalar_one()), reading=True
        )

    def test_it_is_kept(self) -> None:
        """Each transaction is committed, and none takes another connection."""
        used: set[int] = set()
        for _ in range(3):
            transact(self.kept, lambda tx: used.add(id(tx.connection.connection.dbapi_connection)))
            transact(self.kept, lambda tx: tx.execute(text("INSERT INTO t VALUES (1)")))
        self.assertEqual(self.count(), 3)
        self.assertEqual(len(used), 1)

    def test_after_a_failure_it_is_given_back(self) -> None:
        """What failed is undone, no lock is left, and the next transaction works."""
        with self.kept.connect() as first:
            pass

        def fail(_tx: object) -> None:
            first.execute(text("INSERT INTO t VALUES (1)"))
            raise LookupError

        self.assertRaises(LookupError, transact, self.kept, fail)
        self.assertTrue(first.closed)
        transact(self.engine, lambda tx: tx.execute(text("INSERT INTO t VALUES (2)")))
        transact(self.kept, lambda tx: tx.execute(text("INSERT INTO t VALUES (3)")))
        self.assertEqual(self.count(), 2)
