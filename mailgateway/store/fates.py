"""What became of mail that concerns us: the last thousand, for a person who asks where a reply went."""

from datetime import datetime

from attrs import field, frozen
from sqlalchemy import delete, exists, func, insert, select, update

from mailgateway.domain.delivery import DeliveryState
from mailgateway.ids import AccountName, EnvelopeId, OutboxId
from mailgateway.store.database import Tx
from mailgateway.store.envelopes import RENUMBERED
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import envelope
from mailgateway.store.tables import fate as table

KEPT = 1_000
PRUNE_EVERY = 100
"""How many fates are added before the oldest are forgotten."""
TEXT_LIMIT = 500
"""Characters kept of an address, a subject or a reason."""

ACKED = "acked"
"""The last step: a session has taken the mail over, or the gateway itself has."""


@frozen
class Fate:
    """One mail's end: ``verdict`` is ``delivered``, ``command`` or a scan verdict, ``step`` how far it came.

    ``reason`` says in our words why it went no further, ``reply_id`` which mail told the person.  The step of
    what became an envelope is read from that: it goes on when a session acks it.
    """

    account: AccountName
    at: datetime
    received_at: datetime
    from_address: str = field(repr=False)
    subject: str = field(repr=False)
    verdict: str
    step: str
    envelope_id: EnvelopeId | None
    reason: str = ""
    reply_id: OutboxId | None = None


_WITH_ENVELOPE = select(table, envelope.c.state, envelope.c.dropped_reason).outerjoin(
    envelope, envelope.c.id == table.c.envelope_id
)
_DROPPED = {RENUMBERED: "the mail server has numbered its folder anew, and the mail was not found again"}
_ADD = Prepared(insert(table).returning(table.c.id))


def add(tx: Tx, fate: Fate) -> int:
    """Keep one fate; its number.  Now and then those beyond the newest ``KEPT`` are forgotten."""
    key: int = tx.execute(
        _ADD,
        {
            "account": fate.account,
            "at": fate.at,
            "received_at": fate.received_at,
            "from_address": fate.from_address[:TEXT_LIMIT],
            "subject": fate.subject[:TEXT_LIMIT],
            "verdict": fate.verdict,
            "step": fate.step,
            "envelope_id": fate.envelope_id,
            "reason": fate.reason[:TEXT_LIMIT],
            "reply_id": fate.reply_id or "",
        },
    ).scalar()
    if key % PRUNE_EVERY == 0:
        prune(tx)
    return key


def change(tx: Tx, number: int, verdict: str, reason: str) -> None:
    """Say something else of a mail that waited."""
    tx.execute(update(table).where(table.c.id == number).values(verdict=verdict, reason=reason))


def remove(tx: Tx, number: int) -> None:
    """Take back what was not the last word on a mail."""
    tx.execute(delete(table).where(table.c.id == number))


def told(tx: Tx, fate: Fate) -> bool:
    """Whether the same has been said of the same mail before (a folder that is read again)."""
    return bool(
        tx.execute(
            select(
                exists().where(
                    table.c.account == fate.account,
                    table.c.received_at == fate.received_at,
                    table.c.from_address == fate.from_address[:TEXT_LIMIT],
                    table.c.subject == fate.subject[:TEXT_LIMIT],
                    table.c.verdict == fate.verdict,
                )
            )
        ).scalar()
    )


def since(tx: Tx, moment: datetime | None, limit: int) -> tuple[Fate, ...]:
    """The newest fates, newest first, of those decided at ``moment`` or later."""
    statement = _WITH_ENVELOPE.order_by(table.c.id.desc()).limit(limit)
    if moment is not None:
        statement = statement.where(table.c.at >= moment)
    return tuple(
        Fate(
            row.account,
            row.at,
            row.received_at,
            row.from_address,
            row.subject,
            row.verdict,
            _step(row.step, row.state),
            row.envelope_id if row.state is not None else None,
            row.reason or _DROPPED.get(row.dropped_reason or "", ""),
            row.reply_id or None,
        )
        for row in tx.execute(statement)
    )


def _step(step: str, state: str | None) -> str:
    """How far a mail has come: what became an envelope may have been acked meanwhile."""
    return ACKED if state == DeliveryState.ACKED.value else step


def prune(tx: Tx, keep: int = KEPT) -> int:
    """Forget all but the newest; how many."""
    oldest = tx.execute(select(table.c.id).order_by(table.c.id.desc()).offset(keep - 1).limit(1)).scalar()
    if oldest is None:
        return 0
    return tx.execute(delete(table).where(table.c.id < oldest)).rowcount


def count(tx: Tx) -> int:
    """How many are kept."""
    found: int = tx.execute(select(func.count()).select_from(table)).scalar_one()
    return found
