"""Mails as tests need them: few arguments, exact bytes."""

import re
from collections.abc import Iterable

from mailgateway.ids import MessageId
from mailgateway.mail.own import Own

AGENT = "agent@example.org"
PERSON = "robin@example.org"
EVIL = "eve@evil.example"
SENT_ID = MessageId("<mg.f913c9.00112233445566778899aabb.0a1b2c3d@example.org>")
SENT_TEXT = """\
Which database?

Shall I use SQLite or PostgreSQL?

1. SQLite
2. PostgreSQL

Reply in your own words.
"""
AUTHSERV = "mx.example.net"
GOOD_RESULTS = (
    f"{AUTHSERV};\r\n dkim=pass header.d=example.org header.i=@example.org;\r\n"
    " spf=pass smtp.mailfrom=robin@example.org;\r\n dmarc=pass header.from=example.org"
)
RECEIVED = (
    f"from mail.example.org (mail.example.org [192.0.2.7]) by {AUTHSERV} with ESMTPS id 1; Mon, 30 Nov 2026"
)

OWN = Own(
    addresses=[AGENT],
    names=["Coding agents"],
    allowed=[PERSON],
    plus_addresses={AGENT: True},
    trusted_authserv_ids=[AUTHSERV],
)


def lay(fields: Iterable[tuple[str, str | bytes]], body: str = "") -> bytes:
    """Fields exactly as given, then the body, with CRLF."""
    head = b"".join(
        name.encode() + b": " + (value if isinstance(value, bytes) else value.encode()) + b"\r\n"
        for name, value in fields
    )
    return head + b"\r\n" + re.sub(rb"\r?\n", b"\r\n", body.encode())


def reply(
    body: str = "Yes.\n",
    *,
    frm: str | bytes = f"Robin Sommer <{PERSON}>",
    subject: str = "Re: [mg:f913c9] Which database?",
    top: Iterable[tuple[str, str | bytes]] = (
        ("Authentication-Results", GOOD_RESULTS),
        ("Received", RECEIVED),
    ),
    more: Iterable[tuple[str, str | bytes]] = (),
    content_type: str = "text/plain; charset=utf-8",
) -> bytes:
    """A person's authenticated reply to our mail, or what a test makes of it."""
    return lay(
        [
            *top,
            ("From", frm),
            ("To", f"Coding agents <{AGENT}>"),
            ("Subject", subject),
            ("Date", "Mon, 30 Nov 2026 10:00:00 +0000"),
            ("Message-ID", "<a1@mail.example.org>"),
            ("In-Reply-To", SENT_ID),
            ("References", SENT_ID),
            ("MIME-Version", "1.0"),
            ("Content-Type", content_type),
            *more,
        ],
        body,
    )
