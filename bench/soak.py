"""A soak: mixed mail, sessions, sending and trouble at a high rate, for as long as it is told.

    bench/soak.py --minutes 20 --rate 10 --json soak.json --plot docs/images/soak.svg

A real Dovecot and an SMTP sink stand on the loopback interface, the service runs between them as a child
process.  In the end an oracle is asked: every letter of a person arrived at its session as one envelope and
was acked once, none was lost, none was read before its ack, nothing of strangers was stored, no mail left
twice without an interruption that explains it.  And every curve (memory, descriptors, threads, rows, answer
times) must be flat over the second half, within limits that are stated here.  Exit code 1 otherwise.
"""

import argparse
import json
import random
import signal
import statistics
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from sqlite3 import OperationalError
from sqlite3 import connect as sqlite

from _soak_book import Book
from _soak_curve import Curves, Limit, Trend, svg, trends
from _soak_mail import STRANGERS
from _soak_people import Session, Stop, Subscriber, Worker, Writer
from _soak_trouble import Clearing, Trouble, left_open, traces
from _world import AGENT, PASSWORD, ROBIN, cpu_seconds, folder, resident_mb, say
from attrs import define, field

from mailgateway.client import ApiRefused, ServiceUnreachable
from mailgateway.store.tables import metadata
from tests.acceptance.harness import AUTHSERV_ID, Gateway
from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot
from tests.fakes.smtp_sink import SmtpSink

SESSIONS = 8
LONG = 120.0
"""A run of so many seconds has time for claims that only end when their lease does."""
DRAIN_SECONDS = 180.0
"""How long the last letters may take: a claim of nobody ends after 60 s, and is found within 30 s."""
SLOWEST_HEALTH_MS = 1_000.0
"""What 99 of 100 answers of ``/health`` must stay below, beside whatever else the machine does."""

LIMITS = {
    "resident MB": Limit(2.0, 0.02),
    "descriptors": Limit(4.0),
    "threads": Limit(1.0),
    "health ms": Limit(10.0, 1.0),
    "database MB": Limit(1.0, 0.25),
    "log of writes MB": Limit(4.0, 0.25),
}
"""Growth over the second half that is still flat."""

ROWS = Limit(60.0, 0.25)
"""The same for the rows of a table."""

KEPT = frozenset({"route", "machine", "machine_name"})
"""Never deleted by design; of routes there is one for each mail sent."""
FATES = Limit(1_100.0)
"""They grow to a thousand, and no further."""
TABLES = sorted(metadata.tables)
PANELS = (
    ("Resident memory", "MB", ("resident MB",)),
    ("Descriptors and threads", "number", ("descriptors", "threads")),
    ("Answer time of /health", "ms", ("health ms",)),
    ("Rows of what is under way", "rows", ("flagging rows", "runtime rows", "upload rows", "session rows")),
    ("Rows of what is remembered", "rows", ("source rows", "envelope rows", "outbox rows", "fate rows")),
    ("Database file", "MB", ("database MB", "log of writes MB")),
)


@define(eq=False)
class Probe(threading.Thread):
    """Asks ``/health`` twice a second, and remembers how long each answer took."""

    gateway: Gateway
    book: Book
    over: threading.Event
    fresh: list[float] = field(factory=list)
    all: list[float] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        super().__init__(name="probe", daemon=True)

    def run(self) -> None:
        """Ask."""
        client = self.gateway.another_client()
        while not self.over.wait(0.5):
            began = time.monotonic()
            try:
                client.health()
            except (ServiceUnreachable, ApiRefused):
                self.book.figures["health unanswered"] += 1
                continue
            taken = (time.monotonic() - began) * 1_000
            self.fresh.append(taken)
            self.all.append(taken)
            if len(self.all) > 100_000:
                self.all = self.all[1::2]

    def latest(self) -> float:
        """The median since the last look, in milliseconds."""
        fresh, self.fresh = self.fresh, []
        return statistics.median(fresh) if fresh else 0.0


def sample(gateway: Gateway, probe: Probe) -> dict[str, float]:
    """One look at the process and at its tables."""
    pid = gateway.pid
    status = Path(f"/proc/{pid}/status").read_text()
    found = {
        "resident MB": resident_mb(pid),
        "descriptors": float(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())),
        "threads": float(status.partition("Threads:")[2].split()[0]),
        "health ms": probe.latest(),
    }
    database = gateway.state_dir / "mailgateway.sqlite3"
    for name, path in (("database MB", database), ("log of writes MB", Path(f"{database}-wal"))):
        found[name] = path.stat().st_size / 2**20 if path.exists() else 0.0
    with closing(sqlite(f"file:{database}?mode=ro", uri=True, timeout=5)) as rows:
        for table in TABLES:
            query = f"SELECT count(*) FROM {table}"  # noqa: S608 (ours)
            found[f"{table} rows"] = float(rows.execute(query).fetchone()[0])
    return found


