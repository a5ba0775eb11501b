"""Signed tokens: a route that a script can mint without the service, and that expires by itself.

``[<tag>:<payload>.<mac>]``.  The payload is the base64url of 16 bytes: the expiry as unsigned 32-bit
big-endian Unix seconds, 8 bytes of the session's digest, 4 bytes of the device's digest; the mac is the
first 12 bytes of an HMAC-SHA256 over a prefix and the payload's text, with the text of the key.  A token
routes; it never authorizes.
"""

import base64
import binascii
import hashlib
import hmac
import struct
from collections.abc import Iterable
from datetime import datetime

from attrs import frozen

from mailgateway.ids import SessionId, device_digest, session_digest

_PREFIX = b"mailgateway-route-1\x00"
_LAYOUT = struct.Struct(">I8s4s")
_LAST_SECOND = 2**32 - 1


@frozen
class Valid:
    """The token is ours and in time; the session is the one with this digest, if it is known here."""

    session_digest: bytes
    expires_at: int


@frozen
class Expired:
    """The token is ours, but its time is over."""


@frozen
class OtherDevice:
    """The token carries our key's signature, but was minted for a device of another name."""


@frozen
class Invalid:
    """Not a token, or not one that our key signed."""


Checked = Valid | Expired | OtherDevice | Invalid


def mint(session: SessionId, device: str, expires_at: datetime, key: str) -> str:
    """The 39 characters that stand between the colon and the bracket of a signed tag.

    ``key`` is the stripped text of ``secret.key``; ``expires_at`` must be aware and lie before 2106.
    """
    seconds = min(max(int(expires_at.timestamp()), 0), _LAST_SECOND)
    payload = _text(_LAYOUT.pack(seconds, session_digest(session), device_digest(device)))
    return f"{payload}.{_mac(payload, key)}"


def verify(token: str, key: str, now: datetime, devices: Iterable[bytes]) -> Checked:
    """Check a token; ``devices`` are the digests of this machine's device name and its former ones.

    The signature is compared in constant time before anything in the token is believed.
    """
    payload, _, mac = token.partition(".")
    if len(payload) != 22 or not payload.isascii() or not mac.isascii():
        return Invalid()
    if not hmac.compare_digest(_mac(payload, key), mac):
        return Invalid()
    try:
        raw = base64.b64decode(payload + "==", b"-_", validate=True)
    except binascii.Error:
        return Invalid()
    if len(raw) != _LAYOUT.size:
        return Invalid()
    seconds, session, device = _LAYOUT.unpack(raw)
    known = [hmac.compare_digest(device, each) for each in devices]
    if not any(known):
        return OtherDevice()
    if now.timestamp() >= seconds:
        return Expired()
    return Valid(session, seconds)


def _mac(payload: str, key: str) -> str:
    return _text(hmac.new(key.encode(), _PREFIX + payload.encode("ascii"), hashlib.sha256).digest()[:12])


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
