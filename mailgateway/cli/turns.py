"""One start, replacement or restart of the service at a time, and when it was last replaced.

Whoever starts the service holds an advisory lock, so that many who want it at once start one process and not
one each.  The kernel gives the lock back when its holder dies.  The service has a lock of its own, against
those who start it by other ways (``mailgateway.client.service_lock``).
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define

from mailgateway.client.service_lock import LARGEST_FILE, locked
from mailgateway.errors import ConfigError, Problem

FILE = "life.lock"
SCHEMA = 1
SECONDS_BETWEEN_REPLACEMENTS = 60.0
LOOK_SECONDS = 0.05


@define(eq=False)
class Turn:
    """The lock, held."""

    _handle: int

    def seconds_to_wait(self, now: float) -> float:
        """How long a replacement has to wait for the last one, at a time in Unix seconds; 0: not at all.

        A time in the future was written by a clock that was wrong, and counts for nothing.
        """
        try:
            told = json.loads(os.pread(self._handle, LARGEST_FILE, 0))
            ago = now - float(told["replacedAt"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return 0.0
        return SECONDS_BETWEEN_REPLACEMENTS - ago if 0 <= ago < SECONDS_BETWEEN_REPLACEMENTS else 0.0

    def note_replacement(self, now: float) -> None:
        """Remember that the service is replaced now."""
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, json.dumps({"v": SCHEMA, "replacedAt": now}).encode() + b"\n", 0)


@contextmanager
def turn(state_dir: Path, seconds: float) -> Iterator[Turn | None]:
    """Hold the lock; ``None`` when others held it for so many seconds.

    ``ConfigError`` when it cannot be made.
    """
    path = state_dir / FILE
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            [Problem("daemon.state_dir", f"{path} cannot be opened: {error.strerror}")]
        ) from None
    try:
        until = time.monotonic() + seconds
        while not locked(handle):
            if time.monotonic() >= until:
                yield None
                return
            time.sleep(LOOK_SECONDS)
        yield Turn(handle)
    finally:
        os.close(handle)
