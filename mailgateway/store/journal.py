"""What was acked, by whom and when; outlives the words themselves."""

from datetime import datetime

from attrs import frozen
from sqlalchemy import select

from mailgateway.ids import EnvelopeId, InstanceId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_ignore
from mailgateway.store.tables import journal as table


@frozen
class Acked:
    """One entry; ``instance_id`` is empty for what the gateway itself consumed."""

    envelope_id: EnvelopeId
    session_id: SessionId
    instance_id: InstanceId
    acked_at: datetime


def add(tx: Tx, envelope_id: EnvelopeId, session_id: SessionId, instance_id: InstanceId) -> bool:
    """Write an entry; ``False`` when there was one already, which stays."""
    return insert_or_ignore(
        tx,
        table,
        {
            "envelope_id": envelope_id,
            "session_id": session_id,
            "instance_id": instance_id,
            "acked_at": tx.now,
        },
    )


def find(tx: Tx, envelope_id: EnvelopeId) -> Acked | None:
    """The entry of an envelope, or ``None``."""
    row = tx.execute(select(table).where(table.c.envelope_id == envelope_id)).one_or_none()
    return None if row is None else Acked(row.envelope_id, row.session_id, row.instance_id, row.acked_at)
