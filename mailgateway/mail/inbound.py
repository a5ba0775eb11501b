"""Reading a mail: first the few header fields of a scan, then, for a candidate, the whole.

The scan reads the headers of every mail in a mailbox, 50,000 of them at a start, so `is_candidate` looks at
the raw bytes first and parses only what may concern us.  It may take a stranger's mail for a candidate; it
must never pass over a person's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from attrs import field, frozen

from mailgateway.ids import MessageId
from mailgateway.mail.decode import (
    HEADER_LIMIT,
    Field,
    Malformed,
    body_after,
    decode_header,
    parse_fields,
    parse_fields_kindly,
)
from mailgateway.mail.mime import Walked, content_type_of, first, walk
from mailgateway.mail.own import Own, normalise_address
from mailgateway.mail.parts import Texts, texts_of
from mailgateway.mail.sender import OneMailbox, Sender, sender_of
from mailgateway.mail.tag import find_tag, parse_own_message_id, plus_route

SCAN_FIELDS = (
    "From",
    "To",
    "Delivered-To",
    "Subject",
    "Message-ID",
    "In-Reply-To",
    "References",
    "Auto-Submitted",
    "X-Mailgateway-Instance",
)
"""The header fields that a scan asks for; nothing else of a stranger's mail is read."""

LARGEST_MAIL = 25 * 1024 * 1024
"""Octets of a mail that is read; of a larger one only the header is."""

REFERENCE_LIMIT = 200
RECIPIENT_LIMIT = 200

_ID = re.compile(rb"<[^<>\s]{1,990}>")
_ATOM = rb"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]"
_ADDRESS = re.compile(rb"(?<!" + _ATOM + rb")" + _ATOM + rb"{1,64}+@[A-Za-z0-9-][A-Za-z0-9.-]{0,252}")
_RECIPIENT_FIELDS = frozenset({"to", "cc", "delivered-to", "x-original-to", "envelope-to"})


