"""Time as a laptop has it: it sleeps, and somebody sets its clock.

Policy.  Deadlines count the seconds that pass in the world, those asleep included, and are not moved by
whoever sets the clock (``steady_seconds``).  When the clock of the day has gone another way than the time
that this machine was awake, by more than half a minute, it has slept or was set: its connections are dead as
far as anybody knows, since the other side may have closed them while nobody listened, and are made anew.
"""

import time
from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

TICK_SECONDS = 5.0
JUMP_SECONDS = 30.0
"""A smaller difference is a clock that is being corrected, or a process that had to wait."""


def steady_seconds() -> float:
    """Seconds since this machine was started, those asleep included."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def steady(reactor: Any) -> None:
    """Let a reactor that does not run yet count steady seconds; by itself it follows the clock of the day."""
    if not reactor.running:
        reactor.seconds = steady_seconds


@define(eq=False)
class ClockWatch(Service):
    """Notices that the machine slept, or that its clock was set."""

    reactor: Any
    jumped: Callable[[], None]
    day: Callable[[], float] = time.time
    """The clock of the day."""
    awake: Callable[[], float] = time.monotonic
    """Seconds that the machine was awake; where it counts sleep too, a sleep is not noticed by it."""
    _apart: float = field(default=0.0, init=False)
    _timer: IDelayedCall | None = field(default=None, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def startService(self) -> None:
        """Begin to compare."""
        Service.startService(self)
        self._apart = self.day() - self.awake()
        self._timer = self.reactor.callLater(TICK_SECONDS, self._tick)

    def stopService(self) -> None:
        """Compare no more."""
        Service.stopService(self)
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _tick(self) -> None:
        self._timer = self.reactor.callLater(TICK_SECONDS, self._tick)
        apart = self.day() - self.awake()
        jump, self._apart = apart - self._apart, apart
        if abs(jump) > JUMP_SECONDS:
            self._log.info(
                "the clock has jumped by {seconds:.0f} s: all connections are made anew", seconds=jump
            )
            self.jumped()
