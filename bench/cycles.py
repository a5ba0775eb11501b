"""Durable claim and ack per second over HTTP, 16 connections.

The plain alternative is a trivial Klein service whose two requests update one row each, with one FULL commit
per request on the reactor's thread: no keys, no guards, no rules.  Both are driven by the same client, which
keeps 16 connections busy from one thread.
"""

import json
import os
import selectors
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _replay import ReplayServer
from _world import ROBIN, SESSION, Service, cpu_seconds, folder, median, now, row, show_help

from mailgateway.demo.service import free_port
from mailgateway.domain.envelope import Envelope, EnvelopeKind, Source, Trust
from mailgateway.ids import AccountName, MachineId, envelope_id_of_mail
from mailgateway.store import envelopes
from mailgateway.store.database import Tx

CONNECTIONS = 16
CYCLES = 1_000
ROUNDS = 3
INSTANCE = "instance-1"

PLAIN = """
import sqlite3, sys
from klein import Klein
rows = sqlite3.connect(sys.argv[1], isolation_level=None)
rows.execute("PRAGMA journal_mode=WAL")
rows.execute("PRAGMA synchronous=FULL")
rows.execute("CREATE TABLE mail (id TEXT PRIMARY KEY, state TEXT)")
rows.execute("BEGIN")
rows.executemany("INSERT INTO mail VALUES (?, 'new')", [(str(n),) for n in range(int(sys.argv[3]))])
rows.execute("COMMIT")
app = Klein()

def move(request, state):
    import json
    rows.execute("UPDATE mail SET state = ? WHERE id = ?", (state, json.load(request.content)["id"]))
    request.setHeader("Content-Type", "application/json")
    request.setHeader("Content-Length", "14")
    return b'{"done": true}'

@app.route("/claim", methods=["POST"])
def claim(request):
    return move(request, "claimed")

@app.route("/ack", methods=["POST"])
def ack(request):
    return move(request, "acked")

from twisted.internet import endpoints, reactor
from twisted.web.server import Site
endpoints.serverFromString(reactor, f"tcp:{sys.argv[2]}:interface=127.0.0.1").listen(Site(app.resource()))
reactor.run()
"""


def drive(port: int, request: Callable[[str, str], bytes], ids: Iterator[str]) -> float:
    """Claim and ack each of the ids; cycles per second."""
    selector = selectors.DefaultSelector()
    steps: dict[socket.socket, tuple[str, str]] = {}
    received: dict[socket.socket, bytes] = {}
    done = 0

    def begin(peer: socket.socket) -> bool:
        which = next(ids, None)
        if which is None:
            return False
        steps[peer] = ("ack", which)
        peer.sendall(request("claim", which))
        return True

    began = time.perf_counter()
    for _ in range(CONNECTIONS):
        client = socket.create_connection(("127.0.0.1", port))
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(client, selectors.EVENT_READ)
        received[client] = b""
        begin(client)
    while selector.get_map():
        for key, _ in selector.select(10):
            peer: Any = key.fileobj
            received[peer] += peer.recv(65_536)
            if not _complete(received[peer]):
                continue
            assert received[peer].startswith(b"HTTP/1.1 200"), received[peer][:500]
            received[peer] = b""
            step, which = steps[peer]
            if step == "ack":
                steps[peer] = ("", which)
                peer.sendall(request("ack", which))
                continue
            done += 1
            if not begin(peer):
                selector.unregister(peer)
                peer.close()
    return done / (time.perf_counter() - began)


def _complete(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return False
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(body) >= int(length)


def _post(path: str, body: dict[str, str], more: str = "") -> bytes:
    text = json.dumps(body)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{{port}}\r\n{more}Content-Type: application/json\r\n"
    return f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text.encode()


def start_ours(path: Path) -> tuple[Service, ReplayServer, list[str]]:
    """The service with envelopes to claim."""
    ids = [envelope_id_of_mail(AccountName("main"), "INBOX", 7, uid) for uid in range(1, CYCLES * ROUNDS + 1)]

    def rows(tx: Tx, _machine: MachineId) -> None:
        for uid, name in enumerate(ids, 1):
            envelopes.add(
                tx,
                Envelope(
                    id=name,
                    kind=EnvelopeKind.USER,
                    trust=Trust.OWNER,
                    session_id=SESSION,
                    machine_id=None,
                    subject="Which database?",
                    body="Take SQLite.",
                    quoted="",
                    from_address=ROBIN,
                    from_name="Robin",
                    received_at=now(),
                    source=Source(AccountName("main"), "INBOX", 7, uid),
                ),
                uid,
            )

    server = ReplayServer([], visible=0).start()
    service = Service(path, server.port)
    service.prepare(rows, cursor=0)
    service.launch()
    service.wait_healthy()
    return service, server, list(ids)


def start_plain(path: Path) -> tuple["subprocess.Popen[bytes]", int]:
    """The trivial service."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", PLAIN, str(path / "plain.db"), str(port), str(CYCLES * ROUNDS)]
    )
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except OSError:
            time.sleep(0.02)
    raise AssertionError("the plain service does not start")


def commit_milliseconds(path: Path) -> float:
    """What one FULL commit takes here."""
    rows = sqlite3.connect(path / "commit.db", isolation_level=None)
    rows.execute("PRAGMA journal_mode=WAL")
    rows.execute("PRAGMA synchronous=FULL")
    rows.execute("CREATE TABLE one (id INTEGER PRIMARY KEY)")
    began = time.perf_counter()
    for _ in range(200):
        rows.execute("INSERT INTO one DEFAULT VALUES")
    rows.close()
    return (time.perf_counter() - began) / 200 * 1000


def main() -> None:
    """Measure both in turns."""
    with folder() as path:
        service, server, ids = start_ours(path)
        process, plain_port = start_plain(path)
        try:

            def ours(step: str, which: str) -> bytes:
                body = {"id": which, "instanceId": INSTANCE}
                auth = f"Authorization: Bearer {service.key}\r\n"
                return _post(f"/{step}", body, auth).replace(b"{port}", b"%d" % service.port)

            def plain(step: str, which: str) -> bytes:
                return _post(f"/{step}", {"id": which}).replace(b"{port}", b"%d" % plain_port)

            mine, theirs, our_cpu, plain_cpu = [], [], 0.0, 0.0
            for turn in range(ROUNDS):
                span = range(turn * CYCLES, (turn + 1) * CYCLES)
                before = cpu_seconds(process.pid), cpu_seconds(service.pid)
                theirs.append(drive(plain_port, plain, iter([str(number) for number in span])))
                plain_cpu += cpu_seconds(process.pid) - before[0]
                mine.append(drive(service.port, ours, iter([ids[number] for number in span])))
                our_cpu += cpu_seconds(service.pid) - before[1]
            row(
                "claim + ack, 16 connections",
                f"{median(mine):.0f} /s",
                plain=f"{median(theirs):.0f} /s",
                ratio=median(mine) / median(theirs),
                aims="must 0.5 x, aim 1.0 x",
            )
            each = 1000 / (CYCLES * ROUNDS)
            row(
                "  CPU of one cycle",
                f"{our_cpu * each:.2f} ms",
                plain=f"{plain_cpu * each:.2f} ms",
                ratio=our_cpu / plain_cpu,
            )
            row("  one FULL commit on this disk", f"{commit_milliseconds(path):.2f} ms")
        finally:
            process.kill()
            process.wait()
            service.stop()
            server.stop()


if __name__ == "__main__":
    show_help(__doc__)
    os.environ.pop("PYTHONUNBUFFERED", None)
    main()
