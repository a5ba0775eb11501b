"""Who holds the lock of the service, looked at from outside.

The service holds it as long as it lives (``mailgateway.daemons.instance_lock``); the kernel gives it back
when its holder dies.
"""

import fcntl
import json
import os
from pathlib import Path

SERVICE_LOCK = "service.lock"
LARGEST_FILE = 4096


def service_is_gone(state_dir: Path) -> bool:
    """Whether no process holds the lock of the service: it has closed its database, and another may start."""
    try:
        handle = os.open(state_dir / SERVICE_LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        return locked(handle)
    finally:
        os.close(handle)


def holder_of(state_dir: Path) -> int:
    """The process that holds the lock of the service, as far as it has told; 0 when nobody does."""
    if service_is_gone(state_dir):
        return 0
    try:
        return int(json.loads((state_dir / SERVICE_LOCK).read_bytes()[:LARGEST_FILE])["pid"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0


def locked(handle: int) -> bool:
    """Take an advisory lock on an open file; whether nobody else held it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
