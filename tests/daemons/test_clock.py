"""A machine that sleeps, and a clock that is set."""

import time
from typing import Any

from twisted.internet.selectreactor import SelectReactor
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.clock import JUMP_SECONDS, TICK_SECONDS, ClockWatch, steady, steady_seconds


class WatchTests(SynchronousTestCase):
    """Sleeps and settings of the clock are noticed, and nothing else."""

    def setUp(self) -> None:
        self.reactor = Clock()
        self.asleep = self.set_by = 0.0
        self.jumps = 0
        self.watch = ClockWatch(
            self.reactor,
            self._jumped,
            day=lambda: 1.8e9 + self.reactor.seconds() + self.set_by,
            awake=lambda: self.reactor.seconds() - self.asleep,
        )
        self.watch.startService()
        self.addCleanup(self.watch.stopService)

    def _jumped(self) -> None:
        self.jumps += 1

    def pass_time(self, seconds: float = TICK_SECONDS) -> int:
        """Let time pass awake; how many jumps were told in all."""
        self.reactor.advance(seconds)
        return self.jumps

    def sleep(self, seconds: float) -> None:
        """The machine sleeps; its timers that are due fire when it wakes."""
        self.asleep += seconds
        self.reactor.rightNow += seconds

    def test_a_day_awake(self) -> None:
        """Nothing happens."""
        for _ in range(1_000):
            self.assertEqual(self.pass_time(), 0)

    def test_a_sleep(self) -> None:
        """It is told once, at the wake-up."""
        self.pass_time()
        self.sleep(8 * 3_600)
        self.assertEqual(self.pass_time(0), 1)
        self.assertEqual(self.pass_time(), 1)

    def test_a_nap(self) -> None:
        """Connections outlive it."""
        for _ in range(20):
            self.sleep(JUMP_SECONDS - 1)
            self.assertEqual(self.pass_time(), 0)

    def test_a_clock_that_is_set(self) -> None:
        """Either way; a clock that is corrected slowly is none."""
        for seconds in (3_600, -7_200):
            self.setUp()
            self.set_by += seconds
            self.assertEqual(self.pass_time(), 1, seconds)
        self.setUp()
        for _ in range(1_000):
            self.set_by += 0.5
            self.assertEqual(self.pass_time(), 0)

    def test_a_process_that_had_to_wait(self) -> None:
        """A busy machine is not a sleeping one."""
        self.assertEqual(self.pass_time(600), 0)

    def test_a_stop(self) -> None:
        """Leaves no timer."""
        self.watch.stopService()
        self.assertEqual(self.reactor.getDelayedCalls(), [])


class SteadyTests(SynchronousTestCase):
    """Deadlines that no clock-setter moves."""

    def test_a_reactor_before_it_runs(self) -> None:
        """Its timers count steady seconds."""
        reactor: Any = SelectReactor()
        self.addCleanup(reactor._uninstallHandler if hasattr(reactor, "_uninstallHandler") else lambda: None)
        self.assertAlmostEqual(reactor.seconds() / time.time(), 1, 6)
        steady(reactor)
        call = reactor.callLater(10, lambda: None)
        self.assertTrue(9 < call.getTime() - steady_seconds() <= 10)
        self.assertLess(reactor.timeout(), 10.1)

    def test_a_reactor_that_runs_is_left_alone(self) -> None:
        """Its timers were counted by the other clock."""
        from twisted.internet import reactor  # noqa: PLC0415 (the real one)

        before = vars(reactor).get("seconds")
        running = type("Running", (), {"running": True})()
        steady(running)
        self.assertFalse(hasattr(running, "seconds"))
        self.assertIs(vars(reactor).get("seconds"), before)

    def test_it_goes_on(self) -> None:
        """Never backwards."""
        first = steady_seconds()
        self.assertGreaterEqual(steady_seconds(), first)
