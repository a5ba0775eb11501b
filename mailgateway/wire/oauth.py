"""OAuth 2 for a mail program, as pure requests: what is posted, and which page a person is sent to.

Three ways lead to a grant: a device code (RFC 8628), and an authorization code with PKCE (RFC 6749 section
4.1, RFC 7636, RFC 8252) that a browser brings back or a person pastes.  Afterwards access tokens are asked
for with the refresh token (RFC 6749 section 6).  oauthlib is imported when it is needed.

This module knows no network, no clock and no file; secrets and random bytes are arguments.  What the answers
mean is in ``wire.oauth_answer``.
"""

import base64
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from attrs import field, frozen

VERIFIER_BYTES: Final = 32
"""Random bytes for ``verifier`` and ``state``: 43 characters of base64url (RFC 7636 section 4.1)."""

_OURS: Final = frozenset(
    {
        "response_type",
        "client_id",
        "redirect_uri",
        "scope",
        "state",
        "code_challenge",
        "code_challenge_method",
    }
)
"""Parameters of the authorization request that the settings do not decide."""


@frozen
class Registration:
    """The person's own registration at a provider; addresses that it does not have are empty."""

    client_id: str
    token_url: str
    device_url: str = ""
    authorize_url: str = ""
    scopes: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    """Further ``name=value`` pairs for ``authorize_url``."""
    client_secret: str = field(default="", repr=False)


@frozen
class Request:
    """A form to post (``application/x-www-form-urlencoded``)."""

    url: str
    body: str = field(repr=False)


def printable_of(chance: bytes) -> str:
    """Random bytes as a text that may stand in an address: for ``verifier`` and ``state``."""
    return base64.urlsafe_b64encode(chance).rstrip(b"=").decode("ascii")


def device_request(registration: Registration) -> Request:
    """Ask for a device code (RFC 8628 section 3.1)."""
    from oauthlib.oauth2 import DeviceClient  # noqa: PLC0415 - only who uses OAuth pays for it

    client = DeviceClient(registration.client_id)
    # the parameters of this request stand in the body, which oauthlib builds as the query of an address
    whole = client.prepare_request_uri("https://device.invalid", list(registration.scopes) or None)
    fields = [pair for pair in parse_qsl(urlsplit(whole).query) if pair[0] != "grant_type"]
    return Request(registration.device_url, urlencode(fields))


def poll_request(registration: Registration, device_code: str) -> Request:
    """Ask whether the person has typed the code (RFC 8628 section 3.4)."""
    from oauthlib.oauth2 import DeviceClient  # noqa: PLC0415

    body = DeviceClient(registration.client_id).prepare_request_body(
        device_code, include_client_id=True, **_secret(registration)
    )
    return Request(registration.token_url, body)


def authorize_url(registration: Registration, redirect_uri: str, state: str, verifier: str) -> str:
    """The page on which the person signs in; the challenge is S256 of the verifier (RFC 7636 section 4.2)."""
    from oauthlib.oauth2 import WebApplicationClient  # noqa: PLC0415

    client = WebApplicationClient(registration.client_id)
    pairs = (each.partition("=") for each in registration.parameters)
    more = [(name, value) for name, _, value in pairs if name not in _OURS]
    url: str = client.prepare_request_uri(
        _secure(registration.authorize_url),
        redirect_uri=redirect_uri,
        scope=list(registration.scopes) or None,
        state=state,
        code_challenge=client.create_code_challenge(verifier, "S256"),
        code_challenge_method="S256",
    )
    # further ones are no arguments of oauthlib's, which has names of its own for some
    further = f"&{urlencode(more)}" if more else ""
    return registration.authorize_url + url.removeprefix(_secure(registration.authorize_url)) + further


def code_request(registration: Registration, code: str, redirect_uri: str, verifier: str) -> Request:
    """Exchange an authorization code (RFC 6749 section 4.1.3, RFC 7636 section 4.5)."""
    from oauthlib.oauth2 import WebApplicationClient  # noqa: PLC0415

    body = WebApplicationClient(registration.client_id).prepare_request_body(
        code=code,
        redirect_uri=redirect_uri,
        code_verifier=verifier,
        include_client_id=True,
        **_secret(registration),
    )
    return Request(registration.token_url, body)


def refresh_request(registration: Registration, refresh_token: str) -> Request:
    """Ask for another access token; the scopes go along, since Microsoft wants them (RFC 6749 section 6)."""
    from oauthlib.oauth2 import WebApplicationClient  # noqa: PLC0415

    client = WebApplicationClient(registration.client_id, refresh_token=refresh_token)
    body = client.prepare_refresh_body(
        refresh_token=refresh_token,
        scope=list(registration.scopes) or None,
        client_id=registration.client_id,
        **_secret(registration),
    )
    return Request(registration.token_url, body)


def _secret(registration: Registration) -> dict[str, str]:
    return {"client_secret": registration.client_secret} if registration.client_secret else {}


def _secure(url: str) -> str:
    """The address as oauthlib wants it: it takes only https, also for this machine."""
    return f"https://{url.removeprefix('http://')}" if url.startswith("http://") else url
