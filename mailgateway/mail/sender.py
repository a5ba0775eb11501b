"""Whose mail is it: the strict reading of From.

Only two forms are accepted, ``phrase <dot-atom@dot-atom>`` and the bare ``dot-atom@dot-atom``, in ASCII, in
exactly one field.  Groups, routes, comments, quoted local parts, domain literals, lists and everything else
that mail programs read in different ways is refused, however harmless it looks.  The parsers of the
standard library accept several forms of forgery (cpython#102988) and are not used.

The display name is for people to look at; no decision reads it.
"""

import re
from collections.abc import Sequence

from attrs import frozen

from mailgateway.mail.decode import Field, decode_header, visible

_ATEXT = rb"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = rb"[A-Za-z0-9-]+"
_ADDRESS = rb"(" + _ATEXT + rb"(?:\." + _ATEXT + rb")*)@(" + _LABEL + rb"(?:\." + _LABEL + rb")*)"
_PHRASE = (
    rb"(?:(?:[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]++|\"(?:[^\"\\\x00-\x1f\x7f-\xff]|\\[\x20-\x7e])*+\")[ \t]*+)++"
)
_BARE = re.compile(_ADDRESS)
_NAMED = re.compile(rb"(" + _PHRASE + rb")?<" + _ADDRESS + rb">")
_ENCODED_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(rb"\\(.)")

FROM_LIMIT = 998
"""Bytes of a From value; a longer one is refused."""


@frozen
class OneMailbox:
    """The one address of From, its domain in lower case, and the display name ('' when there is none)."""

    address: str
    name: str = ""

    @property
    def domain(self) -> str:
        """What stands behind the @, in lower case."""
        return self.address.rpartition("@")[2]


@frozen
class OddSender:
    """From is missing, doubled, or not one of the two accepted forms; ``reason`` quotes nothing of it."""

    reason: str


Sender = OneMailbox | OddSender


def sender_of(fields: Sequence[Field]) -> Sender:
    """Read From out of all fields of a header block."""
    values = [field.value for field in fields if field.name == "from"]
    if not values:
        return OddSender("no From field")
    if len(values) > 1:
        return OddSender("more than one From field")
    return match_mailbox(values[0])


def match_mailbox(value: bytes) -> Sender:
    """Match an unfolded value against the accepted forms; the whole of it must fit."""
    value = value.strip(b" \t")
    if len(value) > FROM_LIMIT:
        return OddSender("From is too long")
    if not value.isascii():
        return OddSender("From is not plain ASCII")
    phrase, found = b"", _BARE.fullmatch(value)
    if found is not None:
        local, domain = found[1], found[2]
    else:
        found = _NAMED.fullmatch(value)
        if found is None:
            return OddSender("From is not exactly one plain mailbox")
        phrase, local, domain = found[1] or b"", found[2], found[3]
    if b"=?" in local or len(local) > 64 or len(domain) > 253:
        return OddSender("the address in From is not a plain one")
    name = _name(phrase)
    if name is None:
        return OddSender("the name in From hides control characters")
    return OneMailbox(f"{local.decode('ascii')}@{domain.decode('ascii').lower()}", name)


def _name(phrase: bytes) -> str | None:
    """The display name to show; None when an encoded word decodes to a control character."""
    phrase = phrase.strip()
    if phrase.startswith(b'"') and phrase.endswith(b'"') and phrase.count(b'"') == 2:
        phrase = _ESCAPE.sub(rb"\1", phrase[1:-1])
    if b"=?" in phrase and _ENCODED_CONTROL.search(decode_header(phrase, keep_control=True)):
        return None
    return visible(decode_header(phrase))[:200]
