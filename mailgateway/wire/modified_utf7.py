"""Mailbox names between text and modified UTF-7 (RFC 3501 section 5.1.3).

A name that a server gave is kept as its raw bytes and sent back as those, since servers write names in ways
that do not survive a round trip; text is for people, and for names that people typed.
"""

import binascii
import re

_SHIFTED = re.compile(rb"&([A-Za-z0-9+,]*)-")
_DIRECT = re.compile(r"[ -~]+")


def encode(name: str) -> bytes:
    """The wire form of a name; lone surrogates raise ``ValueError``.

    Control characters are encoded like any other that is not printable ASCII, so that no name can end a
    command.
    """
    parts: list[bytes] = []
    at = 0
    for run in _DIRECT.finditer(name):
        parts.append(_shift(name[at : run.start()]))
        parts.append(run.group().encode("ascii").replace(b"&", b"&-"))
        at = run.end()
    parts.append(_shift(name[at:]))
    return b"".join(parts)


def decode(raw: bytes) -> str:
    """The name as people read it; never fails.

    What is not valid modified UTF-7 is shown as UTF-8 if it is that, and otherwise with U+FFFD in place of
    the broken bytes: the result is for the eye, the raw bytes are for the wire.
    """
    parts: list[str] = []
    at = 0
    for shifted in _SHIFTED.finditer(raw):
        parts.append(raw[at : shifted.start()].decode("utf-8", "replace"))
        parts.append(_unshift(shifted))
        at = shifted.end()
    parts.append(raw[at:].decode("utf-8", "replace"))
    return "".join(parts)


def _shift(text: str) -> bytes:
    """A run of other characters: UTF-16BE in base64 without padding, with ``,`` for ``/``."""
    if not text:
        return b""
    coded = binascii.b2a_base64(text.encode("utf-16-be"), newline=False)
    return b"&" + coded.rstrip(b"=").replace(b"/", b",") + b"-"


def _unshift(shifted: "re.Match[bytes]") -> str:
    """The text of one shifted run; the run itself where it means nothing."""
    coded = shifted.group(1)
    if not coded:
        return "&"
    try:
        units = binascii.a2b_base64(coded.replace(b",", b"/") + b"=" * (-len(coded) % 4))
        return units.decode("utf-16-be")
    except ValueError:
        return shifted.group().decode("ascii")
