"""What an OAuth 2 provider's answers mean: each is one value of a union, and nothing is raised.

Policy: only the codes of errors are kept, with Microsoft's number where there is one, since descriptions may
quote anything.  An answer that is no OAuth answer (a proxy's page, a failing server) is trouble that passes,
and says nothing of the grant.  oauthlib is imported when it is needed.

Sources: RFC 6749 sections 4.1.2, 5.1 and 5.2, RFC 8628 sections 3.2 and 3.5, and Microsoft's and Google's
lists of error codes.  This module knows no network, no clock and no file.
"""

import hmac
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeGuard
from urllib.parse import parse_qsl, urlsplit

from attrs import field, frozen

USUAL_LIFETIME: Final = 3600
"""Seconds that an access token lives when the provider does not say."""
SHORTEST_LIFETIME, LONGEST_LIFETIME = 1, 30 * 86_400
USUAL_INTERVAL: Final = 5
"""Seconds between two questions about a device code, when the provider does not say (RFC 8628 3.5)."""
LONGEST_INTERVAL: Final = 300
LONGEST_TOKEN: Final = 16_384
LONGEST_WAIT: Final = 3600.0
_PRINTABLE = re.compile(r"[\x20-\x7e]+")
_TOKEN = re.compile(r"[\x21-\x7e]+")
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_NUMBER = re.compile(r"\bAADSTS(\d{4,8})\b")

_LOST = frozenset(
    {"invalid_grant", "interaction_required", "consent_required", "login_required", "mfa_required"}
)
"""What says that the grant is worth nothing any more: a person has to sign in again."""
_DENIED = frozenset({"access_denied", "authorization_declined"})
_PASSING = frozenset({"temporarily_unavailable", "server_error", "slow_down"})
_NOT_THE_GRANT = frozenset({"7000222", "7000215", "700016", "7000218", "90002", "70001"})
"""Microsoft's numbers for a wrong or expired registration, whatever code they come with."""

_WHY: Mapping[str, str] = {
    "invalid_client": "the client id or secret is wrong, or the secret has expired",
    "unauthorized_client": "the registration does not allow this way of signing in",
    "invalid_scope": "the scopes are not what the provider knows, or not what the registration may ask for",
    "unsupported_grant_type": "the provider does not have this way of signing in at this address",
    "7000222": "the client secret has expired: make another one at the provider",
    "7000215": "the client secret is wrong: give its value, and not its id",
    "700016": "the client id is not known in this tenant: look at it, and at the address",
    "7000218": "the registration does not allow public clients: set `Allow public client flows` to yes",
}


@frozen
class Answer:
    """What came back: the HTTP status, the ``Retry-After`` field, and the body."""

    status: int
    body: str = field(repr=False)
    retry_after: str = ""


@frozen
class DeviceCode:
    """What a person is to type where (RFC 8628 section 3.2); ``complete_url`` has the code in it."""

    device_code: str = field(repr=False)
    user_code: str
    url: str
    complete_url: str
    lifetime: int
    interval: int


