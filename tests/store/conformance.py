"""What every database must do alike: transactions, races, times, unique keys, leases.

A test module mixes ``StoreConformance`` into a TestCase and says how an empty engine is made.
"""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Column, DefaultClause, Engine, MetaData, func, insert, inspect, select, text, update
from sqlalchemy.exc import IntegrityError
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.delivery import DeliveryState
from mailgateway.domain.envelope import AttachmentInfo, EnvelopeKind, Source
from mailgateway.errors import SchemaTooNew, StaleWrite, StoreUnavailable
from mailgateway.ids import InstanceId, MachineId, OutboxId, QuestionId, SessionId
from mailgateway.store import (
    attachments,
    envelopes,
    fates,
    flagging,
    leases,
    outbox,
    questions,
    settles,
    tables,
)
from mailgateway.store.database import Tx, transact
from mailgateway.store.fates import Fate
from mailgateway.store.insert import insert_or_ignore, insert_or_update
from mailgateway.store.upgrade import HEAD, migrate, upgrade
from tests.store.values import (
    ELSEWHERE,
    HERE,
    INBOX,
    MAIN,
    RECEIVED,
    SESSION,
    claim,
    envelope,
    filed,
    introduce,
)

T = TypeVar("T")

THREADS = 20

OLD_MAIL = """
INSERT INTO outbox
(id, number, kind, account, machine_id, message_id, subject, sender, state, created_at, raw)
VALUES ('o', 1, 'notification', 'main', 'm', '<a@b>', 's', 'a@b', 'queued', 0, :raw)
"""

OLD_SETTLES = (
    "INSERT INTO machine (id, name, seen_at) VALUES ('m', 'laptop', 0)",
    "INSERT INTO session (id, machine_id, digest, first_seen_at, last_ping_at) VALUES ('s', 'm', 'd', 0, 0)",
    "INSERT INTO settle (session_id, instance_id, summary, aborted, due_at) VALUES ('s', 'i', 'OK', false,0)",
)
"""A turn that was over before settles knew their machine."""


