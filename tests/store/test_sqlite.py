"""The store on SQLite, in memory and in a file, and what only a file can do: fill up, lock, be backed up."""

import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event, text
from sqlalchemy.exc import IntegrityError
from twisted.internet import defer, reactor
from twisted.trial.unittest import SynchronousTestCase, TestCase

from mailgateway.domain.envelope import Envelope
from mailgateway.errors import ConfigError, StoreUnavailable
from mailgateway.store import database as database_module
from mailgateway.store import envelopes, threaded
from mailgateway.store import upgrade as upgrade_module
from mailgateway.store.database import Connects, T, Tx, Work, sqlite_database_engine, transact
from mailgateway.store.threaded import ThreadedDatabase
from mailgateway.store.upgrade import open_engine, upgrade
from tests.store.conformance import StoreConformance
from tests.store.values import envelope, filed, introduce

ZERO = timedelta(0)


class SQLiteMemoryTests(StoreConformance):
    """In memory, as tests of flows use it."""

    def make_engine(self) -> Engine:
        return sqlite_database_engine(None)


class SQLiteFileTests(StoreConformance):
    """In a file, as the service uses it."""

    def make_engine(self) -> Engine:
        return open_engine(Path(self.mktemp()) / "gateway.sqlite3")


del StoreConformance  # the suite itself is no test of this module


