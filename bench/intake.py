"""How many mails are taken in per second: from the IMAP bytes to the commit.

The service idles at a server that replays prepared bytes; then 2,000 replies are announced at once, and the
clock runs until it is back in IDLE with an envelope for each.  The plain alternative reads the same mails
with ``imaplib``, parses them with ``email``, and inserts one row each, one FULL commit for 500 of them.
"""

import email
import email.policy
import imaplib
import sqlite3
import time
from pathlib import Path

from _replay import ReplayServer
from _world import AGENT, PASSWORD, ROBIN, Service, folder, replies, reply, row, show_help

from mailgateway.domain.judge import FromPerson, judge
from mailgateway.mail.own import Own

COUNT = 2_000
WINDOW = 500


def ours(path: Path) -> float:
    """Mails per second through the service."""
    server = ReplayServer(replies(COUNT), visible=0).start()
    service = Service(path, server.port)
    try:
        service.prepare()
        service.launch()
        service.wait_healthy()
        server.idle_since(0)
        began = server.announce(COUNT)
        ended = server.idle_since(COUNT)
        assert service.count("envelope") == COUNT, service.count("envelope")
        return COUNT / (ended - began)
    finally:
        service.stop()
        server.stop()


def plain(path: Path) -> float:
    """Mails per second, without any of the rules."""
    server = ReplayServer(replies(COUNT), visible=COUNT).start()
    rows = sqlite3.connect(path / "plain.db", isolation_level=None)
    rows.execute("PRAGMA journal_mode=WAL")
    rows.execute("PRAGMA synchronous=FULL")
    rows.execute("CREATE TABLE mail (uid INTEGER PRIMARY KEY, sender TEXT, subject TEXT, body TEXT)")
    try:
        connection = imaplib.IMAP4("127.0.0.1", server.port)
        connection.login(AGENT, PASSWORD)
        connection.select()
        began = time.perf_counter()
        for first in range(1, COUNT + 1, WINDOW):
            _, data = connection.uid("FETCH", f"{first}:{first + WINDOW - 1}", "(BODY.PEEK[])")
            rows.execute("BEGIN IMMEDIATE")
            for item in data:
                if isinstance(item, tuple):
                    mail = email.message_from_bytes(item[1], policy=email.policy.default)
                    rows.execute(
                        "INSERT INTO mail (sender, subject, body) VALUES (?, ?, ?)",
                        (mail["From"], mail["Subject"], mail.get_content()),
                    )
            rows.execute("COMMIT")
        took = time.perf_counter() - began
        connection.logout()
        return COUNT / took
    finally:
        server.stop()


def judged() -> float:
    """Mails per second through the pure part: read, classified, authenticated, claims found."""
    own = Own(addresses=[AGENT], allowed=[ROBIN], trusted_authserv_ids=["mx.example.org"])
    raws = [reply(number) for number in range(COUNT)]
    began = time.perf_counter()
    for raw in raws:
        assert isinstance(judge(raw, own), FromPerson)
    return COUNT / (time.perf_counter() - began)


def parsed() -> float:
    """Mails per second that ``email`` alone reads."""
    raws = [reply(number) for number in range(COUNT)]
    began = time.perf_counter()
    for raw in raws:
        mail = email.message_from_bytes(raw, policy=email.policy.default)
        assert all((mail["From"], mail["Subject"], mail.get_content()))
    return COUNT / (time.perf_counter() - began)


if __name__ == "__main__":
    show_help(__doc__)
    with folder() as one:
        mine, theirs = ours(one), plain(one)
        row(
            "mails taken in",
            f"{mine:.0f} /s",
            plain=f"{theirs:.0f} /s",
            ratio=mine / theirs,
            aims="must 500 /s, aim 1,500 /s",
        )
    mine, theirs = judged(), parsed()
    row("the pure part alone", f"{mine:.0f} /s", plain=f"{theirs:.0f} /s", ratio=mine / theirs)