class StoreConformance(SynchronousTestCase):
    """The suite; ``make_engine`` is the only thing that differs."""

    def make_engine(self) -> Engine:
        """An engine on an empty database, not yet upgraded."""
        raise NotImplementedError

    def setUp(self) -> None:
        self.engine = self.make_engine()
        self.addCleanup(self.engine.dispose)
        upgrade(self.engine)
        self.tx(introduce)

    def tx(self, work: Callable[[Tx], T], offset: timedelta = timedelta(0)) -> T:
        """Run one transaction."""
        return transact(self.engine, work, offset=offset)

    def race(self, work: Callable[[int], Callable[[Tx], T]]) -> list[T | Exception]:
        """Run one transaction in each of many threads that start together; results or what was raised."""
        gate = threading.Barrier(THREADS)
        results: list[T | Exception] = []

        def run(number: int) -> None:
            gate.wait(20)
            try:
                results.append(transact(self.engine, work(number)))
            except Exception as error:  # noqa: BLE001 (whatever it is, the test looks at it)
                results.append(error)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(len(results), THREADS)
        return results

    # --- transactions -----------------------------------------------------------------------------

    def test_what_raises_has_not_happened(self) -> None:
        """A refusal inside of a transaction undoes everything before it, and the next one works."""

        def work(tx: Tx) -> None:
            filed(tx, envelope(1))
            raise StaleWrite("changed my mind")

        self.assertRaises(StaleWrite, self.tx, work)
        self.assertIsNone(self.tx(lambda tx: envelopes.find(tx, envelope(1).id)))
        self.tx(lambda tx: filed(tx, envelope(1)))
        self.assertEqual(self.tx(lambda tx: envelopes.find(tx, envelope(1).id)), envelope(1))

    def test_a_broken_statement_has_not_happened_either(self) -> None:
        """A unique key that is violated undoes the transaction and says so as what it is: our fault."""

        def work(tx: Tx) -> None:
            filed(tx, envelope(2))
            filed(tx, envelope(1), envelope(1))

        self.assertRaises(IntegrityError, self.tx, work)
        self.assertIsNone(self.tx(lambda tx: envelopes.find(tx, envelope(2).id)))

    def test_no_update_is_lost(self) -> None:
        """Many that read a number and write the next one count every one of them."""

        def work(_number: int) -> Callable[[Tx], None]:
            def count(tx: Tx) -> None:
                read = tx.execute(select(tables.cursor.c.uid)).scalar_one()
                tx.execute(update(tables.cursor).values(uid=read + 1))

            return count

        row = {"account": MAIN, "folder": INBOX, "uid_validity": 1, "uid": 0, "moved_at": RECEIVED}
        self.tx(lambda tx: tx.execute(insert(tables.cursor), row))
        self.assertEqual(self.race(work), [None] * THREADS)
        self.assertEqual(self.tx(lambda tx: tx.execute(select(tables.cursor.c.uid)).scalar()), THREADS)

    def test_reading_sees_what_was_committed(self) -> None:
        """A transaction that only reads sees the rows and the clock."""
        self.tx(lambda tx: filed(tx, envelope(1)))
        found = transact(self.engine, lambda tx: envelopes.find(tx, envelope(1).id), reading=True)
        self.assertEqual(found, envelope(1))

    def test_clock(self) -> None:
        """The time is aware, UTC, near ours, and moved by the offset."""
        now = self.tx(lambda tx: tx.now)
        self.assertEqual(now.utcoffset(), timedelta(0))
        self.assertLess(abs(now - datetime.now(UTC)), timedelta(minutes=1))
        later = self.tx(lambda tx: tx.now, offset=timedelta(hours=3))
        self.assertGreater(later - now, timedelta(hours=2, minutes=59))

    # --- values -----------------------------------------------------------------------------------

    def test_instants_round_trip(self) -> None:
        """Any time comes back to the microsecond, whatever zone it was given in."""
        self.tx(
            lambda tx: insert_or_update(
                tx,
                tables.lease,
                ["resource"],
                {"resource": "r", "holder": "m", "fence": 1, "until": RECEIVED},
            )
        )

        @settings(max_examples=25)
        @given(
            st.datetimes(
                min_value=datetime(1901, 1, 1),  # noqa: DTZ001 (Hypothesis wants naive bounds)
                max_value=datetime(2200, 1, 1),  # noqa: DTZ001 (as above)
                timezones=st.sampled_from([UTC]),
            )
        )
        def check(moment: datetime) -> None:
            self.tx(lambda tx: tx.execute(update(tables.lease).values(until=moment)))
            found = self.tx(lambda tx: tx.execute(select(tables.lease.c.until)).scalar())
            self.assertEqual(found, moment)

        check()

    def test_envelope_round_trips(self) -> None:
        """Everything that an envelope says comes back, what is missing as ``None``."""
        whole = envelope(
            1,
            quoted="> Soll ich?",
            body="Ja, bitte. \N{SNOWMAN} \N{GRINNING FACE}",
            in_reply_to="<mg.aabbcc.00.11@example.org>",
            question_id=QuestionId("q-1"),
            choice="yes",
            note="soon",
            attachments=(
                AttachmentInfo(
                    "a1",
                    "r\N{LATIN SMALL LETTER E WITH ACUTE}sum\N{LATIN SMALL LETTER E WITH ACUTE}.pdf",
                    "application/pdf",
                    3,
                ),
            ),
        )
        bare = envelope(2, machine_id=None, source=None, kind=EnvelopeKind.NOTICE)

        def work(tx: Tx) -> None:
            filed(tx, whole, bare)
            attachments.add(tx, whole.id, [(whole.attachments[0], b"\x00\xffx")])

        self.tx(work)
        self.assertEqual(self.tx(lambda tx: envelopes.find(tx, whole.id)), whole)
        self.assertEqual(self.tx(lambda tx: envelopes.find(tx, bare.id)), bare)
        self.assertEqual(
            self.tx(lambda tx: attachments.find(tx, whole.id, "a1")), (whole.attachments[0], b"\x00\xffx")
        )
        self.assertIsNone(self.tx(lambda tx: attachments.find(tx, whole.id, "a2")))

    def test_insert_or_ignore_and_update(self) -> None:
        """The first row of a key stays, or is written over, as asked."""

        def flag(attempts: int) -> dict[str, object]:
            return {
                "account": MAIN,
                "folder": INBOX,
                "uid_validity": 1,
                "uid": 1,
                "asked_at": RECEIVED,
                "attempts": attempts,
            }

        keys = ["account", "folder", "uid_validity", "uid"]
        self.assertTrue(self.tx(lambda tx: insert_or_ignore(tx, tables.flagging, flag(1))))
        self.assertFalse(self.tx(lambda tx: insert_or_ignore(tx, tables.flagging, flag(2))))
        read = select(tables.flagging.c.attempts)
        self.assertEqual(self.tx(lambda tx: tx.execute(read).scalars().all()), [1])
        self.tx(lambda tx: insert_or_update(tx, tables.flagging, keys, flag(3)))
        self.assertEqual(self.tx(lambda tx: tx.execute(read).scalars().all()), [3])

    # --- envelopes --------------------------------------------------------------------------------

    def test_of_many_claims_one_wins(self) -> None:
        """Twenty instances that see a new envelope and claim it: one has it, the others are told."""
        self.tx(lambda tx: filed(tx, envelope(1)))

        def work(number: int) -> Callable[[Tx], str]:
            def attempt(tx: Tx) -> str:
                found = envelopes.find(tx, envelope(1).id)
                assert found is not None
                if found.state is not DeliveryState.NEW:
                    return "late"
                until = tx.now + timedelta(seconds=60)
                by = envelopes.Claim(InstanceId(f"i{number}"), HERE, until)
                return envelopes.claim(tx, found, by).claimant or ""

            return attempt

        results = self.race(work)
        winners = [each for each in results if isinstance(each, str) and each != "late"]
        self.assertEqual(len(winners), 1)
        for result in results:
            self.assertTrue(isinstance(result, (str, StaleWrite)), result)
        row = self.tx(lambda tx: envelopes.find(tx, envelope(1).id))
        assert row is not None
        self.assertEqual(row.claimant, winners[0])

    def test_a_move_from_an_old_reading_is_stale(self) -> None:
        """Whoever acts on what he read before another moved the row changes nothing."""
        self.tx(lambda tx: filed(tx, envelope(1)))
        self.tx(lambda tx: claim(tx, "a", envelope(1).id))

        def late(tx: Tx) -> None:
            until = tx.now + timedelta(seconds=60)
            envelopes.claim(tx, envelope(1), envelopes.Claim(InstanceId("b"), HERE, until))

        self.assertRaises(StaleWrite, self.tx, late)
        row = self.tx(lambda tx: envelopes.find(tx, envelope(1).id))
        assert row is not None
        self.assertEqual(row.claimant, "a")

    def test_illegal_moves_are_stale(self) -> None:
        """A move that the life of an envelope does not have is refused before any row is touched."""
        self.tx(lambda tx: filed(tx, envelope(1)))
        self.assertRaises(StaleWrite, self.tx, lambda tx: envelopes.ack(tx, envelope(1)))
        self.assertRaises(StaleWrite, self.tx, lambda tx: envelopes.release(tx, envelope(1)))

    def test_waiting_is_oldest_first_and_of_this_machine(self) -> None:
        """The order is that of filing, also within one transaction; other machines' rows do not show."""
        self.tx(lambda tx: filed(tx, envelope(3), envelope(1)))
        self.tx(
            lambda tx: filed(
                tx,
                envelope(2, machine_id=None),
                envelope(5, machine_id=ELSEWHERE),
                envelope(6, session_id=SessionId("session-two")),
                envelope(7, kind=EnvelopeKind.ANSWER),
            ),
            offset=timedelta(seconds=1),
        )

        def uids(session: SessionId | None, limit: int = 10) -> list[int]:
            found = self.tx(lambda tx: envelopes.waiting(tx, HERE, session, None, limit))
            return [each.source.uid for each in found if each.source]

        self.assertEqual(uids(SESSION), [3, 1, 2])
        self.assertEqual(uids(None), [3, 1, 2, 6])
        self.assertEqual(uids(SESSION, 2), [3, 1])
        self.assertEqual(self.tx(lambda tx: envelopes.count_waiting(tx, HERE, SESSION)), 3)
        self.assertEqual(self.tx(lambda tx: envelopes.count_elsewhere(tx, HERE)), 1)

    def test_waiting_keeps_to_its_text_budget(self) -> None:
        """Long texts shorten a listing, which never is empty while something waits."""
        self.patch(envelopes, "TEXT_BUDGET", 10)
        self.tx(lambda tx: filed(tx, *(envelope(uid, body="x" * 11) for uid in (1, 2))))
        self.assertEqual(len(self.tx(lambda tx: envelopes.waiting(tx, HERE, SESSION, None, 10))), 1)

    def test_bodies_are_pruned_with_their_parts(self) -> None:
        """Old words of settled envelopes go, those of waiting ones stay."""

        def work(tx: Tx) -> None:
            filed(tx, envelope(1), envelope(2))
            attachments.add(tx, envelope(1).id, [(AttachmentInfo("a1", "f", "t/t", 1), b"x")])
            envelopes.ack(tx, claim(tx, "a", envelope(1).id))

        self.tx(work)
        before = datetime.now(UTC) + timedelta(days=1)
        self.assertEqual(self.tx(lambda tx: envelopes.prune_bodies(tx, before)), 1)
        self.assertEqual(self.tx(lambda tx: envelopes.prune_bodies(tx, before)), 0)
        rows = self.tx(lambda tx: [envelopes.find(tx, envelope(uid).id) for uid in (1, 2)])
        self.assertEqual([row.body for row in rows if row], ["", "words 2"])
        self.assertIsNone(self.tx(lambda tx: attachments.find(tx, envelope(1).id, "a1")))

    # --- unique keys ------------------------------------------------------------------------------

    def test_one_blocking_question_for_a_session(self) -> None:
        """Of many reservations one wins; after it is settled, another may be made."""

        def work(number: int) -> Callable[[Tx], str]:
            def attempt(tx: Tx) -> str:
                if questions.blocking(tx, SESSION) is not None:
                    return "outstanding"
                questions.reserve(tx, QuestionId(f"q-{number}"), SESSION, HERE)
                return "reserved"

            return attempt

        results = self.race(work)
        self.assertEqual(sorted(set(map(str, results))), ["outstanding", "reserved"])
        self.assertEqual(results.count("reserved"), 1)
        count = select(func.count()).select_from(tables.question)
        self.assertEqual(self.tx(lambda tx: tx.execute(count).scalar()), 1)
        again = {
            "id": "q-other",
            "session_id": SESSION,
            "machine_id": HERE,
            "blocking": True,
            "status": "open",
            "options": [],
            "created_at": RECEIVED,
        }
        self.assertRaises(IntegrityError, self.tx, lambda tx: tx.execute(insert(tables.question), again))
        self.tx(lambda tx: tx.execute(update(tables.question).values(status="answered")))
        self.tx(lambda tx: tx.execute(insert(tables.question), again))

    # --- leases -----------------------------------------------------------------------------------

    def test_a_lease_is_one_machines_until_it_runs_out(self) -> None:
        """Another machine waits for the end by the database's clock, then takes over with a new fence."""
        life = timedelta(seconds=20)

        def take(holder: MachineId, after: float) -> leases.Lease | None:
            return self.tx(
                lambda tx: leases.take(tx, "folder:main/INBOX", holder, life), offset=timedelta(seconds=after)
            )

        first = take(HERE, 0)
        assert first is not None
        self.assertIsNone(take(ELSEWHERE, 10))
        self.assertIsNone(take(ELSEWHERE, 19))
        renewed = self.tx(lambda tx: leases.extend(tx, first, life), offset=timedelta(seconds=15))
        assert renewed is not None
        self.assertEqual(renewed.fence, first.fence)
        self.assertIsNone(take(ELSEWHERE, 30))
        second = take(ELSEWHERE, 40)
        assert second is not None
        self.assertGreater(second.fence, first.fence)
        self.assertIsNone(self.tx(lambda tx: leases.extend(tx, renewed, life), offset=timedelta(seconds=40)))
        self.tx(lambda tx: leases.give_back(tx, renewed), offset=timedelta(seconds=40))
        self.assertIsNone(take(HERE, 41))
        self.assertEqual(self.tx(lambda tx: leases.fence(tx, "folder:main/INBOX")), second.fence)

    def test_a_restarted_holder_takes_its_own_lease_back(self) -> None:
        """At once, with a new fence, so that its former self is refused."""
        life = timedelta(seconds=20)
        first = self.tx(lambda tx: leases.take(tx, "r", HERE, life))
        second = self.tx(lambda tx: leases.take(tx, "r", HERE, life))
        assert first is not None
        assert second is not None
        self.assertGreater(second.fence, first.fence)
        self.assertIsNone(self.tx(lambda tx: leases.extend(tx, first, life)))

    def test_a_lease_given_back_is_free(self) -> None:
        """Whoever stops does not let others wait."""
        life = timedelta(seconds=20)
        first = self.tx(lambda tx: leases.take(tx, "r", HERE, life))
        assert first is not None
        self.tx(lambda tx: leases.give_back(tx, first))
        self.assertIsNotNone(self.tx(lambda tx: leases.take(tx, "r", ELSEWHERE, life)))

    def test_of_many_machines_one_gets_the_lease(self) -> None:
        """A race for a lease that nobody ever held has one winner."""

        def work(number: int) -> Callable[[Tx], leases.Lease | None]:
            return lambda tx: leases.take(tx, "r", MachineId(f"m{number}"), timedelta(seconds=20))

        won = [each for each in self.race(work) if each is not None]
        self.assertEqual(len(won), 1, won)
        self.assertIsInstance(won[0], leases.Lease)

    # --- bounded tables ---------------------------------------------------------------------------

    def test_fates_are_bounded_and_newest_first(self) -> None:
        """Only the newest are kept; a moment cuts off what is older."""

        def fate(number: int) -> Fate:
            at = RECEIVED + timedelta(minutes=number)
            return Fate(MAIN, at, at, "robin@example.org", f"s{number}", "no-token", "routing", None)

        def work(tx: Tx) -> int:
            for number in range(5):
                fates.add(tx, fate(number))
            return fates.prune(tx, keep=3)

        self.assertEqual(self.tx(work), 2)
        found = self.tx(lambda tx: fates.since(tx, None, 10))
        self.assertEqual([each.subject for each in found], ["s4", "s3", "s2"])
        self.assertEqual(found[0], fate(4))
        since = RECEIVED + timedelta(minutes=3)
        self.assertEqual(
            [each.subject for each in self.tx(lambda tx: fates.since(tx, since, 10))], ["s4", "s3"]
        )
        self.assertEqual(len(self.tx(lambda tx: fates.since(tx, None, 2))), 2)
        self.assertTrue(self.tx(lambda tx: fates.told(tx, fate(4))))
        self.assertFalse(self.tx(lambda tx: fates.told(tx, fate(0))))

    def test_flags_that_fail_come_last_and_are_given_up(self) -> None:
        """What the server refuses does not stand in the way of the others, nor for ever."""

        def place(uid: int) -> Source:
            return Source(MAIN, INBOX, 7, uid)

        def due() -> tuple[int, ...]:
            return self.tx(lambda tx: flagging.due(tx, MAIN, INBOX, 7, 10))

        def ask(tx: Tx) -> None:
            for uid in (1, 2, 3, 1):
                flagging.ask(tx, place(uid))

        self.tx(ask)
        self.assertEqual(due(), (1, 2, 3))
        self.tx(lambda tx: flagging.failed(tx, MAIN, INBOX, 7, [1]))
        self.assertEqual(due(), (2, 3, 1))
        self.tx(lambda tx: flagging.done(tx, MAIN, INBOX, 7, [3]))
        for _ in range(flagging.ATTEMPTS):
            self.tx(lambda tx: flagging.failed(tx, MAIN, INBOX, 7, [1]))
        self.assertEqual(due(), (2,))

    # --- the schema -------------------------------------------------------------------------------

    def test_migrations_make_what_the_tables_say(self) -> None:
        """A database that was migrated from nothing is the same as one that was created at once."""
        migrated = self.make_engine()
        self.addCleanup(migrated.dispose)
        with migrated.begin() as connection:
            migrate(connection)
        with migrated.connect() as connection:
            context = MigrationContext.configure(connection)
            self.assertEqual(compare_metadata(context, tables.metadata), [])
            self.assertEqual(
                connection.execute(text("SELECT version_num FROM alembic_version")).scalar(), HEAD
            )
        self.assertEqual(_picture(migrated), _picture(self.engine))
        if migrated.dialect.name == "sqlite":  # which reads through a long value to whatever stands behind it
            for table, last in (("outbox", "raw"), ("attachment", "data")):
                self.assertEqual(inspect(migrated).get_columns(table)[-1]["name"], last)

    def test_an_upgrade_keeps_what_is_there(self) -> None:
        """Rows of the first schema are there afterwards, with what is new of them empty."""
        older = self.make_engine()
        self.addCleanup(older.dispose)
        config = Config()
        config.set_main_option("script_location", "mailgateway.store:migrations")
        with older.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0001")
            connection.execute(text(OLD_MAIL), {"raw": b"From: a@b\r\n"})
            connection.execute(
                text("INSERT INTO recipient (outbox_id, address, state) VALUES ('o', 'a@b', 'waiting')")
            )
            for statement in OLD_SETTLES:
                connection.execute(text(statement))
        upgrade(older)
        found = transact(older, lambda tx: outbox.find(tx, OutboxId("o")))
        assert found is not None
        self.assertEqual([one.address for one in found.recipients], ["a@b"])
        self.assertEqual(transact(older, lambda tx: outbox.bytes_of(tx, found.id)).raw, b"From: a@b\r\n")
        row = transact(older, lambda tx: tx.execute(select(tables.outbox.c.submitted_by)).one())
        self.assertEqual(row.submitted_by, "")
        waiting = transact(older, lambda tx: settles.due(tx, MachineId("m"), 9))
        self.assertEqual([each.summary for each in waiting], ["OK"])

    def test_upgrading_again_changes_nothing(self) -> None:
        """Every start upgrades; rows stay."""
        self.tx(lambda tx: filed(tx, envelope(1)))
        upgrade(self.engine)
        self.assertEqual(self.tx(lambda tx: envelopes.find(tx, envelope(1).id)), envelope(1))

    def test_a_newer_schema_is_refused(self) -> None:
        """What a newer version has made is left alone."""
        with self.engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        self.assertRaises(SchemaTooNew, upgrade, self.engine)

    def test_tables_without_a_revision_are_refused(self) -> None:
        """A database whose history is unknown is left alone."""
        with self.engine.begin() as connection:
            connection.execute(text("DROP TABLE alembic_version"))
        self.assertRaises(StoreUnavailable, upgrade, self.engine)

    def test_many_may_start_at_once(self) -> None:
        """Several gateways that find the same empty database make it once."""
        engine = self.make_engine()
        self.addCleanup(engine.dispose)
        failed: list[Exception] = []

        def start() -> None:
            try:
                upgrade(engine)
            except Exception as error:  # noqa: BLE001 (whatever it is, the test looks at it)
                failed.append(error)

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual(failed, [])
        with engine.begin() as connection:
            count = connection.execute(text("SELECT count(*) FROM alembic_version")).scalar()
        self.assertEqual(count, 1)


def _picture(engine: Engine) -> dict[str, object]:
    """The columns, keys and indexes of every table, as the database tells them."""
    reflected = MetaData()
    with engine.connect() as connection:
        reflected.reflect(connection)
    return {
        name: (
            # their order is the migrations' affair, but for the long last one
            sorted(
                (column.name, str(column.type), column.nullable, _default(column)) for column in table.columns
            ),
            [column.name for column in table.primary_key],
            sorted(
                (str(index.name), [column.name for column in index.columns], bool(index.unique))
                for index in table.indexes
            ),
            sorted(str(key.target_fullname) for key in table.foreign_keys),
        )
        for name, table in reflected.tables.items()
    }


def _default(column: Column[object]) -> str:
    """What a column is when nothing is said."""
    default = column.server_default
    return str(default.arg) if isinstance(default, DefaultClause) else ""
