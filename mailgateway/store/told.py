"""What the gateway has told people by itself, and where it says no more for a while.

By it one person is told once a day about one kind of trouble, and a loop between two programs ends.
"""

from datetime import datetime

from sqlalchemy import delete, func, select

from mailgateway.domain.outbox import BY_ITSELF, MailKind
from mailgateway.ids import RouteId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_update
from mailgateway.store.tables import muted, outbox, recipient, told

_OWN = [kind.value for kind in BY_ITSELF]


def last(tx: Tx, address: str, reason: str) -> datetime | None:
    """When the address was told about this last."""
    return tx.execute(select(told.c.at).where(told.c.address == address, told.c.reason == reason)).scalar()


def remember(tx: Tx, address: str, reason: str) -> None:
    """The address is told about this now."""
    insert_or_update(tx, told, ["address", "reason"], {"address": address, "reason": reason, "at": tx.now})


def sent_in_thread(tx: Tx, route_id: RouteId, since: datetime) -> int:
    """How many mails of its own the gateway has written in a thread since then."""
    count: int = tx.execute(
        select(func.count())
        .select_from(outbox)
        .where(
            outbox.c.kind.in_(_OWN),
            outbox.c.created_at > since,
            outbox.c.route_id == route_id,
        )
    ).scalar_one()
    return count


def sent_to(tx: Tx, address: str, since: datetime, kinds: frozenset[MailKind] = BY_ITSELF) -> int:
    """How many mails of its own, of these kinds, the gateway has written to an address since then."""
    count: int = tx.execute(
        select(func.count())
        .select_from(outbox)
        .join(recipient, recipient.c.outbox_id == outbox.c.id)
        .where(
            outbox.c.kind.in_([kind.value for kind in kinds]),
            outbox.c.created_at > since,
            recipient.c.address == address,
        )
    ).scalar_one()
    return count


def is_muted(tx: Tx, scope: str) -> bool:
    """Whether nothing is said there now."""
    return (
        tx.execute(select(muted.c.scope).where(muted.c.scope == scope, muted.c.until > tx.now)).first()
        is not None
    )


def mute(tx: Tx, scope: str, until: datetime) -> None:
    """Say nothing there until then."""
    insert_or_update(tx, muted, ["scope"], {"scope": scope, "since": tx.now, "until": until})


def count_muted(tx: Tx) -> int:
    """In how many threads and to how many people nothing is said now."""
    count: int = tx.execute(
        select(func.count()).select_from(muted).where(muted.c.until > tx.now)
    ).scalar_one()
    return count


def prune(tx: Tx, before: datetime) -> int:
    """Forget what was told, and what was muted, before a time; how many."""
    forgotten = tx.execute(delete(told).where(told.c.at < before)).rowcount
    return forgotten + tx.execute(delete(muted).where(muted.c.until < before)).rowcount
