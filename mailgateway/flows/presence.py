"""Whether sessions are there, read from what was heard of them."""

from mailgateway.domain.presence import Heard, Presence, presence
from mailgateway.ids import SessionId
from mailgateway.store import sessions
from mailgateway.store.database import Tx


def of(tx: Tx, session: SessionId) -> Presence:
    """How surely a session is there, at the time of the transaction."""
    return presence(heard(tx, session), tx.now)


def heard(tx: Tx, session: SessionId) -> Heard | None:
    """What was heard of a session; ``None``: nothing is remembered."""
    found = sessions.find(tx, session)
    if found is None:
        return None
    return Heard(
        pings=sessions.pings(tx, session),
        last_ping_at=found.last_ping_at,
        left_at=found.left_at,
        state=found.state,
        state_at=found.state_at or found.first_seen_at,
    )
