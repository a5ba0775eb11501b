"""Logins of people and their names for sessions, on both databases."""

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Engine
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.people import IDLE, LINK_LIFE, MOST_LOGINS, Login
from mailgateway.ids import SessionId
from mailgateway.store import people, sessions
from mailgateway.store.database import Tx, transact
from mailgateway.store.upgrade import open_engine, upgrade
from tests.fakes.postgres import fresh_url
from tests.store.values import ELSEWHERE, HERE, SESSION, introduce

T = TypeVar("T")

THREADS = 8
PERSON = "robin@example.org"


class PeopleRows(SynchronousTestCase):
    """The suite; ``make_engine`` is the only thing that differs."""

    def make_engine(self) -> Engine:
        """An engine on an empty database."""
        return open_engine(self.mktemp_path())

    def mktemp_path(self) -> Path:
        """A file that is not there yet."""
        folder = Path(self.mktemp())
        folder.mkdir()
        return folder / "people.sqlite3"

    def setUp(self) -> None:
        self.engine = self.make_engine()
        self.addCleanup(self.engine.dispose)
        upgrade(self.engine)
        self.tx(introduce)

    def tx(self, work: Callable[[Tx], T], offset: timedelta = timedelta(0)) -> T:
        """Run one transaction."""
        return transact(self.engine, work, offset=offset)

    def test_of_many_one_uses_a_link(self) -> None:
        """Everybody who has it starts at once: one gets in."""
        self.tx(lambda tx: people.add_link(tx, "d", PERSON))
        gate = threading.Barrier(THREADS)
        got: list[str | None] = []

        def run() -> None:
            gate.wait(20)
            got.append(transact(self.engine, lambda tx: people.use_link(tx, "d")))

        threads = [threading.Thread(target=run) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(sorted(map(str, got)), ["None"] * (THREADS - 1) + [PERSON])

    def test_a_link_ends(self) -> None:
        """After its life it is unknown, and forgotten."""
        self.tx(lambda tx: people.add_link(tx, "d", PERSON))
        self.assertIsNone(self.tx(lambda tx: people.use_link(tx, "d"), LINK_LIFE))
        self.assertEqual(self.tx(lambda tx: people.prune(tx, tx.now - IDLE), LINK_LIFE), 1)

    def test_logins_live_while_they_are_used(self) -> None:
        """Found by their digest, listed with the last used first, forgotten when they are idle."""

        def enter(name: str) -> Callable[[Tx], None]:
            return lambda tx: people.add_login(tx, Login(name, PERSON, name, tx.now, tx.now), f"d-{name}")

        self.tx(enter("a"))
        self.tx(enter("b"), timedelta(hours=1))
        self.tx(lambda tx: people.touch(tx, "a"), timedelta(hours=2))
        found = self.tx(lambda tx: people.logins(tx, tx.now - IDLE), timedelta(hours=3))
        self.assertEqual([each.id for each in found], ["a", "b"])
        late = IDLE + timedelta(hours=1, minutes=30)
        self.assertIsNotNone(self.tx(lambda tx: people.by_digest(tx, "d-a", tx.now - IDLE), late))
        self.assertIsNone(self.tx(lambda tx: people.by_digest(tx, "d-b", tx.now - IDLE), late))
        self.assertEqual(self.tx(lambda tx: people.prune(tx, tx.now - IDLE), late), 1)
        self.assertTrue(self.tx(lambda tx: people.log_out(tx, "a")))
        self.assertFalse(self.tx(lambda tx: people.log_out(tx, "a")))
        self.assertIsNone(self.tx(lambda tx: people.log_out_by_digest(tx, "d-a")))

    def test_the_oldest_makes_room(self) -> None:
        """A hundred browsers are logged in at a time."""

        def work(tx: Tx) -> list[str]:
            for number in range(MOST_LOGINS + 5):
                at = tx.now + timedelta(seconds=number)
                people.add_login(tx, Login(f"l{number}", PERSON, "x", at, at), f"d{number}")
            return [each.id for each in people.logins(tx, tx.now)]

        found = self.tx(work)
        self.assertEqual((len(found), found[0], found[-1]), (MOST_LOGINS, "l104", "l5"))

    def test_names_for_sessions(self) -> None:
        """Set, changed, taken back; of those that were asked for alone."""
        self.tx(lambda tx: people.call(tx, SESSION, "one"))
        self.tx(lambda tx: people.call(tx, SESSION, "two"))
        self.assertEqual(self.tx(lambda tx: people.aliases(tx, [SESSION])), {SESSION: "two"})
        self.assertEqual(self.tx(lambda tx: people.aliases(tx, [SessionId("x")])), {})
        self.tx(lambda tx: people.call(tx, SESSION, ""))
        self.assertEqual(self.tx(lambda tx: people.aliases(tx, [SESSION])), {})

    def test_sessions_heard_of_last(self) -> None:
        """Of all machines, the latest first, no more than are asked for."""
        self.tx(lambda tx: sessions.ensure(tx, SessionId("late"), ELSEWHERE), timedelta(hours=1))
        found = self.tx(lambda tx: sessions.heard_last(tx, 5))
        self.assertEqual(found, ((SessionId("late"), ELSEWHERE), (SESSION, HERE)))
        self.assertEqual(self.tx(lambda tx: len(sessions.heard_last(tx, 1))), 1)


class PostgresPeopleRows(PeopleRows):
    """The same on a server."""

    def make_engine(self) -> Engine:
        """An engine on an empty database."""
        return open_engine(fresh_url())
