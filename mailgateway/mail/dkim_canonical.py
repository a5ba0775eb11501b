r"""The two canonical forms of DKIM (RFC 6376, section 3.4), in time and memory linear in the mail.

The bytes are those that IMAP gives, with CRLF; a bare CR or LF in them means that somebody rewrote the mail
(or means two mails by it), and nothing is verified then.  A body is digested piece by piece, each small
enough that no other thread waits long for the interpreter; a piece ends before a character that is neither
blank nor line end, so that no run of blanks is ever cut.
"""

import hashlib
import re

HEADER_FIELD = re.compile(rb"([!-9;-~]+):")
_BLANKS = re.compile(rb"[ \t]+")
_NOT_BLANK = re.compile(rb"[^ \t\r\n]")
_LINE_END = re.compile(rb"\r\n(?![ \t])")
_SIGNATURE_TAG = re.compile(rb"((?:\A|;)[ \t\r\n]*+b[ \t\r\n]*+=)[^;]*+")

PIECE = 64 * 1024
"""Octets that are canonicalised at once."""

LONGEST_GAP = 1024 * 1024
"""Octets of nothing but blanks and line ends in the middle of a body; no mail that people write has more."""


def has_bare_line_ends(data: bytes) -> bool:
    """Whether a CR or LF stands alone."""
    pairs = data.count(b"\r\n")
    return data.count(b"\n") != pairs or data.count(b"\r") != pairs


def raw_fields(block: bytes) -> tuple[tuple[str, bytes], ...]:
    """The fields of a header block: names in lower case, and their bytes without the last CRLF.

    A line that is no field is left out with its continuations, as `mailgateway.mail.decode.parse_fields`
    does.
    """
    fields = []
    for line in _LINE_END.split(block):
        name = HEADER_FIELD.match(line)
        if name is not None:
            fields.append((name[1].decode("ascii").lower(), line))
    return tuple(fields)


def canonical_field(raw: bytes, *, relaxed: bool) -> bytes:
    """One field, without a line end."""
    if not relaxed:
        return raw
    name, _, value = raw.partition(b":")
    return name.lower() + b":" + _BLANKS.sub(b" ", value.replace(b"\r\n", b"")).strip(b" ")


def without_signature(raw: bytes) -> bytes:
    """A DKIM-Signature field with the value of ``b=`` taken out (RFC 6376, section 3.7)."""
    name, colon, value = raw.partition(b":")
    return name + colon + _SIGNATURE_TAG.sub(rb"\1", value, count=1)


def body_digest(raw: bytes, start: int, *, relaxed: bool) -> bytes | None:
    """SHA-256 of the canonical body that begins at ``start``; None when the bytes are not fit for it."""
    digest = hashlib.sha256()
    end = _text_end(raw, start, b"\r\n \t" if relaxed else b"\r\n")
    if has_bare_line_ends(raw[end:]):
        return None
    at = start
    while at < end:
        upto = _piece_end(raw, at, end)
        if upto is None:
            return None
        piece = raw[at:upto]
        if has_bare_line_ends(piece):
            return None
        if relaxed:
            piece = _BLANKS.sub(b" ", piece).replace(b" \r\n", b"\r\n")
        digest.update(piece)
        at = upto
    if end > start or not relaxed:
        digest.update(b"\r\n")
    return digest.digest()


def _text_end(raw: bytes, start: int, empty: bytes) -> int:
    """Where what is more than empty lines ends."""
    end = len(raw)
    while end > start:
        at = max(start, end - PIECE)
        kept = len(raw[at:end].rstrip(empty))
        if kept:
            return at + kept
        end = at
    return end


def _piece_end(raw: bytes, at: int, end: int) -> int | None:
    wanted = at + PIECE
    if wanted >= end:
        return end
    found = _NOT_BLANK.search(raw, wanted, min(end, wanted + LONGEST_GAP))
    if found is not None:
        return found.start()
    return end if end <= wanted + LONGEST_GAP else None
