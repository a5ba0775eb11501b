"""What it costs to look through 50,000 mails that came meanwhile: nine header fields, parsed and decided.

A scan of ours (the connection, the candidates' rules, the cursor moved in a database for each window) and a
bare ``imaplib`` that reads the same fields raw and forgets them, from the same replaying server, each in a
process of its own.  Of both the CPU is counted; of ours also the longest time that the reactor did not come
round, in a run of its own, and how much the process grew.
"""

import imaplib
import json
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from _replay import Mail, ReplayServer
from _world import AGENT, PASSWORD, ROBIN, ROOT, row, show_help, stranger

from mailgateway.mail.inbound import SCAN_FIELDS

COUNT = 50_000
RUNS = 3
WINDOW = 500
FIELDS = " ".join(SCAN_FIELDS)


def peak_mb() -> float:
    """The most memory that this process ever had (what ``getrusage`` says is inherited from the parent)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


def bare(port: int) -> dict[str, float]:
    """Read everything with ``imaplib``."""
    connection = imaplib.IMAP4("127.0.0.1", port)
    connection.login(AGENT, PASSWORD)
    connection.select()
    before, memory = time.process_time(), peak_mb()
    seen = 0
    for first in range(1, COUNT + 1, WINDOW):
        what = f"(UID RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER.FIELDS ({FIELDS})])"
        _, data = connection.uid("FETCH", f"{first}:{first + WINDOW - 1}", what)
        seen += sum(isinstance(item, tuple) for item in data)
    assert seen == COUNT, seen
    return {"cpu": time.process_time() - before, "grown": peak_mb() - memory}


def scan(port: int, ticking: bool) -> dict[str, float]:
    """Scan everything; with ``ticking`` watch the reactor instead of the CPU."""
    from twisted.internet import epollreactor  # noqa: PLC0415 (before anything else installs one)

    epollreactor.install()
    from twisted.internet import reactor as installed  # noqa: PLC0415 (as above)
    from twisted.internet.defer import Deferred  # noqa: PLC0415 (as above)

    reactor: Any = installed
    found: dict[str, float] = {}
    failures: list[str] = []

    def end(result: object) -> None:
        if result is not None:
            failures.append(str(result))
        reactor.stop()

    def begin() -> None:
        Deferred.fromCoroutine(_scan(reactor, port, ticking, found)).addBoth(end)

    reactor.callWhenRunning(begin)
    reactor.run()
    assert not failures, failures
    return found


async def _scan(reactor: Any, port: int, ticking: bool, found: dict[str, float]) -> None:
    from mailgateway.daemons.mailbox import select_folder  # noqa: PLC0415 (after the reactor)
    from mailgateway.domain.identity import Identity  # noqa: PLC0415 (as above)
    from mailgateway.flows.bell import Bell  # noqa: PLC0415 (as above)
    from mailgateway.flows.filing import FilingRules  # noqa: PLC0415 (as above)
    from mailgateway.flows.scan import Scanner, ScanRules  # noqa: PLC0415 (as above)
    from mailgateway.ids import AccountName, MachineId  # noqa: PLC0415 (as above)
    from mailgateway.mail.own import Own  # noqa: PLC0415 (as above)
    from mailgateway.protocols.dial import Peer  # noqa: PLC0415 (as above)
    from mailgateway.protocols.imap import ImapConnection  # noqa: PLC0415 (as above)
    from mailgateway.settings import Tls  # noqa: PLC0415 (as above)
    from mailgateway.store import cursors  # noqa: PLC0415 (as above)
    from mailgateway.store.cursors import Cursor  # noqa: PLC0415 (as above)
    from mailgateway.store.threaded import ThreadedDatabase  # noqa: PLC0415 (as above)
    from mailgateway.store.upgrade import open_engine, upgrade  # noqa: PLC0415 (as above)
    from mailgateway.wire.sasl import Password  # noqa: PLC0415 (as above)

    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(Path(folder) / "bench.sqlite3")
        upgrade(engine)
        database = ThreadedDatabase(reactor, engine)
        await database.run(lambda tx: cursors.move(tx, AccountName("main"), "INBOX", Cursor(7, 0)))
        connection = await ImapConnection.connect(reactor, Peer("127.0.0.1", port, Tls.NONE))
        await connection.login(Password(AGENT, PASSWORD))
        mailbox = await select_folder(connection, AccountName("main"), "INBOX")
        own = Own(addresses=[AGENT], allowed=[ROBIN], trusted_authserv_ids=["mx.example.org"])
        identity = Identity(MachineId("0" * 32), "bench", "0" * 8)
        rules = ScanRules(FilingRules(identity, own, None), timedelta(hours=168))

        async def at_once(judging: Any) -> Any:
            return judging()

        scanner = Scanner(database, Bell(), rules, at_once)
        longest = 0.0
        last = time.monotonic()

        def tick() -> None:
            nonlocal last, longest
            moment = time.monotonic()
            longest, last = max(longest, moment - last), moment
            reactor.callLater(0, tick)

        before, memory = time.process_time(), peak_mb()
        if ticking:
            tick()
        scanned = await scanner.scan(mailbox, None)
        assert scanned.examined == COUNT, scanned
        found |= {"cpu": time.process_time() - before, "grown": peak_mb() - memory, "stall": longest * 1000}
        await connection.logout()
        await database.close()


def run(what: str) -> dict[str, float]:
    """One of the above in a process of its own, with a fresh server."""
    server = ReplayServer([Mail(stranger(number)) for number in range(1, COUNT + 1)], visible=COUNT).start()
    try:
        command = [sys.executable, __file__, what, str(server.port)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT, timeout=120)
        result: dict[str, float] = json.loads(done.stdout)
        return result
    finally:
        server.stop()


def main() -> None:
    """Measure both."""
    plain, ours = run("bare"), run("scan")
    for _ in range(RUNS - 1):  # other programs can only make a run dearer, so the cheapest counts
        plain = min(plain, run("bare"), key=lambda found: found["cpu"])
        ours = min(ours, run("scan"), key=lambda found: found["cpu"])
    ticking = run("ticking")
    row(
        "CPU for 50,000 header fields",
        f"{ours['cpu']:.2f} s",
        plain=f"{plain['cpu']:.2f} s",
        ratio=ours["cpu"] / plain["cpu"],
        aims="must 1.5 x, aim 1.0 x",
    )
    row("longest reactor stall", f"{ticking['stall']:.1f} ms", aims="must 20 ms")
    row("memory growth", f"{ours['grown']:.1f} MB", plain=f"{plain['grown']:.1f} MB", aims="must 10 MB")


if __name__ == "__main__":
    show_help(__doc__)
    if len(sys.argv) > 2:
        port = int(sys.argv[2])
        outcome = bare(port) if sys.argv[1] == "bare" else scan(port, sys.argv[1] == "ticking")
        sys.stdout.write(json.dumps(outcome))
    else:
        main()
