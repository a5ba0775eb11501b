"""What the measurements share: the service as a child process, its mail and rows, and how figures are shown.

Everything runs on the loopback interface in a temporary folder.  Figures of different machines, or of
different days, say little; so each measurement runs the plain alternative beside ours, and prints the ratio.
"""

import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import define, field

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from _replay import Mail  # noqa: E402 (the path is set above)

from mailgateway import secrets  # noqa: E402
from mailgateway.client import Base, Client, ServiceUnreachable  # noqa: E402
from mailgateway.demo.service import free_port, settings_text  # noqa: E402
from mailgateway.domain.route import Purpose, Route  # noqa: E402
from mailgateway.ids import AccountName, MachineId, RouteId, SessionId  # noqa: E402
from mailgateway.mail.inbound import SCAN_FIELDS  # noqa: E402
from mailgateway.store import cursors, machines, routes, sessions  # noqa: E402
from mailgateway.store.cursors import Cursor  # noqa: E402
from mailgateway.store.database import Tx, transact  # noqa: E402
from mailgateway.store.upgrade import open_engine, upgrade  # noqa: E402

AGENT = "agent@example.org"
ROBIN = "robin@example.net"
PASSWORD = "correct-horse-7Qx9vw"  # noqa: S105 (of a server that lives for seconds)
SECRET = "MAILGATEWAY_BENCH_PASSWORD"  # noqa: S105 (the variable of a password, where one is used)
SESSION = SessionId("session-of-all")
ROUTE = RouteId("f913c9")
MARKED = (sys.executable, str(Path(__file__).with_name("_marked.py")))
TWISTD = (sys.executable, "-c", "from twisted.scripts.twistd import run; run()")


# --- figures ----------------------------------------------------------------------------------------------


def say(text: str) -> None:
    """Print one line at once."""
    print(text, flush=True)


def row(name: str, figure: str, *, plain: str = "", ratio: float | None = None, aims: str = "") -> None:
    """Print one figure, the plain alternative's, their ratio, and what is asked for."""
    shown = "" if ratio is None else f"{ratio:.2f} x"
    say(f"  {name:<34} {figure:>14}   plain {plain or '-':>12}   {shown:>8}   {aims}")