@frozen
class Granted:
    """Tokens.  ``refresh_token`` is empty when none came: the one before stays good.

    ``scopes`` is empty when the provider gave what was asked for without saying so.
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    lifetime: int
    scopes: tuple[str, ...] = ()


@frozen
class Pending:
    """The person has not finished; ask again after the interval."""


@frozen
class SlowDown:
    """The same, and the interval grows by five seconds, for good (RFC 8628 section 3.5)."""


@frozen
class Expired:
    """The device code has run out."""


@frozen
class Denied:
    """The person, or an administrator, said no."""

    code: str


@frozen
class Lost:
    """The grant is worth nothing (any more): only a person who signs in can mend that."""

    code: str


@frozen
class Misconfigured:
    """The registration or the settings are wrong; ``why`` is a sentence for the operator."""

    code: str
    why: str


@frozen
class Unavailable:
    """The provider cannot say now; the grant may be as good as before."""

    why: str
    retry_after: float | None = None


@frozen
class AuthorizationCode:
    """What the browser brought back, good for one exchange."""

    code: str = field(repr=False)


@frozen
class Foreign:
    """It is no answer to the question that was asked: ``why`` tells."""

    why: str


DeviceAnswer: TypeAlias = DeviceCode | Misconfigured | Unavailable
PollAnswer: TypeAlias = Granted | Pending | SlowDown | Expired | Denied | Lost | Misconfigured | Unavailable
TokenAnswer: TypeAlias = Granted | Lost | Misconfigured | Unavailable
RedirectAnswer: TypeAlias = AuthorizationCode | Denied | Lost | Misconfigured | Unavailable | Foreign


def device_answer(answer: Answer) -> DeviceAnswer:
    """Read the answer to ``device_request``."""
    found = _object(answer)
    if "error" in found:
        match _refusal(answer, found):
            case Misconfigured() | Unavailable() as outcome:
                return outcome
            case Denied(code) | Lost(code):
                return Misconfigured(code, _why(code))
            case _:
                return Misconfigured("", "the provider refuses to give a device code")
    device, user = found.get("device_code"), found.get("user_code")
    url = found.get("verification_uri", found.get("verification_url"))
    complete = found.get("verification_uri_complete", "")
    if not (answer.status == 200 and _is(device, _TOKEN) and _is(user, _PRINTABLE) and _is_page(url)):
        return _no_answer(answer)
    return DeviceCode(
        device,
        user,
        url,
        complete if _is_page(complete) else "",
        _number(found.get("expires_in"), 900, SHORTEST_LIFETIME, 86_400),
        _number(found.get("interval"), USUAL_INTERVAL, 1, LONGEST_INTERVAL),
    )


def poll_answer(answer: Answer) -> PollAnswer:
    """Read the answer to ``poll_request``."""
    found = _object(answer)
    return _refusal(answer, found) if "error" in found else _granted(answer)


def token_answer(answer: Answer) -> TokenAnswer:
    """Read the answer to ``code_request`` or ``refresh_request``."""
    match poll_answer(answer):
        case Denied(code):
            return Lost(code)
        case Pending() | Expired():
            return Misconfigured(
                "", "the provider answers a question that was not asked: look at `token_url`"
            )
        case SlowDown():
            return Unavailable("the provider asks us to slow down", _seconds(answer))
        case outcome:
            return outcome


def redirect_answer(url: str, redirect_uri: str, state: str) -> RedirectAnswer:
    """Read the address that the browser was sent back to, or that a person has pasted.

    ``state`` is compared in constant time, before anything else of it is believed.
    """
    try:
        there, here = urlsplit(url.strip()), urlsplit(redirect_uri)
        pairs = parse_qsl(there.query, keep_blank_values=True, max_num_fields=50)
        same_place = (there.scheme, there.hostname, there.port, there.path or "/") == (
            here.scheme,
            here.hostname,
            here.port,
            here.path or "/",
        )
    except ValueError:
        return Foreign("that is no address")
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            return Foreign("that address says something twice")
        given[name] = value
    if not same_place:
        return Foreign(f"the address must begin with {redirect_uri}")
    if not hmac.compare_digest(given.get("state", "").encode(), state.encode()):
        return Foreign("the address belongs to another attempt to sign in")
    if "error" in given:
        match _refusal(Answer(400, ""), given):
            case Pending() | SlowDown() | Expired():
                return Unavailable("the provider asks us to try later")
            case outcome:
                return outcome
    code = given.get("code", "")
    return AuthorizationCode(code) if _is(code, _PRINTABLE) else Foreign("the address holds no code")


def _granted(answer: Answer) -> Granted | Unavailable:
    from oauthlib.oauth2 import OAuth2Error  # noqa: PLC0415
    from oauthlib.oauth2.rfc6749.parameters import parse_token_response  # noqa: PLC0415

    if answer.status != 200:
        return _no_answer(answer)
    told = _object(answer)
    # it makes too much of times that are none: those are read here
    rest = {name: value for name, value in told.items() if name not in {"expires_in", "expires_at"}}
    try:
        found: Mapping[str, Any] = parse_token_response(json.dumps(rest))
    except (OAuth2Error, ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return _no_answer(answer)
    access, refresh = found.get("access_token"), found.get("refresh_token") or ""
    if not _is(access, _TOKEN) or not (refresh == "" or _is(refresh, _PRINTABLE)):
        return _no_answer(answer)
    scopes = found.get("scope") or ()
    return Granted(
        access,
        refresh,
        _number(told.get("expires_in"), USUAL_LIFETIME, SHORTEST_LIFETIME, LONGEST_LIFETIME),
        tuple(str(each) for each in scopes if _is(each, _PRINTABLE)) if isinstance(scopes, list) else (),
    )


def _refusal(
    answer: Answer, found: Mapping[str, Any]
) -> Pending | SlowDown | Expired | Denied | Lost | Misconfigured | Unavailable:
    """What an error means (RFC 6749 section 5.2, RFC 8628 section 3.5); a failing server says nothing."""
    error = found.get("error")
    code = error if isinstance(error, str) and _CODE.fullmatch(error) else "an error without a name"
    number = _NUMBER.search(str(found.get("error_description", ""))[:2000])
    named = f"{code}, AADSTS{number[1]}" if number else code
    if answer.status == 429 or answer.status >= 500:
        return Unavailable(f"the provider answers {answer.status} ({named})", _seconds(answer))
    if number and number[1] in _NOT_THE_GRANT:
        return Misconfigured(named, _why(number[1]) or _why(code))
    simple: Mapping[str, Callable[[], Pending | SlowDown | Expired]] = {
        "authorization_pending": Pending,
        "slow_down": SlowDown,
        "expired_token": Expired,
    }
    if code in simple:
        return simple[code]()
    if code in _DENIED:
        return Denied(named)
    if code in _LOST:
        return Lost(named)
    if code in _PASSING:
        return Unavailable(f"the provider cannot say now ({named})", _seconds(answer))
    return Misconfigured(named, _why(code))


def _why(code: str) -> str:
    return _WHY.get(code, "look at [oauth] in the settings, and at the registration at the provider")


def _no_answer(answer: Answer) -> Unavailable:
    """Something else than a provider has answered, or one that is not well."""
    return Unavailable(f"what answers with {answer.status} does not speak OAuth", _seconds(answer))


def _object(answer: Answer) -> Mapping[str, Any]:
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is(value: Any, pattern: "re.Pattern[str]") -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= LONGEST_TOKEN and pattern.fullmatch(value) is not None


def _is_page(value: Any) -> TypeGuard[str]:
    """Whether a person may be sent there: https, or this machine."""
    if not _is(value, _TOKEN):
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme == "https" or (
        parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost", "::1"}
    )


def _number(value: Any, usual: int, least: int, most: int) -> int:
    """A count of seconds, as a number or a text; what is none is the usual one."""
    try:
        return min(max(int(float(value)), least), most)
    except (ValueError, TypeError, OverflowError):
        return usual


def _seconds(answer: Answer) -> float | None:
    """``Retry-After`` in seconds; dates need a clock, so they are left alone (RFC 9110 section 10.2.3)."""
    return min(float(answer.retry_after), LONGEST_WAIT) if answer.retry_after.isdecimal() else None
