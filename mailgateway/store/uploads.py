"""Files that clients uploaded for a mail to come."""

from datetime import datetime
from typing import Any

from attrs import field, frozen
from sqlalchemy import Row, delete, func, select

from mailgateway.ids import AttachmentId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.tables import upload as table


@frozen
class Upload:
    """One file: ``size`` in octets; ``path`` lies below the state directory and was named by us."""

    id: AttachmentId
    session_id: SessionId
    filename: str = field(repr=False)
    size: int
    path: str
    created_at: datetime


def add(tx: Tx, new: Upload) -> None:
    """Write one."""
    tx.execute(
        table.insert(),
        {
            "id": new.id,
            "session_id": new.session_id,
            "filename": new.filename,
            "size": new.size,
            "path": new.path,
            "created_at": new.created_at,
        },
    )


def find(tx: Tx, upload_id: AttachmentId, session_id: SessionId) -> Upload | None:
    """The file with this id that this session uploaded, or ``None``."""
    row = tx.execute(
        select(table).where(table.c.id == upload_id, table.c.session_id == session_id)
    ).one_or_none()
    return None if row is None else _value(row)


def held(tx: Tx, session_id: SessionId) -> int:
    """How many octets the session's uploads hold."""
    return int(
        tx.execute(
            select(func.coalesce(func.sum(table.c.size), 0)).where(table.c.session_id == session_id)
        ).scalar_one()
    )


def paths(tx: Tx) -> frozenset[str]:
    """The path of every file."""
    return frozenset(tx.execute(select(table.c.path)).scalars())


def older_than(tx: Tx, before: datetime, limit: int) -> tuple[Upload, ...]:
    """Uploads from before a time; who takes one away deletes its file, then the row."""
    rows = tx.execute(
        select(table).where(table.c.created_at < before).order_by(table.c.created_at).limit(limit)
    )
    return tuple(_value(row) for row in rows)


def remove(tx: Tx, upload_id: AttachmentId) -> None:
    """Forget one."""
    tx.execute(delete(table).where(table.c.id == upload_id))


def _value(row: Row[Any]) -> Upload:
    return Upload(row.id, row.session_id, row.filename, row.size, row.path, row.created_at)
