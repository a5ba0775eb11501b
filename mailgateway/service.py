"""The composition root: the one place that knows every part, and the order in which they begin and end.

Start: settings and keys are read, the lock is taken, the sockets bound, the database opened and upgraded;
only then does the reactor run, the API answer and the accounts begin.  Whatever goes wrong before ends the
process with one sentence: exit 2 for wrong settings, 1 for the rest, and 0 when our own healthy service runs
already.
Stop: nobody new is let in, whoever waits is let go, mail servers are told goodbye, transactions end; all of
it within ten seconds.
"""

import gc
import linecache
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

from attrs import define, evolve, field
from twisted.application.service import IService, MultiService, Service
from twisted.internet.defer import CancelledError, Deferred, DeferredList, DeferredLock, maybeDeferred
from twisted.internet.defer import TimeoutError as DeadlinePassed
from twisted.logger import Logger
from twisted.python import usage

from mailgateway import secrets
from mailgateway.daemons.accounts import AccountService, ScanBoard
from mailgateway.daemons.idle_exit import IdleExit
from mailgateway.daemons.instance_lock import InstanceLock, take_lock
from mailgateway.daemons.listening import Listening, PortTaken, bind
from mailgateway.daemons.rules import rules_of, sending_as
from mailgateway.daemons.service_manager import Watchdog, notify
from mailgateway.daemons.sweeper import Sweeper
from mailgateway.daemons.tasks import Tasks
from mailgateway.domain.identity import Identity
from mailgateway.errors import ConfigError, Refusal, StoreError
from mailgateway.flows import settle
from mailgateway.flows.bell import Bell
from mailgateway.flows.ports import AccountStatus, Reloaded, ScanSummary
from mailgateway.flows.start import introduce
from mailgateway.http.api import make_site
from mailgateway.http.doors import Doors
from mailgateway.http.keys import Keys, read_keys
from mailgateway.ids import machine_digest
from mailgateway.settings import Settings, load
from mailgateway.store.direct import DirectDatabase, at_once
from mailgateway.store.faults import transact_of
from mailgateway.store.threaded import ThreadedDatabase
from mailgateway.store.upgrade import open_engine, upgrade

STOP_SECONDS = 8.0
"""A part that has not let go by itself after so long is left alone."""

CLOSE_SECONDS = 1.5
"""How long the end waits for a transaction that goes on."""

WINNER_SECONDS = 15.0
"""How long a newcomer waits for the holder of the lock to become healthy."""

CLEAN_EXIT_SIGNALS = (signal.SIGTERM, signal.SIGINT)
"""Signals that ask for a stop, which is a success."""


class Options(usage.Options):
    """What ``twistd mailgateway`` takes."""

    optParameters = [  # noqa: N815, RUF012 (Twisted's way)
        ["config", "c", None, "The settings file, instead of the usual places."],
    ]

    def postOptions(self) -> None:
        """Read the settings, so that wrong ones end the start before anything else happens."""
        parent: Any = self.parent
        if parent is not None and parent.get("pidfile") == "twistd.pid":
            # twistd's default pid file would keep us from starting after a crash; the lock does its work
            parent["pidfile"] = None
        try:
            self.settings = load(self["config"], os.environ)
        except ConfigError as error:
            _leave(2, *(str(problem) for problem in error.problems))


def _leave(status: int, *sentences: str) -> NoReturn:
    for sentence in sentences:
        sys.stderr.write(f"mailgateway: {sentence}\n")
    raise SystemExit(status)


def make_service(options: Options) -> IService:
    """What twistd calls; ``makeService`` below is its name for it."""
    from twisted.internet import reactor  # noqa: PLC0415 (importing this module must not choose the reactor)

    _raise_file_limit()
    _forget_imports()
    settings = options.settings
    state_dir = settings.daemon.state_dir
    try:
        secrets.prepare_state_dir(state_dir)
        keys = read_keys(settings)
        lock = take_lock(state_dir, settings.daemon.port)
        if not isinstance(lock, InstanceLock):
            _yield_to(settings, lock.port)
        identity = identity_of(settings)
    except ConfigError as error:
        _leave(2, *(str(problem) for problem in error.problems))
    try:
        listening = bind(settings.daemon, os.environ)
    except PortTaken as taken:
        if _is_ours(settings):
            _leave(0)
        _leave(1, taken.sentence)
    try:
        engine = open_engine(_database_of(settings))
        upgrade(engine, state_dir / "backups")
        at_once(introduce(DirectDatabase(engine), identity.machine_id, identity.name))
        database = ThreadedDatabase(reactor, engine, transact=transact_of(os.environ))
    except ConfigError as error:
        _leave(2, *(str(problem) for problem in error.problems))
    except StoreError as error:
        _leave(1, str(error))
    engine.dispose()  # what was opened so far must not live on in a child of twistd
    return Gateway(reactor, settings, keys, identity, database, listening, lock)


