"""The running service: which parts there are, and the order in which they begin and end.

Nobody new is let in once it stops, whoever waits is let go, mail servers are told goodbye, transactions end;
all of it within ten seconds.
"""

import os
import resource
import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import define, evolve, field
from twisted.application.service import IService, MultiService, Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList, DeferredLock, maybeDeferred
from twisted.internet.defer import TimeoutError as DeadlinePassed
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger

from mailgateway.daemons.accounts import AccountService, ScanBoard, stretched
from mailgateway.daemons.clock import ClockWatch
from mailgateway.daemons.idle_exit import IdleExit
from mailgateway.daemons.instance_lock import InstanceLock
from mailgateway.daemons.keys import DnsKeys
from mailgateway.daemons.known_secrets import KnownSecrets
from mailgateway.daemons.listening import Listening
from mailgateway.daemons.openings import Openings
from mailgateway.daemons.rules import rules_of, sending_as
from mailgateway.daemons.service_manager import Watchdog, notify
from mailgateway.daemons.sweeper import Sweeper
from mailgateway.daemons.tasks import Tasks, fault_of
from mailgateway.domain.identity import Identity
from mailgateway.errors import ConfigError, StoreError
from mailgateway.flows.attention import attend
from mailgateway.flows.bell import Bell
from mailgateway.flows.ports import AccountStatus, Reloaded, ScanSummary
from mailgateway.flows.start import introduce
from mailgateway.flows.submit import Sender
from mailgateway.http.api import make_site
from mailgateway.http.doors import Doors
from mailgateway.http.keys import Keys, read_keys
from mailgateway.http.limits import share_of
from mailgateway.protocols.grants import Grants
from mailgateway.service.memory import GiveBack
from mailgateway.settings import Settings, load
from mailgateway.store.threaded import ThreadedDatabase

STOP_SECONDS = 8.0
"""A part that has not let go by itself after so long is left alone."""

CLOSE_SECONDS = 1.5
"""How long the end waits for a transaction that goes on."""

