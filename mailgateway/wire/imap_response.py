"""What a server says, as values (RFC 3501 section 7, RFC 4731 ESEARCH, RFC 7162 VANISHED, RFC 2971 ID).

One frame is one response.  Keywords are taken in any case, numbers and texts may be missing, and what we do
not know is ``Other``: servers may say more than we asked for.  Text for people is never parsed beyond the
response code in front of it.  Names, flags and texts stay bytes; whoever shows them decodes them.
"""

import re
from enum import Enum
from functools import lru_cache
from typing import TypeAlias

from attrs import frozen

from mailgateway.errors import ProtocolViolation
from mailgateway.wire.imap_fetch import Fetched, Unreadable, parse_fetch
from mailgateway.wire.imap_lexer import Atom, Frame, Malformed, Reader
from mailgateway.wire.uid_set import UidSet


class Condition(Enum):
    """How a status response judges."""

    OK = b"OK"
    NO = b"NO"
    BAD = b"BAD"
    BYE = b"BYE"
    PREAUTH = b"PREAUTH"


@frozen
class Status:
    """A status response: the greeting, the end of a command (with its tag), or news (untagged)."""

    tag: bytes | None
    condition: Condition
    code: bytes = b""
    """The response code in upper case, ``UIDNEXT`` of ``[UIDNEXT 7]``; empty without one."""
    arguments: bytes = b""
    text: bytes = b""
    """For people: any language, any bytes."""


@frozen
class Continuation:
    """``+``: the server waits for more of a command."""

    text: bytes


@frozen
class Capability:
    """What the server can do, names in upper case."""

    names: frozenset[bytes]


@frozen
class Exists:
    """How many messages the selected mailbox holds."""

    count: int


@frozen
class Expunge:
    """A message is gone; which one, only its sequence number tells, which we do not follow."""


@frozen
class Vanished:
    """These messages are gone; ``earlier`` ones were gone before we selected the mailbox."""

    uids: UidSet
    earlier: bool


@frozen
class Found:
    """The answer to a search."""

    uids: UidSet


@frozen
class Listed:
    """A mailbox of a LIST: ``name`` as the raw bytes to send back, ``delimiter`` None for a flat name."""

    name: bytes
    delimiter: bytes | None
    attributes: frozenset[bytes]
    r"""In lower case: ``\sent``, ``\noselect``."""


@frozen
class MailboxStatus:
    """The answer to STATUS; the numbers that it held, by item name in upper case."""

    name: bytes
    items: tuple[tuple[bytes, int], ...]


@frozen
class Identification:
    """The answer to ID: pairs of field and value."""

    fields: tuple[tuple[bytes, bytes], ...]


@frozen
class Other:
    """A response that we do not need (FLAGS, RECENT, ENABLED, ...)."""

    keyword: bytes


Data: TypeAlias = (
    Capability
    | Exists
    | Expunge
    | Vanished
    | Found
    | Listed
    | MailboxStatus
    | Identification
    | Fetched
    | Unreadable
    | Other
)
Response: TypeAlias = Status | Continuation | Data

_STATUS = re.compile(
    rb"(\S++) ++(OK|NO|BAD|BYE|PREAUTH)(?: ++(?:\[([^\]\s]++)(?: ++([^\]]*+))?\])?(.*))?",
    re.IGNORECASE | re.DOTALL,
)
_DATA = re.compile(rb"\* +(?:(\d{1,10}) +)?([A-Z][A-Z0-9.-]*)(?: +|(?=\()|\Z)", re.IGNORECASE)


def parse(frame: Frame) -> Response | None:
    """The response in a frame; None for an empty line.

    ``ProtocolViolation`` if it begins like no response at all: then the bytes have slipped out of their
    frames, and the words of a mail might be taken for the server's.
    """
    fetched = parse_fetch(frame)
    if fetched is not None:
        return fetched
    line = frame[0].lstrip(b"\0 ")
    if line.startswith(b"+"):
        return Continuation(line[1:].strip())
    status = _STATUS.fullmatch(line)
    if status is not None:
        tag, condition, code, arguments, text = status.groups(b"")
        return Status(
            None if tag == b"*" else tag, Condition(condition.upper()), code.upper(), arguments, text.strip()
        )
    data = _DATA.match(line)
    if data is None:
        if line.strip():
            raise ProtocolViolation("the server sent a line that is no response")
        return None
    keyword = data.group(2).upper()
    reader = Reader([line, *frame[1:]], data.end())
    try:
        return _data(keyword, data.group(1), line[data.end() :], reader)
    except ValueError as error:
        return Unreadable(keyword, None, str(error))


