"""One service for one state directory: a lock that the kernel gives back when its holder dies.

The lock is an advisory lock on a file, so there is no stale one after a crash and nothing to steal.  The file
tells who holds it (pid, start time, port), so that a newcomer can say where the service is.
"""

import fcntl
import json
import os
from pathlib import Path

from attrs import define, frozen

from mailgateway.errors import ConfigError, Problem

FILE = "service.lock"


@frozen
class Holder:
    """Who holds the lock, as far as the file tells; 0 where it does not."""

    pid: int
    port: int


@define(eq=False)
class InstanceLock:
    """The lock, held as long as this object's file is open."""

    _handle: int

    def release(self) -> None:
        """Give it back, once; the file stays, since removing it would let two hold it."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)


def take_lock(state_dir: Path, port: int) -> InstanceLock | Holder:
    """Take the lock of a state directory, or say who has it; ``ConfigError`` when it cannot be made."""
    path = state_dir / FILE
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            [Problem("daemon.state_dir", f"{path} cannot be opened: {error.strerror}")]
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(os.pread(handle, 4096, 0))
        os.close(handle)
        return holder
    told = json.dumps({"pid": os.getpid(), "startedAt": _started_at(), "port": port}).encode() + b"\n"
    os.ftruncate(handle, 0)
    os.pwrite(handle, told, 0)
    return InstanceLock(handle)


def _holder(told: bytes) -> Holder:
    """Read what the holder wrote; it may be about to write."""
    try:
        facts = json.loads(told)
        return Holder(int(facts["pid"]), int(facts["port"]))
    except (ValueError, KeyError, TypeError):
        return Holder(0, 0)


def _started_at() -> float:
    """Start of this process in clock ticks since boot (field 22 of ``/proc/PID/stat``), 0 where unknown."""
    try:
        return float(Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
    except (OSError, IndexError):
        return 0.0
