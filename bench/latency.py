"""From EXISTS on the wire to the session that waits for it, commit included, beside a bare IMAP client.

Both clients watch a mailbox of the same Dovecot through a small proxy in a process of its own, which notes
the moment at which EXISTS passes: Dovecot itself waits half a second before it sends it.  Ours ends when the
long poll of a session has the words of the mail, which are in the database by then.  The plain alternative
is ``imaplib`` with a hand-made IDLE and one FETCH of the new mail, whose bytes go nowhere.
"""

import imaplib
import multiprocessing
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _marked import STATIONS
from _world import AGENT, PASSWORD, ROBIN, Service, folder, median, reply, routed, row, say, show_help
from twisted.trial.unittest import SkipTest

from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot, require_dovecot

MAILS = 15
PLAIN_USER = "plain@example.org"
_FORK = multiprocessing.get_context("fork")


def proxy(listener: socket.socket, port: int, moment: Any) -> None:
    """Pass bytes between clients and the mail server, and note when the first EXISTS since 0 passes."""
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    other: dict[Any, tuple[socket.socket, bool]] = {}
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", port))
                for one, another, down in ((server, client, True), (client, server, False)):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    other[one] = (another, down)
                    selector.register(one, selectors.EVENT_READ)
                continue
            source: Any = key.fileobj
            target, down = other[source]
            try:
                data = source.recv(65_536)
            except OSError:
                data = b""
            if not data:
                for end in (source, target):
                    selector.unregister(end)
                    end.close()
                continue
            if down and not moment.value and b" EXISTS\r\n" in data:
                moment.value = time.monotonic()
            target.sendall(data)


class Proxy:
    """The proxy as its parent process sees it."""

    def __init__(self, port: int) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = listener.getsockname()[1]
        self.moment = _FORK.Value("d", 0.0, lock=False)
        self.process = _FORK.Process(target=proxy, args=(listener, port, self.moment), daemon=True)
        self.process.start()
        listener.close()


class Bare:
    """``imaplib`` with IDLE by hand."""

    def __init__(self, port: int) -> None:
        self.connection = imaplib.IMAP4("127.0.0.1", port)
        self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.login(PLAIN_USER, PASSWORD)
        self.connection.select()
        self.uid = 1

    def idle(self) -> None:
        """Enter IDLE."""
        self.connection.send(b"X IDLE\r\n")
        while not self.connection.readline().startswith(b"+"):
            pass

    def next(self) -> tuple[float, bytes]:
        """Wait for EXISTS, fetch the new mail; when it was there."""
        while b" EXISTS" not in self.connection.readline():
            pass
        self.connection.send(b"DONE\r\n")
        while not self.connection.readline().startswith(b"X "):
            pass
        _, data = self.connection.uid("FETCH", f"{self.uid}:*", "(UID RFC822.SIZE BODY.PEEK[])")
        moment = time.monotonic()
        self.uid += 1
        return moment, data[0][1]


class Sessions:
    """Sessions that long-poll, each for one reply: an ack would let the watcher set a flag meanwhile."""

    def __init__(self, service: Service) -> None:
        self.client = service.client()
        self.number = 0

    def next(self) -> tuple[float, str]:
        """Wait for the next session's delivery; when it was there."""
        (delivery,) = self.client.pending(f"session-{self.number}", wait=20)
        moment = time.monotonic()
        self.number += 1
        return moment, str(delivery["body"])


def main() -> None:
    """Measure both in turns."""
    try:
        require_dovecot()
    except SkipTest as reason:
        say(f"  not measured: {reason}")
        return
    with folder() as path:
        dovecot = Dovecot(
            path / "dovecot", {AGENT: PASSWORD, PLAIN_USER: PASSWORD}, Authority.make(path / "ca")
        )
        dovecot.start()
        through, plainly = Proxy(dovecot.imap_port), Proxy(dovecot.imap_port)
        service = Service(path, through.port)
        try:
            service.marks = path / "marks"
            service.prepare(*(routed(number) for number in range(MAILS)), cursor=None)
            service.launch()
            service.wait_healthy()
            dovecot.wait_idle(AGENT)
            session, bare = Sessions(service), Bare(plainly.port)
            mine: list[tuple[float, float]] = []
            theirs: list[tuple[float, float]] = []
            for number in range(MAILS):
                bare.idle()
                theirs.append(timed(dovecot, plainly, bare, PLAIN_USER, number))
                mine.append(timed(dovecot, through, session, AGENT, number))
                dovecot.wait_idle(AGENT)
            took = [end - begin for begin, end in mine]
            took_plain = [end - begin for begin, end in theirs]
            ours, plain = median(took) * 1000, median(took_plain) * 1000
            row(
                "EXISTS to long poll, with commit",
                f"{ours:.2f} ms",
                plain=f"{plain:.2f} ms",
                ratio=ours / plain,
                aims="must 3.0 x, aim 1.7 x",
            )
            row("  best of the run", f"{min(took) * 1000:.2f} ms", plain=f"{min(took_plain) * 1000:.2f} ms")
            breakdown(service.marks, mine)
        finally:
            service.stop()
            dovecot.stop(hard=True)


def timed(dovecot: Dovecot, through: Proxy, waiting: Any, user: str, number: int) -> tuple[float, float]:
    """When EXISTS was on the wire, and when ``waiting`` had one new mail."""
    ended: list[float] = []
    thread = threading.Thread(target=lambda: ended.append(waiting.next()[0]))
    thread.start()
    time.sleep(0.15)
    through.moment.value = 0.0
    dovecot.deliver(user, reply(number, f"{number:06x}"), ROBIN)
    thread.join(20)
    assert ended, f"mail {number} did not arrive"
    return through.moment.value, ended[0]


def breakdown(path: Path, ways: Sequence[tuple[float, float]]) -> None:
    """Print how long each stretch of the way took, in the median of all mails."""
    marks = [line.split(" ", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    noted = [(float(moment), station) for moment, station in marks]
    stretches: dict[str, list[float]] = {}
    for begin, end in ways:
        before = begin
        for station in STATIONS:
            moments = (moment for moment, name in noted if name == station and before <= moment <= end)
            moment = next(moments, None)
            if moment is not None:
                stretches.setdefault(station, []).append(moment - before)
                before = moment
        stretches.setdefault("session has it", []).append(end - before)
    for station, lengths in stretches.items():
        say(f"    until {station:<32} {median(lengths) * 1000:6.2f} ms   of {len(lengths)}")


if __name__ == "__main__":
    show_help(__doc__)
    main()
