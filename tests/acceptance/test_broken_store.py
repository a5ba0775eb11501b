"""A database that cannot be written for a while: nothing is lost, everybody can see it, and it passes."""

import resource
import sqlite3
from contextlib import closing

from sqlalchemy import select

from mailgateway.client import ApiRefused, ServiceUnreachable
from mailgateway.store.tables import cursor
from tests.acceptance.harness import Asked
from tests.acceptance.tables import OnPostgres, TablesTestCase
from tests.fakes.dovecot import eventually


class BrokenStoreTestCase(TablesTestCase):
    """A question has been asked, then the database fails."""

    def setUp(self) -> None:
        super().setUp()
        self.asked = self.ask()
        self.before = self.cursor()

    def cursor(self) -> int:
        """The UID up to which the folder was read."""
        return self.rows(lambda tx: int(tx.execute(select(cursor.c.uid)).scalar_one()))

    def status(self) -> str:
        """What ``/health`` says."""
        return self.gateway.client.health()["status"]

    def wait_status(self, *wanted: str) -> None:
        """Wait until ``/health`` says one of these."""
        eventually(f"the status is {' or '.join(wanted)}", lambda: self.status() in wanted, 40)

    def assert_recovered(self, asked: Asked, message_id: str) -> None:
        """The reply that came meanwhile is delivered once, and everything is well."""
        delivery = self.poll(asked, wait=45)
        self.assertEqual(self.words(delivery), "meanwhile")
        self.take(asked, delivery)
        self.wait_seen(message_id)
        self.wait_status("ok")
        self.assertGreater(self.cursor(), self.before)
        self.assertNotIn("Traceback", self.gateway.log())


class FullDiskTests(BrokenStoreTestCase):
    """Not one byte more can be written to any file, the log included."""

    def test_full_disk(self) -> None:
        """An ack and a mail are refused for the time, and both come right when there is room again."""
        early = self.ask("Early?")
        self.deliver_reply(early, "early")
        delivery = self.poll(early)
        self.gateway.client.claim(delivery["id"], early.instance)
        self.before = self.cursor()
        pid = self.gateway.pid
        usual = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        message_id = self.deliver_reply(self.asked, "meanwhile")
        self.wait_status("store_unavailable")
        refused = self.assertRaises(ApiRefused, self.gateway.client.ack, delivery["id"], early.instance)
        self.assertEqual((refused.status, refused.code), (503, "store_unavailable"))
        self.assertEqual(self.cursor(), self.before)
        self.assertFalse(self.seen(message_id))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, usual)
        self.assert_recovered(self.asked, message_id)
        self.gateway.client.ack(delivery["id"], early.instance)


class LockedTests(BrokenStoreTestCase):
    """Somebody else holds the write lock of the SQLite file."""

    def test_locked(self) -> None:
        """Reading goes on; filing waits, then backs off, and goes on when the lock is gone."""
        path = self.gateway.state_dir / "mailgateway.sqlite3"
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            message_id = self.deliver_reply(self.asked, "meanwhile")
            self.wait_status("store_unavailable")
            self.assert_nothing_pending(self.asked)
            found = other.execute("SELECT uid FROM cursor").fetchone()
            self.assertEqual(found, (self.before,))
            other.execute("ROLLBACK")
        self.assert_recovered(self.asked, message_id)


class PostgresAwayTests(OnPostgres, BrokenStoreTestCase):
    """The server lets nobody in, then lets everybody read only."""

    def command(self, words: str) -> None:
        """Tell the server something about the database, and end all connections to it."""
        import psycopg  # noqa: PLC0415 (an extra: needed here only)

        base, _, name = self.url.rpartition("/")
        with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} {words}".encode())
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
            )

    def test_away_and_read_only(self) -> None:
        """Health answers all the time; sessions are told; afterwards everything is as it should be."""
        self.command("ALLOW_CONNECTIONS false")
        message_id = self.deliver_reply(self.asked, "meanwhile")
        self.wait_status("store_unavailable")
        refused = self.assertRaises((ApiRefused, ServiceUnreachable), self.gateway.client.ping, "s", "i")
        self.assertEqual(getattr(refused, "code", ""), "store_unavailable")
        self.gateway.client.prove()
        self.command("ALLOW_CONNECTIONS true")
        self.command("SET default_transaction_read_only = on")
        refused = self.assertRaises(ApiRefused, self.gateway.client.ping, "s", "i")
        self.assertEqual(refused.code, "store_unavailable")
        self.wait_status("store_unavailable")
        self.assertEqual(self.cursor_read(), self.before)
        self.command("RESET default_transaction_read_only")
        self.assert_recovered(self.asked, message_id)

    def cursor_read(self) -> int:
        """The cursor, read without the intent to write."""
        import psycopg  # noqa: PLC0415 (as above)

        with psycopg.connect(self.url) as connection:
            return int((connection.execute("SELECT uid FROM cursor").fetchone() or (0,))[0])