class FileTests(SynchronousTestCase):
    """What a file does that memory does not."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp()).absolute() / "state" / "gateway.sqlite3"
        self.engine = open_engine(self.path)
        self.addCleanup(self.engine.dispose)
        upgrade(self.engine)
        transact(self.engine, introduce)

    def mode(self, path: Path) -> int:
        """Permission bits."""
        return stat.S_IMODE(path.stat().st_mode)

    def test_is_private(self) -> None:
        """People's words are for the owner's eyes: folder, file and what SQLite lays beside it."""
        transact(self.engine, lambda tx: filed(tx, envelope(1)))
        self.assertEqual(self.mode(self.path.parent), 0o700)
        self.assertEqual({self.mode(path) for path in self.path.parent.iterdir()}, {0o600})

    def test_is_durable(self) -> None:
        """Every connection writes ahead and through to the disk, and enforces references."""
        with self.engine.connect() as one, self.engine.connect() as two:
            for connection in (one, two):
                pragmas = [
                    connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                    for name in ("journal_mode", "synchronous", "foreign_keys")
                ]
                self.assertEqual(pragmas, ["wal", 2, 1])
                connection.rollback()
                break

    def test_an_older_file_is_backed_up_before_it_changes(self) -> None:
        """The copy is whole, private, and of the state before."""
        transact(self.engine, lambda tx: filed(tx, envelope(1)))
        before = upgrade_module.HEAD
        self.patch(upgrade_module, "REVISIONS", (*upgrade_module.REVISIONS, "next"))
        self.patch(upgrade_module, "HEAD", "next")
        migrated: list[object] = []
        self.patch(upgrade_module, "migrate", migrated.append)
        upgrade(self.engine, self.path.parent / "backups")
        self.assertEqual(len(migrated), 1)
        copy = self.path.parent / "backups" / f"gateway-{before}.backup"
        self.assertEqual(self.mode(copy), 0o600)
        with closing(sqlite3.connect(copy)) as connection:
            self.assertEqual(
                connection.execute("SELECT body FROM envelope").fetchall(), [(envelope(1).body,)]
            )

    def test_without_a_backup_nothing_is_upgraded(self) -> None:
        """When the copy cannot be written, the database stays as it is."""
        self.patch(upgrade_module, "REVISIONS", (*upgrade_module.REVISIONS, "next"))
        self.patch(upgrade_module, "HEAD", "next")
        self.patch(upgrade_module, "migrate", lambda _connection: self.fail("upgraded without a backup"))
        blocked = self.path.parent / "blocked"
        blocked.write_text("a file where a folder should be", encoding="utf-8")
        self.assertRaises(StoreUnavailable, upgrade, self.engine, blocked)

    def test_the_usual_start_does_not_load_alembic(self) -> None:
        """Nothing to do costs a query."""
        self.patch(upgrade_module, "migrate", lambda _connection: self.fail("migrated"))
        self.patch(upgrade_module, "_alone", lambda _engine: self.fail("locked"))
        upgrade(self.engine)

    def test_a_full_disk_is_told_and_heals(self) -> None:
        """What did not fit has not happened; once there is room again, all goes on without a restart."""

        def limit(tx: Tx, pages: int) -> None:
            tx.execute(text(f"PRAGMA max_page_count={pages}"))

        transact(self.engine, lambda tx: limit(tx, 1))  # cannot shrink below what is used: full at once
        big = envelope(1, body="x" * 1_000_000)
        error = self.assertRaises(StoreUnavailable, transact, self.engine, lambda tx: filed(tx, big))
        self.assertIn("full", str(error))
        self.assertNotIn("xxx", str(error))
        self.assertIsNone(transact(self.engine, lambda tx: envelopes.find(tx, big.id)))
        transact(self.engine, lambda tx: limit(tx, 1_000_000))
        transact(self.engine, lambda tx: filed(tx, big))
        self.assertEqual(transact(self.engine, lambda tx: envelopes.find(tx, big.id)), big)

    def test_a_failed_commit_does_not_poison_the_connection(self) -> None:
        """A COMMIT that is refused leaves a transaction open in SQLite; it must not swallow the next one."""

        def dangling(tx: Tx) -> None:
            tx.execute(text("PRAGMA defer_foreign_keys=ON"))
            filed(tx, envelope(1))
            tx.execute(
                text(
                    "INSERT INTO attachment (envelope_id, id, filename, content_type, size, data)"
                    " VALUES ('m-none', 'a1', '', '', 0, x'00')"
                )
            )

        for _ in range(3):
            self.assertRaises(IntegrityError, transact, self.engine, dangling)
        self.assertIsNone(transact(self.engine, lambda tx: envelopes.find(tx, envelope(1).id)))
        transact(self.engine, lambda tx: filed(tx, envelope(2)))
        other = open_engine(self.path)
        self.addCleanup(other.dispose)
        self.assertEqual(transact(other, lambda tx: envelopes.find(tx, envelope(2).id)), envelope(2))

    def test_a_lock_that_does_not_end_is_told_and_heals(self) -> None:
        """Another process that keeps the file locked makes us wait a while, then say so."""
        self.patch(database_module, "BUSY_SECONDS", 0.05)
        impatient = open_engine(self.path)
        self.addCleanup(impatient.dispose)
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            error = self.assertRaises(
                StoreUnavailable, transact, impatient, lambda tx: filed(tx, envelope(1))
            )
            self.assertIn("locked", str(error))
            # who only reads is not kept waiting
            self.assertIsNone(transact(impatient, lambda tx: envelopes.find(tx, "m-0"), reading=True))
            other.execute("ROLLBACK")
        transact(impatient, lambda tx: filed(tx, envelope(1)))

    def test_a_file_that_is_no_database_is_told(self) -> None:
        """Garbage is neither overwritten nor a traceback."""
        path = Path(self.mktemp()).absolute()
        path.write_bytes(b"not a database at all, but long enough to look at" * 100)
        engine = open_engine(path)
        self.addCleanup(engine.dispose)
        self.assertRaises(StoreUnavailable, upgrade, engine)
        self.assertTrue(path.read_bytes().startswith(b"not a database"))

    def test_a_folder_that_cannot_be_made_is_told(self) -> None:
        """A path below a file is the operator's to mend."""
        self.assertRaises(StoreUnavailable, open_engine, self.path / "below" / "gateway.sqlite3")

    def test_an_unknown_url_is_a_wrong_setting(self) -> None:
        """Only PostgreSQL is named by a URL."""
        error = self.assertRaises(ConfigError, open_engine, "mysql://localhost/x")
        self.assertEqual(error.problems[0].path, "daemon.database")


