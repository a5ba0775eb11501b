"""The parts of filed mails that a claimant may fetch."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, delete, exists, func, insert, select

from mailgateway.domain.envelope import AttachmentInfo
from mailgateway.ids import EnvelopeId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import attachment as table
from mailgateway.store.tables import envelope

CHUNK = 500

_OF = Prepared(
    select(
        table.c.envelope_id,
        table.c.id,
        table.c.filename,
        table.c.content_type,
        table.c.size,
        table.c.left_out,
    )
    .where(table.c.envelope_id.in_(bindparam("ids", expanding=True)))
    .order_by(table.c.envelope_id, table.c.id)
)


def add(tx: Tx, envelope_id: EnvelopeId, parts: Iterable[tuple[AttachmentInfo, bytes]]) -> None:
    """Keep the parts of one envelope."""
    rows = [
        {
            "envelope_id": envelope_id,
            "id": info.id,
            "filename": info.filename,
            "content_type": info.content_type,
            "size": info.size,
            "left_out": info.left_out,
            "data": data,
        }
        for info, data in parts
    ]
    if rows:
        tx.execute(insert(table), rows)


def of(tx: Tx, envelope_ids: Sequence[EnvelopeId]) -> dict[EnvelopeId, tuple[AttachmentInfo, ...]]:
    """What hangs on these envelopes, without the bytes; envelopes with nothing are left out."""
    found: dict[EnvelopeId, tuple[AttachmentInfo, ...]] = {}
    for start in range(0, len(envelope_ids), CHUNK):
        for row in tx.execute(_OF, {"ids": list(envelope_ids[start : start + CHUNK])}):
            info = AttachmentInfo(row.id, row.filename, row.content_type, row.size, row.left_out)
            found[row.envelope_id] = (*found.get(row.envelope_id, ()), info)
    return found


def exist_for(envelope_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether anything hangs on the envelope of a row, as a part of its statement."""
    return exists().where(table.c.envelope_id == envelope_id)


def find(tx: Tx, envelope_id: EnvelopeId, attachment_id: str) -> tuple[AttachmentInfo, bytes] | None:
    """One part with its bytes, or ``None``."""
    row = tx.execute(
        select(table).where(table.c.envelope_id == envelope_id, table.c.id == attachment_id)
    ).one_or_none()
    if row is None:
        return None
    return AttachmentInfo(row.id, row.filename, row.content_type, row.size, row.left_out), bytes(row.data)


def held_for(tx: Tx, session_id: SessionId) -> tuple[int, int]:
    """How many files are kept for a session, and their bytes.

    Those of acked deliveries count until they are pruned: they take room on the disk like the others, and a
    session that acks at once would otherwise have no bound.
    """
    row = tx.execute(
        select(func.count().label("files"), func.coalesce(func.sum(table.c.size), 0).label("size"))
        .select_from(table)
        .join(envelope, envelope.c.id == table.c.envelope_id)
        .where(envelope.c.session_id == session_id, table.c.left_out == "")
    ).one()
    return int(row.files), int(row.size)


def prune(tx: Tx, envelope_ids: Select[Any]) -> None:
    """Forget the parts of the envelopes that a query names."""
    tx.execute(delete(table).where(table.c.envelope_id.in_(envelope_ids)))
