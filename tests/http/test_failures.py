"""What a client sees when we fail, and what it never sees."""

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from mailgateway.errors import StaleWrite, StoreUnavailable
from mailgateway.flows.bell import EventKind
from mailgateway.store.database import T, Work
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
