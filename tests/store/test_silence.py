"""A server that says nothing any more."""

import threading
import time

from sqlalchemy import text
from sqlalchemy.exc import DataError
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import StoreUnavailable
from mailgateway.store.database import Tx, transact
from mailgateway.store.silence import notice_silence
from mailgateway.store.upgrade import open_engine
from tests.fakes.postgres import fresh_url
from tests.fakes.stalling import StallingProxy


class SilenceTests(SynchronousTestCase):
    """Noticed, and over when the server speaks again."""

    def setUp(self) -> None:
        url = fresh_url()
        host, _, name = url.rpartition("/")
        start, _, port = host.rpartition(":")
        self.proxy = StallingProxy(int(port))
        self.addCleanup(self.proxy.close)
        self.engine = open_engine(f"{start}:{self.proxy.port}/{name}")
        self.addCleanup(self.engine.dispose)
        notice_silence(self.engine, seconds=0.4)

    def run_(self) -> int:
        """One transaction that writes."""
        transact(self.engine, lambda tx: tx.execute(text("CREATE TABLE IF NOT EXISTS t (x INTEGER)")))
        return transact(self.engine, lambda tx: int(tx.execute(text("SELECT 1")).scalar_one()))

    def test_in_the_middle_of_a_transaction(self) -> None:
        """The transaction fails in time, as one whose server went away; afterwards all is well."""
        self.assertEqual(self.run_(), 1)

        def work(tx: Tx) -> None:
            tx.execute(text("INSERT INTO t VALUES (1)"))
            self.proxy.block()
            tx.execute(text("INSERT INTO t VALUES (2)"))

        began = time.monotonic()
        self.assertRaises(StoreUnavailable, transact, self.engine, work)
        self.assertLess(time.monotonic() - began, 5)
        self.proxy.open()
        self.assertEqual(self.run_(), 1)
        rows = transact(self.engine, lambda tx: tx.execute(text("SELECT x FROM t")).all())
        self.assertEqual(rows, [])

    def test_before_a_transaction(self) -> None:
        """A connection of the pool that is dead is noticed in time, and another one is made."""
        self.assertEqual(self.run_(), 1)
        self.proxy.block()
        opening = threading.Timer(1.0, self.proxy.open)  # a new connection's own deadline is ten seconds
        opening.start()
        self.addCleanup(opening.join)
        began = time.monotonic()
        self.assertEqual(self.run_(), 1)
        self.assertLess(time.monotonic() - began, 8)

    def test_a_slow_answer_is_no_silence(self) -> None:
        """What the server says in time counts, and so does an error that it tells."""
        self.assertEqual(self.run_(), 1)
        transact(self.engine, lambda tx: tx.execute(text("SELECT pg_sleep(0.1)")))
        self.assertRaises(DataError, transact, self.engine, lambda tx: tx.execute(text("SELECT 1/0")))
        self.assertEqual(self.run_(), 1)
