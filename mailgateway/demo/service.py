"""The real service as a child process, in a folder of its own.

It gets settings, a home and a state directory inside that folder, and none of the environment that could
lead it to anybody's real ones.  Its output goes to a file, of which the end is shown when something fails.
"""

import os
import socket
import sys
from collections.abc import Mapping
from json import dumps
from pathlib import Path
from typing import Any, Final

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone, ProcessExitedAlready
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

import mailgateway
from mailgateway.secrets import SESSION_KEY

STOP_SECONDS: Final = 12
"""How long a clean stop may take before the process is killed; the service itself promises ten."""

KEPT_VARIABLES: Final = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")


def free_port() -> int:
    """Find a port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def settings_text(values: Mapping[str, Mapping[str, object]]) -> str:
    """Write tables as TOML; JSON's texts, numbers and lists are TOML's too."""
    lines = []
    for table, keys in values.items():
        lines += [f"[{table}]", *(f"{key} = {dumps(value)}" for key, value in keys.items()), ""]
    return "\n".join(lines)


CLEANLY: Final = "exit status 0"
"""How a service ended that was asked to."""


class _Watched(ProcessProtocol):
    """Tells when the process has ended, and how."""

    def __init__(self) -> None:
        self.ended: Deferred[str] = Deferred()

    def processEnded(self, reason: Failure) -> None:
        """Say it in words."""
        value: Any = reason.value
        how = CLEANLY if isinstance(value, ProcessDone) else f"exit status {value.exitCode}"
        self.ended.callback(f"signal {value.signal}" if getattr(value, "signal", None) else how)


@define(eq=False)
class Service:
    """One ``twistd -n mailgateway`` in ``folder``, listening on ``port`` of the loopback interface."""

    reactor: Any
    folder: Path
    port: int = field(factory=free_port)
    how_it_ended: str = ""
    _process: IProcessTransport | None = None
    _watched: _Watched = field(factory=_Watched)

    @property
    def state_dir(self) -> Path:
        """Where it keeps its database and keys."""
        return self.folder / "state"

    @property
    def key_path(self) -> Path:
        """The key of sessions, once the service has made it."""
        return self.state_dir / SESSION_KEY

    @property
    def log_path(self) -> Path:
        """What it says."""
        return self.folder / "service.log"

    @property
    def url(self) -> str:
        """Where its API is."""
        return f"http://127.0.0.1:{self.port}"

    def place(self) -> dict[str, object]:
        """Return the ``[daemon]`` settings that say where it listens and keeps its state."""
        return {"host": "127.0.0.1", "port": self.port, "state_dir": str(self.state_dir)}

    def start(self, settings: Mapping[str, Mapping[str, object]]) -> "Deferred[str]":
        """Write the settings and start the process; fires with how it ended, whenever it does."""
        home = self.folder / "home"
        home.mkdir()
        path = self.folder / "mailgateway.toml"
        path.write_text(settings_text(settings), encoding="utf-8")
        environment = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        environment |= {
            "HOME": str(home),
            "PYTHONPATH": str(Path(mailgateway.__file__).parent.parent),
            "PYTHONUNBUFFERED": "1",
        }
        twistd = "from twisted.scripts.twistd import run; run()"
        command = [sys.executable, "-c", twistd, "-n", "mailgateway", "--config", str(path)]
        with self.log_path.open("wb") as log, Path(os.devnull).open("rb") as nothing:
            self._process = self.reactor.spawnProcess(
                self._watched,
                sys.executable,
                command,
                env=environment,
                path=str(self.folder),
                childFDs={0: nothing.fileno(), 1: log.fileno(), 2: log.fileno()},
            )

        def note(how: str) -> str:
            self.how_it_ended = how
            return how

        return self._watched.ended.addCallback(note)

    async def stop(self) -> None:
        """Ask it to stop, and kill it when it does not."""
        if self._process is None:
            return
        for signal, seconds in (("TERM", STOP_SECONDS), ("KILL", STOP_SECONDS)):
            if self.how_it_ended:
                return
            try:
                self._process.signalProcess(signal)
            except ProcessExitedAlready:
                return
            await self._ended_within(seconds)

    async def _ended_within(self, seconds: float) -> None:
        over: Deferred[None] = Deferred()
        timer = self.reactor.callLater(seconds, over.callback, None)

        def wake(how: str) -> str:
            if timer.active():
                timer.cancel()
                over.callback(None)
            return how

        self._watched.ended.addCallback(wake)
        await over

    def log_tail(self, lines: int = 15) -> str:
        """Return the last lines that it wrote."""
        try:
            text = self.log_path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])
