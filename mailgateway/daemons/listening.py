"""The sockets of the API: bound before anything else begins, opened when everything is ready.

A port that is taken is known before the service has done anything.  Sockets of the service manager are used
as they are.  A unix socket is for its owner, or for the group that the settings name.
"""

import errno
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from twisted.internet import unix
from twisted.internet.defer import Deferred, DeferredList, maybeDeferred
from twisted.internet.interfaces import IListeningPort, IProtocolFactory

from mailgateway.daemons.service_manager import inherited_sockets
from mailgateway.settings import Daemon

BACKLOG = 256


class PortTaken(Exception):
    """A socket cannot be bound; ``sentence`` says which, and what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class _AdoptedUnixPort(unix.Port):
    """A port on a unix socket that is bound already; its path and mode stay as whoever bound it made them.

    What ``adoptStreamPort`` makes opens the path to everybody when it starts, and removes it in the end, the
    service manager's too.
    """

    def __init__(self, bound: socket.socket, factory: IProtocolFactory, reactor: Any) -> None:
        # a name outside of the file system, so that there is nothing to open or to remove
        super().__init__(b"\0adopted", factory, BACKLOG, reactor=reactor)
        self._preexistingSocket = bound


@define(eq=False)
class Listening:
    """Bound sockets, and the ports made of them."""

    sockets: tuple[socket.socket, ...]
    paths: tuple[Path, ...] = ()
    """Unix sockets of our own making, removed at the end."""
    _ports: list[IListeningPort] = field(factory=list, init=False)

    def open(self, reactor: Any, make_factory: Callable[[], IProtocolFactory]) -> None:
        """Begin to accept; each socket gets a factory of its own."""
        for bound in self.sockets:
            bound.setblocking(False)
            if bound.family == socket.AF_UNIX:
                adopted: Any = _AdoptedUnixPort(bound.dup(), make_factory(), reactor)
                adopted.startListening()
                self._ports.append(adopted)
            else:
                self._ports.append(reactor.adoptStreamPort(bound.fileno(), bound.family, make_factory()))
            bound.close()  # the port works on a duplicate

    async def close(self) -> None:
        """Accept nobody any more."""
        closing: Deferred[Any] = DeferredList([maybeDeferred(port.stopListening) for port in self._ports])
        await closing
        for path in self.paths:
            path.unlink(missing_ok=True)


def bind(daemon: Daemon, environ: Mapping[str, str]) -> Listening:
    """Bind what the settings name, unless the service manager has.  Raises ``PortTaken``."""
    inherited = inherited_sockets(environ)
    if inherited:
        return Listening(inherited)
    sockets: list[socket.socket] = []
    paths: list[Path] = []
    if daemon.port:
        sockets.append(_bind_tcp(daemon.host, daemon.port))
    if daemon.socket is not None:
        sockets.append(_bind_unix(daemon.socket, daemon.socket_group))
        paths.append(daemon.socket)
    return Listening(tuple(sockets), tuple(paths))


def _bind_tcp(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        why = "is used by another program" if error.errno == errno.EADDRINUSE else str(error.strerror)
        raise PortTaken(
            f"port {port} on {host} {why}; stop that program or set another daemon.port"
        ) from None
    return bound


def _bind_unix(path: Path, group: str) -> socket.socket:
    """Bind a unix socket; one that a crash left behind is replaced, one that answers is not."""
    left_behind = path.is_socket()
    if left_behind and _answers(path):
        raise PortTaken(f"the socket {path} is used by another program; set another daemon.socket")
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if left_behind:
            path.unlink()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = os.umask(0o177)
        try:
            bound.bind(str(path))
        finally:
            os.umask(before)
        if group:
            if path.group() != group:  # the system unit may not change it, and has no need to
                shutil.chown(path, group=group)
            path.chmod(0o660)
        bound.listen(BACKLOG)
    except (OSError, LookupError) as error:
        bound.close()
        raise PortTaken(f"the socket {path} cannot be made: {error}") from None
    return bound


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as knock:
        knock.settimeout(1.0)
        try:
            knock.connect(str(path))
        except OSError:
            return False
        return True
