"""What a mail server reports on mail of ours, recipient by recipient.

A delivery report says it in fields (RFC 3464); older servers say it in prose, of which the forms of qmail,
Postfix and Exim are known, and of any other text the addresses that it names.  Nothing of a report can be
verified: it counts only as far as the returned copy holds a Message-ID of ours, and what it says is a
stranger's text, bounded and without control characters.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum, unique
from typing import assert_never

from attrs import evolve, field, frozen

from mailgateway.ids import MessageId
from mailgateway.mail.charset import decode_text
from mailgateway.mail.decode import decode_transfer, normal_lines, parse_fields_kindly, visible
from mailgateway.mail.inbound import Inbound, addresses_in, ids_in, is_own_id
from mailgateway.mail.mime import Leaf
from mailgateway.mail.own import Own, normalise_address
from mailgateway.mail.phrases import BOUNCE_SUBJECTS
from mailgateway.mail.sender import OneMailbox

SEARCH_LIMIT = 256 * 1024
"""Bytes of each part of a report that are looked at."""

PROSE_LIMIT = 16 * 1024
"""Characters of a report's prose that are looked at."""

REPORTED_LIMIT = 100
"""Recipients of one report."""

DIAGNOSTIC_LIMIT = 500
"""Characters of what a server says about one recipient."""


@unique
class Outcome(StrEnum):
    """What became of the mail to one recipient."""

    FAILED = "failed"
    """Given up."""
    DELAYED = "delayed"
    """Still tried."""
    DELIVERED = "delivered"
    """Delivered, or handed on to where no report comes from."""


@frozen(kw_only=True)
class RecipientReport:
    """One recipient of a report.

    ``recipient`` is the address as `normalise_address` gives it, ``also`` further addresses that the report
    has for the same recipient (the one that we wrote to, where the mail was forwarded).  ``status`` is the
    enhanced status code (RFC 3463), '' when there is none.  ``permanent`` is False for what may work at
    another time, also when the server has given up.  ``diagnostic`` is one line.
    """

    recipient: str
    outcome: Outcome
    status: str = ""
    permanent: bool = True
    diagnostic: str = field(default="", repr=False)
    also: tuple[str, ...] = ()


@frozen
class Bounce:
    """A mail server reports on mail.

    ``message_ids`` are those of ours found in the returned copy (a report that has none may be about
    anything, and may be forged); ``failed`` is False for mere news of delivery or delay; ``recipients`` are
    those that the report names, each once.
    """

    message_ids: tuple[MessageId, ...]
    failed: bool = True
    recipients: tuple[RecipientReport, ...] = ()


_STATUS_PARTS = frozenset({"message/delivery-status", "message/global-delivery-status"})
_RETURNED_PARTS = frozenset(
    {"message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers"}
)
_BLANK_LINE = re.compile(rb"\n[ \t]*+\n")
_STATUS = re.compile(r"(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?![.\d])")
_REPLY_CODE = re.compile(r"(?<![\d.])([245])[0-7]\d(?=[ -])")
_ACTIONS = {
    "failed": Outcome.FAILED,
    "delayed": Outcome.DELAYED,
    "delivered": Outcome.DELIVERED,
    "relayed": Outcome.DELIVERED,
    "expanded": Outcome.DELIVERED,
}


def is_report_of_server(inbound: Inbound) -> bool:
    """Whether a mail that is no multipart/report is a mail server's all the same, by its header."""
    if inbound.count("x-failed-recipients") or inbound.count("x-ms-exchange-message-is-ndr"):
        return True
    if isinstance(inbound.sender, OneMailbox):
        local = inbound.sender.address.partition("@")[0].lower()
        null_path = any(value.strip() == b"<>" for value in inbound.get_all("return-path"))
        return local in {"mailer-daemon", "mailerdaemon", "mail-daemon"} or (
            null_path
            and (
                local in {"postmaster", "bounce", "bounces"}
                or BOUNCE_SUBJECTS.match(inbound.subject) is not None
            )
        )
    # sendmail writes "<MAILER-DAEMON>" alone, and some servers nothing between the brackets
    return any(_NAMELESS.search(value) is not None for value in inbound.get_all("from"))


_NAMELESS = re.compile(rb"(?:^|[ \t<\"])mailer-daemon(?:[>\" \t(]|$)|<[ \t]*>", re.IGNORECASE)


def read_bounce(inbound: Inbound, own: Own) -> Bounce:
    """Read what a report says; of one that says nothing readable, that something failed."""
    recipients = _merged([*_from_fields(inbound), *_announced(inbound)])
    prose = "" if recipients else _prose(inbound)
    delayed = _DELAY.search(f"{inbound.subject}\n{prose[:2000]}") is not None
    if not recipients or all(not each.status and not each.diagnostic for each in recipients):
        prose = prose or _prose(inbound)
        recipients = _explained(recipients, _from_prose(prose, inbound, own, delayed=delayed))
    failed = any(each.outcome is Outcome.FAILED for each in recipients) if recipients else not delayed
    return Bounce(_returned_ids(inbound, own), failed, recipients)


