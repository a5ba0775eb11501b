"""Reading a body as the sender meant it, where the signature leaves open how it is to be read.

Content-Type says how the signed bytes become words.  Where the signature does not cover it (Gmail's does
not), whoever holds a true mail may put another one on it, and have a piece of the text that was quoted
there read as a part of its own: as the person's words.  To refuse all such mail would shut out the largest
providers; to take it as plain text would show their people's mail as MIME source.  So an unsigned
Content-Type is followed as far as the signed bytes bear it out: a multipart begins and ends with its
boundary, HTML with its tags, base64 is nothing else.  The other way round, what the bytes plainly are is
read so whatever is said or left out: a quotation must not become words because a multipart is called plain
text.  What is neither is plain text.
"""

import re

from attrs import evolve

from mailgateway.mail.decode import Field
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.signature import Coverage

_READING = frozenset({"content-type", "content-transfer-encoding"})
_MULTIPARTS = frozenset({"multipart/mixed", "multipart/alternative", "multipart/related", "multipart/signed"})
_PREAMBLE = b"This is a multi-part message in MIME format."
"""What some programs write in front of the first boundary; a text of the sender's choice would be no
proof."""

_CHARSET = re.compile(
    r"|utf-?8|(?:us-)?ascii|iso-8859-\d{1,2}|windows-125\d|koi8-[ru]|gb\d*k?|big5|euc-(?:jp|kr)|shift_jis",
    re.IGNORECASE,
)
"""Charsets in which ASCII stands for itself; none that would make other words of the same bytes."""

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n"
_NOT_QUOTED_PRINTABLE = re.compile(rb"=(?![0-9A-Fa-f]{2}|[ \t]*\r?\n|\Z)")
_EDGE = 4096
"""Octets at either end of a body that are looked at."""

_FIRST_PART = re.compile(
    rb"--([0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-])[ \t]*+\r?\nContent-[A-Za-z-]{1,40}:",
    re.IGNORECASE,
)
"""How a multipart begins (RFC 2046, section 5.1.1)."""

_PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)


def as_signed(inbound: Inbound, coverage: Coverage) -> Inbound:
    """The mail with only those fields about its reading that are signed, or that its body bears out."""
    unsigned = {each for each in _READING if not coverage.covers(each)}  # also one that was taken off
    if not unsigned:
        return inbound
    start = inbound.raw[inbound.body_start : inbound.body_start + _EDGE].lstrip(b"\r\n")
    end = inbound.raw[max(inbound.body_start, len(inbound.raw) - _EDGE) :].rstrip()
    plainly = _plainly(start, end) if "content-type" in unsigned else None
    if _is_borne_out(inbound, unsigned, start, end, plainly):
        return inbound
    others = tuple(each for each in inbound.fields if each.name not in _READING)
    return evolve(
        inbound, fields=others if plainly is None else (*others, Field("content-type", plainly.encode()))
    )


def _plainly(start: bytes, end: bytes) -> str | None:
    """The type of a body that can be no other, as a Content-Type has it."""
    if start.startswith(_PREAMBLE):
        start = start.removeprefix(_PREAMBLE).lstrip(b"\r\n")
    found = _FIRST_PART.match(start)
    if found is not None and end.endswith(b"--" + found[1] + b"--"):
        return f'multipart/mixed; boundary="{found[1].decode("ascii")}"'
    if _PAGE.match(start) is not None and end.lower().endswith(b"</html>"):
        return "text/html"
    return None


def _is_borne_out(
    inbound: Inbound, unsigned: set[str], start: bytes, end: bytes, plainly: str | None
) -> bool:
    kind, parameters = inbound.content_type
    if kind.startswith("multipart/"):
        if "content-type" not in unsigned:
            return True
        boundary = f'multipart/mixed; boundary="{parameters.get("boundary", "")}"'
        return kind in _MULTIPARTS and plainly == boundary
    if "content-transfer-encoding" in unsigned and not _is_encoded(inbound):
        return False
    if "content-type" not in unsigned:
        return True
    if (plainly is not None and kind != plainly) or _CHARSET.fullmatch(parameters.get("charset", "")) is None:
        return False
    if kind == "text/html":
        return not _encoding(inbound) and start.lstrip().startswith(b"<") and end.endswith(b">")
    return kind == "text/plain"


def _encoding(inbound: Inbound) -> str:
    """The transfer encoding; ``""`` for those that change nothing."""
    encoding = (inbound.get("content-transfer-encoding") or "").strip().lower()
    return "" if encoding in {"7bit", "8bit", "binary"} else encoding


def _is_encoded(inbound: Inbound) -> bool:
    """Whether the body can be what its transfer encoding says."""
    match _encoding(inbound):
        case "":
            return True
        case "base64":
            return not inbound.raw[inbound.body_start :].translate(None, _BASE64)
        case "quoted-printable":
            return _NOT_QUOTED_PRINTABLE.search(inbound.raw, inbound.body_start) is None
        case _:
            return False
