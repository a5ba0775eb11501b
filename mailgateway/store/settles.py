"""Settles that wait: a session's turn is over, unless it goes on within the delay."""

from datetime import datetime

from attrs import field, frozen
from sqlalchemy import delete, select

from mailgateway.ids import InstanceId, MachineId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_update
from mailgateway.store.tables import session
from mailgateway.store.tables import settle as table


@frozen
class Settle:
    """One that waits until ``due_at``; ``summary`` is Markdown."""

    session_id: SessionId
    instance_id: InstanceId
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
    """Those of the machine's sessions whose time has come, the oldest first."""
    rows = tx.execute(
        select(table)
        .join(session, session.c.id == table.c.session_id)
        .where(session.c.machine_id == machine_id, table.c.due_at <= tx.now)
        .order_by(table.c.due_at)
        .limit(limit)
    )
    return tuple(
        Settle(row.session_id, row.instance_id, row.summary, bool(row.aborted), row.due_at) for row in rows
    )


def next_due(tx: Tx, machine_id: MachineId) -> datetime | None:
    """When the next one of the machine's sessions is due; ``None``: none waits."""
    return tx.execute(
        select(table.c.due_at)
        .join(session, session.c.id == table.c.session_id)
        .where(session.c.machine_id == machine_id)
        .order_by(table.c.due_at)
        .limit(1)
    ).scalar()
