"""Starting the service as a process of its own, which outlives whoever started it.

It runs in its own session, reads nothing, and writes into ``service.log`` of the state directory.  It begins
in the state directory and takes no module from there: ``ensure`` is called in folders of any project, and
no file of theirs may become part of the service.
"""

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

from attrs import define

from mailgateway.errors import ConfigError, Problem

LOG = "service.log"
LARGEST_LOG = 1024 * 1024
"""At a start a larger log is put aside as ``service.log.1``, in place of the one before."""
LAST_LINES = 10
LARGEST_TAIL = 16 * 1024

IDLE_EXIT = "MAILGATEWAY_DAEMON__IDLE_EXIT_SECONDS"
IDLE_EXIT_SECONDS = 120

OF_THE_SERVICE_MANAGER = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID")
"""What a service manager told the program that calls us, and does not mean for the service."""
OF_THE_CALLER = ("MAILGATEWAY_SESSION", "MAILGATEWAY_INSTANCE", "MAILGATEWAY_KEY_FILE")

TWISTD = ("-P", "-c", "from twisted.scripts.twistd import run; run()")
SENTENCE = "mailgateway: "
"""How a line begins by which the service says why it does not start."""


@define(eq=False)
class Launched:
    """A service that was started; perhaps it has ended since."""

    pid: int
    log: Path
    _process: "subprocess.Popen[bytes]"
    _begin: int

    @property
    def status(self) -> int | None:
        """Its exit status, negative for a signal; ``None`` as long as it runs."""
        return self._process.poll()

    def last_words(self) -> list[str]:
        """Why it ended: its own sentences where it said some, else the last lines that it wrote."""
        with self.log.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(self._begin, size - LARGEST_TAIL))
            lines = log.read(LARGEST_TAIL).decode("utf-8", "replace").splitlines()
        sentences = [line.removeprefix(SENTENCE) for line in lines if line.startswith(SENTENCE)]
        return sentences or lines[-LAST_LINES:]


def launch(source: Path, state_dir: Path, environ: Mapping[str, str]) -> Launched:
    """Start the service with a settings file, and wait for nothing."""
    path = state_dir / LOG
    log = open_log(path)
    try:
        begin = os.fstat(log).st_size
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and words
            [sys.executable, *TWISTD, "-n", "mailgateway", "--config", str(source)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=state_dir,
            env=environment_of(source, environ),
            start_new_session=True,
        )
    finally:
        os.close(log)
    return Launched(process.pid, path, process, begin)


def open_log(path: Path) -> int:
    """Open the log at its end, for us alone; one that has grown large is put aside first."""
    try:
        if path.exists() and path.stat().st_size > LARGEST_LOG:
            path.replace(path.with_name(f"{path.name}.1"))
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        os.fchmod(handle, 0o600)
    except OSError as error:
        raise ConfigError(
            [Problem("daemon.state_dir", f"{path} cannot be written: {error.strerror}")]
        ) from None
    return handle


def environment_of(source: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the service: ours, and an idle exit unless something else was asked for.

    ``idle_exit_seconds = 0`` in the settings is such a wish: it stays.
    """
    dropped = {*OF_THE_SERVICE_MANAGER, *OF_THE_CALLER}
    kept = {name: value for name, value in environ.items() if name not in dropped}
    if IDLE_EXIT not in kept and not _says_when_to_exit(source):
        kept[IDLE_EXIT] = str(IDLE_EXIT_SECONDS)
    return kept


def _says_when_to_exit(source: Path) -> bool:
    """Whether the settings, which were found to be right, name the key themselves."""
    daemon = tomllib.loads(source.read_text("utf-8")).get("daemon", {})
    return "idle_exit_seconds" in daemon
