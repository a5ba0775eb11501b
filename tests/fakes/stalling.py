"""A way between two programs that can be blocked: nothing passes, and neither side is told."""

import contextlib
import selectors
import socket
import threading

from attrs import define, field


@define(eq=False)
class StallingProxy:
    """Passes bytes between whoever connects and a port of the loopback interface, unless it is blocked.

    While blocked, connections are accepted and bytes are taken in until the kernel's buffers are full, as by
    a network that drops packets.  When it is opened again, what was under way is cut.
    """

    target: int
    port: int = field(init=False)
    blocked: threading.Event = field(factory=threading.Event, init=False)
    _listener: socket.socket = field(init=False)
    _over: threading.Event = field(factory=threading.Event, init=False)
    _held: list[socket.socket] = field(factory=list, init=False)
    _thread: threading.Thread = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, name="stalling proxy", daemon=True)
        self._thread.start()

    def block(self) -> None:
        """Let nothing pass any more."""
        self.blocked.set()

    def open(self) -> None:
        """Let connections pass that begin from now on; those of before are cut."""
        self.blocked.clear()

    def close(self) -> None:
        """Be gone."""
        self._over.set()
        self._thread.join(10)

    def _run(self) -> None:
        selector = selectors.DefaultSelector()
        others: dict[socket.socket, socket.socket] = {}
        selector.register(self._listener, selectors.EVENT_READ)
        stalled = False
        while not self._over.is_set():
            if self.blocked.is_set():
                stalled = True
                self._over.wait(0.05)
                continue
            if stalled:
                stalled = False
                for each in tuple(others):
                    _cut(selector, others, each)
            for key, _ in selector.select(0.05):
                if self.blocked.is_set():
                    break
                if key.fileobj is self._listener:
                    here, _ = self._listener.accept()
                    there = socket.create_connection(("127.0.0.1", self.target), timeout=5)
                    others[here], others[there] = there, here
                    selector.register(here, selectors.EVENT_READ)
                    selector.register(there, selectors.EVENT_READ)
                elif isinstance(key.fileobj, socket.socket) and key.fileobj in others:
                    _pass(selector, others, key.fileobj)
        for each in tuple(others):
            _cut(selector, others, each)
        self._listener.close()
        selector.close()


def _pass(
    selector: selectors.BaseSelector, others: dict[socket.socket, socket.socket], peer: socket.socket
) -> None:
    try:
        data = peer.recv(65_536)
        if data:
            others[peer].sendall(data)
            return
    except OSError:
        pass
    _cut(selector, others, peer)


def _cut(
    selector: selectors.BaseSelector, others: dict[socket.socket, socket.socket], peer: socket.socket
) -> None:
    other = others.pop(peer, None)
    if other is None:
        return
    others.pop(other, None)
    for each in (peer, other):
        with contextlib.suppress(KeyError):
            selector.unregister(each)
        each.close()