CLEAN_EXIT_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Signals that ask for a stop, which is a success."""


@define(eq=False)
class Gateway(MultiService):
    """The running service; also what the API may ask of the process (``flows.ports.ProcessControl``)."""

    reactor: Any
    settings: Settings
    keys: Keys = field(repr=False)
    identity: Identity
    database: ThreadedDatabase
    listening: Listening
    lock: InstanceLock
    loaded_at: datetime
    _bell: Bell = field(factory=Bell, init=False)
    _board: ScanBoard = field(factory=ScanBoard, init=False)
    _dns: DnsKeys = field(init=False)
    _known: KnownSecrets = field(init=False)
    _reloading: DeferredLock = field(factory=DeferredLock, init=False)
    _doors: Doors = field(init=False)
    _accounts: list[AccountService] = field(factory=list, init=False)
    _adopted: tuple[IService, ...] = field(default=(), init=False)
    _tasks: Tasks = field(factory=Tasks, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def __attrs_post_init__(self) -> None:
        MultiService.__init__(self)
        self._dns = DnsKeys(self.reactor)
        self._known = KnownSecrets(
            self.reactor, lambda: self.settings, lambda: self.keys.in_words, os.environ
        )

    # --- beginning and ending -----------------------------------------------------------------------

    def startService(self) -> None:
        """Open the doors, then watch and send."""
        self._doors = Doors(
            reactor=self.reactor,
            database=self.database,
            bell=self._bell,
            identity=self.identity,
            settings=lambda: self.settings,
            keys=lambda: self.keys,
            control=self,
            sender=self.sending,
            uploads=self.settings.daemon.state_dir / "uploads",
            mint=os.urandom,
            in_thread=self._in_thread,
            share=share_of(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        )
        self.listening.open(self.reactor, lambda: make_site(self._doors))
        for part in self._parts():
            part.setServiceParent(self)
        self._adopt()
        MultiService.startService(self)
        self._tasks.start(self._doors.remove_leftovers(), "removing leftovers among the uploads")
        self.reactor.callWhenRunning(self._running)

    def sending(self) -> Sender:
        """How mail leaves now, and which secrets must not."""
        return evolve(sending_as(self.settings), guard=self._known.guard())

    def _parts(self) -> Sequence[IService]:
        """What a reload leaves alone."""
        parts: list[Any] = [
            Watchdog(self.reactor, os.environ),
            GiveBack(self.reactor),
            ClockWatch(self.reactor, self._woke),
        ]
        if self.settings.daemon.idle_exit_seconds:
            parts.append(
                IdleExit(
                    self.reactor,
                    self.database,
                    self.identity,
                    self.settings.daemon.idle_exit_seconds,
                    lambda: bool(self._doors.streams),
                    self.shutdown,
                )
            )
        return parts

    def _woke(self) -> None:
        """The machine slept."""
        for account in self._accounts:
            account.woke()

    def _adopt(self) -> None:
        """Make what depends on the settings; it runs as soon as this service does."""
        rules = rules_of(self.settings, self.keys.session, self.identity)
        folders = sum(len(account.watch) for account in self.settings.watched)
        scan_interval = stretched(self.settings.daemon.scan_interval_seconds, folders)
        openings, sending = Openings(), self.settings.sending
        grants = Grants(self.reactor, self.settings.daemon.state_dir, self.settings.oauth)
        self._accounts = [
            AccountService(
                self.reactor,
                self.database,
                self._bell,
                rules,
                account,
                self.keys.session,
                scan_interval,
                self._board,
                sends=account is sending,
                keys=self._dns,
                openings=openings,
                noted=self._known.note,
                grants=grants,
            )
            for account in self.settings.watched
        ]
        sweeper = Sweeper(
            self.reactor,
            self.database,
            self._bell,
            self.identity,
            self.settings.retention.bodies_days,
            timedelta(hours=self.settings.security.route_ttl_hours),
            self._attend,
        )
        self._adopted = (*self._accounts, sweeper)
        for adopted in self._adopted:
            adopted.setServiceParent(self)

    def _running(self) -> None:
        """The reactor runs and the sockets are open: tell the service manager, and end cleanly on signals."""
        for number in CLEAN_EXIT_SIGNALS:
            signal.signal(number, lambda _number, _frame: self.reactor.callFromThread(self.shutdown))
        notify(os.environ, "READY=1")
        for warning in self.settings.warnings:
            self._log.warn("{warning}", warning=warning)
        self._log.info("mailgateway is ready")

    def stopService(self) -> Deferred[None]:
        """Let everybody go, then the database and the lock, whatever the parts do; within ten seconds."""
        notify(os.environ, "STOPPING=1")
        Service.stopService(self)
        parts = [Deferred.fromCoroutine(self.listening.close()), self._doors.close(), self._tasks.stop()]
        parts += [maybeDeferred(part.stopService) for part in reversed(list(self))]
        ending = self._all_of(parts, "the stop")
        return ending.addCallback(lambda _: Deferred.fromCoroutine(self._close()))

    def _all_of(self, parts: Sequence[Deferred[Any]], what: str) -> Deferred[Any]:
        """Fires when all have ended, well or not, after ``STOP_SECONDS`` at the latest; never fails."""
        ending: Deferred[Any] = DeferredList(parts, consumeErrors=True)
        ending.addTimeout(STOP_SECONDS, self.reactor)

        def tell(results: Sequence[tuple[bool, Any]]) -> None:
            for well, result in results:
                if not well and result.check(CancelledError):
                    self._log.warn("{what}: a part did not end in time and is left alone", what=what)
                elif not well:
                    self._log.failure("{what}: a part failed", failure=fault_of(result), what=what)

        return ending.addCallback(tell)

    async def _close(self) -> None:
        closing = self.database.close()
        closing.addTimeout(CLOSE_SECONDS, self.reactor)
        try:
            await closing
        except DeadlinePassed:
            self._log.warn("the database is still at work; the process ends when it has finished")
        finally:
            self.lock.release()

    # --- what the API may ask of the process ---------------------------------------------------------

    @property
    def store_trouble(self) -> str:
        """What keeps the database from being used."""
        return self.database.trouble

    def accounts(self) -> Sequence[AccountStatus]:
        """Every watched account."""
        return [account.status for account in self._accounts]

    def last_scan(self) -> ScanSummary | None:
        """The last scan that examined a mail."""
        return self._board.summary

    async def reload(self) -> Reloaded:
        """Read the settings again and begin anew with them; on failure the old ones stay in force."""
        locked: Deferred[DeferredLock] = self._reloading.acquire()
        await locked
        try:
            return await self._reload()
        finally:
            self._reloading.release()

    async def _reload(self) -> Reloaded:
        looked_at = datetime.now(UTC)  # before reading: what is edited while we read counts as newer
        try:
            settings = load(self.settings.source, os.environ)
            keys = read_keys(settings)
        except ConfigError as error:
            return Reloaded(self.loaded_at, f"the old settings stay in force: {error}")
        fixed = evolve(settings.daemon, scan_interval_seconds=0, public_url="", metrics_open=False)
        before = evolve(self.settings.daemon, scan_interval_seconds=0, public_url="", metrics_open=False)
        if fixed != before:
            return Reloaded(
                self.loaded_at, "the old settings stay in force: [daemon] has changed; restart instead"
            )
        ending = [adopted.disownServiceParent() for adopted in self._adopted]
        await self._all_of([each for each in ending if each is not None], "the reload")
        self.settings, self.keys, self.loaded_at = settings, keys, looked_at
        self._known.forget()
        self.identity = evolve(self.identity, name=settings.device.name)
        self._doors.identity = self.identity
        warning = ""
        try:
            await introduce(self.database, self.identity.machine_id, self.identity.name)
        except StoreError as error:
            warning = f"the new settings are in force, but the machine's name could not be stored: {error}"
        if self.running:  # else a stop came meanwhile
            self._adopt()
        return Reloaded(self.loaded_at, warning)

    async def prime(self) -> int:
        """Move cursors from which nothing was ever filed to now, at the next look; how many folders."""
        return sum(account.prime() for account in self._accounts)

    def shutdown(self) -> None:
        """Stop cleanly, soon."""
        if self.reactor.running:
            self.reactor.callLater(0, self._stop_reactor)

    def _stop_reactor(self) -> None:
        if self.running:
            self.reactor.stop()

    def _in_thread(self, call: Callable[[], Any]) -> Deferred[Any]:
        """Call something on the reactor's own threads."""
        return deferToThreadPool(self.reactor, self.reactor.getThreadPool(), call)

    async def _attend(self) -> float:
        """Write to people what is due; in how many seconds to look again."""
        return await attend(self.database, self._bell, self.identity, self.sending(), mint=os.urandom)
