"""Talking to the service manager: ready, stopping, alive (sd_notify(3)), and sockets that it opened for us.

Without a service manager all of this does nothing.
"""

import os
import socket
from collections.abc import Mapping
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.task import LoopingCall

FIRST_SOCKET = 3
"""The first inherited descriptor (sd_listen_fds(3))."""


def notify(environ: Mapping[str, str], state: str) -> None:
    """Send one state to the service manager; a lost one is its loss."""
    address = environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]  # an abstract address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        try:
            out.sendto(state.encode(), address)
        except OSError:
            return


def inherited_sockets(environ: Mapping[str, str]) -> tuple[socket.socket, ...]:
    """Listening sockets that the service manager opened; empty when it opened none for this process."""
    if environ.get("LISTEN_PID") != str(os.getpid()):
        return ()
    count = int(environ.get("LISTEN_FDS") or 0)
    return tuple(socket.socket(fileno=number) for number in range(FIRST_SOCKET, FIRST_SOCKET + count))


@define(eq=False)
class Watchdog(Service):
    """Tells the service manager that the reactor turns, at half the interval that it asks for."""

    reactor: Any
    environ: Mapping[str, str]
    _loop: LoopingCall | None = field(default=None, init=False)

    def startService(self) -> None:
        """Begin to tell, if anybody asks."""
        Service.startService(self)
        seconds = int(self.environ.get("WATCHDOG_USEC") or 0) / 1_000_000
        if seconds:
            self._loop = LoopingCall(notify, self.environ, "WATCHDOG=1")
            self._loop.clock = self.reactor
            self._loop.start(seconds / 2, now=True)

    def stopService(self) -> None:
        """Tell no more."""
        Service.stopService(self)
        if self._loop is not None and self._loop.running:
            self._loop.stop()
