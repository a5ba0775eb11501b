"""SASL mechanisms as pure exchanges of bytes, shared by IMAP and SMTP.

A mechanism knows nothing of base64, of tags or of the command that carries it.  It lives for one
authentication on one connection, and makes one attempt: nothing here ever offers a credential a second time
in another form, since providers count each try and lock the account.

The two token mechanisms end a failure in an odd way: the server answers the token with a challenge that
holds a JSON document, and waits for an empty answer before it says no.  ``respond`` plays that out and keeps
the ``status`` of the document in ``failure``, so that the caller can tell an outdated token (``400``,
``401``, ``invalid_token``) from a request that no new token will mend (``invalid_scope``).

Sources: RFC 4422 (SASL), RFC 4616 (PLAIN), RFC 7628 (OAUTHBEARER), RFC 5801 (the GS2 header), Google's
description of XOAUTH2, and draft-murchison-sasl-login (LOGIN).
"""

import binascii
import json
import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Protocol

from attrs import Attribute, define, field, frozen

_STATUS = re.compile(r"[A-Za-z0-9_.-]{1,40}")
_MAX_ERROR_DOCUMENT = 4096
_URL_SAFE = str.maketrans("-_", "+/")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _no_controls(_: object, attribute: "Attribute[str]", value: str) -> None:
    """Refuse characters that could end a field of a mechanism early; the message never holds the value."""
    if _CONTROL.search(value):
        raise ValueError(f"the {attribute.name} holds a control character")


@frozen
class Password:
    """A user name and its password or app password, both sent as UTF-8."""

    username: str
    password: str = field(repr=False)


@frozen
class BearerToken:
    """An OAuth 2 access token for one user at one server; ``host`` and ``port`` are those really dialled.

    Control characters in any of them raise ``ValueError``: they would end a field of the mechanism early.
    """

    username: str = field(validator=_no_controls)
    host: str = field(validator=_no_controls)
    port: int
    token: str = field(repr=False, validator=_no_controls)
    expires_at: datetime | None = None
    """When it ends, where that is known; aware."""
    issued_at: datetime | None = None
    grant: str = ""
    """The identity of the grant that it comes from, where we asked for it ourselves."""


Credential = Password | BearerToken


def end_of_token(token: str) -> datetime | None:
    """When an access token says that it ends (``exp`` of a JWT, RFC 7519); ``None`` if it says nothing.

    Only the server can tell whether that is true, so nothing but the time of a renewal may follow from it.
    """
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(binascii.a2b_base64(parts[1].translate(_URL_SAFE) + "=" * (-len(parts[1]) % 4)))
        return datetime.fromtimestamp(int(claims["exp"]), UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError):
        return None


class Mechanism(Protocol):
    """One authentication exchange.

    Either the protocol can carry an initial response: then ``initial`` is sent with the command, and each
    challenge goes to ``respond``.  Or it cannot: then ``initial`` is not asked for, or is kept by the caller
    for the first, empty challenge.  A ``respond`` without a preceding ``initial`` takes the first challenge
    as the invitation to send the initial response, so that both ways are right.
    """

    name: str
    """The registered name: ``PLAIN``, ``LOGIN``, ``XOAUTH2`` or ``OAUTHBEARER``."""

    failure: str
    """The ``status`` of the error document that the server sent, ``""`` if there was none."""

    def initial(self) -> bytes | None:
        """The raw initial response, not base64; None if the mechanism waits for a challenge."""
        ...

    def respond(self, challenge: bytes) -> bytes | None:
        """The raw answer to a decoded challenge; None means: cancel the exchange with ``*``."""
        ...


@define(eq=False)
class _Plain:
    """PLAIN with an empty authorization identity: the server derives it (RFC 4616 section 2)."""

    _credential: Password = field(repr=False)
    name: str = "PLAIN"
    failure: str = ""
    _sent: bool = field(default=False, init=False)

    def initial(self) -> bytes | None:
        self._sent = True
        return f"\0{self._credential.username}\0{self._credential.password}".encode()

    def respond(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - the challenge is empty by definition
        return None if self._sent else self.initial()


@define(eq=False)
class _Login:
    """LOGIN: two questions, answered by their order, since servers word them as they like."""

    _credential: Password = field(repr=False)
    name: str = "LOGIN"
    failure: str = ""
    _asked: int = field(default=0, init=False)

    def initial(self) -> bytes | None:
        return None

    def respond(self, challenge: bytes) -> bytes | None:  # noqa: ARG002 - see the class
        self._asked += 1
        match self._asked:
            case 1:
                return self._credential.username.encode()
            case 2:
                return self._credential.password.encode()
            case _:
                return None


@define(eq=False)
class _Token:
    """XOAUTH2 and OAUTHBEARER: one message with the token, and a dummy answer to an error document."""

    _message: bytes = field(repr=False)
    _dummy: bytes
    name: str
    failure: str = ""
    _sent: bool = field(default=False, init=False)
    _refused: bool = field(default=False, init=False)

    def initial(self) -> bytes | None:
        self._sent = True
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        if not self._sent:
            return self.initial()
        if self._refused:
            return None
        self._refused = True
        self.failure = _status(challenge)
        return self._dummy


def _status(document: bytes) -> str:
    """The ``status`` of an error document, ``""`` if there is none that may be shown."""
    if len(document) > _MAX_ERROR_DOCUMENT:
        return ""
    try:
        parsed = json.loads(document)
    except (ValueError, RecursionError):
        return ""
    status = str(parsed.get("status", "")) if isinstance(parsed, dict) else ""
    return status if _STATUS.fullmatch(status) else ""


def _xoauth2(credential: BearerToken) -> Mechanism:
    message = f"user={credential.username}\x01auth=Bearer {credential.token}\x01\x01"
    return _Token(message.encode(), b"", "XOAUTH2")


def _oauthbearer(credential: BearerToken) -> Mechanism:
    name = credential.username.replace("=", "=3D").replace(",", "=2C")
    message = (
        f"n,a={name},\x01host={credential.host}\x01port={credential.port}"
        f"\x01auth=Bearer {credential.token}\x01\x01"
    )
    return _Token(message.encode(), b"\x01", "OAUTHBEARER")


def choose(offered: Collection[str], credential: Credential) -> Mechanism | None:
    """The mechanism for a credential among the offered names (in any case), by our order of preference.

    A token goes by OAUTHBEARER, else XOAUTH2.  A password goes by PLAIN, else LOGIN; the other way round for
    a user name with a backslash or a slash, as Exchange wants it for shared mailboxes.  A NUL has no place
    in PLAIN.  None if nothing fits: there is no weaker fallback.
    """
    names = {name.upper() for name in offered}
    candidates: list[Mechanism]
    match credential:
        case Password(username, password):
            candidates = [_Login(credential)]
            if "\0" not in username + password:
                candidates.insert(1 if "\\" in username or "/" in username else 0, _Plain(credential))
        case BearerToken():
            candidates = [_oauthbearer(credential), _xoauth2(credential)]
    return next((mechanism for mechanism in candidates if mechanism.name in names), None)
