"""Settles that wait: a session's turn is over, unless it goes on within the delay."""

from datetime import datetime

from attrs import field, frozen
from sqlalchemy import delete, func, select

from mailgateway.ids import InstanceId, MachineId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_update
from mailgateway.store.tables import settle as table
from mailgateway.store.tables import withheld as withheld_table


@frozen
class Settle:
    """One that waits until ``due_at``, on the machine where it was said; ``summary`` is Markdown."""

    session_id: SessionId
    instance_id: InstanceId
    machine_id: MachineId
    summary: str = field(repr=False)
    aborted: bool
    due_at: datetime


def put(tx: Tx, waiting: Settle) -> None:
    """Let it wait; it replaces the one of the same session."""
    insert_or_update(
        tx,
        table,
        ["session_id"],
        {
            "session_id": waiting.session_id,
            "instance_id": waiting.instance_id,
            "machine_id": waiting.machine_id,
            "summary": waiting.summary,
            "aborted": waiting.aborted,
            "due_at": waiting.due_at,
        },
    )


def cancel(tx: Tx, session_id: SessionId) -> bool:
    """Forget the one of the session; whether there was one."""
    return tx.execute(delete(table).where(table.c.session_id == session_id)).rowcount > 0


def take(tx: Tx, waiting: Settle) -> bool:
    """Forget exactly this one; ``False`` when it was cancelled or replaced meanwhile."""
    done = tx.execute(
        delete(table).where(table.c.session_id == waiting.session_id, table.c.due_at == waiting.due_at)
    )
    return done.rowcount == 1


def due(tx: Tx, machine_id: MachineId, limit: int) -> tuple[Settle, ...]:
    """Those of the machine whose time has come, the oldest first."""
    rows = tx.execute(
        select(table)
        .where(table.c.machine_id == machine_id, table.c.due_at <= tx.now)
        .order_by(table.c.due_at)
        .limit(limit)
    )
    return tuple(
        Settle(row.session_id, row.instance_id, row.machine_id, row.summary, bool(row.aborted), row.due_at)
        for row in rows
    )


def next_due(tx: Tx, machine_id: MachineId) -> datetime | None:
    """When the next one of the machine is due; ``None``: none waits."""
    return tx.execute(select(func.min(table.c.due_at)).where(table.c.machine_id == machine_id)).scalar()


def withhold(tx: Tx, withheld: Settle, code: str) -> None:
    """Remember that the turn's summary was not mailed, and by which refusal."""
    insert_or_update(
        tx,
        withheld_table,
        ["session_id"],
        {
            "session_id": withheld.session_id,
            "machine_id": withheld.machine_id,
            "code": code[:32],
            "at": tx.now,
        },
    )


def count_withheld(tx: Tx, machine_id: MachineId, since: datetime) -> int:
    """How many sessions of the machine had a settled turn since then that was not mailed."""
    count: int = tx.execute(
        select(func.count())
        .select_from(withheld_table)
        .where(withheld_table.c.machine_id == machine_id, withheld_table.c.at > since)
    ).scalar_one()
    return count


def prune_withheld(tx: Tx, before: datetime) -> int:
    """Forget what was not mailed before a time; how many."""
    return tx.execute(delete(withheld_table).where(withheld_table.c.at < before)).rowcount
