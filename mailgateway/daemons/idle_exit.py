"""Ends the service when nobody has needed it for a while; only where the settings ask for it.

Needed by: a session that pings, a client that waits on a stream, mail that is held back until the morning.
Mail that comes meanwhile is found by the next start, from the cursor.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from mailgateway.daemons.health import utc_now
from mailgateway.daemons.tasks import Tasks
from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.errors import StoreError
from mailgateway.flows import mode
from mailgateway.flows.counts import counts
from mailgateway.flows.ports import Database


@define(eq=False)
class IdleExit(Service):
    """Looks from time to time whether anybody is there."""

    reactor: Any
    database: Database
    identity: Identity
    seconds: float
    attended: Callable[[], bool]
    """Whether somebody is connected who counts without pinging."""
    leave: Callable[[], None]
    now: Callable[[], datetime] = utc_now
    _tasks: Tasks = field(factory=Tasks, init=False)
    _timer: IDelayedCall | None = field(default=None, init=False)
    _since: datetime = field(init=False)
    _log: Logger = field(factory=Logger, init=False)

    def startService(self) -> None:
        """Begin to count from now."""
        Service.startService(self)
        self._since = self.now()
        self._look_again(self.seconds)

    def stopService(self) -> Deferred[None]:
        """Count no more."""
        Service.stopService(self)
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        return self._tasks.stop()

    def _look_again(self, seconds: float) -> None:
        self._timer = self.reactor.callLater(
            max(seconds, 0.5), lambda: self._tasks.start(self._look(), "looking whether anybody is there")
        )

    async def _look(self) -> None:
        now = self.now()
        if self.attended():
            self._since = now
        try:
            found = await counts(self.database, self.identity)
            last_ping_at = found.last_ping_at
            if found.held and await mode.current(self.database, self.identity) is Mode.ON:
                last_ping_at = now
        except StoreError:
            last_ping_at = now
        if last_ping_at is not None:
            self._since = max(self._since, last_ping_at)
        left = self.seconds - (now - self._since).total_seconds()
        if left > 0:
            self._look_again(left)
            return
        self._log.info("nobody needed mailgateway for {seconds} s, so it stops", seconds=self.seconds)
        self.leave()
