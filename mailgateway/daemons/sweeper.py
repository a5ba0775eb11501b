"""What happens by the passing of time alone: leases that end, routes that expire, mails whose time has come.

Everything here could also be found out by whoever reads next; sweeping makes it happen in time and keeps
the tables small.  A failing sweep is logged and tried again at the next one.
"""

import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from random import random
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from mailgateway.daemons.tasks import Tasks
from mailgateway.domain.identity import Identity
from mailgateway.errors import StoreError
from mailgateway.flows import outbox, sweep
from mailgateway.flows.bell import Bell, EventKind, Numbered
from mailgateway.flows.ports import Database

SWEEP_SECONDS = 30.0

START_TOLERANCE_SECONDS = 3.0
"""How far a start time may be off: the kernel tells boot in whole seconds, and clocks are set meanwhile."""


@define(eq=False)
class Sweeper(Service):
    """Sweeps every half a minute, and lets people be written to when it is time."""

    reactor: Any
    database: Database
    bell: Bell
    identity: Identity
    bodies_days: int
    route_ttl: timedelta
    attend: Callable[[], Awaitable[float]]
    """Writes to people what is due (``flows.attention``); in how many seconds to look again."""
    _tasks: Tasks = field(factory=Tasks, init=False)
    _timers: dict[str, IDelayedCall] = field(factory=dict, init=False)
    _unsubscribe: Any = field(default=None, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def startService(self) -> None:
        """Begin to sweep."""
        Service.startService(self)
        self._unsubscribe = self.bell.subscribe(self._heard)
        self._start("sweep", self._sweep)
        self._start("attention", self.attend)

    def stopService(self) -> Deferred[None]:
        """Stop; what is half done is rolled back."""
        Service.stopService(self)
        if self._unsubscribe is not None:
            self._unsubscribe()
        for timer in self._timers.values():
            if timer.active():
                timer.cancel()
        return self._tasks.stop()

    def _heard(self, numbered: Numbered) -> None:
        if numbered.event.kind in {EventKind.SETTLE, EventKind.HELD}:
            self._start("attention", self.attend)

    def _start(self, what: str, work: Callable[[], Awaitable[float]]) -> None:
        """Do one kind of work now, and again when it says."""
        timer = self._timers.pop(what, None)
        if timer is not None and timer.active():
            timer.cancel()
        if self.running:
            self._tasks.start(self._repeat(what, work), what)

    async def _repeat(self, what: str, work: Callable[[], Awaitable[float]]) -> None:
        seconds = SWEEP_SECONDS
        try:
            seconds = await work()
        except (StoreError, OSError) as error:
            self._log.warn("{what}: {error}", what=what, error=str(error))
        finally:  # a fault of ours is logged by whoever runs this, and ends nothing for good
            known = self._timers.get(what)
            if self.running and not (known is not None and known.active()):
                self._timers[what] = self.reactor.callLater(seconds, self._start, what, work)

    async def _sweep(self) -> float:
        await outbox.recover(self.database, self.bell, self.identity)
        await sweep.sweep(
            self.database,
            self.bell,
            self.identity,
            bodies_days=self.bodies_days,
            route_ttl=self.route_ttl,
            alive=process_is_alive,
            discard=discard_upload,
        )
        return SWEEP_SECONDS * (0.9 + 0.2 * random())  # noqa: S311 (spreads timers)


def process_is_alive(pid: int, started_at: float | None) -> bool:
    """Whether the process of a claim still runs on this machine.

    ``started_at`` is its start in Unix seconds; by it a pid that was given to another process since is told
    apart.  Where there is no ``/proc`` (proc(5)), a process counts as alive: its lease ends by time.
    """
    proc = Path("/proc")
    try:
        booted = _booted_at((proc / "stat").read_text())
    except OSError:
        return True
    try:
        fields = (proc / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return False
    if fields[0] == "Z":  # it has ended, and its parent has not asked for it yet
        return False
    since_boot = float(fields[19]) / os.sysconf("SC_CLK_TCK")
    return started_at is None or abs(booted + since_boot - started_at) <= START_TOLERANCE_SECONDS


def _booted_at(stat: str) -> float:
    """When the machine booted, in whole Unix seconds (``btime`` of ``/proc/stat``)."""
    return next((float(line.split()[1]) for line in stat.splitlines() if line.startswith("btime ")), 0.0)


def discard_upload(path: str) -> None:
    """Delete a file that a client uploaded, gone already or not."""
    Path(path).unlink(missing_ok=True)
