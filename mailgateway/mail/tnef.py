"""The files inside a ``winmail.dat``: what Outlook makes of attachments for those who it thinks use Outlook.

A TNEF stream ([MS-OXTNEF]) is a signature and a flat list of attributes; each attachment begins with its
rendering data, and its name and bytes follow, or stand among its MAPI properties.  Only names, types and
bytes of attachments are read.  Every length is checked against what is there, nothing is expanded, nothing is
run: the files together are never larger than the stream.
"""

import struct
from collections.abc import Iterator

from attrs import define, field, frozen

from mailgateway.mail.charset import decode_text

SIGNATURE = b"\x78\x9f\x3e\x22"
FILES_LIMIT = 100
ATTRIBUTES_LIMIT = 10_000
PROPERTIES_LIMIT = 1_000
NAME_LIMIT = 1_000
"""Bytes of a name that are read."""

_ATTACHMENT = 2  # level of an attribute that belongs to an attachment
_TITLE, _DATA, _RENDER, _PROPERTIES = 0x8010, 0x800F, 0x9002, 0x9005
_CODEPAGE = 0x9007
_PR_DATA, _PR_FILENAME, _PR_LONG_FILENAME, _PR_MIME_TAG = 0x3701, 0x3704, 0x3707, 0x370E

_FIXED = {0x0002: 4, 0x0003: 4, 0x0004: 4, 0x0005: 8, 0x0006: 8, 0x0007: 8, 0x000A: 4, 0x000B: 4}
_FIXED |= {0x0014: 8, 0x0040: 8, 0x0048: 16}
"""Property types of a fixed size -> bytes, padding included."""
_VARIABLE = frozenset({0x000D, 0x001E, 0x001F, 0x0102})
_STRING, _UNICODE, _OBJECT = 0x001E, 0x001F, 0x000D
_MANY = 0x1000
_NAMED = 0x8000


@frozen
class TnefFile:
    """One file; ``filename`` as it stands, ``content_type`` ``""`` where none is given."""

    filename: str
    content_type: str
    data: bytes = field(repr=False)


class _Broken(Exception):
    """The stream does not hold what it says."""


@define
class _Attachment:
    title: bytes = b""
    long_name: str = ""
    content_type: str = ""
    data: bytes | None = None
    inner: bytes | None = None


def files_of_tnef(data: bytes) -> tuple[TnefFile, ...] | None:
    """The files of a TNEF stream, at most `FILES_LIMIT`; ``None`` when it is no such stream or is damaged.

    A stream without files (it held the look of the text only) gives none.
    """
    try:
        found, charset = _read(data)
    except _Broken:
        return None
    files = []
    for each in found[:FILES_LIMIT]:
        content = each.data if each.data is not None else each.inner
        if content is None:
            continue
        name = each.long_name or _text(_STRING, each.title, charset)
        files.append(TnefFile(name, each.content_type, content))
    return tuple(files)


def _read(data: bytes) -> tuple[list[_Attachment], str]:
    if data[:4] != SIGNATURE:
        raise _Broken
    found: list[_Attachment] = []
    charset = "windows-1252"
    for level, attribute, value in _attributes(data):
        if attribute == _CODEPAGE and len(value) >= 4:
            charset = f"windows-{struct.unpack_from('<I', value)[0]}"
        if level != _ATTACHMENT:
            continue
        if attribute == _RENDER:
            found.append(_Attachment())
        elif not found:
            continue
        elif attribute == _TITLE:
            found[-1].title = value[:NAME_LIMIT]
        elif attribute == _DATA:
            found[-1].data = value
        elif attribute == _PROPERTIES:
            _read_properties(found[-1], value, charset)
    return found, charset


def _attributes(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Level, name and value of each attribute."""
    at = 6  # behind the signature and the key
    for _ in range(ATTRIBUTES_LIMIT):
        if at + 9 > len(data) or data[at] not in {1, _ATTACHMENT}:  # some servers leave a line end behind it
            return
        level, attribute, _kind, length = struct.unpack_from("<BHHI", data, at)
        at += 9
        if at + length > len(data):
            raise _Broken
        yield level, attribute, data[at : at + length]
        at += length + 2  # behind the value stands a checksum, which nobody needs
    raise _Broken


def _read_properties(into: _Attachment, data: bytes, charset: str) -> None:
    """Take name, type and bytes from the MAPI properties of an attachment."""
    for tag, kind, value in _properties(data):
        if tag == _PR_LONG_FILENAME or (tag == _PR_FILENAME and not into.long_name):
            into.long_name = _text(kind, value, charset) or into.long_name
        elif tag == _PR_MIME_TAG:
            into.content_type = _text(kind, value, charset).strip().lower()
        elif tag == _PR_DATA:
            # an embedded object begins with the id of its interface
            into.inner = value[16:] if kind == _OBJECT else value


def _properties(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Tag, type and (first) value of each property, as far as they can be read."""
    (count,) = _unpack("<I", data, 0)
    at = 4
    for _ in range(min(count, PROPERTIES_LIMIT)):
        kind, tag = _unpack("<HH", data, at)
        at += 4
        if tag >= _NAMED:
            at = _behind_name(data, at)
        several = bool(kind & _MANY) or kind in _VARIABLE
        base = kind & ~_MANY
        values = 1
        if several:
            (values,) = _unpack("<I", data, at)
            at += 4
        first = b""
        for number in range(min(values, PROPERTIES_LIMIT + 1)):
            if number == PROPERTIES_LIMIT:
                return
            if base in _VARIABLE:
                (length,) = _unpack("<I", data, at)
                at += 4
                step = length + -length % 4
            elif base in _FIXED:
                length = step = _FIXED[base]
            else:
                return  # a type that we do not know: what follows cannot be found
            if at + length > len(data):
                raise _Broken
            if number == 0:
                first = data[at : at + length]
            at += step
        yield tag, base, first


def _behind_name(data: bytes, at: int) -> int:
    """Where a named property goes on: a GUID, and a number or a string."""
    (named,) = _unpack("<I", data, at + 16)
    if named == 0:
        return at + 24
    (length,) = _unpack("<I", data, at + 20)
    return at + 24 + length + -length % 4


def _unpack(form: str, data: bytes, at: int) -> tuple[int, ...]:
    if at + struct.calcsize(form) > len(data):
        raise _Broken
    return struct.unpack_from(form, data, at)


def _text(kind: int, value: bytes, charset: str) -> str:
    """A string property up to its NUL; ``""`` for a property of another type."""
    if kind == _UNICODE:
        return decode_text(value[:NAME_LIMIT], "utf-16le").split("\ufffd")[0]
    return decode_text(value[:NAME_LIMIT].split(b"\0")[0], charset) if kind == _STRING else ""
