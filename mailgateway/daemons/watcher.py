"""The service that watches one folder: it owns the machine, its timers' lengths, and the folder's lease.

On a database that several gateways share, only the holder of the folder's lease watches; the others stand
by and ask again every seven seconds.  A holder that finds its lease lost hangs up at once, and whatever it
was about to file is refused by the fence.
"""

from collections.abc import Callable
from random import random
from typing import Any

from attrs import Factory, define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from mailgateway.daemons.habits import Habits
from mailgateway.daemons.health import DoorHealth
from mailgateway.daemons.junk import JunkCount
from mailgateway.daemons.line import ImapLine, open_line
from mailgateway.daemons.logins import Logins
from mailgateway.daemons.machine import start_machine
from mailgateway.daemons.tasks import Tasks
from mailgateway.daemons.watching import Condition, Core, Watching
from mailgateway.domain.account import AccountState
from mailgateway.domain.judge import Judged
from mailgateway.errors import StoreError
from mailgateway.flows import flag, leases
from mailgateway.flows.bell import Bell, EventKind, Numbered
from mailgateway.flows.evidence import Witnesses
from mailgateway.flows.leases import Lease
from mailgateway.flows.ports import Database
from mailgateway.flows.scan import Scanned, Scanner, ScanRules
from mailgateway.protocols.imap import ImapConnection
from mailgateway.providers import of_imap
from mailgateway.wire.sasl import Credential

LEASE_RENEWAL_SECONDS = 7.0
NO_FENCE = 0
"""A fence that no lease ever has."""

FLAG_SECONDS = 1.0
"""Acks that come close together are flagged together, and news in between takes them along."""

AGAIN_SECONDS = 1.0
"""Held mail is not tried again sooner."""

STOP_SECONDS = 6.0
"""How long a stop waits for the goodbye to the server."""


