"""The texts of ESMTP: replies and extensions as they come, commands as they go (RFC 5321).

Servers are read leniently where it does no harm (an empty extension line, lower case, ``AUTH=PLAIN``); what
we write is strict: an address that cannot stand between angle brackets is never written, cut or mended.
"""

import re
from collections.abc import Iterable
from typing import Final

import idna
from attrs import field, frozen

MAX_TEXT: Final = 500
"""Characters of a reply's text that are kept."""

_ENHANCED = re.compile(r"([245]\.\d{1,3}\.\d{1,3})(?:\s|$)")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")
_REPLY_LINE = re.compile(rb"[2-5][0-9][0-9](?:[ -].*)?", re.DOTALL)
_ATOM = r"[^\x00-\x20\x7f()<>\[\]:;@\\,\"]+"
_QUOTED = r"\"(?:[^\x00-\x1f\x7f\"\\]|\\[\x20-\x7e])*\""
_DOMAIN = r"[^\x00-\x20\x7f()<>@\\,;:\"\[\]]+|\[[0-9A-Za-z.:]+\]"
_PATH = re.compile(rf"(?P<local>{_ATOM}|{_QUOTED})@(?P<domain>{_DOMAIN})")
_EHLO_NAME = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9A-Za-z.:]+\]")
_MAX_ADDRESS = 254


@frozen
class Reply:
    """A server's reply: its code, and its text in one printable line of at most ``MAX_TEXT`` characters."""

    code: int
    text: str

    @property
    def enhanced(self) -> str:
        """The enhanced status code that the text begins with (RFC 2034), or ``""``."""
        found = _ENHANCED.match(self.text)
        return found[1] if found else ""

    def __str__(self) -> str:
        """Render as on the wire, for people."""
        return f"{self.code} {self.text}".rstrip()


def reply(code: int, text: bytes, secrets: Iterable[str] = ()) -> Reply:
    """A reply that may be shown: without unprintable characters, and without ``secrets`` that were echoed."""
    shown = text.decode("utf-8", "replace")
    for secret in secrets:
        if secret:
            shown = shown.replace(secret, "***")
    return Reply(code, _UNPRINTABLE.sub(" ", shown).strip()[:MAX_TEXT])


def is_reply_line(line: bytes) -> bool:
    """Whether a line can be part of a reply: a code from 200 to 599, then nothing, a space or a hyphen."""
    return _REPLY_LINE.fullmatch(line) is not None


@frozen
class Extensions:
    """What a server offers in its answer to EHLO.

    ``size`` is the largest message it takes in octets, None if it does not say or sets no limit.
    """

    starttls: bool = False
    mechanisms: frozenset[str] = frozenset()
    announces_size: bool = False
    size: int | None = None
    eight_bit: bool = False
    utf8: bool = False


def extensions(text: bytes) -> Extensions:
    """Read the lines of an answer to EHLO, the first of which is the server's name."""
    starttls = announces_size = eight_bit = utf8 = False
    mechanisms: set[str] = set()
    size = None
    for line in text.decode("ascii", "replace").split("\n")[1:]:
        words = line.upper().replace("AUTH=", "AUTH ").split()
        match words:
            case ["STARTTLS", *_]:
                starttls = True
            case ["AUTH", *names]:
                mechanisms.update(name for name in names if name != "AUTH")
            case ["SIZE", *limits]:
                announces_size = True
                size = _limit(limits)
            case ["8BITMIME", *_]:
                eight_bit = True
            case ["SMTPUTF8", *_]:
                utf8 = True
    return Extensions(starttls, frozenset(mechanisms), announces_size, size, eight_bit, utf8)


def _limit(words: list[str]) -> int | None:
    """The number after SIZE; zero, nothing or nonsense sets no limit (RFC 1870 section 4)."""
    if not words or not re.fullmatch("[0-9]{1,15}", words[0]):
        return None
    return int(words[0]) or None


@frozen
class Path:
    """An address as it goes into MAIL or RCPT; ``utf8`` if only SMTPUTF8 (RFC 6531) can carry it."""

    address: str
    utf8: bool = field(default=False)

    def __bytes__(self) -> bytes:
        """Between angle brackets."""
        return b"<" + self.address.encode() + b">"


def path(address: str) -> Path | None:
    """The path of an address, its domain in the ASCII form; None if the address cannot be written safely.

    An ASCII address is written exactly as it is.
    """
    found = _PATH.fullmatch(address)
    if found is None or len(address) > _MAX_ADDRESS:
        return None
    domain = found["domain"]
    if not domain.isascii():
        try:
            domain = idna.encode(domain, uts46=True).decode("ascii")
        except idna.IDNAError:
            return None
    return Path(f"{found['local']}@{domain}", utf8=not found["local"].isascii())


def mail_command(sender: Path, message: bytes, offered: Extensions, *, utf8: bool) -> bytes:
    """MAIL with the parameters that the server understands and the mail needs; ``utf8`` adds SMTPUTF8."""
    words = [b"MAIL FROM:" + bytes(sender)]
    if offered.announces_size:
        words.append(b"SIZE=%d" % len(message))
    if offered.eight_bit and not message.isascii():
        words.append(b"BODY=8BITMIME")
    if utf8:
        words.append(b"SMTPUTF8")
    return b" ".join(words)


def ehlo_name(hostname: str) -> str:
    """How we call ourselves: the host name if EHLO can carry it, else a loopback address literal."""
    return hostname if len(hostname) <= 255 and _EHLO_NAME.fullmatch(hostname) else "[127.0.0.1]"