class ThreadedTests(TestCase):
    """The database of the running service: threads inside, Deferreds outside."""

    def setUp(self) -> None:
        self.engine = open_engine(Path(self.mktemp()).absolute() / "gateway.sqlite3")
        upgrade(self.engine)
        transact(self.engine, introduce)
        self.database = ThreadedDatabase(reactor, self.engine)
        self.addCleanup(self.database.close)
        self.commits = self.commits_of_writers = 0
        event.listen(self.engine, "commit", self.count)

    def count(self, _connection: object) -> None:
        """A transaction is committed."""
        self.commits += 1

    def hold(self) -> tuple[threading.Event, defer.Deferred[None]]:
        """Keep the writer busy until the event is set, so that what comes now waits together."""
        entered, gate = threading.Event(), threading.Event()

        def wait(_tx: Tx) -> None:
            entered.set()
            gate.wait(10)

        held = self.database.run(wait)
        entered.wait(10)
        return gate, held

    async def test_run_and_read(self) -> None:
        """What was run can be read when its Deferred fires, on the reactor's thread."""
        await self.database.run(lambda tx: filed(tx, envelope(1)))
        self.assertEqual(await self.database.read(lambda tx: envelopes.find(tx, envelope(1).id)), envelope(1))
        self.assertFalse(self.database.shared)

    async def test_run_then_read(self) -> None:
        """Behind the commit: the rows are there to stay, and whatever fails then fails nobody."""
        threads: list[int] = []

        def work(tx: Tx) -> int:
            threads.append(threading.get_ident())
            filed(tx, envelope(1))
            return 7

        def reading(tx: Tx, result: int) -> tuple[int, Envelope | None]:
            threads.append(threading.get_ident())
            self.commits_of_writers = self.commits
            return result, envelopes.find(tx, envelope(1).id)

        commits = self.commits
        outcome = await self.database.run_then_read(work, reading)
        self.assertEqual(outcome, (7, (7, envelope(1))))
        self.assertEqual(self.commits_of_writers, commits + 1)
        self.assertEqual(len(set(threads)), 1)
        self.assertNotEqual(threads[0], threading.get_ident())

        def broken(tx: Tx, _result: None) -> None:
            filed(tx, envelope(3))  # not even this: it only reads
            raise LookupError

        self.assertEqual(await self.database.run_then_read(lambda _tx: None, broken), (None, None))
        self.assertIsNone(await self.database.read(lambda tx: envelopes.find(tx, envelope(3).id)))

        def bad(_tx: Tx) -> None:
            raise LookupError

        with self.assertRaises(LookupError):
            await self.database.run_then_read(bad, broken)

    async def test_reading_behind_others(self) -> None:
        """Works that are committed together are each followed by their reading."""
        gate, held = self.hold()

        def work(uid: int) -> Callable[[Tx], int]:
            def filing(tx: Tx) -> int:
                filed(tx, envelope(uid))
                return uid

            return filing

        def reading(tx: Tx, uid: int) -> Any:
            return envelopes.find(tx, envelope(uid).id)

        works = [self.database.run_then_read(work(uid), reading) for uid in range(1, 5)]
        gate.set()
        await held
        self.assertEqual([await each for each in works], [(uid, envelope(uid)) for uid in range(1, 5)])

    async def run_many(self, bad: Callable[[Tx], None]) -> list[Any]:
        """Thirty works that wait together, every fifth of them bad; what each came to."""

        def good(uid: int) -> Callable[[Tx], int]:
            def work(tx: Tx) -> int:
                filed(tx, envelope(uid))
                return uid

            return work

        gate, held = self.hold()
        works = [self.database.run(good(uid) if uid % 5 else bad) for uid in range(1, 31)]
        gate.set()
        await held
        results: list[tuple[bool, Any]] = await defer.DeferredList(works, consumeErrors=True)
        self.commits_of_writers = self.commits
        found = await self.database.read(
            lambda tx: [uid for uid in (*range(1, 31), 100) if envelopes.find(tx, envelope(uid).id)]
        )
        self.assertEqual(found, [uid for uid in range(1, 31) if uid % 5])
        return [result if ok else repr(result.value) for ok, result in results]

    async def test_works_that_wait_are_committed_together(self) -> None:
        """One commit for all; one that raises undoes itself and nobody else."""

        def bad(tx: Tx) -> None:
            filed(tx, envelope(100))
            raise KeyError("bad")

        results = await self.run_many(bad)
        self.assertEqual(results, [uid if uid % 5 else "KeyError('bad')" for uid in range(1, 31)])
        self.assertEqual(self.commits_of_writers, 2)

    async def test_a_broken_statement_fails_alone(self) -> None:
        """What a database refuses spoils the common commit, so each is then run by itself."""

        def bad(tx: Tx) -> None:
            filed(tx, envelope(100), envelope(100))

        results = await self.run_many(bad)
        self.assertEqual(
            [each for each in results if isinstance(each, int)], [n for n in range(1, 31) if n % 5]
        )
        self.assertEqual(len([each for each in results if "UNIQUE" in str(each)]), 6)

    async def test_a_full_disk_fails_who_does_not_fit(self) -> None:
        """SQLite undoes the whole transaction when the disk is full; who fits is filed all the same."""
        pages = await self.database.run(lambda tx: tx.execute(text("PRAGMA page_count")).scalar_one())
        room = pages + 100

        def bad(tx: Tx) -> None:
            tx.execute(text(f"PRAGMA max_page_count={room}"))
            filed(tx, envelope(100, body="x" * 4_000_000))

        results = await self.run_many(bad)
        self.assertEqual(
            [each for each in results if isinstance(each, int)], [n for n in range(1, 31) if n % 5]
        )
        self.assertEqual(len([each for each in results if "full" in str(each)]), 6)

    async def test_order(self) -> None:
        """Works run in the order in which they were handed over."""
        ran: list[int] = []

        def append(number: int) -> Callable[[Tx], None]:
            return lambda _tx: ran.append(number)

        gate, held = self.hold()
        works = [self.database.run(append(number)) for number in range(120)]
        gate.set()
        await held
        await defer.gatherResults(works)
        self.assertEqual(ran, list(range(120)))

    async def test_a_queue_has_an_end(self) -> None:
        """More than can wait is refused at once, not piled up."""
        self.patch(threaded, "QUEUE", 3)
        gate, held = self.hold()
        works = [self.database.run(filed) for _ in range(6)]
        gate.set()
        await held
        results = await defer.DeferredList(works, consumeErrors=True)
        self.assertEqual([ok for ok, _ in results], [True] * 3 + [False] * 3)

    async def test_closing(self) -> None:
        """What was handed over is finished; what comes later is refused and does not hang."""
        gate, held = self.hold()
        last = self.database.run(lambda tx: filed(tx, envelope(1)))
        closing = self.database.close()
        await self.assertFailure(self.database.run(filed), StoreUnavailable)
        await self.assertFailure(self.database.read(filed), StoreUnavailable)
        gate.set()
        await held
        await last
        await closing

    async def test_another_way_to_transact(self) -> None:
        """What a test puts in the place of a transaction sees each one, by itself."""
        seen: list[bool] = []

        def watched(engine: Connects, work: Work[T], *, offset: timedelta = ZERO, reading: bool = False) -> T:
            seen.append(reading)
            return transact(engine, work, offset=offset, reading=reading)

        await self.database.close()
        self.database = ThreadedDatabase(reactor, self.engine, transact=watched)
        self.addCleanup(self.database.close)
        gate, held = self.hold()
        works = [self.database.run(lambda tx: tx.now) for _ in range(5)]
        gate.set()
        await held
        await defer.gatherResults(works)
        await self.database.read(lambda tx: tx.now)
        self.assertEqual(seen, [False] * 6 + [True])

    async def test_trouble(self) -> None:
        """What keeps the database from being used can be asked for until it works again."""

        def broken(_tx: Tx) -> None:
            raise StoreUnavailable("the disk is full")

        def refusing(_tx: Tx) -> None:
            raise KeyError("bad")

        self.assertEqual(self.database.trouble, "")
        await self.assertFailure(self.database.run(broken), StoreUnavailable)
        self.assertEqual(self.database.trouble, "the disk is full")
        await self.assertFailure(self.database.run(refusing), KeyError)
        await self.database.read(lambda tx: tx.now)
        self.assertEqual(self.database.trouble, "the disk is full")
        await self.database.run(lambda tx: tx.now)
        self.assertEqual(self.database.trouble, "")
