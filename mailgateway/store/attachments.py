"""The parts of filed mails that a claimant may fetch."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, delete, exists, insert, select

from mailgateway.domain.envelope import AttachmentInfo
from mailgateway.ids import EnvelopeId
from mailgateway.store.database import Tx
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import attachment as table

CHUNK = 500

_OF = Prepared(
    select(table.c.envelope_id, table.c.id, table.c.filename, table.c.content_type, table.c.size)
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
            info = AttachmentInfo(row.id, row.filename, row.content_type, row.size)
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
    return AttachmentInfo(row.id, row.filename, row.content_type, row.size), bytes(row.data)


def prune(tx: Tx, envelope_ids: Select[Any]) -> None:
    """Forget the parts of the envelopes that a query names."""
    tx.execute(delete(table).where(table.c.envelope_id.in_(envelope_ids)))
