"""``token mint``: a signed token for whoever writes mail without the service.

The service itself never mints one.  The key is read here and goes nowhere.
"""

from datetime import UTC, datetime, timedelta

from attrs import frozen

from mailgateway.domain.token import mint
from mailgateway.ids import SessionId
from mailgateway.secrets import SESSION_KEY, read_key
from mailgateway.settings import Settings


@frozen
class Minted:
    """A token as it stands in a subject, brackets included, and when it expires (RFC 3339, UTC)."""

    text: str
    expires_at: str


def mint_for(settings: Settings, session: str, hours: int, now: datetime | None = None) -> Minted:
    """Mint a token for a session of this device; ``ConfigError`` while there is no session key yet."""
    expires = (now or datetime.now(UTC)) + timedelta(hours=hours)
    key = read_key(settings.daemon.state_dir / SESSION_KEY, own=True)
    token = mint(SessionId(session), settings.device.name, expires, key)
    return Minted(f"[{settings.security.tag}:{token}]", expires.strftime("%Y-%m-%dT%H:%M:%SZ"))
