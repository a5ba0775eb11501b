"""What a client sees when we fail, and what it never sees."""

from collections.abc import Callable

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from mailgateway.errors import StaleWrite, StoreUnavailable
from mailgateway.flows.bell import EventKind
from mailgateway.http.doors import READ_SECONDS
from mailgateway.store.database import T, Tx, U, Work
from tests.fakes.database import ImmediateDatabase
from tests.http.case import WHO, RouteCase
from tests.http.rig import request


@define(eq=False)
class SlowDatabase:
    """Commits at once and says so only when the gate opens."""

    fast: ImmediateDatabase
    gate: Deferred[None] = field(factory=Deferred)
    shared: bool = False

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``; fires after the gate has opened."""
        result = self.fast.run(work)
        return self.gate.addCallback(lambda _: result)

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` at once."""
        return self.fast.read(work)

    def run_then_read(self, work: Work[T], reading: Callable[[Tx, T], U]) -> Deferred[tuple[T, U | None]]:
        """Run both at once."""
        return self.fast.run_then_read(work, reading)


@define(eq=False)
class SilentDatabase:
    """Answers no reading until it is told to."""

    fast: ImmediateDatabase
    asked: list[Deferred[None]] = field(factory=list)
    shared: bool = False

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` at once."""
        return self.fast.run(work)

    def read(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` when the word is given."""
        gate: Deferred[None] = Deferred()
        self.asked.append(gate)
        return gate.addCallback(lambda _: self.fast.read(work))

    def run_then_read(self, work: Work[T], reading: Callable[[Tx, T], U]) -> Deferred[tuple[T, U | None]]:
        """Run both at once."""
        return self.fast.run_then_read(work, reading)

    def answer(self) -> None:
        """Give the word, and again for what is asked then."""
        while self.asked:
            self.asked.pop(0).callback(None)


class SilenceTests(RouteCase):
    """A database that says nothing."""

    def test_health_does_not_wait_for_it(self) -> None:
        """It tells what it knew, and that the store is unavailable; only one question is on its way."""
        self.ask("POST", "/ping", WHO)
        self.assertEqual(self.ask("GET", "/health").json["clients"], 1)
        silent = SilentDatabase(self.rig.database)
        self.rig.doors.database = silent
        clients = [self.rig.connect() for _ in range(20)]
        for client in clients:
            client.feed(request("GET", "/health"))
        self.rig.clock.advance(READ_SECONDS + 0.1)
        for client in clients:
            answer = client.answer()
            assert answer is not None
            self.assertEqual((answer.json["status"], answer.json["clients"]), ("store_unavailable", 1))
        self.assertEqual(len(silent.asked), 1)
        late = self.rig.connect()
        late.feed(request("GET", "/health"))
        silent.answer()
        answer = late.answer()
        assert answer is not None
        self.assertEqual(answer.json["status"], "ok")

    def test_health_reads_what_was_written_before_it_was_asked(self) -> None:
        """A reading that began earlier does not count."""
        silent = SilentDatabase(self.rig.database)
        self.rig.doors.database = silent
        first, second = self.rig.connect(), self.rig.connect()
        first.feed(request("GET", "/health"))
        self.ask("POST", "/ping", WHO)
        second.feed(request("GET", "/health"))
        silent.answer()
        answer = second.answer()
        assert answer is not None
        self.assertEqual(answer.json["clients"], 1)


class FailureTests(RouteCase):
    """When we fail."""

    def test_a_database_that_is_gone_is_said(self) -> None:
        """503, and the next request is answered again."""
        self.rig.database.failures.append(StoreUnavailable("the database cannot be used: disk full"))
        answer = self.ask("POST", "/ping", WHO)
        self.refused(answer, 503, "store_unavailable")
        self.assertNotIn(b"disk", answer.body)
        self.assertEqual(self.ask("POST", "/ping", WHO).status, 200)

    def test_a_lost_race_is_a_conflict(self) -> None:
        """Read again, and decide anew."""
        self.rig.database.failures.append(StaleWrite("m-1"))
        self.refused(self.ask("POST", "/ping", WHO), 409, "stale_write")

    def test_the_unexpected_is_told_without_its_words(self) -> None:
        """Neither the answer nor the log repeats a text that may be somebody's mail."""
        events: list[str] = []

        @implementer(ILogObserver)
        def observe(event: LogEvent) -> None:
            events.append(repr(event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        self.rig.database.failures.append(ValueError("very private words"))
        answer = self.ask("POST", "/ping", WHO)
        self.refused(answer, 500, "internal")
        logged = "".join(events)
        self.assertIn("POST /ping", logged)
        self.assertIn("ValueError", logged)
        self.assertNotIn("private", logged + answer.body.decode())

    def test_a_change_is_finished_when_the_client_hangs_up(self) -> None:
        """The commit has happened, so the bell must ring."""
        slow = SlowDatabase(self.rig.database)
        self.rig.doors.database = slow
        heard: list[EventKind] = []
        self.rig.bell.subscribe(lambda numbered: heard.append(numbered.event.kind))
        client = self.rig.connect()
        client.feed(request("POST", "/mode", {"mode": "off"}))
        client.hang_up()
        self.assertEqual(heard, [])
        slow.gate.callback(None)
        self.assertIn(EventKind.MODE, heard)
        self.assertEqual(self.flushLoggedErrors(), [])
