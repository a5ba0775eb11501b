"""The watching machine: every event in every state that can meet it, driven by a clock in hand."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.machine import start_machine
from mailgateway.daemons.watching import (
    LONGEST_PAUSE,
    MOST_PAUSES,
    STORE_SECONDS,
    Condition,
    Core,
    Held,
    Line,
    Watching,
)
from mailgateway.domain.reconnect import FailureClass
from mailgateway.errors import (
    CommandRefused,
    Fault,
    LoginUnavailable,
    PeerError,
    StoreUnavailable,
    Throttled,
    Unreachable,
)
from tests.daemons.draw_machine import drawing

DOCS = Path(__file__).parent.parent.parent / "docs"
START = datetime(2026, 11, 30, tzinfo=UTC)


@define(eq=False)
class FakeLine:
    """A line whose every step waits until the test lets it go on."""

    idles: bool = True
    events: list[str] = field(factory=list)
    steps: dict[str, Deferred[None]] = field(factory=dict)
    news: Callable[[], None] = field(default=lambda: None)
    lost: Callable[[PeerError], None] = field(default=lambda _: None)
    usable: bool = True

    def listen(self, news: Callable[[], None], lost: Callable[[PeerError], None]) -> None:
        """Keep whom to tell."""
        self.news, self.lost = news, lost

    async def _step(self, name: str) -> None:
        self.events.append(name)
        waiting = self.steps[name] = Deferred()
        await waiting

    async def prepare(self) -> None:
        """Wait to be logged in."""
        await self._step("prepare")

    async def catch_up(self) -> None:
        """Wait to be caught up."""
        await self._step("catch up")

    async def rest(self) -> None:
        """Wait to be resting."""
        await self._step("rest")

    def remind(self) -> None:
        """Note it."""
        self.events.append("remind")

    def hang_up(self) -> None:
        """Note it; whatever runs fails, as on a real line."""
        self.usable = False
        self.events.append("hang up")
        for step in tuple(self.steps.values()):
            if not step.called:
                step.errback(Unreachable("hung up"))

    async def say_goodbye(self) -> None:
        """Note it."""
        self.events.append("goodbye")

    def go_on(self, name: str) -> None:
        """Let a step end well."""
        self.steps[name].callback(None)

    def fail(self, name: str, error: Exception) -> None:
        """Let a step end badly."""
        self.steps[name].errback(error)


class MachineTests(SynchronousTestCase):
    """One machine, one clock, lines that the test makes."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.told: list[Condition] = []
        self.attempts: list[Deferred[Line]] = []
        self.core = Core(
            clock=self.clock,
            connect=self._connect,
            tell=self.told.append,
            chance=lambda: 0.5,
            rest_seconds=lambda: 60.0,
            seconds_until=lambda at: (at - START).total_seconds() - self.clock.seconds(),
        )
        self.watching: Watching = start_machine(self.core)

    def _connect(self) -> Deferred[Line]:
        attempt: Deferred[Line] = Deferred()
        self.attempts.append(attempt)
        return attempt

    def connected(self, *, idles: bool = True) -> FakeLine:
        """A line that the latest attempt has made."""
        line = FakeLine(idles)
        self.attempts[-1].callback(line)
        return line

    def resting(self, *, idles: bool = True) -> FakeLine:
        """Start, and bring a line as far as it goes."""
        self.watching.start()
        line = self.connected(idles=idles)
        line.go_on("prepare")
        line.go_on("catch up")
        return line

    def _reach_connecting(self) -> None:
        self.watching.start()

    def _reach_preparing(self) -> FakeLine:
        self.watching.start()
        return self.connected()

    def _reach_pausing(self) -> FakeLine:
        line = self.resting()
        line.news()
        line.fail("catch up", Throttled("slow down", retry_after=600))
        return line

    def _reach_waiting(self, error: Exception) -> None:
        self.watching.start()
        self.attempts[-1].errback(error)

    def states(self) -> list[str]:
        """The states that were told."""
        return [condition.state for condition in self.told]

    def test_a_line_is_prepared_then_scanned_then_rests(self) -> None:
        """The walk without trouble, step by step."""
        line = self.resting()
        self.assertEqual(line.events, ["prepare", "catch up", "rest"])
        self.assertEqual(self.states(), ["connecting", "watching"])

    def test_a_server_without_idle_is_polled(self) -> None:
        """Without IDLE the line is not asked to rest, and is looked at when the time is over."""
        line = self.resting(idles=False)
        self.assertEqual(line.events, ["prepare", "catch up"])
        self.assertEqual(self.states()[-1], "polling")
        self.clock.advance(60)
        self.assertEqual(line.events, ["prepare", "catch up", "catch up"])

    def test_news_lead_to_a_scan_at_once_and_only_one(self) -> None:
        """A burst while the scan goes on leads to no second one; the line itself follows up."""
        line = self.resting()
        line.news()
        line.news()
        line.news()
        self.assertEqual(line.events.count("catch up"), 2)
        line.go_on("catch up")
        self.assertEqual(line.events[-1], "rest")

    def test_the_time_leads_to_a_scan_without_news(self) -> None:
        """A server that has gone deaf is found out by looking."""
        line = self.resting()
        self.clock.advance(59)
        self.assertEqual(line.events.count("catch up"), 1)
        self.clock.advance(1)
        self.assertEqual(line.events.count("catch up"), 2)

    def test_a_nudge_while_resting_leads_to_a_scan(self) -> None:
        r"""An ack wants its ``\Seen`` set soon."""
        line = self.resting()
        self.watching.nudge()
        self.assertEqual(line.events.count("catch up"), 2)

    def test_a_nudge_while_scanning_is_not_forgotten(self) -> None:
        """The scan that goes on may have passed the place where it would have seen it."""
        line = self.resting()
        line.news()
        self.watching.nudge()
        self.assertEqual(line.events[-1], "remind")

    def test_a_lost_line_is_replaced_after_a_delay(self) -> None:
        """The delay doubles with every failure in a row, and one attempt is made at a time."""
        self.watching.start()
        for failures, seconds in enumerate((1.5, 3.0, 6.0), start=1):
            self.attempts[-1].errback(Unreachable("refused"))
            self.assertEqual(self.told[-1].failures, failures)
            self.assertEqual(self.told[-1].seconds, seconds)
            self.clock.advance(seconds - 0.1)
            self.assertEqual(len(self.attempts), failures)
            self.clock.advance(0.1)
            self.assertEqual(len(self.attempts), failures + 1)

    def test_a_lost_line_is_hung_up_and_deaf(self) -> None:
        """Late news of an old connection do not disturb the new one."""
        line = self.resting()
        line.lost(Unreachable("reset"))
        self.assertEqual(line.events[-1], "hang up")
        self.assertEqual(self.states()[-1], "backing-off")
        self.clock.advance(10)
        second = self.connected()
        second.go_on("prepare")
        before = list(self.told)
        line.steps.clear()
        self.assertEqual(self.told, before)
        self.assertIs(self.core.line, second)

    def test_a_failure_in_every_busy_state_backs_off(self) -> None:
        """Whatever breaks, the line is given up and tried anew."""
        for depth, name in enumerate(("prepare", "catch up", "rest")):
            self.setUp()
            self.watching.start()
            line = self.connected()
            for step in ("prepare", "catch up")[:depth]:
                line.go_on(step)
            line.usable = False
            line.fail(name, Throttled("too many connections", retry_after=90))
            self.assertEqual(self.told[-1].state, "backing-off", name)
            self.assertEqual(self.told[-1].failure, FailureClass.THROTTLE, name)
            self.assertEqual(self.told[-1].seconds, 90, name)
            self.assertEqual(line.events[-1], "hang up", name)

    def test_patience_on_a_connection_that_is_in_order(self) -> None:
        """A server that asks for it keeps its client, which asks nothing meanwhile."""
        line = self.resting()
        line.news()
        line.fail("catch up", Throttled("throttled", retry_after=90))
        self.assertEqual((self.told[-1].state, self.told[-1].seconds), ("backing-off", 90))
        line.news()
        self.watching.nudge()
        self.clock.advance(89)
        self.assertEqual(line.events.count("catch up"), 2)
        self.clock.advance(1)
        self.assertEqual(line.events.count("catch up"), 3)
        line.go_on("catch up")
        self.assertEqual((self.told[-1].state, len(self.attempts)), ("watching", 1))
        self.assertNotIn("hang up", line.events)

    def test_patience_has_an_end(self) -> None:
        """Three pauses in a row, none longer than half an hour; then the connection is given up."""
        line = self.resting()
        line.news()
        for _ in range(MOST_PAUSES):
            line.fail("catch up", Throttled("throttled", retry_after=100_000))
            self.assertEqual(self.told[-1].seconds, LONGEST_PAUSE)
            self.assertNotIn("hang up", line.events)
            self.clock.advance(LONGEST_PAUSE)
        line.fail("catch up", CommandRefused("NO [UNAVAILABLE]", code="UNAVAILABLE"))
        self.assertEqual(line.events[-1], "hang up")

    def test_pauses_that_are_over_do_not_count(self) -> None:
        """A scan that went well makes good for them."""
        line = self.resting()
        for _ in range(3 * MOST_PAUSES):
            line.news()
            line.fail("catch up", CommandRefused("NO [INUSE]", code="INUSE"))
            self.clock.advance(self.told[-1].seconds or 0)
            line.go_on("catch up")
        self.assertNotIn("hang up", line.events)

    def test_a_loss_during_a_pause(self) -> None:
        """It is a loss like any other."""
        line = self.resting()
        line.news()
        line.fail("catch up", Throttled("throttled", retry_after=90))
        line.lost(Unreachable("reset"))
        self.assertEqual((line.events[-1], self.told[-1].failure), ("hang up", FailureClass.NETWORK))

    def test_a_sleep_ends_every_connection(self) -> None:
        """Whatever was going on, there is a new attempt at once, and one only."""
        steps: dict[str, Callable[[], FakeLine | None]] = {
            "preparing": self._reach_preparing,
            "resting": self.resting,
            "polling": lambda: self.resting(idles=False),
            "pausing": self._reach_pausing,
            "backing off": lambda: self._reach_waiting(Unreachable("no")),
        }
        for name, reach in steps.items():
            self.setUp()
            line = reach()
            self.watching.woke()
            self.clock.advance(0)
            self.assertEqual((len(self.attempts), self.told[-1].state), (2, "connecting"), name)
            if line is not None:
                self.assertEqual(line.events[-1], "hang up", name)
            self.assertIsNone(self.core.line, name)
            second = self.connected()
            self.assertIs(self.core.line, second, name)

    def test_a_sleep_hurries_nobody_who_was_asked_to_wait(self) -> None:
        """A throttled account, a refused password, and one that does not watch."""
        for name, reach in (
            ("throttled", lambda: self._reach_waiting(Throttled("slow down", retry_after=600))),
            ("unavailable", lambda: self._reach_waiting(LoginUnavailable("later"))),
            ("refused", lambda: self._reach_waiting(Held(START + timedelta(1)))),
            ("connecting", self._reach_connecting),
            ("stopped", lambda: None),
        ):
            self.setUp()
            reach()
            before = len(self.attempts)
            self.watching.woke()
            self.clock.advance(30)
            self.assertEqual(len(self.attempts), before, name)

    def test_a_broken_database_backs_off_too(self) -> None:
        """When our own ground shakes, the mail server is let go and everything is tried again later."""
        line = self.resting()
        line.news()
        line.fail("catch up", StoreUnavailable("the disk is full"))
        self.assertEqual(self.told[-1].state, "backing-off")
        self.assertIn("disk", self.told[-1].error)
        for _ in range(12):
            self.watching.retry()
            self.attempts[-1].errback(StoreUnavailable("the disk is full"))
        self.assertLessEqual(self.told[-1].seconds or 0, STORE_SECONDS)

    def test_a_defect_of_ours_backs_off_and_is_told(self) -> None:
        """Whatever is raised: a watcher that stood still for good would look healthy and be deaf."""
        line = self.resting()
        line.news()
        line.fail("catch up", UnicodeEncodeError("utf-8", "the words of a person", 0, 1, "surrogates"))
        self.assertEqual(self.told[-1].state, "backing-off")
        self.assertNotIn("words", self.told[-1].error)
        [logged] = self.flushLoggedErrors(Fault)
        self.assertIn("UnicodeEncodeError at", str(logged.value))
        self.assertNotIn("words", str(logged.value))
        self.clock.advance(self.told[-1].seconds or 0)
        self.assertEqual(len(self.attempts), 2)

    def test_a_held_credential_waits_until_it_may_be_tried(self) -> None:
        """Once refused: one more attempt at the time that is named, not before."""
        self.watching.start()
        self.attempts[-1].errback(Held(START + timedelta(seconds=600)))
        self.assertEqual(self.told[-1].state, "refused")
        self.assertEqual(self.told[-1].seconds, 600)
        self.clock.advance(599)
        self.assertEqual(len(self.attempts), 1)
        self.clock.advance(1)
        self.assertEqual(len(self.attempts), 2)

    def test_a_credential_that_was_refused_twice_waits_for_the_operator(self) -> None:
        """No time brings another attempt; a start does."""
        self.watching.start()
        line = self.connected()
        line.fail("prepare", Held(None))
        self.assertEqual(self.told[-1].state, "refused")
        self.assertIsNone(self.told[-1].seconds)
        self.clock.advance(10_000_000)
        self.assertEqual(len(self.attempts), 1)
        self.watching.start()
        self.assertEqual(len(self.attempts), 2)

    def test_failures_are_forgotten_only_after_a_minute_of_health(self) -> None:
        """A server that lets us in and throws us out at once is not hammered."""
        self.watching.start()
        self.attempts[-1].errback(LoginUnavailable("try later"))
        self.clock.advance(330)
        line = self.connected()
        line.go_on("prepare")
        line.go_on("catch up")
        self.clock.advance(30)
        line.lost(LoginUnavailable("try later"))
        self.assertEqual(self.told[-1].failures, 2)
        self.clock.advance(660)
        line = self.connected()
        line.go_on("prepare")
        line.go_on("catch up")
        self.clock.advance(59)
        line.go_on("rest")
        self.clock.advance(2)
        line.lost(LoginUnavailable("try later"))
        self.assertEqual(self.told[-1].failures, 1)

    def test_a_stop_in_every_state_lets_everything_go(self) -> None:
        """No timer, no attempt and no line is left behind."""
        steps: dict[str, Callable[[], FakeLine | None]] = {
            "connecting": self._reach_connecting,
            "preparing": self._reach_preparing,
            "resting": self.resting,
            "polling": lambda: self.resting(idles=False),
            "pausing": self._reach_pausing,
            "backing off": lambda: self._reach_waiting(Unreachable("no")),
            "refused": lambda: self._reach_waiting(Held(START + timedelta(1))),
        }
        for name, reach in steps.items():
            self.setUp()
            line = reach()
            self.watching.stop()
            self.assertEqual(self.clock.getDelayedCalls(), [], name)
            if line is not None:
                self.assertEqual(line.events[-1], "goodbye", name)
            self.assertIsNone(self.core.line, name)
            self.watching.start()
            self.assertEqual(self.told[-1].state, "connecting", name)

    def test_the_picture_in_the_docs_is_drawn_from_the_code(self) -> None:
        """Whoever changes the machine runs ``python -m tests.daemons.draw_machine > docs/watcher.dot``."""
        self.assertEqual((DOCS / "watcher.dot").read_text(encoding="utf-8"), drawing())
