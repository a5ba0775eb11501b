"""What goes wrong during a soak, and who clears up: servers that come and go, a person who deletes old mail.

Time is made to pass in the rows: what is settled and gone from the mailbox is made months older, so the
upkeep that has to forget it after three months is seen at work within minutes.
"""

import contextlib
import imaplib
import re
import signal
import sqlite3
import time
from itertools import cycle
from os import kill
from pathlib import Path

from _soak_book import Book
from _soak_people import Stop, Worker, chance_of
from _world import AGENT

from tests.acceptance.harness import Gateway
from tests.fakes.dovecot import Dovecot
from tests.fakes.smtp_sink import SmtpSink

OLD_SECONDS = 60.0
CLEARING_SECONDS = 15.0
_MONTHS = 120 * 86_400 * 1_000_000
_NUMBER = re.compile(rb"<letter-(\d+)@")
IMAP_SECONDS = 80.0
"""Between two troubles of the IMAP connection: one that fails within a minute is tried ever less often."""
IMAP = (
    "imap connection cut",
    "mail server restarted",
    "mailbox renumbered",
    "imap connection cut",
    "imap connection cut",
)
"""In this order, again and again."""
SMTP = {"smtp answers 4xx": 40.0, "smtp server restarted": 90.0}
"""Seconds between two of a kind."""

_AGEING = (
    """UPDATE source SET filed_at = filed_at - :months WHERE filed_at BETWEEN :old AND :cutoff
    AND NOT (uid_validity = :validity AND uid IN (SELECT uid FROM here))""",
    """UPDATE envelope SET settled_at = settled_at - :months, filed_at = filed_at - :months
    WHERE settled_at BETWEEN :old AND :cutoff AND state IN ('acked', 'dropped')
    AND id NOT IN (SELECT envelope_id FROM source WHERE filed_at >= :old)""",
    """UPDATE journal SET acked_at = acked_at - :months WHERE acked_at BETWEEN :old AND :cutoff
    AND envelope_id NOT IN (SELECT envelope_id FROM source WHERE filed_at >= :old)""",
    "UPDATE question SET settled_at = settled_at - :months WHERE settled_at BETWEEN :old AND :cutoff",
    """UPDATE outbox SET settled_at = settled_at - :months, created_at = created_at - :months
    WHERE settled_at BETWEEN :old AND :cutoff AND state IN ('sent', 'failed', 'cancelled')""",
    """UPDATE thread SET created_at = created_at - :months, expires_at = expires_at - :months
    WHERE created_at BETWEEN :old AND :cutoff AND route_id IN (SELECT route.id FROM route
    JOIN session ON session.id = route.session_id WHERE session.left_at < :cutoff)""",
    """UPDATE runtime SET last_ping_at = last_ping_at - :months WHERE last_ping_at BETWEEN :old AND :cutoff
    AND session_id IN (SELECT id FROM session WHERE left_at < :cutoff)""",
    """UPDATE session SET last_ping_at = last_ping_at - :months
    WHERE left_at < :cutoff AND last_ping_at >= :old""",
    "UPDATE upload SET created_at = created_at - :months WHERE created_at BETWEEN :old AND :cutoff",
)
"""Whatever is at rest for a minute becomes four months older, once."""


class Trouble(Worker):
    """Whatever goes wrong, at moments that the seed says; each kind once at least."""

    def __init__(
        self,
        book: Book,
        stop: Stop,
        seed: int,
        seconds: float,
        kills: int,
        gateway: Gateway,
        dovecot: Dovecot,
        sink: SmtpSink,
    ) -> None:
        super().__init__(book, stop, chance_of(seed, "trouble"), "trouble")
        self.gateway, self.dovecot, self.sink = gateway, dovecot, sink
        chance = self.chance

        def spread(steps: int) -> list[float]:
            return [seconds * (0.08 + 0.84 * (step + 0.3 * chance.random()) / steps) for step in range(steps)]

        moments = [
            (moment, kind)
            for kind, period in SMTP.items()
            for moment in spread(max(1, round(seconds / period)))
        ]
        moments += zip(spread(max(3, round(seconds / IMAP_SECONDS))), cycle(IMAP), strict=False)
        # early, so that the second half's curves are of one life of the service, and not of its warming up
        moments += [(seconds * (0.08 + 0.17 * chance.random()), "service killed") for _ in range(kills)]
        self.moments = sorted(moments)

    def work(self) -> None:
        """Wait for the next moment."""
        began = time.monotonic()
        for moment, kind in self.moments:
            if self.stop.calm.wait(max(0.0, began + moment - time.monotonic())):
                return
            self.book.figures[kind] += 1
            self.happen(kind)

    def happen(self, kind: str) -> None:
        """Let it happen."""
        match kind:
            case "imap connection cut":
                for pid in self.dovecot.serving(AGENT):
                    with contextlib.suppress(ProcessLookupError):
                        kill(pid, signal.SIGKILL)
            case "smtp answers 4xx":
                self.sink.answers.extend(["451 4.3.0 try later"] * self.chance.randrange(1, 4))
            case "smtp server restarted":
                self.sink.stop()
                self.stop.calm.wait(2)
                self.sink.start()
            case "mail server restarted":
                self.dovecot.restart()
            case "mailbox renumbered":
                with self.book.clearing:
                    self.dovecot.recreate(AGENT)
            case "service killed":
                self.gateway.kill()
                self.gateway.start()
            case _:
                raise ValueError(kind)