@define(eq=False)
class Watcher(Service):
    """Watches one folder of one account."""

    reactor: Any
    database: Database
    bell: Bell
    rules: ScanRules
    logins: Logins
    folder: str
    health: DoorHealth
    scan_interval_seconds: float
    scanned: Callable[[Scanned], None]
    witnesses: Witnesses = field(factory=Witnesses)
    habits: Habits = field(default=Factory(lambda watcher: watcher.usual_habits(), takes_self=True))
    """What is known of the server."""
    junk: JunkCount | None = None
    _tasks: Tasks = field(factory=Tasks, init=False)
    _watching: Watching = field(init=False)
    _core: Core = field(init=False)
    _scanner: Scanner = field(init=False)
    _line_now: ImapLine | None = field(default=None, init=False)
    _lease: Lease | None = field(default=None, init=False)
    _watches: bool = field(default=False, init=False)
    _delay: IDelayedCall | None = field(default=None, init=False)
    _flagging: IDelayedCall | None = field(default=None, init=False)
    _again: IDelayedCall | None = field(default=None, init=False)
    """When held mail is to be tried again."""
    _unsubscribe: Any = field(default=None, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def __attrs_post_init__(self) -> None:
        self._scanner = Scanner(
            self.database, self.bell, self.rules, self._in_thread, self.witnesses, self._breathe
        )
        self._core = Core(
            clock=self.reactor,
            connect=self._connect,
            tell=self.health.tell,
            chance=random,
            rest_seconds=self._rest_seconds,
            seconds_until=lambda at: (at - self.health.now()).total_seconds(),
            tasks=self._tasks,
        )
        self._watching = start_machine(self._core)

    def usual_habits(self) -> Habits:
        """What is known of the server's provider."""
        return Habits(of_imap(self.logins.account.imap.host), self.reactor.seconds)

    def startService(self) -> None:
        """Begin to watch."""
        Service.startService(self)
        self._unsubscribe = self.bell.subscribe(self._heard)
        self._tasks.start(self._begin(), "beginning to watch")

    def stopService(self) -> Deferred[None]:
        """Log out and let everything go, in a few seconds at most."""
        Service.stopService(self)
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._cancel_delays()
        self._watching.stop()
        return Deferred.fromCoroutine(self._end())

    def woke(self) -> None:
        """The machine slept: the connection is dead, and the folder's lease may be another's by now."""
        if not self.database.shared:
            self._watching.woke()
        elif self._watches:  # who finds the lease still ours begins anew
            self._watches = False
            self._cancel_delays()
            self._core.hang_up()
            self._watching.stop()

    def signed_in(self) -> None:
        """A person has signed in anew: what was held back is tried at once."""
        if self._watches:
            self._watching.start()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was learned of the server that the operator may want to know."""
        return self.habits.remarks + (() if self.junk is None else self.junk.remarks)

    def prime(self) -> None:
        """Move a cursor from which nothing was ever filed to now, at the next look."""
        self._scanner.priming = True
        self._watching.nudge()

    async def _begin(self) -> None:
        """Take up what an earlier run has learned, then begin, or wait as long as it would have."""
        remembered = self.health.remembered_failure
        if remembered is not None:
            self._core.failure, self._core.failures = remembered
        if self.database.shared:
            await self._hold_lease()
        else:
            self._watch()

    def _watch(self) -> None:
        """Begin, as soon as what was learned before allows it; from then on the machine sees to itself."""
        self._watches = True
        self._delay = self.reactor.callLater(self.health.seconds_to_wait(), self._watching.start)

    def _stand_by(self) -> None:
        """Another gateway watches the folder: let go of the server, and file nothing any more."""
        self._watches = False
        self._cancel_delays()
        self._watching.stop()
        self.health.tell(Condition(AccountState.STANDBY))

    def _cancel_delays(self) -> None:
        for delay in (self._delay, self._flagging, self._again):
            if delay is not None and delay.active():
                delay.cancel()

    async def _end(self) -> None:
        parting = self._core.parting
        if parting is not None:
            parting.addTimeout(STOP_SECONDS, self.reactor, onTimeoutCancel=lambda _result, _seconds: None)
            await parting
        await self._tasks.stop()
        if self._lease is not None:
            lease, self._lease = self._lease, None
            try:
                await leases.release(self.database, lease)
            except StoreError as error:
                self._log.warn("a lease was not given back, and ends by time: {error}", error=str(error))

    async def _hold_lease(self) -> None:
        """Watch while the folder's lease is ours."""
        resource = leases.folder_resource(self.logins.account.tag, self.folder)
        while self.running:
            try:
                if self._lease is None:
                    self._lease = await leases.acquire(
                        self.database, resource, self.rules.filing.identity.machine_id
                    )
                else:
                    self._lease = await leases.renew(self.database, self._lease)
                await self._look_for_flags()
            except StoreError:
                self._lease = None
            if self._lease is None:
                self._stand_by()
            elif not self._watches:
                self._watch()
            await deferLater(self.reactor, LEASE_RENEWAL_SECONDS)

    async def _look_for_flags(self) -> None:
        """Acks at other gateways ring no bell here, so the rows are looked at."""
        account = self.logins.account.tag
        if self._watches and await flag.due(self.database, account, self.folder, 0, limit=1):
            self._watching.nudge()

    def _rest_seconds(self) -> float:
        """How long to rest on the line that there is, before looking again."""
        line = self._line_now
        chance = random()  # noqa: S311 (spreads timers)
        seconds = self.habits.rest_seconds(
            idles=line is None or line.idles, scan_interval=self.scan_interval_seconds, chance=chance
        )
        left = None if line is None else line.seconds_left
        return seconds if left is None else min(seconds, max(left, 1.0))

    async def _connect(self) -> ImapLine:
        return await open_line(self.reactor, self.logins, self._line)

    def _line(self, connection: ImapConnection, credential: Credential) -> ImapLine:
        self._line_now = ImapLine(
            self.database,
            self.logins,
            self.folder,
            self._scanner,
            self._looked,
            self._fence,
            lambda: _waits(self._flagging),
            connection,
            credential,
            self.habits,
            self.junk,
            random(),  # noqa: S311 (spreads logins)
        )
        return self._line_now

    def _fence(self) -> int | None:
        """What each batch is filed under; on a shared database without the lease: what is always refused."""
        if self.database.shared and self._lease is None:
            return NO_FENCE
        return None if self._lease is None else self._lease.fence

    def _heard(self, numbered: Numbered) -> None:
        if numbered.event.kind is EventKind.FLAGGING and not _waits(self._flagging):
            self._flagging = self.reactor.callLater(FLAG_SECONDS, self._watching.nudge)

    def _looked(self, scanned: Scanned) -> None:
        """A scan is over; the line sets the flags that are due next."""
        if self._flagging is not None and _waits(self._flagging):
            self._flagging.cancel()
        if self._again is not None and _waits(self._again):
            self._again.cancel()
        if scanned.again_in is not None:
            pause = max(scanned.again_in, AGAIN_SECONDS)
            self._again = self.reactor.callLater(pause, self._watching.nudge)
        self.scanned(scanned)

    async def _breathe(self) -> None:
        """Let what is written leave, in the next turn of the reactor.

        A call that is put off by nothing still belongs to this turn, when a thread's outcome has begun it;
        one that is put off by such a call does not.
        """
        await deferLater(self.reactor, 0)
        await deferLater(self.reactor, 0)

    async def _in_thread(self, judging: Callable[[], Judged]) -> Judged:
        """Judge a large mail off the reactor's thread."""
        return await deferToThreadPool(self.reactor, self.reactor.getThreadPool(), judging)


def _waits(timer: IDelayedCall | None) -> bool:
    return timer is not None and timer.active()
