"""Prepared statements against Core itself, which is the oracle: same rows, same types, same errors."""

from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Engine, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.store.database import Tx, transact
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import flagging, question
from mailgateway.store.upgrade import open_engine, upgrade
from tests.fakes.database import fresh_engine
from tests.fakes.postgres import fresh_url
from tests.store.values import INBOX, MAIN, RECEIVED

T = TypeVar("T")

SECRET = "what people wrote"

ADD = Prepared(insert(flagging))
ALL = Prepared(select(flagging).order_by(flagging.c.uid))
AMONG = Prepared(
    select(flagging.c.uid)
    .where(flagging.c.folder == bindparam("where"), flagging.c.uid.in_(bindparam("uids", expanding=True)))
    .order_by(flagging.c.uid)
)


def wish(uid: int, attempts: int = 0) -> dict[str, Any]:
    """One row of the smallest table that has numbers, texts and a time."""
    return {
        "account": MAIN,
        "folder": INBOX,
        "uid_validity": 7,
        "uid": uid,
        "asked_at": RECEIVED,
        "attempts": attempts,
    }


class SqlitePreparedTests(SynchronousTestCase):
    """What they promise, on SQLite."""

    def setUp(self) -> None:
        self.engine = self.make_engine()
        self.addCleanup(self.engine.dispose)

    def make_engine(self) -> Engine:
        """An engine with all tables."""
        return fresh_engine()

    def tx(self, work: Callable[[Tx], T]) -> T:
        """Run one transaction."""
        return transact(self.engine, work)

    def test_rows_are_those_of_core(self) -> None:
        """Written by one and read by the other, with every type that the tables have and with nulls."""
        rows = [
            {
                "id": f"q-{number}",
                "session_id": f"session {number}",
                "machine_id": "m",
                "blocking": number == 1,
                "status": "open",
                "options": [{"value": "a", "label": SECRET}] * number,
                "created_at": RECEIVED,
                "expires_at": RECEIVED if number else None,
            }
            for number in range(3)
        ]
        read = select(question).order_by(question.c.id)

        def work(tx: Tx) -> tuple[list[Any], list[Any]]:
            tx.execute(Prepared(insert(question)), rows[0])
            tx.execute(insert(question), rows[1])
            tx.execute(Prepared(insert(question)), rows[2])
            by_core = tx.execute(read).mappings().all()
            return [dict(row) for row in by_core], [row._asdict() for row in tx.execute(Prepared(read))]

        by_core, ours = self.tx(work)
        self.assertEqual(ours, by_core)
        self.assertEqual([row["options"] for row in ours], [row["options"] for row in rows])
        self.assertEqual([type(row["blocking"]) for row in ours], [bool] * 3)

    def test_lists_of_any_length(self) -> None:
        """None, one, many, some twice: those that are there are found, each once."""
        there = {number * 3 % 41 for number in range(20)}

        def work(tx: Tx) -> list[tuple[list[int], list[int]]]:
            tx.execute(ADD, [wish(uid) for uid in there])
            lists = [[number * 7 % 23 for number in range(count)] for count in range(36)]
            return [(uids, tx.execute(AMONG, {"where": INBOX, "uids": uids}).scalars()) for uids in lists]

        for asked, found in self.tx(work):
            self.assertEqual(found, sorted(set(asked) & there))

    def test_what_columns_are_set_may_differ(self) -> None:
        """One statement serves every set of parameters, and says how many rows it wrote."""
        change = Prepared(update(flagging).where(flagging.c.uid == bindparam("which")))

        def work(tx: Tx) -> list[int]:
            tx.execute(ADD, [wish(1), wish(2)])
            first = tx.execute(change, {"which": 1, "attempts": 3}).rowcount
            second = tx.execute(change, {"which": 1, "uid_validity": 8, "attempts": 4}).rowcount
            return [first, second, tx.execute(change, {"which": 9, "attempts": 1}).rowcount]

        self.assertEqual(self.tx(work), [1, 1, 0])
        rows = self.tx(lambda tx: tx.execute(ALL).all())
        self.assertEqual([(row.uid, row.uid_validity, row.attempts) for row in rows], [(1, 8, 4), (2, 7, 0)])
        self.assertEqual(rows[0].asked_at, RECEIVED)

    def test_ways_to_ask(self) -> None:
        """As many rows as are wanted, nothing where there is none, and what was not read hinders nobody."""

        def work(tx: Tx) -> None:
            one = Prepared(select(flagging.c.uid).where(flagging.c.uid == bindparam("which")))
            count = Prepared(select(func.count()).select_from(flagging))
            tx.execute(ADD, [wish(uid) for uid in range(5)])
            self.assertEqual(next(iter(tx.execute(ALL))).uid, 0)
            self.assertEqual(tx.execute(ALL).first().uid, 0)
            self.assertEqual(tx.execute(ALL).scalar(), MAIN)
            self.assertEqual(tx.execute(count).scalar(), 5)
            self.assertEqual(tx.execute(one, {"which": 3}).one_or_none(), (3,))
            for nothing in ("one_or_none", "first", "scalar"):
                self.assertIsNone(getattr(tx.execute(one, {"which": 9}), nothing)())
            self.assertRaises(AssertionError, tx.execute(ALL).one_or_none)

        self.tx(work)

    def test_errors_are_those_of_core_without_a_word_of_people(self) -> None:
        """A key that is taken is told as what it is, and what was to be written stands in no exception."""

        def work(tx: Tx) -> None:
            row = {**wish(1), "folder": SECRET}
            tx.execute(ADD, [row, row] if tx.dialect == "sqlite" else row)
            tx.execute(ADD, row)

        error = self.assertRaises(IntegrityError, self.tx, work)
        if self.engine.dialect.name == "sqlite":  # the other server names the key that is taken by itself
            self.assertNotIn(SECRET, str(error))
        self.assertNotIn(SECRET, repr(error.params))
        self.assertEqual(self.tx(lambda tx: tx.execute(ALL).all()), [])


class PostgresPreparedTests(SqlitePreparedTests):
    """The same on PostgreSQL."""

    def make_engine(self) -> Engine:
        engine = open_engine(fresh_url())
        upgrade(engine)
        return engine