def _returned_ids(inbound: Inbound, own: Own) -> tuple[MessageId, ...]:
    """The Message-IDs of ours in the returned copy, or where there is none, in the prose."""
    leaves = [leaf for leaf in inbound.tree.leaves if leaf.content_type in _RETURNED_PARTS]
    leaves = leaves or [leaf for leaf in inbound.tree.leaves if leaf.content_type == "text/plain"]
    found: dict[MessageId, None] = {}
    for leaf in leaves[:20]:
        found |= dict.fromkeys(MessageId(each) for each in ids_in(_head(leaf)) if is_own_id(each, own))
    return tuple(found)[:20]


def _head(leaf: Leaf) -> bytes:
    return decode_transfer(leaf.head(SEARCH_LIMIT), leaf.encoding)


# --------------------------------------------------------------------------- fields (RFC 3464)


def _from_fields(inbound: Inbound) -> Iterator[RecipientReport]:
    """The groups of a delivery-status part that speak of a recipient."""
    for leaf in inbound.tree.leaves[:20]:
        if leaf.content_type not in _STATUS_PARTS:
            continue
        for group in _BLANK_LINE.split(_head(leaf).replace(b"\r\n", b"\n"))[: 4 * REPORTED_LIMIT]:
            report = _of_group(group)
            if report is not None:
                yield report


def _of_group(group: bytes) -> RecipientReport | None:
    given: dict[str, str] = {}
    for each in parse_fields_kindly(group.lstrip(b"\n")):
        given.setdefault(each.name, visible(decode_text(each.value[: 8 * DIAGNOSTIC_LIMIT])))
    if not given.keys() & {"final-recipient", "original-recipient", "action", "status"}:
        return None
    addresses = dict.fromkeys(
        address
        for name in ("final-recipient", "original-recipient", "x-actual-recipient", "x-failed-recipient")
        if (address := _address(given.get(name, "")))
    )
    diagnostic = _typeless(given.get("diagnostic-code", ""))[:DIAGNOSTIC_LIMIT]
    status = _status(given.get("status", ""), diagnostic)
    outcome = _ACTIONS.get(given.get("action", "").partition(" ")[0].lower()) or _outcome_of(status)
    recipient, *also = addresses or [""]
    return RecipientReport(
        recipient=recipient,
        outcome=outcome,
        status=status,
        permanent=_permanent(outcome, status, diagnostic),
        diagnostic=diagnostic,
        also=tuple(also),
    )


def _typeless(value: str) -> str:
    """The value without its type (``rfc822;``, ``smtp;``; Gmail writes the latter twice)."""
    while (found := _TYPE.match(value)) is not None:
        value = value[found.end() :]
    return value.strip()


_TYPE = re.compile(r"\s*[A-Za-z0-9-]{1,20}\s*;\s*")


def _address(value: str) -> str:
    address = _typeless(value).strip("<>\"' ")
    return normalise_address(address) if "@" in address and " " not in address and len(address) < 320 else ""


def _status(given: str, diagnostic: str) -> str:
    """The status of the field, or that of the diagnostic text where the field says no more than its class."""
    found = _STATUS.search(given)
    if found is not None and not found[0].endswith(".0.0"):
        return found[0]
    closer = _STATUS.search(diagnostic)
    if closer is not None and (found is None or closer[0][0] == found[0][0]):
        return closer[0]
    return found[0] if found is not None else ""


def _outcome_of(status: str) -> Outcome:
    match status[:1]:
        case "2":
            return Outcome.DELIVERED
        case "4":
            return Outcome.DELAYED
        case _:
            return Outcome.FAILED


def _permanent(outcome: Outcome, status: str, diagnostic: str) -> bool:
    match outcome:
        case Outcome.FAILED:
            code = _REPLY_CODE.search(diagnostic)
            return (status or (code[1] if code is not None else "5"))[0] != "4"
        case Outcome.DELAYED | Outcome.DELIVERED:
            return False
        case _:
            assert_never(outcome)


_WEIGHT = {Outcome.FAILED: 2, Outcome.DELAYED: 1, Outcome.DELIVERED: 0}


def _merged(reports: Iterable[RecipientReport]) -> tuple[RecipientReport, ...]:
    """Each recipient once, with the worst that is said of it, or the first of equals."""
    found: dict[str, RecipientReport] = {}
    for each in reports:
        known = found.get(each.recipient)
        if known is None and len(found) >= REPORTED_LIMIT:
            break
        if known is None or _WEIGHT[each.outcome] > _WEIGHT[known.outcome]:
            found[each.recipient] = each
    return tuple(found.values())


