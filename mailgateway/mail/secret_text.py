"""Secrets of ours that a text must not carry out of the house by mistake.

A session pastes what it has seen: a log with a login in it, a settings file, a key.  Whoever holds secrets
gives them as a ``Guard``, which tells of a text what kind of secret stands in it, never which one.  It is a
net under those who slip, no wall: who wants to tell a secret finds words that nobody knows again.

A short password would be found everywhere, so one of less than eight characters is not looked for, and one of
less than twelve only where it stands as a word of its own.
"""

import base64
import re
from functools import cached_property
from urllib.parse import quote

from attrs import define, field, frozen

from mailgateway.secrets import PRIVATE_KEY_BOUND, holds_private_key

SHORTEST = 8
UNMISTAKABLE = 12
"""Characters: a shorter secret is not looked for; from here on it is looked for inside of words, too."""

TEXT_BOUND = PRIVATE_KEY_BOUND
"""Characters or octets of one text or file that are looked at."""

PRIVATE_KEY = "a private key"

_BINARY_LOOK = 8_192
"""Octets that show whether a file is text."""


@frozen
class Known:
    """One secret, and in words what it is."""

    kind: str
    text: str = field(repr=False)


@define(eq=False, slots=False)
class Guard:
    """The secrets that must not leave; none by themselves, but private keys always."""

    known: tuple[Known, ...] = field(default=(), repr=False)

    @cached_property
    def _forms(self) -> tuple[tuple[str, "str | re.Pattern[str]"], ...]:
        return tuple((known.kind, form) for known in self.known for form in _forms_of(known.text))

    def secret_in(self, text: str) -> str:
        """What kind of secret stands in the text; ``""``: none."""
        text = text[:TEXT_BOUND]
        if holds_private_key(text.encode("utf-8", "replace")):
            return PRIVATE_KEY
        squeezed = "".join(text.split())
        for kind, form in self._forms:
            if form in text or form in squeezed if isinstance(form, str) else form.search(text):
                return kind
        return ""

    def secret_in_file(self, data: bytes) -> str:
        """The same of a file: of its text, if it is one, and of a key in any."""
        if holds_private_key(data):
            return PRIVATE_KEY
        if b"\0" in data[:_BINARY_LOOK]:
            return ""
        return self.secret_in(data[:TEXT_BOUND].decode("utf-8", "replace"))


def _forms_of(secret: str) -> "set[str | re.Pattern[str]]":
    """The ways in which a secret is written: as it is, without its blanks, in a URL, in Base64."""
    if len(secret) < SHORTEST:
        return set()
    if len(secret) < UNMISTAKABLE:
        return {re.compile(rf"(?<!\w){re.escape(secret)}(?!\w)")}
    encoded = base64.b64encode(secret.encode("utf-8", "replace")).decode("ascii").rstrip("=")
    return {secret, "".join(secret.split()), quote(secret, safe=""), encoded}