@lru_cache(maxsize=64)
def names_of(text: bytes) -> frozenset[bytes]:
    """The capability names in the text of a CAPABILITY response or code; connections share it."""
    return frozenset(text.upper().split())


def _data(keyword: bytes, number: bytes | None, rest: bytes, reader: Reader) -> Data:
    """An untagged response that is no status; ``ValueError`` if its words do not fit its keyword."""
    match keyword:
        case b"CAPABILITY":
            return Capability(names_of(rest))
        case b"EXISTS" if number is not None:
            return Exists(int(number))
        case b"EXPUNGE" if number is not None:
            return Expunge()
        case b"VANISHED":
            earlier = rest[:9].upper() == b"(EARLIER)"
            return Vanished(UidSet.parse(rest[9:].strip() if earlier else rest.strip()), earlier)
        case b"SEARCH":
            numbers = rest.partition(b"(")[0]
            return Found(UidSet.of(map(int, numbers.split())))
        case b"ESEARCH":
            return _esearch(reader)
        case b"LIST" | b"XLIST":
            return _listed(reader)
        case b"STATUS":
            return _mailbox_status(reader)
        case b"ID":
            return _identification(reader)
        case _:
            return Other(keyword)


def _esearch(reader: Reader) -> Found:
    """``(TAG "A1") UID ALL 1:3 COUNT 3``; without ALL the set is empty (RFC 4466 section 2.6.2)."""
    uids = UidSet()
    while not reader.at_end():
        value = reader.value()
        if not isinstance(value, Atom) or value.upper() == b"UID":
            continue
        result = reader.value()
        if value.upper() == b"ALL" and isinstance(result, bytes):
            uids = UidSet.parse(result)
    return Found(uids)


def _listed(reader: Reader) -> Listed:
    r"""``(\Sent) "/" "Sent Items"``, with extended data after it or not (RFC 5258)."""
    attributes, delimiter = reader.value(), reader.value()
    if not isinstance(attributes, tuple) or isinstance(delimiter, tuple):
        raise Malformed("LIST without attributes and delimiter")
    names = frozenset(bytes(attribute).lower() for attribute in attributes if isinstance(attribute, bytes))
    return Listed(_mailbox(reader), None if delimiter is None else bytes(delimiter), names)


def _mailbox(reader: Reader) -> bytes:
    """The name of a mailbox; a mailbox may be called NIL."""
    value = reader.value()
    if isinstance(value, tuple):
        raise Malformed("expected the name of a mailbox")
    return b"NIL" if value is None else bytes(value)


def _mailbox_status(reader: Reader) -> MailboxStatus:
    """``INBOX (MESSAGES 3 UIDNEXT 9)``; what is no number is left out."""
    name, items = _mailbox(reader), reader.value()
    if not isinstance(items, tuple):
        raise Malformed("STATUS without items")
    pairs = zip(items[::2], items[1::2], strict=False)
    return MailboxStatus(
        name,
        tuple(
            (bytes(item).upper(), int(value))
            for item, value in pairs
            if isinstance(item, bytes) and isinstance(value, Atom) and value.isdigit() and len(value) < 20
        ),
    )


def _identification(reader: Reader) -> Identification:
    """``("name" "Dovecot")`` or NIL; a field without a value is left out."""
    if reader.at_end():
        return Identification(())
    fields = reader.value() or ()
    if not isinstance(fields, tuple):
        raise Malformed("ID is no list")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return Identification(
        tuple(
            (bytes(name), bytes(value))
            for name, value in pairs
            if isinstance(name, bytes) and isinstance(value, bytes)
        )
    )
