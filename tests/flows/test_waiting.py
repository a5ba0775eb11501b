"""Waiting for rows: nothing is missed, and who waits gets what was read for it behind the commit."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import define
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import Refusal, StoreUnavailable
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.waiting import POLL_SECONDS, READ_BEHIND, commit, wait_until
from mailgateway.store.database import T, Tx, Work
from tests.fakes.database import ImmediateDatabase

NEWS = Event(EventKind.DELIVERY)


@define(eq=False)
class CountingDatabase(ImmediateDatabase):
    """A database that counts who reads by himself."""

    reads: int = 0

    def read(self, work: Work[T]) -> Deferred[T]:
        """Read, and count it."""
        self.reads += 1
        return ImmediateDatabase.read(self, work)


class WaitingTestCase(SynchronousTestCase):
    """A counter stands for the rows: ``work`` reads it, ``write`` raises it."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.bell = Bell()
        self.database = CountingDatabase()
        self.addCleanup(self.database.close)
        self.rows = 0

    def wait(self, least: int, concerns: Callable[[Event], bool] = lambda _: True) -> "Deferred[int]":
        """Wait until there are so many rows."""
        return Deferred.fromCoroutine(
            wait_until(
                self.clock,
                self.bell,
                self.database,
                concerns,
                self.look,
                seconds=10,
                enough=lambda found: found >= least,
            )
        )

    def look(self, _tx: Tx) -> int:
        """How many rows there are."""
        return self.rows

    def write(self, *events: Event) -> None:
        """One row more, and its events."""

        def work(_tx: Tx) -> tuple[str, Sequence[Event]]:
            self.rows += 1
            return "written", events

        running = Deferred.fromCoroutine(commit(self.database, self.bell, work))
        self.assertEqual(self.successResultOf(running), "written")

    def test_who_waits_gets_what_was_read_behind_the_commit(self) -> None:
        """And wakes nobody to read it."""
        waiting = self.wait(1)
        self.assertEqual(self.database.reads, 1)
        self.write(NEWS)
        self.assertEqual((self.successResultOf(waiting), self.database.reads), (1, 1))
        self.assertEqual((self.bell.tickets, self.clock.getDelayedCalls()), ((), []))

    def test_what_is_not_enough_is_waited_for_further(self) -> None:
        """Each ring brings what the table said behind its commit."""
        waiting = self.wait(3)
        for _ in range(2):
            self.write(NEWS)
            self.assertNoResult(waiting)
        self.write(NEWS)
        self.assertEqual((self.successResultOf(waiting), self.database.reads), (3, 1))

    def test_only_who_is_concerned(self) -> None:
        """Nothing is read for the others."""
        looks: list[Event] = []

        def concerns(event: Event) -> bool:
            looks.append(event)
            return False

        waiting = self.wait(1, concerns)
        self.write(NEWS)
        self.assertNoResult(waiting)
        self.assertEqual((looks, self.database.reads), ([NEWS, NEWS], 1))
        self.clock.advance(10)
        self.assertEqual((self.successResultOf(waiting), self.database.reads), (1, 2))

    def test_more_than_are_read_for(self) -> None:
        """The others read by themselves."""
        waiting = [self.wait(1) for _ in range(READ_BEHIND + 3)]
        self.database.reads = 0
        self.write(NEWS)
        self.assertEqual([self.successResultOf(each) for each in waiting], [1] * len(waiting))
        self.assertEqual(self.database.reads, 3)

    def test_a_reading_that_fails_is_read_again(self) -> None:
        """The failure reaches who reads, and not who wrote."""
        waiting = self.wait(1)

        def broken(_tx: Tx) -> int:
            raise Refusal("unknown", "gone")

        self.bell.ticket(lambda _: True, broken)
        self.write(NEWS)
        self.assertEqual((self.successResultOf(waiting), self.database.reads), (1, 2))

    def test_a_ring_without_a_reading(self) -> None:
        """Whoever only rings makes others read."""
        waiting = self.wait(1)
        self.rows = 1
        self.bell.ring(NEWS)
        self.assertEqual((self.successResultOf(waiting), self.database.reads), (1, 2))

    def test_who_came_while_it_was_written(self) -> None:
        """A ticket that was taken after the commit began is rung, and its holder reads."""
        rung: list[Any] = []

        def work(_tx: Tx) -> tuple[None, Sequence[Event]]:
            self.bell.ticket(lambda _: True, self.look).rung.addCallback(rung.append)
            return None, (NEWS,)

        self.successResultOf(Deferred.fromCoroutine(commit(self.database, self.bell, work)))
        self.assertEqual(rung, [None])

    def test_who_has_gone_while_it_was_written(self) -> None:
        """What was read for nobody is dropped."""
        waiting = self.wait(1)

        def work(_tx: Tx) -> tuple[None, Sequence[Event]]:
            waiting.cancel()
            self.failureResultOf(waiting)
            return None, (NEWS,)

        self.successResultOf(Deferred.fromCoroutine(commit(self.database, self.bell, work)))
        self.assertEqual((self.bell.tickets, self.clock.getDelayedCalls()), ((), []))

    def test_work_that_fails_rings_nothing(self) -> None:
        """Nothing has happened."""
        waiting = self.wait(0)
        self.successResultOf(waiting)
        waiting = self.wait(1)
        self.database.failures.append(StoreUnavailable("full"))

        def work(_tx: Tx) -> Any:
            raise AssertionError

        running = Deferred.fromCoroutine(commit(self.database, self.bell, work))
        self.failureResultOf(running, StoreUnavailable)
        self.assertNoResult(waiting)

    def test_a_shared_database_is_read_without_a_ring(self) -> None:
        """Others write too, and ring elsewhere."""
        self.database.shared = True
        waiting = self.wait(1)
        self.rows = 1
        self.clock.advance(POLL_SECONDS)
        self.assertEqual(self.successResultOf(waiting), 1)
