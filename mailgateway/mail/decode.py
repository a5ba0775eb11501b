"""From bytes to text: header blocks, encoded words, transfer encodings.

Nothing here raises on any bytes.  A header block that could be read in two ways is not repaired but reported
as malformed, since everything that decides who is let in stands on it; a body is read as kindly as possible,
since the worst that can happen there is an ugly character.
"""

import binascii
import io
import re
from collections.abc import Iterator

from attrs import field, frozen

from mailgateway.mail.charset import decode_raw, storable

HEADER_LIMIT = 64 * 1024
"""Bytes of a header block; a longer one is malformed."""

FIELD_LIMIT = 2000
"""Fields of a header block; more are malformed."""

_END = re.compile(rb"\r?\n\r?\n")
_NAME = re.compile(rb"[!-9;-~]+")
_FOLD = re.compile(rb"\r?\n(?=[ \t])")


@frozen
class Malformed:
    """The bytes are not a mail that can be judged; ``reason`` holds no part of them."""

    reason: str


@frozen
class Field:
    """One header field: its name in lower case, its value unfolded but otherwise as it stood."""

    name: str
    value: bytes = field(repr=False)


def split_message(raw: bytes) -> tuple[bytes, bytes]:
    """The header block (without the empty line) and the body; lines may end in CRLF or LF."""
    end, body = body_after(raw, 0)
    return raw[:end], raw[body:]


def body_after(raw: bytes, start: int) -> tuple[int, int]:
    """Where the header block that begins at ``start`` ends, and where the body after it begins.

    Where no empty line comes within `HEADER_LIMIT`, the block is one byte longer than allowed.
    """
    if raw.startswith((b"\n", b"\r\n"), start):
        return start, raw.index(b"\n", start) + 1
    found = _END.search(raw, start, start + HEADER_LIMIT + 4)
    if found is None:
        end = min(len(raw), start + HEADER_LIMIT + 1)
        return end, end
    return found.start(), found.end()


def parse_fields(block: bytes) -> tuple[Field, ...] | Malformed:
    """The fields of a header block, in order.

    Refused as malformed: NUL, a bare CR, a block over `HEADER_LIMIT`, a leading continuation line, and a
    name with blanks before its colon where the name is one that decides (mail programs disagree whether
    that is the field).  A line that is no field at all is left out together with its continuations.
    """
    if len(block) > HEADER_LIMIT:
        return Malformed("the header block is too long")
    if b"\0" in block:
        return Malformed("NUL in the header block")
    text = block.replace(b"\r\n", b"\n").removesuffix(b"\r")
    if b"\r" in text:
        return Malformed("bare CR in the header block")
    if text.startswith((b" ", b"\t")):
        return Malformed("the header block begins with a continuation line")
    lines = _FOLD.sub(b"", text).split(b"\n")
    if len(lines) > FIELD_LIMIT:
        return Malformed("too many header fields")
    fields = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon:
            continue
        if _NAME.fullmatch(name) is None:
            if name.strip().lower() in _DECIDING:
                return Malformed("blanks between a field's name and its colon")
            continue
        fields.append(Field(name.decode("ascii").lower(), value.strip(b" \t")))
    return tuple(fields) if fields else Malformed("no header fields")


_DECIDING = frozenset(
    {
        b"from",
        b"authentication-results",
        b"received",
        b"subject",
        b"message-id",
        b"in-reply-to",
        b"references",
        b"auto-submitted",
        b"content-type",
        b"content-transfer-encoding",
        b"dkim-signature",
    }
)


def parse_fields_kindly(block: bytes) -> tuple[Field, ...]:
    """The fields of an inner part, whatever its bytes; nothing that decides is read from there."""
    text = block[:HEADER_LIMIT].replace(b"\0", b"").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    fields = []
    for line in _FOLD.sub(b"", text).split(b"\n")[:FIELD_LIMIT]:
        name, colon, value = line.partition(b":")
        name = name.strip()
        if colon and _NAME.fullmatch(name) is not None:
            fields.append(Field(name.decode("ascii").lower(), value.strip(b" \t")))
    return tuple(fields)


# --------------------------------------------------------------------------- encoded words (RFC 2047)

_WORD = re.compile(rb"=\?([!->@-~]{1,60}+)\?([bBqQ])\?([^?]{0,4000}+)\?=")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
_INVISIBLE = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


