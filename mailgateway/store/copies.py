"""Copies of sent mails that are still to be put into the Sent folder."""

from datetime import datetime, timedelta

from sqlalchemy import delete, func, select, update

from mailgateway.ids import AccountName, MachineId, OutboxId
from mailgateway.store.database import Tx
from mailgateway.store.tables import outbox, sent_copy


def add(tx: Tx, outbox_id: OutboxId, wait: timedelta) -> None:
    """Have a copy made after ``wait``; once for each mail."""
    known = tx.execute(select(sent_copy.c.outbox_id).where(sent_copy.c.outbox_id == outbox_id)).first()
    if known is None:
        tx.execute(sent_copy.insert(), {"outbox_id": outbox_id, "due_at": tx.now + wait})


def due(tx: Tx, machine_id: MachineId, account: AccountName) -> tuple[OutboxId, int] | None:
    """The machine's mail whose copy is due first, with the number of tries so far; ``None``: none is."""
    row = tx.execute(
        select(sent_copy.c.outbox_id, sent_copy.c.tries)
        .join(outbox, outbox.c.id == sent_copy.c.outbox_id)
        .where(outbox.c.machine_id == machine_id, outbox.c.account == account, sent_copy.c.due_at <= tx.now)
        .order_by(sent_copy.c.due_at)
        .limit(1)
    ).first()
    return None if row is None else (row.outbox_id, row.tries)


def next_due(tx: Tx, machine_id: MachineId, account: AccountName) -> datetime | None:
    """When the next copy of the machine's mails is due."""
    found: datetime | None = tx.execute(
        select(func.min(sent_copy.c.due_at))
        .join(outbox, outbox.c.id == sent_copy.c.outbox_id)
        .where(outbox.c.machine_id == machine_id, outbox.c.account == account)
    ).scalar_one()
    return found


def put_off(tx: Tx, outbox_id: OutboxId, wait: timedelta) -> None:
    """Try again after ``wait``."""
    tx.execute(
        update(sent_copy)
        .where(sent_copy.c.outbox_id == outbox_id)
        .values(due_at=tx.now + wait, tries=sent_copy.c.tries + 1)
    )


def remove(tx: Tx, outbox_id: OutboxId) -> None:
    """There is a copy, or none will be made."""
    tx.execute(delete(sent_copy).where(sent_copy.c.outbox_id == outbox_id))