def settings(dovecot: Dovecot, sink: SmtpSink, password: Path) -> dict[str, dict[str, object]]:
    """One account, one person, and no budget in the way."""
    plain = {"host": "127.0.0.1", "tls": "none"}
    return {
        "device": {"name": "soak"},
        "accounts.main": {"address": AGENT, "watch": ["INBOX"]},
        "accounts.main.imap": {**plain, "port": dovecot.imap_port, "password_file": str(password)},
        "accounts.main.smtp": {**plain, "port": sink.port},
        "people": {"allowed": [ROBIN], "notify": ROBIN},
        "security": {"authentication": "required", "trusted_authserv_ids": [AUTHSERV_ID]},
        "notify": {"budget_per_minute": 1_000, "settle_delay_seconds": 1},
    }


@define(eq=False)
class Soak:
    """One run."""

    seconds: float
    rate: float
    seed: int
    kills: int
    book: Book = field(factory=Book)
    curves: Curves = field(factory=Curves)
    stop: Stop = field(factory=Stop)
    cpu: float = 0.0

    def run(self, root: Path) -> None:
        """Set everything up, let it work, come to rest."""
        with ExitStack() as ending:
            authority = Authority.make(root / "ca")
            dovecot = Dovecot(root / "dovecot", {AGENT: PASSWORD}, authority)
            sink = SmtpSink({AGENT: PASSWORD})
            password = root / "password"
            password.touch(mode=0o600)
            password.write_text(PASSWORD + "\n")
            gateway = Gateway(root / "gateway", settings(dovecot, sink, password))
            sink.on_mail = lambda: self.left(sink)
            ending.callback(sink.stop)
            ending.callback(dovecot.stop, hard=True)
            ending.callback(gateway.close)
            dovecot.start()
            sink.start()
            gateway.start()
            gateway.client.set_mode("on")
            dovecot.wait_idle(AGENT)
            self.work(gateway, dovecot, sink)
            ending.pop_all().close()
            self.ask_oracle(gateway)

    def left(self, sink: SmtpSink) -> None:
        """A mail has come to the sink, whose list is not to grow."""
        received = sink.mails.pop()
        self.book.copy_came(str(received.mail["Message-ID"]))

    def work(self, gateway: Gateway, dovecot: Dovecot, sink: SmtpSink) -> None:
        """Everybody at once, then calm, then the end."""
        book, stop, seed = self.book, self.stop, self.seed
        answered_per_mail = 3.0
        asking = SESSIONS * answered_per_mail / max(self.rate * 0.5, 0.1)
        database = gateway.state_dir / "mailgateway.sqlite3"
        workers: list[Worker] = [
            Session(book, stop, seed, number, gateway.another_client, asking, silent=self.seconds >= LONG)
            for number in range(SESSIONS)
        ]
        workers += [
            Subscriber(book, stop, seed, gateway.another_client),
            Writer(book, stop, seed, self.rate, dovecot),
            Clearing(book, stop, dovecot, database),
            Trouble(book, stop, seed, self.seconds, self.kills, gateway, dovecot, sink),
        ]
        probe = Probe(gateway, book, stop.over)
        began = time.monotonic()
        for worker in (*workers, probe):
            worker.start()
        self.watch(gateway, probe, began)
        stop.calm.set()
        end = time.monotonic() + DRAIN_SECONDS
        while (book.owed() or left_open(database)) and time.monotonic() < end and not book.violations:
            time.sleep(0.5)
        say(f"  came to rest {time.monotonic() - began - self.seconds:.0f} s after the last mail")
        self.cpu = cpu_seconds(gateway.pid)
        stop.over.set()
        for worker in (*workers, probe):
            worker.join(60)
            if worker.is_alive():
                book.violate(f"{worker.name} does not come to its end")
        slow = sorted(probe.all)
        if slow:
            book.figures["health ms, median"] = round(statistics.median(slow))
            book.figures["health ms, 99 of 100"] = round(slow[int(len(slow) * 0.99)])
            book.figures["health ms, worst"] = round(slow[-1])

    def watch(self, gateway: Gateway, probe: Probe, began: float) -> None:
        """Take samples, and say now and then how it goes."""
        every = max(0.5, min(5.0, self.seconds / 60))
        told = 0.0
        while (at := time.monotonic() - began) < self.seconds and not self.book.violations:
            time.sleep(every)
            with suppress(OSError, AssertionError, OperationalError):  # killed, and not up again yet
                self.curves.add(at, sample(gateway, probe))
            if at - told >= max(10.0, self.seconds / 40):
                told = at
                self.tell(at)
                self.read_log(gateway)

    def tell(self, at: float) -> None:
        """One line of progress."""
        book, last = self.book, {name: known[-1] for name, known in self.curves.values.items()}
        words = (
            f"{at:6.0f} s  {book.posted_mails()} mails in",
            f"{book.figures['acked']} acked",
            f"{book.owed()} under way",
            f"{book.figures['mails that left']} out",
            f"{last.get('resident MB', 0):.1f} MB",
            f"{last.get('descriptors', 0):.0f} descriptors",
            f"{last.get('envelope rows', 0):.0f} envelopes",
            f"health {last.get('health ms', 0):.0f} ms",
        )
        say(f"  {', '.join(words)}")

    def ask_oracle(self, gateway: Gateway) -> None:
        """Everything has stopped: compare the books and the tables."""
        book, database = self.book, gateway.state_dir / "mailgateway.sqlite3"
        for lost in book.still_owed()[:20]:
            book.violate(f"never arrived, or never acked: {lost}")
        for place in traces(database, STRANGERS):
            book.violate(f"a stranger's mail left a trace in {place}")
        for left in left_open(database):
            book.violate(f"left open: {left}")
        with closing(sqlite(database)) as rows:
            for state, count, error in rows.execute(
                "SELECT state, count(*), max(last_error) FROM outbox WHERE state = 'sending'"
                " OR (state = 'failed' AND last_error NOT LIKE 'bounced%')"
                " GROUP BY state"
            ):
                book.violate(f"{count} mails are {state}: {error}")
            (routes,) = rows.execute("SELECT count(*) FROM route").fetchone()
        sent = 20 + 1.1 * (book.figures["mails that left"] + book.figures["refused smtp_failed"])
        if routes > sent:
            book.violate(f"{routes} routes for {sent:.0f} mails sent")
        interrupted = book.figures["smtp server restarted"] + book.figures["service killed"]
        if book.figures["second copies"] > interrupted:
            book.violate(f"{book.figures['second copies']} second copies, {interrupted} interruptions")
        if book.figures["health ms, 99 of 100"] > SLOWEST_HEALTH_MS:
            book.violate("the answers of /health are slow")
        self.read_log(gateway)

    def read_log(self, gateway: Gateway) -> None:
        """Whatever the service did not expect ends the soak; so does a secret in its log."""
        log = gateway.log()
        for word in ("Traceback", PASSWORD):
            if word in log:
                self.book.violate(f"the log has {word[:9]}: {log[max(0, log.find(word) - 300) :][:3_000]}")

    def trends(self) -> list[Trend]:
        """Every curve that must be flat, beside its limit."""
        limits: dict[str, Limit] = dict(LIMITS)
        limits |= {f"{table} rows": ROWS for table in TABLES if table not in KEPT | {"fate"}}
        limits["fate rows"] = FATES
        return trends(self.curves, limits)