def decode_header(value: bytes, *, keep_control: bool = False) -> str:
    """The text of an unstructured header value: encoded words decoded, control characters made blanks.

    Neighbouring words of one charset are joined before decoding, since programs split characters between
    them.  What is not encoded is read as UTF-8, else as Windows-1252.  The text is storable, but not so with
    ``keep_control``, which is for those who look for such characters.
    """
    if b"=?" not in value:
        return _clean(decode_raw(value, "utf-8"), keep_control)
    out: list[str] = []
    pending = bytearray()
    charset = ""
    at = 0
    for found in _WORD.finditer(value):
        between = value[at : found.start()]
        word_charset = found[1].split(b"*")[0].decode("ascii").lower()
        if between.strip() or word_charset != charset or at == 0:
            if pending:
                out.append(decode_raw(bytes(pending), charset))
                pending.clear()
            if between.strip() or at == 0:
                out.append(decode_raw(between, "utf-8"))
        pending += _word_bytes(found[2], found[3])
        charset, at = word_charset, found.end()
    if pending:
        out.append(decode_raw(bytes(pending), charset))
    out.append(decode_raw(value[at:], "utf-8"))
    return _clean("".join(out), keep_control)


def _clean(text: str, keep_control: bool) -> str:
    return text if keep_control else storable(_CONTROL.sub(" ", text).strip())


def _word_bytes(encoding: bytes, text: bytes) -> bytes:
    if encoding in b"bB":
        return decode_base64(text)
    return binascii.a2b_qp(text.replace(b"_", b" "), header=False)


def visible(text: str) -> str:
    """The text without control, zero-width and direction characters: fit for a log line, a page, a table."""
    return storable(_INVISIBLE.sub("", _CONTROL.sub(" ", text)).strip())


# --------------------------------------------------------------------------- transfer encodings

_BASE64_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BASE64_LINE = re.compile(rb"[A-Za-z0-9+/]*={0,2}")


def decode_transfer(body: bytes, encoding: str) -> bytes:
    """Undo a Content-Transfer-Encoding; an unknown one leaves the bytes as they are."""
    words = encoding.lower().replace(";", " ").split()
    match words[0].strip("\"'") if words else "":
        case "base64":
            return decode_base64(body)
        case "quoted-printable" | "quoted" | "qp":
            return binascii.a2b_qp(body)
        case _:
            return body


def decode_base64(text: bytes) -> bytes:
    """What is readable of base64: chunk by chunk, to the first line that cannot be base64.

    Lists and virus scanners append plain text behind the encoded body, and some programs join several
    padded blocks; both are taken as they are meant.
    """
    whole = text.translate(None, b"\r\n")
    if _is_base64(whole):
        return _decoded(whole)
    del whole
    out = bytearray()
    pending = bytearray()
    for line in io.BytesIO(text):  # not split: a large text must not become a list of all its lines
        bare = line.strip()
        if _BASE64_LINE.fullmatch(bare) is None:
            chunks = list(_chunks(bare))
            if not chunks:
                break
            for chunk in chunks:
                pending += chunk
                out += _decoded(pending)
                pending.clear()
            continue
        pending += bare
        if bare.endswith(b"=") or (len(pending) > 65536 and len(pending) % 4 == 0):
            out += _decoded(pending)
            pending.clear()
    out += _decoded(pending)
    return bytes(out)


_PADDED = re.compile(rb"[A-Za-z0-9+/]+={0,2}")


def _chunks(line: bytes) -> Iterator[bytes]:
    """The padded blocks of a line that holds nothing else; none when it holds anything else."""
    if re.fullmatch(rb"(?:[A-Za-z0-9+/]+={1,2})++[A-Za-z0-9+/]*", line) is not None:
        for found in _PADDED.finditer(line):
            yield found[0]


def _is_base64(text: bytes) -> bool:
    """Whether there is nothing but base64, padded once at most; looks at pieces, to copy no large text."""
    end = len(text.rstrip(b"=")) if text.endswith(b"===") else len(text) - text[-2:].count(b"=")
    return end >= len(text) - 2 and not any(
        text[at : min(at + 65536, end)].translate(None, _BASE64_BYTES) for at in range(0, end, 65536)
    )


def _decoded(chunk: bytes | bytearray) -> bytes:
    if len(chunk) % 4 == 0:
        return binascii.a2b_base64(chunk)
    text = bytes(chunk).rstrip(b"=")
    if len(text) % 4 == 1:
        text = text[:-1]
    return binascii.a2b_base64(text + b"=" * (-len(text) % 4))


def normal_lines(text: str) -> str:
    """The text with LF alone at its line ends and without a byte order mark."""
    return text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
