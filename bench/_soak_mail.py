"""The mixed mail of a soak: what people, strangers and machines send to an agent's address."""

import random
from base64 import encodebytes
from datetime import UTC, datetime
from email.utils import format_datetime

from _world import AGENT, ROBIN
from attrs import frozen

STRANGERS = "strangers.example"
"""The domain of everybody whose mail must leave no trace."""

RESULTS = "mx.example.org; dkim={} header.d=example.net; dmarc={} header.from=example.net"

MIX = {
    "reply": 50,
    "stranger": 24,
    "automatic": 8,
    "forged": 4,
    "bounce": 3,
    "big": 2,
    "broken": 3,
    "duplicate": 6,
}
"""Of a hundred mails."""


@frozen
class Asked:
    """A mail that a session sent, which can be answered."""

    session: str
    message_id: str
    subject: str


@frozen
class Letter:
    """One mail for the agent."""

    number: int
    kind: str
    raw: bytes
    asked: Asked | None = None


def write(kind: str, number: int, asked: Asked, chance: random.Random) -> Letter:
    """Write a mail of a kind; those that answer carry the words ``answer NUMBER``."""
    match kind:
        case "stranger":
            raw = _stranger(number, chance)
        case "automatic":
            raw = _reply(number, asked, more="Auto-Submitted: auto-replied\r\n")
        case "forged":
            raw = _reply(number, asked, verdict="fail")
        case "bounce" | "second bounce":
            raw = _bounce(number, asked)
        case "big":
            raw = _reply(
                number, asked, attached=chance.randbytes(chance.choice((20_000, 300_000, 1_500_000)))
            )
        case "broken":
            raw = _broken(number, asked, chance)
        case _:
            raw = _reply(number, asked, quoted=chance.random() < 0.7)
    return Letter(number, kind, raw, asked)


def _date() -> str:
    return format_datetime(datetime.now(UTC))


def _head(number: int, asked: Asked, verdict: str = "pass", more: str = "") -> str:
    return (
        f"Authentication-Results: {RESULTS.format(verdict, verdict)}\r\n"
        f"Received: from out.example.net (out.example.net [192.0.2.7])\r\n"
        f"\tby mx.example.org with ESMTPS id 4F{number:06d}; {_date()}\r\n"
        f"Message-ID: <letter-{number}@mail.example.net>\r\n"
        f"Date: {_date()}\r\n"
        f"MIME-Version: 1.0\r\n"
        f"From: Robin <{ROBIN}>\r\n"
        f"To: Agent <{AGENT}>\r\n"
        f"Subject: Re: {asked.subject}\r\n"
        f"In-Reply-To: {asked.message_id}\r\n"
        f"References: {asked.message_id}\r\n{more}"
    )


def _reply(
    number: int,
    asked: Asked,
    *,
    verdict: str = "pass",
    more: str = "",
    quoted: bool = True,
    attached: bytes = b"",
) -> bytes:
    text = f"This is answer {number}.\r\n"
    if quoted:
        text += f"\r\nOn Mon, 30 Nov 2026 at 09:58, Agent <{AGENT}> wrote:\r\n" + "> what was asked\r\n" * 12
    head = _head(number, asked, verdict, more)
    if not attached:
        return f"{head}Content-Type: text/plain; charset=utf-8\r\n\r\n{text}".encode()
    data = encodebytes(attached).replace(b"\n", b"\r\n")
    return (
        (
            f'{head}Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n'
            f"Content-Type: text/plain\r\n\r\n{text}\r\n--b\r\n"
            f"Content-Type: application/octet-stream\r\n"
            f'Content-Disposition: attachment; filename="log.bin"\r\n'
            f"Content-Transfer-Encoding: base64\r\n\r\n"
        ).encode()
        + data
        + b"\r\n--b--\r\n"
    )


def _stranger(number: int, chance: random.Random) -> bytes:
    return (
        f"Message-ID: <letter-{number}@{STRANGERS}>\r\nDate: {_date()}\r\n"
        f"From: News <news-{number % 97}@{STRANGERS}>\r\nTo: {AGENT}\r\n"
        f"Subject: Report {number} of {STRANGERS}\r\n\r\n"
        + "A line of a newsletter, as there are many.\r\n"
        * chance.randrange(1, 400)
    ).encode()


def _bounce(number: int, asked: Asked) -> bytes:
    return (
        f"Return-Path: <>\r\nMessage-ID: <letter-{number}@mx.example.org>\r\nDate: {_date()}\r\n"
        f"From: Mail Delivery System <MAILER-DAEMON@example.org>\r\nTo: {AGENT}\r\n"
        f"Subject: Undelivered mail\r\nAuto-Submitted: auto-replied\r\n"
        f'Content-Type: multipart/report; report-type=delivery-status; boundary="d"\r\n\r\n'
        f"--d\r\nContent-Type: text/plain\r\n\r\nSorry, number {number}.\r\n"
        f"--d\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx\r\n\r\n"
        f"Final-Recipient: rfc822; {ROBIN}\r\nAction: failed\r\nStatus: 5.1.1\r\n"
        f"--d\r\nContent-Type: message/rfc822\r\n\r\n"
        f"Message-ID: {asked.message_id}\r\nX-Mailgateway-Instance: i\r\n\r\nx\r\n--d--\r\n"
    ).encode()


def _broken(number: int, asked: Asked, chance: random.Random) -> bytes:
    head = _head(number, asked).encode()
    text = f"This is answer {number}.".encode()
    ways = (
        b'Content-Type: multipart/mixed; boundary="never"\r\n\r\n' + text,
        b"Content-Type: text/plain; charset=no-such-charset\r\n\r\n" + text + chance.randbytes(300),
        b"Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n====" + text,
        b'Content-Type: multipart/mixed; boundary="a"\r\n\r\n' + b"--a\r\nContent-Type: multipart/mixed;"
        b' boundary="a"\r\n\r\n' * 200 + text,
        b"X-Odd: \x00\xff" + b"x" * 5_000 + b"\r\nContent-Type: text/html\r\n\r\n<p>" + text + b"<" * 3_000,
    )
    raw = (head + chance.choice(ways)).replace(b"\n", b"\r\n").replace(b"\r\r\n", b"\r\n")
    return raw + b"\r\n"