def _announced(inbound: Inbound) -> Iterator[RecipientReport]:
    """Exim and Gmail name the failed recipients in the header."""
    for address in addresses_in(inbound.get_all("x-failed-recipients")):
        yield RecipientReport(recipient=address, outcome=Outcome.FAILED)


# --------------------------------------------------------------------------- prose

_COPY = re.compile(
    r"^(?:-{2,}.{0,80}\b(?:copy|original|header|headers|returned|message)\b.{0,80}|(?:Return-Path|Received|Message-ID):.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PREFIXED = re.compile(r"^<([^<>\s]{3,320})>:?[ \t]*+(?:\([^()\n]{0,200}\))?:?[ \t]*+(.*)$", re.MULTILINE)
_INDENTED = re.compile(r"^[ \t]{1,8}<?([^<>\s@]{1,64}@[^<>\s:]{1,255}?)>?:?[ \t]*+$", re.MULTILINE)
_DELAY = re.compile(
    r"delayed|not (?:yet )?been delivered yet|has not yet been delivered|still (?:be )?(?:trying|retr)"
    r"|will (?:continue|keep) (?:to try|trying)|will be retried|could not yet|temporarily deferred"
    r"|verzögert|noch nicht zugestellt|retardé|retrasad|ritardat|atrasad|vertraagd|försenad|forsinket"
    r"|opóźni|zpožděn|задерж|затрим|延迟|延遲|遅延|지연",
    re.IGNORECASE,
)


def _prose(inbound: Inbound) -> str:
    """What the server says in words, up to the copy of the mail."""
    texts = []
    for leaf in inbound.tree.leaves:
        if leaf.content_type in {"text/plain", ""} and leaf.is_text:
            data = decode_transfer(leaf.head(2 * PROSE_LIMIT), leaf.encoding)
            texts.append(normal_lines(decode_text(data, leaf.parameters.get("charset", ""), cut=True)))
            break
    text = "\n".join(texts)[:PROSE_LIMIT]
    copy = _COPY.search(text)
    return text if copy is None else text[: copy.start()]


def _from_prose(prose: str, inbound: Inbound, own: Own, *, delayed: bool) -> tuple[RecipientReport, ...]:
    """The recipients in the forms of qmail and Postfix, of Exim, else every stranger's address."""
    blocks = [(found[1], _paragraph(prose, found.start(2))) for found in _PREFIXED.finditer(prose)]
    blocks = blocks or [(found[1], _paragraph(prose, found.end() + 1)) for found in _INDENTED.finditer(prose)]
    if not blocks:
        sender = inbound.sender.address if isinstance(inbound.sender, OneMailbox) else ""
        strangers = (address for address in addresses_in([prose.encode()]) if address != sender)
        blocks = [(address, _around(prose, address)) for address in strangers]
    return _merged(
        _of_words(address, words, delayed=delayed)
        for given, words in blocks[:REPORTED_LIMIT]
        if (address := _address(given)) and not _is_ours(address, own)
    )


def _is_ours(address: str, own: Own) -> bool:
    local, _, domain = address.rpartition("@")
    return address in own.addresses - own.allowed or f"{local.partition('+')[0]}@{domain}" in own.addresses


def _paragraph(prose: str, start: int) -> str:
    end = prose.find("\n\n", start)
    return prose[start : end if end >= 0 else len(prose)][: 4 * DIAGNOSTIC_LIMIT]


def _around(prose: str, address: str) -> str:
    at = max(prose.find(address.partition("@")[0]), 0)
    return _paragraph(prose, max(prose.rfind("\n\n", 0, at), 0) + 2 * ("\n\n" in prose[:at]))


def _of_words(address: str, words: str, *, delayed: bool) -> RecipientReport:
    diagnostic = visible(" ".join(words.split()))[:DIAGNOSTIC_LIMIT]
    status = _status("", diagnostic)
    outcome = Outcome.DELAYED if delayed else Outcome.FAILED
    return RecipientReport(
        recipient=address,
        outcome=outcome,
        status=status,
        permanent=_permanent(outcome, status, diagnostic),
        diagnostic=diagnostic,
    )


def _explained(
    named: tuple[RecipientReport, ...], told: tuple[RecipientReport, ...]
) -> tuple[RecipientReport, ...]:
    """What prose says about the recipients that the header names; without such, of all that prose names."""
    if not named:
        return told
    words = {each.recipient: each for each in told}
    return tuple(
        evolve(
            each,
            status=more.status,
            permanent=_permanent(each.outcome, more.status, more.diagnostic),
            diagnostic=more.diagnostic,
        )
        if (more := words.get(each.recipient)) is not None
        else each
        for each in named
    )
