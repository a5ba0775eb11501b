"""What happens by the passing of time alone, and whether somebody is still there."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

from attrs import evolve
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.idle_exit import IdleExit
from mailgateway.daemons.sweeper import SWEEP_SECONDS, Sweeper, process_is_alive
from mailgateway.domain.attention import Attention
from mailgateway.domain.mode import Mode
from mailgateway.errors import StoreUnavailable
from mailgateway.flows import mode
from mailgateway.flows.bell import Event, EventKind
from tests.flows.outbound import OutboundTestCase


class IdleExitTests(OutboundTestCase):
    """A service that nobody needs ends, where that is wanted."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.left: list[float] = []
        self.attended = False
        gateway = self.gateway
        self.idle = IdleExit(
            self.clock,
            gateway.database,
            gateway.identity,
            120,
            lambda: self.attended,
            lambda: self.left.append(self.clock.seconds()),
            lambda: datetime.now(UTC) + gateway.database.offset,
        )
        self.idle.startService()
        self.addCleanup(self.idle.stopService)

    def later(self, seconds: float) -> None:
        """Let time pass for everybody."""
        self.gateway.later(seconds=seconds)
        self.clock.advance(seconds)

    def test_nobody_comes(self) -> None:
        """It ends after its time, not before."""
        self.later(119)
        self.assertEqual(self.left, [])
        self.later(2)
        self.assertEqual(len(self.left), 1)

    def test_a_ping_gives_it_its_whole_time_again(self) -> None:
        """Sessions count by their pings."""
        self.later(100)
        self.ping()
        self.later(100)
        self.assertEqual(self.left, [])
        self.later(25)
        self.assertEqual(len(self.left), 1)

    def test_who_is_connected_counts_without_pings(self) -> None:
        """A stream that waits is somebody."""
        self.attended = True
        for _ in range(5):
            self.later(120)
        self.assertEqual(self.left, [])
        self.attended = False
        self.later(125)
        self.assertEqual(len(self.left), 1)

    def test_without_a_database_nobody_knows(self) -> None:
        """It stays, rather than leave somebody alone."""
        self.gateway.database.failures = [StoreUnavailable("gone")]
        self.later(121)
        self.assertEqual(self.left, [])

    def test_mail_that_is_held_back_keeps_it(self) -> None:
        """It is to leave when its time comes; while mail is off it does not leave, and keeps nobody."""
        gateway = self.gateway
        gateway.sender = evolve(gateway.sender, attention=Attention(bundle=timedelta(hours=1)))
        self.submit()
        for _ in range(5):
            self.later(125)
        self.assertEqual(self.left, [])
        self.now(mode.change(gateway.database, gateway.bell, gateway.identity, Mode.OFF, by="session"))
        self.later(125)
        self.assertEqual(len(self.left), 1)

    def test_a_stop_leaves_no_timer(self) -> None:
        """Nothing turns afterwards."""
        self.successResultOf(self.idle.stopService())
        self.assertEqual(self.clock.getDelayedCalls(), [])


class SweeperTests(OutboundTestCase):
    """What happens by the passing of time."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.looks = 0
        self.due = 60.0
        gateway = self.gateway
        self.sweeper = Sweeper(
            self.clock,
            gateway.database,
            gateway.bell,
            gateway.identity,
            30,
            timedelta(hours=1),
            self.look,
        )

    def look(self) -> "Deferred[float]":
        """Look for what is due; when to look again."""
        self.looks += 1
        return succeed(self.due)

    def start_sweeping(self) -> None:
        """Begin."""
        self.sweeper.startService()
        self.addCleanup(self.sweeper.stopService)

    def test_a_mail_whose_sender_fell_silent(self) -> None:
        """After its lease it becomes unclear by itself."""
        sent = self.submit()
        self.claim()
        self.start_sweeping()
        self.gateway.later(minutes=16)
        self.clock.advance(SWEEP_SECONDS * 1.2)
        self.assertEqual(self.row(sent).state, "unclear")

    def test_a_sweep_that_fails_is_made_again(self) -> None:
        """Neither a lost database nor a fault of ours ends the sweeping for good."""
        for failure in (StoreUnavailable("gone"), OSError("read-only"), ZeroDivisionError()):
            self.setUp()
            sent = self.submit()
            self.claim()
            self.gateway.database.failures = [failure]
            self.sweeper.startService()
            self.gateway.later(minutes=16)
            self.clock.advance(SWEEP_SECONDS * 1.2)
            self.assertEqual(self.row(sent).state, "unclear", failure)
            self.successResultOf(self.sweeper.stopService())
        self.assertEqual(len(self.flushLoggedErrors()), 1)

    def test_what_is_due_is_looked_for_when_it_is(self) -> None:
        """As the look before has said, and at a ring."""
        self.due = 10
        self.start_sweeping()
        self.assertEqual(self.looks, 1)
        self.due = 60
        self.clock.advance(11)
        self.assertEqual(self.looks, 2)
        for looks, kind in enumerate((EventKind.SETTLE, EventKind.HELD), 3):
            self.gateway.bell.ring(Event(kind))
            self.assertEqual(self.looks, looks)
        self.clock.advance(59)
        self.assertEqual(self.looks, 4)
        self.clock.advance(2)
        self.assertEqual(self.looks, 5)

    def test_a_stop_leaves_no_timer(self) -> None:
        """Nothing turns afterwards, and a late ring wakes nobody."""
        self.sweeper.startService()
        self.successResultOf(self.sweeper.stopService())
        self.gateway.bell.ring(Event(EventKind.SETTLE))
        self.assertEqual((self.clock.getDelayedCalls(), self.looks), ([], 1))


class AliveTests(SynchronousTestCase):
    """Whether a claim's process still runs."""

    def child(self) -> "subprocess.Popen[str]":
        """A process that waits."""
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdin is not None
        assert child.stdout is not None
        for each in (child.stdin, child.stdout):
            self.addCleanup(each.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def test_by_its_start(self) -> None:
        """A pid that was given to another process since is told apart."""
        before = time.time()
        child = self.child()
        self.assertTrue(process_is_alive(child.pid, before))
        self.assertTrue(process_is_alive(child.pid, None))
        self.assertFalse(process_is_alive(child.pid, before - 3_600))
        self.assertFalse(process_is_alive(child.pid, before + 3_600))

    def test_one_that_has_ended(self) -> None:
        """Also while its parent has not asked for it."""
        child = self.child()
        child.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.assertFalse(process_is_alive(child.pid, None))
        child.wait()
        self.assertFalse(process_is_alive(child.pid, None))
