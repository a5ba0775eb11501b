"""The start: everything that can fail does so here, before the reactor runs.

Settings and keys are read, the lock is taken, the sockets bound, the database opened and upgraded.  Whatever
goes wrong ends the process with one sentence: exit 2 for wrong settings, 1 for the rest, and 0 when our own
healthy service runs already.
"""

import gc
import linecache
import os
import resource
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from twisted.application.service import IService
from twisted.python import usage

from mailgateway import secrets
from mailgateway.daemons.clock import steady
from mailgateway.daemons.instance_lock import InstanceLock, take_lock
from mailgateway.daemons.listening import PortTaken, bind
from mailgateway.domain.identity import Identity
from mailgateway.errors import ConfigError, StoreError
from mailgateway.flows.start import introduce
from mailgateway.http.keys import read_keys
from mailgateway.ids import machine_digest
from mailgateway.service.gateway import Gateway
from mailgateway.service.memory import share_one_arena
from mailgateway.settings import Settings, load
from mailgateway.store.direct import DirectDatabase, at_once
from mailgateway.store.faults import transact_of
from mailgateway.store.silence import notice_silence
from mailgateway.store.threaded import ThreadedDatabase
from mailgateway.store.upgrade import open_engine, upgrade

WINNER_SECONDS = 15.0
"""How long a newcomer waits for the holder of the lock to become healthy."""

RUNS_ALREADY = "a healthy mailgateway runs here already; nothing is to be done"


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
        self.looked_at = datetime.now(UTC)  # before reading: what is edited while we read counts as newer
        try:
            self.settings = load(self["config"], os.environ)
        except ConfigError as error:
            _leave(2, *(str(problem) for problem in error.problems))


def _leave(status: int, *sentences: str) -> NoReturn:
    for sentence in sentences:
        sys.stderr.write(f"mailgateway: {sentence}\n")
    raise SystemExit(status)


def make_service(options: Options) -> IService:
    """What twistd calls, by the name ``makeService``."""
    from twisted.internet import reactor  # noqa: PLC0415 (importing this module must not choose the reactor)

    steady(reactor)
    _raise_file_limit()
    _forget_imports()
    share_one_arena()
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
            _leave(0, RUNS_ALREADY)
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
    notice_silence(engine)
    return Gateway(reactor, settings, keys, identity, database, listening, lock, options.looked_at)


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
                _leave(0, RUNS_ALREADY)
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