makeService = make_service  # noqa: N816 (Twisted's name)


def _raise_file_limit() -> None:
    """Allow as many open files as we may have: every waiting client is one, and the usual bound is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _forget_imports() -> None:
    """Let the running service have the memory that only importing needed.

    attrs keeps the source of every method that it wrote where tracebacks would look for it: a megabyte.
    """
    linecache.clearcache()
    gc.collect()


def _database_of(settings: Settings) -> str | Path:
    """A PostgreSQL address, or the path of a SQLite file."""
    url = settings.daemon.database_url
    return Path(url.removeprefix("sqlite:///")) if url.startswith("sqlite:///") else url


def _yield_to(settings: Settings, port: int) -> NoReturn:
    """Another process holds the lock: leave quietly when it is our healthy service, else say so."""
    if port == settings.daemon.port:
        until = time.monotonic() + WINNER_SECONDS
        while time.monotonic() < until:
            if _is_ours(settings):
                _leave(0)
            time.sleep(0.1)  # before the reactor runs, there is nothing else to do
    where = f"on port {port}" if port else "somewhere else"
    _leave(
        1, f"{settings.daemon.state_dir} is in use by a mailgateway {where}; stop it or use another state_dir"
    )


def _is_ours(settings: Settings) -> bool:
    """Whether a mailgateway with our key answers where the settings say."""
    from mailgateway.client import (  # noqa: PLC0415 (most starts meet nobody)
        Base,
        Client,
        ServiceUnreachable,
        WrongService,
    )

    daemon = settings.daemon
    base = Base(host=daemon.host, port=daemon.port) if daemon.port else Base(socket=daemon.socket)
    try:
        with Client(base, daemon.state_dir / secrets.SESSION_KEY, timeout=2.0) as client:
            client.prove()
    except (ServiceUnreachable, WrongService):
        return False
    return True


def identity_of(settings: Settings) -> Identity:
    """Who we are: the machine's id is kept in the state directory, its name may change."""
    machine = secrets.machine_id(settings.daemon.state_dir)
    return Identity(machine, settings.device.name, machine_digest(machine))


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
    loaded_at: datetime = field(factory=lambda: datetime.now(UTC), init=False)
    _bell: Bell = field(factory=Bell, init=False)
    _board: ScanBoard = field(factory=ScanBoard, init=False)
    _reloading: DeferredLock = field(factory=DeferredLock, init=False)
    _doors: Doors = field(init=False)
    _accounts: list[AccountService] = field(factory=list, init=False)
    _adopted: tuple[IService, ...] = field(default=(), init=False)
    _tasks: Tasks = field(factory=Tasks, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def __attrs_post_init__(self) -> None:
        MultiService.__init__(self)

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
            sender=lambda: sending_as(self.settings),
            uploads=self.settings.daemon.state_dir / "uploads",
            mint=os.urandom,
        )
        self.listening.open(self.reactor, lambda: make_site(self._doors))
        for part in self._parts():
            part.setServiceParent(self)
        self._adopt()
        MultiService.startService(self)
        self._tasks.start(self._doors.remove_leftovers(), "removing leftovers among the uploads")
        self.reactor.callWhenRunning(self._running)

    def _parts(self) -> Sequence[IService]:
        """What a reload leaves alone."""
        parts: list[Any] = [Watchdog(self.reactor, os.environ)]
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

    def _adopt(self) -> None:
        """Make what depends on the settings; it runs as soon as this service does."""
        rules = rules_of(self.settings, self.keys.session, self.identity)
        self._accounts = [
            AccountService(
                self.reactor,
                self.database,
                self._bell,
                rules,
                account,
                self.keys.session,
                self.settings.daemon.scan_interval_seconds,
                self._board,
                sends=account is self.settings.sending,
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
            self._submit_settled,
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
                    self._log.failure("{what}: a part failed", failure=result, what=what)

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
        self.settings, self.keys, self.loaded_at = settings, keys, datetime.now(UTC)
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

    async def _submit_settled(self) -> datetime | None:
        """Mail the turns that are over; when the next one is due."""
        try:
            await settle.due(
                self.database, self._bell, self.identity, sending_as(self.settings), mint=os.urandom
            )
        except Refusal as refusal:
            self._log.warn("a settled turn is not mailed now: {why}", why=refusal.message)
        return await settle.next_due(self.database, self.identity)
