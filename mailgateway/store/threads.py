"""Threads: the Message-IDs that we sent, the route behind each, and the text that a reply may quote."""

from collections.abc import Iterable
from datetime import datetime

from attrs import field, frozen
from sqlalchemy import bindparam, select

from mailgateway.domain.outbox import OutboxState
from mailgateway.domain.route import Route
from mailgateway.ids import MessageId, OutboxId, RouteId, SessionId
from mailgateway.store import routes
from mailgateway.store.database import Tx
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import outbox, route, thread

SENT_TEXT_LIMIT = 64 * 1024
"""How many characters of the sent text are kept: what we can know of a quote."""

_ASKED_AT_ONCE = 500


@frozen
class Thread:
    """One mail of ours that a reply may name."""

    message_id: MessageId
    route: Route
    sent_text: str = field(repr=False)
    expires_at: datetime


_FIND = Prepared(
    select(
        thread.c.message_id,
        thread.c.sent_text,
        thread.c.expires_at.label("thread_expires_at"),
        *route.c,
    )
    .join(route, route.c.id == thread.c.route_id)
    .where(thread.c.message_id.in_(bindparam("asked", expanding=True)))
)


def find(tx: Tx, message_ids: Iterable[MessageId]) -> dict[MessageId, Thread]:
    """Those of the Message-IDs that we sent, expired or not; at most 500 are looked up."""
    asked = list(dict.fromkeys(message_ids))[:_ASKED_AT_ONCE]
    if not asked:
        return {}
    return {
        row.message_id: Thread(row.message_id, routes.of_row(row), row.sent_text, row.thread_expires_at)
        for row in tx.execute(_FIND, {"asked": asked})
    }


def add(
    tx: Tx,
    message_id: MessageId,
    route_id: RouteId,
    outbox_id: OutboxId,
    *,
    sent_text: str,
    expires_at: datetime,
) -> None:
    """Write that ``message_id`` leads to ``route_id``."""
    tx.execute(
        thread.insert(),
        {
            "message_id": message_id,
            "route_id": route_id,
            "outbox_id": outbox_id,
            "sent_text": sent_text[:SENT_TEXT_LIMIT],
            "created_at": tx.now,
            "expires_at": expires_at,
        },
    )


def add_other(tx: Tx, message_id: MessageId, other: MessageId) -> None:
    """The mail that we sent as ``message_id`` is known to its reader as ``other``: both lead the same way.

    Does nothing when the first is unknown, or the other one leads somewhere already.
    """
    row = tx.execute(select(thread).where(thread.c.message_id == message_id)).one_or_none()
    taken = tx.execute(select(thread.c.message_id).where(thread.c.message_id == other)).first()
    if row is not None and taken is None:
        add(tx, other, row.route_id, row.outbox_id, sent_text=row.sent_text, expires_at=row.expires_at)


def of_session(tx: Tx, session_id: SessionId, recipient: str, limit: int) -> tuple[MessageId, ...]:
    """The session's last mails to ``recipient`` that (as far as we know) left, oldest first."""
    gone = (OutboxState.CANCELLED.value, OutboxState.FAILED.value, OutboxState.CARRIED.value)
    rows = tx.execute(
        select(thread.c.message_id)
        .join(route, route.c.id == thread.c.route_id)
        .join(outbox, outbox.c.id == thread.c.outbox_id)
        .where(
            route.c.session_id == session_id,
            route.c.recipient == recipient,
            thread.c.expires_at > tx.now,
            outbox.c.state.not_in(gone),
            outbox.c.held_until.is_(None),
        )
        .order_by(outbox.c.number.desc())
        .limit(limit)
    ).scalars()
    return tuple(reversed(list(rows)))