def report(soak: Soak, found: list[Trend]) -> Mapping[str, object]:
    """Print what came of it, and give it as a value."""
    say("  what happened")
    for name, count in sorted(soak.book.figures.items()):
        say(f"    {name:<28} {count:>9,}")
    say(f"    {'CPU seconds of the service':<28} {soak.cpu:>9.1f}")
    say("  curves over the second half             median      last    growth   may grow")
    for each in found:
        mark = "" if each.flat else "   NOT FLAT"
        say(
            f"    {each.name:<32} {each.median:>11.1f} {each.last:>9.1f} {each.growth:>+9.1f}"
            f" {each.allowed:>10.1f}{mark}"
        )
    for violation in soak.book.violations:
        say(f"  VIOLATION: {violation}")
    return {
        "seconds": soak.seconds,
        "rate": soak.rate,
        "seed": soak.seed,
        "figures": dict(soak.book.figures),
        "cpu": soak.cpu,
        "violations": soak.book.violations,
        "trends": {each.name: [each.median, each.last, each.growth, each.allowed] for each in found},
        "times": soak.curves.times,
        "curves": soak.curves.values,
    }


def main() -> int:
    """Run as told; 0 when the oracle is content and every curve is flat."""
    parser = argparse.ArgumentParser(description="Drive the service for as long as it is told.")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--rate", type=float, default=10.0, help="mails a second")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--kills", type=int, default=0, help="SIGKILLs in the first quarter")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--plot", type=Path, help="where the picture (SVG) goes")
    given = parser.parse_args()
    say(f"  {given.minutes:g} minutes, {given.rate:g} mails a second, seed {given.seed}")
    soak = Soak(given.minutes * 60, given.rate, given.seed, given.kills)
    with folder() as root:
        soak.run(root)
    found = soak.trends()
    value = report(soak, found)
    if given.json is not None:
        given.json.write_text(json.dumps(value))
    if given.plot is not None:
        given.plot.parent.mkdir(parents=True, exist_ok=True)
        posted = soak.book.posted_mails()
        figures = soak.book.figures
        title = (
            f"{given.minutes:g} minutes: {posted:,} mails came, {figures['acked']:,} deliveries were acked, "
            f"{figures['mails that left']:,} mails left"
        )
        given.plot.write_text(svg(soak.curves, PANELS, title))
    good = not soak.book.violations and all(each.flat for each in found)
    say("  all is well" if good else "  FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