def median(values: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(values)


def cpu_seconds(pid: int) -> float:
    """CPU that a process has used, all threads, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Resident memory in MB (2**20 bytes, as ps counts)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def switches(pid: int) -> int:
    """How often the process has gone to sleep, all threads: each was woken once for it."""
    found = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            for line in (task / "status").read_text().splitlines():
                if line.startswith("voluntary_ctxt_switches"):
                    found += int(line.split()[1])
    return found


# --- mail -------------------------------------------------------------------------------------------------

_QUOTE = "".join(
    f"> {line} of what the session had asked, wrapped as mail programs do\r\n" for line in range(8)
)


def reply(number: int, route: str = ROUTE) -> bytes:
    """A person's reply as the receiving server hands it over: about 2 kB, the question quoted below."""
    return (
        f"Return-Path: <{ROBIN}>\r\n"
        f"Delivered-To: {AGENT}\r\n"
        f"Authentication-Results: mx.example.org; dkim=pass header.d=example.net;"
        f" spf=pass smtp.mailfrom=example.net; dmarc=pass header.from=example.net\r\n"
        f"Received: from out.example.net (out.example.net [192.0.2.7])\r\n"
        f"\tby mx.example.org with ESMTPS id 4F{number:06d}; Mon, 30 Nov 2026 10:00:00 +0000\r\n"
        f"DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.net; s=20260101;\r\n"
        f"\tt=1796032800; h=from:to:subject:date:message-id; bh={'A' * 43}=;\r\n"
        f"\tb={'B' * 60}\r\n\t{'C' * 60}=\r\n"
        f"Message-ID: <reply-{number}@mail.example.net>\r\n"
        f"Date: Mon, 30 Nov 2026 10:00:00 +0000\r\n"
        f"MIME-Version: 1.0\r\n"
        f"User-Agent: A mail program\r\n"
        f"From: Robin <{ROBIN}>\r\n"
        f"To: Agent <{AGENT}>\r\n"
        f"Subject: Re: Which database? [mg:{route}]\r\n"
        f"Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Transfer-Encoding: 8bit\r\n"
        f"\r\n"
        f"Take SQLite for now, answer {number}.\r\n\r\n"
        f"On Mon, 30 Nov 2026 at 09:58, Agent <{AGENT}> wrote:\r\n{_QUOTE}"
    ).encode()


def stranger(number: int) -> bytes:
    """The nine fields of somebody else's mail, of the usual sizes; every fourth has an encoded name."""
    name = "The weekly newsletter" if number % 4 else "=?utf-8?Q?N=C3=A4chster_Newsletter?="
    return (
        f"From: {name} <news-{number % 97}@list{number % 31}.example.com>\r\n"
        f"To: {AGENT}\r\n"
        f"Delivered-To: {AGENT}\r\n"
        f"Subject: Weekly report number {number}: what is new, and what will be\r\n"
        f" soon, in the world of examples\r\n"
        f"Message-ID: <{number:08x}.{number * 7919:010x}@list{number % 31}.example.com>\r\n"
        f"References: <{number - 1:08x}.1@example.com> <{number - 2:08x}.2@example.com>\r\n"
        f"In-Reply-To: <{number - 1:08x}.1@example.com>\r\n"
        f"\r\n"
    ).encode()


def scanned(raw: bytes) -> bytes:
    """The fields that a scan asks for, cut out of a mail whose header the above wrote."""
    wanted = {name.lower() for name in SCAN_FIELDS}
    head = raw.partition(b"\r\n\r\n")[0].split(b"\r\n")
    kept, keeping = [], False
    for line in head:
        if not line.startswith((b" ", b"\t")):
            keeping = line.partition(b":")[0].decode().lower() in wanted
        if keeping:
            kept.append(line)
    return b"\r\n".join([*kept, b"", b""])


def replies(count: int, first: int = 1) -> list[Mail]:
    """So many replies for the replaying server."""
    made = [reply(number) for number in range(first, first + count)]
    return [Mail(scanned(raw), raw) for raw in made]


# --- the service ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder that others may enter (a mail server runs as somebody else)."""
    path = Path(tempfile.mkdtemp(prefix="mailgateway-bench-"))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def add_route(tx: Tx, machine: MachineId, session: SessionId, route: RouteId) -> None:
    """Write a session and a route that leads to it."""
    sessions.ensure(tx, session, machine)
    routes.add(
        tx,
        Route(
            id=route,
            purpose=Purpose.SESSION,
            session_id=session,
            machine_id=machine,
            recipient=ROBIN,
            expires_at=tx.now + timedelta(hours=168),
        ),
    )


def routed(number: int) -> Callable[[Tx, MachineId], None]:
    """What writes ``session-<number>`` and a route of its own: the number in six hex digits."""
    return lambda tx, machine: add_route(
        tx, machine, SessionId(f"session-{number}"), RouteId(f"{number:06x}")
    )


@define(eq=False)
class Service:
    """``twistd -n mailgateway`` in a folder, watching a mailbox on ``imap_port``."""

    folder: Path
    imap_port: int
    port: int = field(factory=free_port)
    marks: Path | None = None
    """Where the stations of a mail's way are noted; None: nowhere."""
    _process: Any = field(default=None, init=False)

    @property
    def state_dir(self) -> Path:
        """Where it keeps its state."""
        return self.folder / "state"

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self._process.pid)

    def prepare(self, *works: Callable[[Tx, MachineId], None], cursor: int | None = 0) -> MachineId:
        """Make the database, with a session and a route of ours; ``works`` write more rows."""
        secrets.prepare_state_dir(self.state_dir)
        machine = secrets.machine_id(self.state_dir)
        engine = open_engine(self.state_dir / "mailgateway.sqlite3")
        upgrade(engine)

        def rows(tx: Tx) -> None:
            machines.introduce(tx, machine, "bench")
            add_route(tx, machine, SESSION, ROUTE)
            if cursor is not None:
                cursors.move(tx, AccountName("main"), "INBOX", Cursor(7, cursor))

            for work in works:
                work(tx, machine)

        transact(engine, rows)
        engine.dispose()
        return machine

    def settings(self) -> Mapping[str, Mapping[str, object]]:
        """One account, one person."""
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(PASSWORD + "\n", encoding="utf-8")
        plain = {"host": "127.0.0.1", "tls": "none"}
        return {
            "daemon": {"host": "127.0.0.1", "port": self.port, "state_dir": str(self.state_dir)},
            "device": {"name": "bench"},
            "accounts.main": {"address": AGENT, "watch": ["INBOX"]},
            "accounts.main.imap": {**plain, "port": self.imap_port, "password_file": str(secret)},
            "accounts.main.smtp": {**plain, "port": free_port()},
            "people": {"allowed": [ROBIN], "notify": ROBIN},
            "security": {"authentication": "required", "trusted_authserv_ids": ["mx.example.org"]},
        }

    def launch(self) -> float:
        """Start the process; when, in monotonic seconds."""
        path = self.folder / "mailgateway.toml"
        path.write_text(settings_text(self.settings()), encoding="utf-8")
        names = ("PATH", "LANG", "LC_ALL", SECRET)
        kept = {name: os.environ[name] for name in names if name in os.environ}
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        with (self.folder / "service.log").open("ab") as log:
            began = time.monotonic()
            marking = {} if self.marks is None else {"MARKS": str(self.marks)}
            self._process = subprocess.Popen(
                [*(TWISTD if self.marks is None else MARKED), "-n", "mailgateway", "--config", str(path)],
                cwd=self.folder,
                env={**kept, **marking, "HOME": str(home), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return began

    def wait_healthy(self, seconds: float = 20) -> float:
        """Wait until it has proved that it knows its key; when."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(ServiceUnreachable, OSError), self.client() as client:
                client.prove()
                return time.monotonic()
            assert self._process.poll() is None, (self.folder / "service.log").read_text()[-2_000:]
            time.sleep(0.005)
        log = (self.folder / "service.log").read_text(encoding="utf-8")
        raise AssertionError(f"the service does not become healthy: {log[-2_000:]}")

    def client(self) -> Client:
        """A client of its API."""
        return Client(
            Base(host="127.0.0.1", port=self.port), self.state_dir / secrets.SESSION_KEY, timeout=30
        )

    @property
    def key(self) -> str:
        """The key of sessions."""
        return (self.state_dir / secrets.SESSION_KEY).read_text(encoding="utf-8").strip()

    def count(self, table: str) -> int:
        """How many rows a table has."""
        import sqlite3  # noqa: PLC0415 (for a look from the outside only)

        with contextlib.closing(sqlite3.connect(self.state_dir / "mailgateway.sqlite3")) as connection:
            return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 (ours)

    def stop(self) -> None:
        """Ask it to stop; kill it when it does not."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(12)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def now() -> datetime:
    """The time of day, UTC."""
    return datetime.now(UTC)


def show_help(text: str | None) -> None:
    """End with what a script says of itself, where that is asked for; call it before anything is measured."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(text)
        sys.exit(0)