class Clearing(Worker):
    """Deletes what is settled from the mailbox, then lets the months pass for the rows of it."""

    def __init__(self, book: Book, stop: Stop, dovecot: Dovecot, database: Path) -> None:
        super().__init__(book, stop, chance_of(0, "clearing"), "clearing")
        self.dovecot, self.database = dovecot, database
        self.strangers: dict[int, float] = {}

    def work(self) -> None:
        """Clear up now and then."""
        while not self.stop.over.wait(CLEARING_SECONDS):
            self.clear()

    def clear(self) -> None:
        """Clear up once, unless the mail server is away."""
        with self.book.clearing, contextlib.suppress(OSError, imaplib.IMAP4.error):
            left = self.delete_settled()
            with contextlib.suppress(sqlite3.OperationalError):
                self.age(*left)

    def delete_settled(self) -> tuple[int, set[int]]:
        """Delete the mails that are done with; the folder's numbering, and the UIDs that are left."""
        gone: set[int] = set()
        delete, left = [], set()
        with self.dovecot.client(AGENT) as client:
            validity = int(client.response("UIDVALIDITY")[1][0] or 0)
            _, data = client.uid("FETCH", "1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)])")
            for item in data or []:
                if not isinstance(item, tuple):
                    continue
                uid = int(re.search(rb"UID (\d+)", item[0])[1])  # type: ignore[index]
                number = _NUMBER.search(item[1])
                left.add(uid)
                if number is None or not self.rested(uid, validity):
                    continue
                if self.book.may_go(int(number[1]), seen=b"\\Seen" in item[0]):
                    delete.append(uid)
                    gone.add(int(number[1]))
            for start in range(0, len(delete), 200):
                client.uid(
                    "STORE", ",".join(map(str, delete[start : start + 200])), "+FLAGS.SILENT", "(\\Deleted)"
                )
            client.expunge()
        self.book.gone(gone)
        self.book.figures["mails deleted"] += len(delete)
        for path in (self.dovecot.home(AGENT) / "rawlog").glob("*"):
            path.unlink()
        return validity, left - set(delete)

    def rested(self, uid: int, validity: int) -> bool:
        """Whether a mail has been in the mailbox long enough for its copies to be there, too."""
        key = validity << 32 | uid
        first = self.strangers.setdefault(key, time.monotonic())
        if len(self.strangers) > 50_000:
            self.strangers = dict(list(self.strangers.items())[25_000:])
        return time.monotonic() - first >= CLEARING_SECONDS

    def age(self, validity: int, left: set[int]) -> None:
        """Make what is settled, and gone from the mailbox, as old as it is when it may be forgotten."""
        cutoff = int((time.time() - OLD_SECONDS) * 1_000_000)
        values = {"validity": validity, "cutoff": cutoff, "old": cutoff - _MONTHS // 2, "months": _MONTHS}
        with contextlib.closing(sqlite3.connect(self.database, timeout=2, isolation_level=None)) as rows:
            rows.execute("CREATE TEMP TABLE here (uid INTEGER PRIMARY KEY)")
            rows.executemany("INSERT INTO here VALUES (?)", [(uid,) for uid in left])
            rows.execute("BEGIN IMMEDIATE")
            if rows.execute("SELECT uid_validity FROM cursor").fetchone() == (validity,):
                # else it is still reading under the new numbers, and has to know every mail again
                for statement in _AGEING:
                    rows.execute(statement, values)
            rows.execute("COMMIT")


def traces(database: Path, text: str) -> list[str]:
    """Every column of every table that holds a text somewhere."""
    found = []
    with contextlib.closing(sqlite3.connect(database)) as rows:
        tables = [name for (name,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for column in [row[1] for row in rows.execute(f"PRAGMA table_info({table})")]:
                query = (
                    f"SELECT count(*) FROM {table} WHERE instr(CAST({column} AS BLOB), CAST(? AS BLOB)) > 0"  # noqa: S608 (ours)
                )
                if rows.execute(query, (text,)).fetchone()[0]:
                    found.append(f"{table}.{column}")
    return found


def left_open(database: Path) -> list[str]:
    """Twenty envelopes at most that nobody has acked: for whom, of which kind and mail."""
    with contextlib.closing(sqlite3.connect(database)) as rows:
        found = rows.execute(
            "SELECT kind, session_id, state, message_id FROM envelope"
            " WHERE state IN ('new', 'claimed') LIMIT 20"
        ).fetchall()
    return [f"{kind} for {session}, {state}, {message_id}" for kind, session, state, message_id in found]
