"""What a reply of a submission server means: for one recipient's mail, and for the connection.

Two questions are kept apart.  *May this mail go again?* is answered for each recipient by an ``Outcome``; a
mail is never sent twice because another recipient was refused.  *May this connection, or this password, be
used again?* is answered by an error of the tree.

Sources: RFC 5321 sections 4.2 and 4.5.3, RFC 4954 section 6 (authentication), RFC 3463 and 2034 (enhanced
codes), and what Exchange Online says when an administrator has switched authentication off.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from attrs import frozen

from mailgateway.errors import (
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    PeerError,
    ProtocolViolation,
    Throttled,
    TlsRefused,
    Unreachable,
)
from mailgateway.wire.esmtp import Reply


class Phase(StrEnum):
    """Where a connection stands; the value is what people read in error texts."""

    GREETING = "the greeting"
    EHLO = "EHLO"
    STARTTLS = "STARTTLS"
    AUTH = "AUTH"
    IDLE = "nothing"
    MAIL = "MAIL"
    RCPT = "RCPT"
    DATA = "DATA"
    BODY = "the message"
    END = "the final dot"
    RSET = "RSET"
    QUIT = "QUIT"


@frozen
class Accepted:
    """The server has taken responsibility for the mail; ``text`` often names its queue id."""

    code: int
    text: str


@frozen
class TryLater:
    """The mail was not taken now and may go again later."""

    code: int
    text: str


@frozen
class Rejected:
    """The mail will not be taken in this form; a later attempt would end the same."""

    code: int
    text: str


@frozen
class Unclear:
    """The final dot was written and no answer came: the mail may or may not be on its way (RFC 1047)."""

    text: str


Outcome = Accepted | TryLater | Rejected | Unclear


@frozen
class SubmissionResult:
    """How one mail fared.

    ``outcomes`` has one entry per recipient, in their order.  ``text`` is the server's last word on the mail
    (after an acceptance it often holds the queue id or the Message-ID it gave), or what stood in the way.
    ``dot_written`` tells whether the final dot went out, that is, whether the server can have taken the mail.
    """

    outcomes: tuple[Outcome, ...]
    text: str
    dot_written: bool


_TOO_MANY_RECIPIENTS = frozenset({"", "5.5.3"})
"""Enhanced codes with which a 552 to RCPT has to be read as 452 (RFC 5321 section 4.5.3.1.10)."""

_ADVICE = {
    "5.7.139": "an administrator has switched SMTP authentication off for this mailbox or tenant",
    "5.7.30": "this server no longer takes passwords: use OAuth",
}


_NOT_THE_SENDER = re.compile(
    r"\b5\.7\.60\b|SendAsDenied|not owned by user|send as this sender"
    r"|must (?:be (?:the )?same as|equal|match) (?:the )?auth",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(r"\b5\.(?:3\.4|2\.3)\b")

_GIVEN = re.compile(r"<([!-;=?A-~]{1,240}@[!-;=?A-~]{1,240})>")
_SES_HOST = re.compile(r"email-smtp(?:-fips)?\.([a-z0-9-]+)\.amazonaws\.com\.?", re.IGNORECASE)
_SES_ID = re.compile(r"\bok ([0-9a-f]{8,40}(?:-[0-9a-f]{1,40}){1,8})\b", re.IGNORECASE)


def advice_on(outcomes: Iterable[Outcome]) -> str:
    """What a person may do about a refusal whose reason is known; ``""``: the server's words say it all."""
    texts = [f"{each.code} {each.text}" for each in outcomes if isinstance(each, Rejected)]
    if any(_NOT_THE_SENDER.search(text) for text in texts):
        return (
            "the server takes mail only from the address that logs in: "
            "make `address` of the account that address, or allow it there as an alias"
        )
    if any(text.startswith("552") and _TOO_LARGE.search(text) for text in texts):
        return "the mail is too large for the server: send it with fewer or smaller files"
    return ""


def given_id(text: str, host: str) -> str:
    """The Message-ID that a server says it gave the mail, with its brackets; ``""`` if it says none.

    Some servers replace the one that the mail has, and answers name theirs: Outlook tells it in brackets,
    Amazon SES without its domain, which depends on the region of its ``host``.
    """
    found = _GIVEN.search(text)
    if found is not None:
        return found.group()
    region, queued = _SES_HOST.fullmatch(host), _SES_ID.search(text)
    if region is None or queued is None:
        return ""
    domain = "email" if region.group(1) == "us-east-1" else region.group(1)
    return f"<{queued.group(1)}@{domain}.amazonses.com>"


def outcome(phase: Phase, reply: Reply) -> Outcome:
    """What a reply to MAIL, RCPT, DATA or the final dot means for the mail.

    503 (bad sequence) counts as temporary: it is about the state of this connection.  A reply that is neither
    yes nor no is ``Unclear`` after the final dot, and temporary before it.
    """
    match reply.code // 100:
        case 2:
            return Accepted(reply.code, reply.text)
        case 4:
            return TryLater(reply.code, reply.text)
        case 5:
            too_many = phase is Phase.RCPT and reply.code == 552
            if reply.code == 503 or (too_many and reply.enhanced in _TOO_MANY_RECIPIENTS):
                return TryLater(reply.code, reply.text)
            return Rejected(reply.code, reply.text)
        case _ if phase is Phase.END:
            return Unclear(f"the server answered {reply} to the final dot")
        case _:
            return TryLater(reply.code, reply.text)


def refusal(phase: Phase, reply: Reply, status: str = "") -> PeerError:
    """What an unwelcome reply means for the connection and the login.

    ``status`` is the status of the error document of a token mechanism, ``""`` if none came.  The error's
    ``code`` is the reply's number, and after a space that status, or else the enhanced code, if there is one:
    ``535 invalid_token``, ``535 5.7.8``, ``421``.
    """
    code = f"{reply.code} {status or reply.enhanced}".rstrip()
    text = f"the server answered to {phase}: {reply}"
    if phase is Phase.IDLE and reply.code == 421:
        return Unreachable(text, code=code)  # it has only grown tired of waiting
    if reply.code == 421 or (reply.code < 500 and "too many" in reply.text.lower()):
        return Throttled(text, code=code)
    match phase:
        case Phase.GREETING if reply.code < 500:
            return Throttled(text, code=code)
        case Phase.STARTTLS if reply.code < 500:
            return Unreachable(text, code=code)  # RFC 3207 section 4: a temporary fault
        case Phase.STARTTLS:
            return TlsRefused(text, code=code)
        case Phase.AUTH:
            return _login_refusal(reply, text, code, status)
        case _ if reply.code in {530, 534, 535, 538}:
            return LoginRefused(text, code=code)
        case _ if 400 <= reply.code < 600:
            return CommandRefused(text, code=code)
        case _:
            return ProtocolViolation(text, code=code)


def _login_refusal(reply: Reply, text: str, code: str, status: str) -> PeerError:
    """What an unwelcome reply to AUTH means."""
    if status:
        return LoginRefused(f"{text} (token status {status})", code=code)
    if 400 <= reply.code < 500 or reply.enhanced.startswith("4."):
        return LoginUnavailable(text, code=code)
    if reply.enhanced in _ADVICE:
        return LoginRefused(f"{text}: {_ADVICE[reply.enhanced]}", code=code)
    if reply.code in {500, 501, 502, 503, 504} and not reply.enhanced.startswith("5.7."):
        return CommandRefused(text, code=code)  # about the command or the mechanism, not the password
    if reply.code < 400:
        return ProtocolViolation(text, code=code)
    return LoginRefused(text, code=code)
