"""What a FETCH response says of one message (RFC 3501 section 7.4.2).

Only the items that we ask for are understood; others are read over, whatever they hold.  Sequence numbers are
dropped here, since an EXPUNGE may shift them between any two responses: a message is known by its UID alone.

There are two readers that agree on everything that the first one takes: one regular expression over the
bytes as they came, for the shape that servers nearly always use for header fields, and the patient reader of
frames for everything else.
"""

import re
from datetime import datetime

from attrs import field, frozen

from mailgateway.wire.imap_lexer import Atom, Frame, Framer, Malformed, Reader, Value
from mailgateway.wire.uid_set import MAX_UID


@frozen
class Fetched:
    """One FETCH response; None stands for what it does not hold (or holds as NIL)."""

    uid: int | None = None
    size: int | None = None
    """RFC822.SIZE in octets; servers are known to tell wrong sizes."""
    internal_date: bytes | None = None
    header: bytes | None = field(default=None, repr=False)
    """``BODY[HEADER]`` or ``BODY[HEADER.FIELDS (...)]``."""
    body: bytes | None = field(default=None, repr=False)
    """``BODY[]``, from its first octet on."""


@frozen
class Unreadable:
    """A response whose words make no sense; the ones before and after it are fine.

    ``keyword`` is the kind of response (``FETCH``, ``SEARCH``); ``uid`` the message's, if it was readable.
    """

    keyword: bytes
    uid: int | None
    reason: str


_USUAL = re.compile(
    rb"\* \d{1,10}+ FETCH \((?:"
    rb"(?(1)(?!)|UID ([1-9]\d{0,8}+) )|RFC822\.SIZE (\d{1,10}+) |INTERNALDATE \"([A-Za-z0-9 :+-]*+)\" "
    rb")*+(?(1)|(?!))BODY\[HEADER\.FIELDS \([A-Za-z0-9 -]*+\)\] \{(\d{1,7}+)\}\r\n"
)
"""Facts in any order, the UID among them, once; then the header fields, which end the response."""

_FETCH = re.compile(rb"[\0 ]*\* +\d+ +FETCH *(?=\()", re.IGNORECASE)
_UID = re.compile(rb"[( ]UID +(\d{1,10})[ )]", re.IGNORECASE)
_OPEN, _CLOSE = b"()"


def take_usual(framer: Framer) -> list[Fetched]:
    """The fast way: the responses that come next, as many as are usual answers for header fields."""
    return [
        Fetched(int(uid), None if size is None else int(size), date, header)
        for (uid, size, date, _), header in framer.take_usual(_USUAL)
    ]


def parse_fetch(frame: Frame) -> Fetched | Unreadable | None:
    """The patient way: any order, any spelling, and items that nobody asked for; None if it is no FETCH."""
    start = _FETCH.match(frame[0])
    if start is None:
        return None
    reader = Reader(frame, start.end())
    uid: int | None = None
    size: int | None = None
    date: bytes | None = None
    header: bytes | None = None
    body: bytes | None = None
    try:
        reader.takes(_OPEN)
        while not reader.takes(_CLOSE):
            name, section, origin = reader.name(), reader.section(), reader.origin()
            value = reader.value()
            match name:
                case b"UID":
                    if uid not in {None, number := _uid(value)}:
                        raise Malformed("two UIDs for one message")
                    uid = number
                case b"RFC822.SIZE":
                    size = int(value) if isinstance(value, Atom) and value.isdigit() else None
                case b"INTERNALDATE":
                    date = _text(value)
                case b"BODY" if section == b"" and not origin:
                    body = _text(value)
                case b"BODY" if section is not None and section.partition(b" ")[0] in _HEADERS:
                    header = _text(value)
                case _:
                    pass
        if not reader.at_end():
            raise Malformed("more after the end of the items")
    except Malformed as error:
        return Unreadable(b"FETCH", uid or _guess(frame), str(error))
    return Fetched(uid, size, date, header, body)


_HEADERS = frozenset({b"HEADER", b"HEADER.FIELDS", b"HEADER.FIELDS.NOT"})


def _uid(value: Value) -> int:
    """A UID, which everything else hangs on."""
    if not isinstance(value, Atom) or not value.isdigit() or len(value) > 10:
        raise Malformed("the UID is no number")
    uid = int(value)
    if not 0 < uid <= MAX_UID:
        raise Malformed("the UID is out of range")
    return uid


def _text(value: Value) -> bytes | None:
    """A string or NIL."""
    if isinstance(value, tuple):
        raise Malformed("a list where a string belongs")
    return value


def _guess(frame: Frame) -> int | None:
    """The UID of a message whose items cannot be read, if it stands before anything that a sender wrote."""
    found = _UID.search(frame[0].partition(b'"')[0])
    uid = int(found.group(1)) if found else 0
    return uid if 0 < uid <= MAX_UID else None


_MONTHS = {
    name: b"%02d" % number
    for number, name in enumerate(b"jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)
}


def parse_internal_date(text: bytes | None) -> datetime | None:
    """The aware time that an INTERNALDATE tells (RFC 3501, ``date-time``); None if it tells none.

    A time without a zone counts as UTC.  The text is put in the order of ISO 8601, which Python reads
    faster than we could take it apart; a mailbox that is read for the first time has very many.
    """
    if text is None:
        return None
    try:
        day, month, rest = text.strip().split(b"-", 2)
        numbers = (rest[:4], _MONTHS[month.lower()], day.rjust(2, b"0"), rest[5:13], rest[14:] or b"+0000")
        return datetime.fromisoformat((b"%b-%b-%bT%b%b" % numbers).decode("ascii"))
    except (ValueError, KeyError):
        return None
