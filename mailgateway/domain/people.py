"""People's access to their pages: one-time codes, cookies, and what is known by them.

A code is 16 random bytes and their MAC under the service's key, so that guesses are told from codes of ours
without looking anywhere.  Codes and cookies are stored as digests only: whoever reads the database logs in
nowhere.  What guards a form is made from its cookie, so it is bound to it and needs no place of its own.
"""

import base64
import binascii
import hashlib
import hmac
import re
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from attrs import field, frozen

LINK_LIFE = timedelta(minutes=10)
"""How long a login link may be used, once."""

IDLE = timedelta(days=30)
"""A device that nobody has used for so long is logged out."""

SEEN_EVERY = timedelta(minutes=10)
"""How exactly it is known when a device was last used."""

MOST_LINKS = 20
"""So many links may be open; another one ends the oldest."""

MOST_LOGINS = 100
"""So many devices may be logged in; another one logs out the one that was used longest ago."""

CODE_BYTES = 16
COOKIE_BYTES = 32
LOGIN_ID_BYTES = 8

_MAC_BYTES = 12
_PURPOSE = b"mailgateway-login-1\0"
_CODE = re.compile(r"[A-Za-z0-9_-]{38}")

_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Macintosh", "Mac"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


@frozen
class Login:
    """One browser in which a person is logged in; people call it a device.

    ``person`` is an address, or the name of the key that made the link.
    """

    id: str
    person: str = field(repr=False)
    name: str = field(repr=False)
    created_at: datetime
    seen_at: datetime


def code_of(key: str, random: bytes) -> str:
    """The code of a login link, from ``CODE_BYTES`` random bytes."""
    return base64.urlsafe_b64encode(random + _mac(key, random)).rstrip(b"=").decode("ascii")


def is_of_ours(key: str, code: str) -> bool:
    """Whether a service with this key has made the code; not whether it may still be used."""
    if _CODE.fullmatch(code) is None:
        return False
    try:
        raw = base64.urlsafe_b64decode(f"{code}==")
    except binascii.Error:
        return False
    return hmac.compare_digest(raw[CODE_BYTES:], _mac(key, raw[:CODE_BYTES]))


def _mac(key: str, random: bytes) -> bytes:
    return hmac.digest(key.encode(), _PURPOSE + random, "sha256")[:_MAC_BYTES]


def cookie_of(random: bytes) -> str:
    """The value of a cookie, from ``COOKIE_BYTES`` random bytes."""
    return base64.urlsafe_b64encode(random).rstrip(b"=").decode("ascii")


def digest_of(secret: str) -> str:
    """How a code or a cookie is stored: SHA-256 in hex, since both are far too random to be guessed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def form_token(cookie: str) -> str:
    """What every form of the holder of this cookie carries (OWASP: HMAC-based token)."""
    return hmac.digest(cookie.encode(), b"mailgateway-form-1", "sha256").hex()


def link_of(public_url: str, code: str) -> str:
    """The login link: the code stands in the fragment, which no server, log or proxy gets to see."""
    return f"{public_url.rstrip('/')}/login#{code}"


def is_secure(url: str) -> bool:
    """Whether an address is one of https."""
    return urlsplit(url).scheme == "https"


def device_name(user_agent: str) -> str:
    """What a browser calls itself, in two words that people know."""
    browser = next((name for mark, name in _BROWSERS if mark in user_agent), "A browser")
    system = next((name for mark, name in _SYSTEMS if mark in user_agent), "")
    return f"{browser} on {system}" if system else browser
