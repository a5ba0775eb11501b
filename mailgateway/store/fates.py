"""What became of mail that concerns us: the last thousand, for a person who asks where a reply went."""

from datetime import datetime

from attrs import frozen
from sqlalchemy import delete, exists, func, insert, select

from mailgateway.ids import AccountName, EnvelopeId
from mailgateway.store.database import Tx
from mailgateway.store.tables import fate as table

KEPT = 1_000
PRUNE_EVERY = 100
"""How many fates are added before the oldest are forgotten."""
TEXT_LIMIT = 500
"""Characters kept of an address or a subject."""


@frozen
class Fate:
    """One mail's end: ``verdict`` is ``delivered`` or a scan verdict, ``step`` where its way ended."""

    account: AccountName
    at: datetime
    received_at: datetime
    from_address: str
    subject: str
    verdict: str
    step: str
    envelope_id: EnvelopeId | None


_ADD = insert(table)


def add(tx: Tx, fate: Fate) -> None:
    """Keep one fate; now and then those beyond the newest ``KEPT`` are forgotten."""
    key = tx.execute(
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
        },
    ).inserted_primary_key
    if key is not None and key[0] % PRUNE_EVERY == 0:
        prune(tx)


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
    statement = select(table).order_by(table.c.id.desc()).limit(limit)
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
            row.step,
            row.envelope_id,
        )
        for row in tx.execute(statement)
    )


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
