"""When to try a mail server again, and when never without the operator.

Every failure belongs to one class with its own delays.  The classes and numbers follow what the better mail
clients do; the one that matters most is the credential: providers lock accounts after a few wrong
passwords, so a refused one is tried once more after ten minutes and then never again until the operator
changes it, over any number of restarts.  Both doors of an account (IMAP and SMTP) count together, since
they mostly share one password; a door that has logged in with this very credential is not held back by the
other's refusals.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from attrs import evolve, frozen

from mailgateway.errors import (
    ENDED,
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    PeerError,
    ProtocolViolation,
    Throttled,
    TlsRefused,
    TokenUnavailable,
)


class FailureClass(StrEnum):
    """Why a connection ended, as far as trying again is concerned."""

    CLEAN = "clean"
    """The server said BYE to an old connection, or a token ran out: come back at once."""
    NETWORK = "network"
    """Refused, reset, name not found, silence; also TLS that cannot be had, which may be a hotel's Wi-Fi."""
    THROTTLE = "throttle"
    """Too many connections or commands."""
    LOGIN_UNAVAILABLE = "login-unavailable"
    """The server could not check the login now."""
    TOKEN = "token"  # noqa: S105 (the class of a failure, not a secret)
    """The token source gave nothing; the mail server was not asked."""
    CREDENTIAL = "credential"
    """The login was refused."""
    PROTOCOL = "protocol"
    """The server's bytes could not be understood."""


@frozen
class _Delays:
    first: float
    factor: float
    longest: float


_DELAYS: Mapping[FailureClass, _Delays] = MappingProxyType(
    {
        FailureClass.CLEAN: _Delays(2, 1, 2),
        FailureClass.NETWORK: _Delays(2, 2, 300),
        FailureClass.THROTTLE: _Delays(60, 2, 1_800),
        FailureClass.LOGIN_UNAVAILABLE: _Delays(300, 2, 3_600),
        FailureClass.TOKEN: _Delays(30, 2, 900),
        FailureClass.CREDENTIAL: _Delays(600, 1, 600),
        FailureClass.PROTOCOL: _Delays(30, 2, 900),
    }
)

YOUNG_SECONDS = 300.0
"""A connection that lived this long and ended without a reason ended cleanly."""

ENDED_SECONDS = 30.0
"""A connection that lived this long and was ended so has ended cleanly; some servers do it every minute."""

PROVEN_SECONDS = 60.0
"""Failures are forgotten only when login, SELECT and a whole scan are done and so many seconds passed."""

DOUBT_SECONDS = (300.0, 900.0, 2_700.0)
"""How long to wait after a proven credential was refused without a reason, the first time and so on."""

MOST_REFUSALS = 2
"""How often one credential may be refused before it is never tried again by itself."""


def failure_class(error: PeerError, *, alive_seconds: float = 0.0) -> FailureClass:
    """The class of an error that ended a connection which had been up and working for ``alive_seconds``."""
    match error:
        case LoginRefused():
            return FailureClass.CREDENTIAL
        case LoginUnavailable():
            return FailureClass.LOGIN_UNAVAILABLE
        case Throttled():
            return FailureClass.THROTTLE
        case TokenUnavailable():
            return FailureClass.TOKEN
        case ProtocolViolation() | CommandRefused():
            return FailureClass.PROTOCOL
        case TlsRefused():
            return FailureClass.NETWORK
        case _:
            grown_up = ENDED_SECONDS if error.code == ENDED else YOUNG_SECONDS
            return FailureClass.CLEAN if alive_seconds >= grown_up else FailureClass.NETWORK


def delay_seconds(failure: FailureClass, failures: int, chance: float, hint: float | None = None) -> float:
    """Seconds until the next attempt after ``failures`` (1 for the first) in a row of this class.

    ``chance`` in [0, 1) spreads many clients: network delays are drawn from the upper half, clean ends from
    the whole range, the others are lengthened by up to a tenth, since they must never be shorter than told.
    A server's own ``hint`` wins when it is longer.
    """
    delays = _DELAYS[failure]
    exponent = min(max(failures - 1, 0), 32)
    seconds = min(delays.first * delays.factor**exponent, delays.longest)
    match failure:
        case FailureClass.CLEAN:
            seconds *= chance
        case FailureClass.NETWORK:
            seconds *= 0.5 + chance / 2
        case _:
            seconds *= 1 + chance / 10
    return max(seconds, hint or 0.0)


@frozen
class LoginRecord:
    """What is remembered of one door's logins with one credential, over restarts."""

    credential_digest: str = ""
    """Keyed digest of the credential that ``refusals`` and ``proven`` speak of."""
    refusals: int = 0
    proven: bool = False
    """Whether this very credential has logged in at this door."""
    wait_until: datetime | None = None
    doubts: int = 0
    """How often a proven credential was refused without a reason since it logged in last."""

    def about(self, digest: str) -> "LoginRecord":
        """This record if it speaks of that credential, else a clean one: a changed password starts anew."""
        return self if self.credential_digest == digest else LoginRecord(digest)

    def refused(self, now: datetime, wait: float = 0.0) -> "LoginRecord":
        """The record after one more refusal; the next try has to wait ten minutes, or longer (seconds)."""
        longest = timedelta(seconds=max(_DELAYS[FailureClass.CREDENTIAL].first, wait))
        return LoginRecord(self.credential_digest, self.refusals + 1, self.proven, now + longest)

    def doubted(self) -> tuple["LoginRecord", float] | None:
        """The record after a refusal without a reason, and the seconds before the next try.

        A credential that has logged in here is given the benefit of the doubt three times: some servers say
        no more when their own ground shakes.  ``None``: it counts as refused.
        """
        if not self.proven or self.refusals or self.doubts >= len(DOUBT_SECONDS):
            return None
        return evolve(self, doubts=self.doubts + 1), DOUBT_SECONDS[self.doubts]

    def succeeded(self) -> "LoginRecord":
        """The record after a login."""
        return LoginRecord(self.credential_digest, 0, proven=True)


@frozen
class MayTry:
    """The credential may be tried now."""


@frozen
class TryLater:
    """It was refused once; one more try is allowed from ``at`` on."""

    at: datetime


@frozen
class WaitForOperator:
    """It was refused as often as is safe; only a changed credential is tried again."""


LoginPermission = MayTry | TryLater | WaitForOperator


def may_log_in(here: LoginRecord, there: LoginRecord, now: datetime) -> LoginPermission:
    """Whether a door may try its login, by its own record and the other door's (same account)."""
    if here.proven and here.refusals == 0:
        return MayTry()
    if here.refusals + there.refusals >= MOST_REFUSALS:
        return WaitForOperator()
    waits = [record.wait_until for record in (here, there) if record.wait_until and record.wait_until > now]
    return TryLater(max(waits)) if waits else MayTry()