@frozen
class ScanHeaders:
    """The fields of a scan, as bytes; parsed when asked for."""

    raw: bytes = field(repr=False)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields as far as they can be read; that a block is malformed is found when it is read whole."""
        parsed = parse_fields(self.raw)
        return parse_fields_kindly(self.raw) if isinstance(parsed, Malformed) else parsed

    def values(self, name: str) -> Iterator[bytes]:
        """All values of a field (name in lower case), unfolded."""
        return (each.value for each in self.fields if each.name == name)

    @cached_property
    def sender(self) -> Sender:
        """The verdict on From."""
        return sender_of(self.fields)

    @cached_property
    def subject(self) -> str:
        """The first subject, decoded, or ''."""
        return decode_header(next(self.values("subject"), b""))

    @cached_property
    def message_id(self) -> str:
        """The Message-ID with its brackets, or ''."""
        return next((found for value in self.values("message-id") for found in ids_in(value)), "")

    @cached_property
    def thread_ids(self) -> tuple[str, ...]:
        """The Message-IDs in In-Reply-To and References."""
        return tuple(
            found
            for each in self.fields
            if each.name in {"in-reply-to", "references"}
            for found in ids_in(each.value)
        )

    @cached_property
    def recipients(self) -> tuple[str, ...]:
        """The addresses that the mail was sent or delivered to."""
        return addresses_in(each.value for each in self.fields if each.name in _RECIPIENT_FIELDS)


def is_candidate(raw: bytes, own: Own) -> bool:
    """Whether a mail's body is worth fetching, by the header fields of a scan.

    It is when it comes from an allowed address, carries a tag, a plus-address route or a Message-ID of ours
    in its thread, is our own, or may be a bounce.  Where From cannot be read strictly, an allowed address
    anywhere in its bytes will do, so that the refusal is counted under its name.

    A block over `HEADER_LIMIT` is never parsed: a trace of ours anywhere in it makes a candidate, which is
    then found malformed.  Of several subjects the first is looked at; a mail that has two is refused anyway.
    """
    if not may_concern(raw, own):
        return False
    return len(raw) > HEADER_LIMIT or concerns(ScanHeaders(raw), own)


def may_concern(raw: bytes, own: Own) -> bool:
    """Whether a header block can be a candidate's at all: what nearly every stranger's mail is decided by.

    Looks for our traces in the bytes and parses nothing.  It may say yes too often, never no where
    `concerns` says yes.  A trace can hide in an encoded subject, and behind NULs, which parsing drops.
    """
    lowered = raw.lower()
    for word in own.trace:
        if word in lowered:
            return True
    if b"[" in lowered:
        for word in own.tag_trace:
            if word in lowered:
                return True
    if len(raw) > HEADER_LIMIT:
        return False
    if b"\0" in lowered or b"\x1b" in lowered or (b"charset" in lowered and not lowered.isascii()):
        return True  # bytes that decoding drops, or that say themselves how they are to be decoded
    return b"=?" in lowered and _tag_may_hide(raw, lowered, own)


def _tag_may_hide(raw: bytes, lowered: bytes, own: Own) -> bool:
    """Whether the encoded words of a subject hold a tag, wherever a subject may be seen in this block."""
    if lowered.count(_SUBJECT) > SUBJECTS or lowered.count(b"\r") != lowered.count(b"\r\n"):
        return True
    at = lowered.find(_SUBJECT)
    while at >= 0:
        at += len(_SUBJECT)
        found = _VALUE.match(raw, at)
        if found is not None and b"=?" in found[1]:
            subject = decode_header(_FOLD.sub(b"", found[1]))
            if find_tag(subject, own.accepted_tags) is not None:
                return True
        at = lowered.find(_SUBJECT, at)
    return False


_SUBJECT = b"subject"
_VALUE = re.compile(rb"\s*+:([^\n]*+(?:\n[ \t][^\n]*+)*+)")
_FOLD = re.compile(rb"\r?\n(?=[ \t])")
SUBJECTS = 3
"""How often the word may stand in a header block before all of its fields are parsed."""


def concerns(headers: ScanHeaders, own: Own) -> bool:
    """What makes a candidate, by the parsed fields."""
    match headers.sender:
        case OneMailbox(address=address):
            if address in own.allowed or address.partition("@")[0].lower() in _DAEMONS:
                return True
        case _:
            raw = b" ".join(headers.values("from")).lower()
            if any(address.lower().encode() in raw for address in own.allowed):
                return True
            if any(daemon.encode() in raw for daemon in _DAEMONS):
                return True
    marker = own.marker_header.lower()
    return (
        find_tag(headers.subject, own.accepted_tags) is not None
        or any(each.name == marker for each in headers.fields)
        or any(is_own_id(each, own) for each in (headers.message_id, *headers.thread_ids))
        or any(
            plus_route(recipient, account) is not None
            for account, on in own.plus_addresses.items()
            if on
            for recipient in headers.recipients
        )
    )


_DAEMONS = frozenset({"mailer-daemon", "postmaster"})


def is_own_id(text: str, own: Own) -> bool:
    """Whether a Message-ID is of the gateway, or of any gateway."""
    return text in own.message_ids or parse_own_message_id(text) is not None


def ids_in(value: bytes) -> list[str]:
    """The Message-IDs in some bytes, with their brackets, in order."""
    return [found.decode("ascii", "replace") for found in _ID.findall(value)]


def addresses_in(values: Iterable[bytes]) -> tuple[str, ...]:
    """The different addresses in field values, their domains in lower case, at most `RECIPIENT_LIMIT`."""
    found: dict[str, None] = {}
    for value in values:
        for address in _ADDRESS.findall(value):
            found[normalise_address(address.decode("ascii").rstrip("."))] = None
            if len(found) >= RECIPIENT_LIMIT:
                return tuple(found)
    return tuple(found)


# --------------------------------------------------------------------------- the whole mail


@frozen
class Inbound:
    """A mail with all its bytes, the body beginning at ``body_start``.

    Only the outermost header decides who is let in, and it is all that was read; what is in the body is
    found when it is asked for.
    """

    fields: tuple[Field, ...] = field(repr=False)
    sender: Sender
    raw: bytes = field(repr=False)
    body_start: int

    def get(self, name: str) -> str | None:
        """The first value of a field as decoded text, or None; ``name`` in lower case."""
        values = self._values.get(name)
        return decode_header(values[0]) if values else None

    def get_all(self, name: str) -> tuple[bytes, ...]:
        """All values of a field, unfolded; ``name`` in lower case."""
        return tuple(self._values.get(name, ()))

    @cached_property
    def _values(self) -> Mapping[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for each in self.fields:
            found.setdefault(each.name, []).append(each.value)
        return found

    def count(self, name: str) -> int:
        """How many fields of a name (in lower case) there are."""
        return len(self._values.get(name, ()))

    @cached_property
    def subject(self) -> str:
        """The decoded subject, or ''."""
        return self.get("subject") or ""

    @cached_property
    def message_id(self) -> MessageId | None:
        """The Message-ID with its brackets; None when there is none that can be read."""
        return next(
            (MessageId(found) for value in self.get_all("message-id") for found in ids_in(value)), None
        )

    @cached_property
    def in_reply_to(self) -> tuple[MessageId, ...]:
        """The Message-IDs of In-Reply-To, as they stand."""
        return tuple(MessageId(found) for value in self.get_all("in-reply-to") for found in ids_in(value))[
            :REFERENCE_LIMIT
        ]

    @cached_property
    def references(self) -> tuple[MessageId, ...]:
        """The Message-IDs of References in document order (oldest first), the newest `REFERENCE_LIMIT`."""
        return tuple(MessageId(found) for value in self.get_all("references") for found in ids_in(value))[
            -REFERENCE_LIMIT:
        ]

    @cached_property
    def date(self) -> str:
        """The Date field as it stands, or ''; a sender's claim that nothing is decided by."""
        return self.get("date") or ""

    @cached_property
    def recipients(self) -> tuple[str, ...]:
        """The addresses in To and Cc; what servers note about the delivery is not the sender's word."""
        return self.recipients_in("to", "cc")

    def recipients_in(self, *names: str) -> tuple[str, ...]:
        """The addresses in some fields (names in lower case)."""
        return addresses_in(each.value for each in self.fields if each.name in names)

    @cached_property
    def tree(self) -> Walked:
        """The parts of the body."""
        return walk(self.fields, self.raw, self.body_start)

    @cached_property
    def content_type(self) -> tuple[str, Mapping[str, str]]:
        """The type of the whole mail in lower case, and its parameters."""
        return content_type_of(first(self.fields, "content-type"))

    @property
    def texts(self) -> tuple[str, ...]:
        """The plain text parts of the mail itself, decoded, in order, `TEXT_LIMIT` characters together."""
        return self.plain.texts

    @property
    def htmls(self) -> tuple[str, ...]:
        """The HTML parts of the mail itself, likewise."""
        return self.html.texts

    @cached_property
    def plain(self) -> Texts:
        """The plain text parts, and whether there is more of them."""
        return texts_of(self.tree, "text/plain")

    @cached_property
    def html(self) -> Texts:
        """The HTML parts, likewise."""
        return texts_of(self.tree, "text/html")

    @cached_property
    def unreadable(self) -> bool:
        """Whether the words are sealed from us: PGP/MIME or S/MIME encryption, opaque S/MIME signatures."""
        if any(kind == "multipart/encrypted" for kind, _ in self.tree.multiparts):
            return True
        return any(
            leaf.content_type in {"application/pkcs7-mime", "application/x-pkcs7-mime"}
            for leaf in self.tree.leaves
        )


def read(raw: bytes) -> Inbound | Malformed:
    """Read a whole mail from its bytes; refuses only what cannot be judged (see `parse_fields`).

    Only the header is looked at; the body costs nothing until somebody asks for something in it.
    """
    end, body_start = body_after(raw, 0)
    fields = parse_fields(raw[:end])
    if isinstance(fields, Malformed):
        return fields
    return Inbound(fields, sender_of(fields), raw, body_start)
