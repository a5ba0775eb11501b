"""What a NO, a BAD or a BYE means for whoever has to act (RFC 5530, and what servers say instead).

Response codes decide where there are any.  Where there are none, a few texts do that providers are known
for: providers throttle, and report a dead session, in words only.  What stays open is taken for the class
that does the least harm: a login that was refused without a reason counts as refused, with an empty
``code``, so that the caller, who knows whether this credential has ever worked, can tell it from a plain
wrong password.
"""

import re

from mailgateway.errors import (
    ENDED,
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    PeerError,
    Throttled,
    TlsRefused,
    Unreachable,
)
from mailgateway.wire.imap_response import Condition, Status

NOT_CONNECTED = "NOTCONNECTED"
"""``code`` for a login that was accepted for a mailbox that cannot be opened (Exchange)."""

_MAX_TEXT = 500
_HINT = re.compile(rb"backoff time: *(\d{1,9}) *milliseconds", re.IGNORECASE)
_THROTTLE = re.compile(
    rb"too many (?:\w+ )*(?:connections|sessions|logins|commands|requests|failures|attempts)"
    rb"|throttled|rate limit|maximum number of connections"
    rb"|exceeded (?:\w+ )*(?:command|bandwidth|connection)",
    re.IGNORECASE,
)
_UNAVAILABLE = re.compile(
    rb"temporar(?:y|ily)|try again (?:later|in )|unavailable|internal error|server busy", re.IGNORECASE
)
_DEAD_SESSION = re.compile(rb"authenticated but not connected", re.IGNORECASE)
_ENDED = re.compile(
    rb"accesstokenexpired|session (?:has )?expired|token (?:has )?expired|idle|inactiv|autologout|auto-logout"
    rb"|timeout|timed out",
    re.IGNORECASE,
)
_GONE = re.compile(
    rb"no longer exist|(?:does|do) ?n[o']t exist|have been (?:expunged|deleted)", re.IGNORECASE
)
_THROTTLE_CODES = frozenset({b"LIMIT", b"INUSE", b"THROTTLED", b"OVERLIMIT"})
_UNAVAILABLE_CODES = frozenset({b"UNAVAILABLE", b"TEMPFAIL", b"SERVERBUG"})


def login_failure(status: Status, mechanism_failure: str = "") -> PeerError:
    """Why a LOGIN or an AUTHENTICATE was answered with NO, BAD or BYE.

    ``LoginRefused.code`` is the ``status`` of the token mechanism's error document (``mechanism_failure``) if
    there was one, else the response code, else empty.  BAD is a ``CommandRefused``: the mechanism was refused
    and not the credential.
    """
    text, code = words(status), _code(status)
    if _throttles(status):
        return Throttled(text, code=code, retry_after=_hint(status))
    if status.code == b"PRIVACYREQUIRED":
        return TlsRefused(text, code=code)
    if _says(_DEAD_SESSION, status):
        return LoginUnavailable(text, code=NOT_CONNECTED)
    if status.code in _UNAVAILABLE_CODES or (not status.code and _says(_UNAVAILABLE, status)):
        return LoginUnavailable(text, code=code)
    if status.condition is Condition.BAD:
        return CommandRefused(text, code=code)
    if status.condition is Condition.BYE:
        return farewell(status)
    return LoginRefused(text, code=mechanism_failure or ("" if status.code == b"ALERT" else code))


def command_failure(verb: bytes, status: Status) -> PeerError:
    """Why another command was answered with NO or BAD; the connection stays in order."""
    text, code = f"{verb.decode('ascii')}: {words(status)}", _code(status)
    if _says(_DEAD_SESSION, status):
        return LoginUnavailable(text, code=NOT_CONNECTED)
    if status.code == b"LIMIT" or _says(_THROTTLE, status):
        return Throttled(text, code=code, retry_after=_hint(status))
    return CommandRefused(text, code=code or ("BAD" if status.condition is Condition.BAD else ""))


def farewell(status: Status) -> PeerError:
    """Why the server ends the connection; ``code`` is ``ENDED`` if nothing is wrong."""
    text, code = words(status), _code(status)
    if _throttles(status):
        return Throttled(text, code=code, retry_after=_hint(status))
    if _says(_ENDED, status):
        return Unreachable(text, code=ENDED)
    if status.code in _UNAVAILABLE_CODES:
        return LoginUnavailable(text, code=code)
    return Unreachable(text, code=code or "BYE")


def is_gap(status: Status) -> bool:
    """Whether a NO only says that some of the messages are gone: what came is all there is."""
    return status.condition is Condition.NO and (
        status.code in {b"EXPUNGEISSUED", b"NONEXISTENT"} or _says(_GONE, status) is not None
    )


def words(status: Status) -> str:
    """What the server said, as one line that may be shown and logged; never empty."""
    text = status.text[:_MAX_TEXT].decode("utf-8", "replace")
    shown = "".join(character if character.isprintable() else " " for character in text).strip()
    code = f"[{_code(status)}]" if status.code else ""
    return " ".join(part for part in (status.condition.name, code, shown) if part)


def _says(pattern: "re.Pattern[bytes]", status: Status) -> "re.Match[bytes] | None":
    """Where the text has a phrase; only its beginning is read, a text may be a megabyte."""
    return pattern.search(status.text[:_MAX_TEXT])


def _code(status: Status) -> str:
    """The response code as text that may be shown."""
    return "".join(filter(str.isprintable, status.code[:50].decode("ascii", "replace")))


def _throttles(status: Status) -> bool:
    """Whether the server asks for patience and not for another password."""
    return status.code in _THROTTLE_CODES or _says(_THROTTLE, status) is not None


def _hint(status: Status) -> float | None:
    """The seconds to wait that the server tells, if it does."""
    hint = _says(_HINT, status)
    return int(hint.group(1)) / 1000 if hint else None
