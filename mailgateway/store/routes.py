"""Routes: short ids that lead a reply to its session.  A row is never deleted, so no id is issued twice."""

from datetime import datetime

from sqlalchemy import Row, bindparam, select

from mailgateway.domain.route import Purpose, Route
from mailgateway.ids import MachineId, QuestionId, RouteId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_ignore
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import route as table

_FIND = Prepared(select(table).where(table.c.id == bindparam("id_")))


def find(tx: Tx, route_id: RouteId) -> Route | None:
    """The route, expired or not, or ``None``."""
    row = tx.execute(_FIND, {"id_": route_id}).one_or_none()
    return None if row is None else of_row(row)


def taken(tx: Tx, route_id: RouteId) -> bool:
    """Whether the id was ever issued."""
    return tx.execute(_FIND, {"id_": route_id}).first() is not None


def add(tx: Tx, route: Route) -> bool:
    """Write a new route; ``False`` when its id was issued before (nothing is written)."""
    return insert_or_ignore(
        tx,
        table,
        {
            "id": route.id,
            "purpose": route.purpose.value,
            "session_id": route.session_id,
            "question_id": route.question_id or "",
            "revision": route.revision or 1,
            "machine_id": route.machine_id,
            "recipient": route.recipient,
            "created_at": tx.now,
            "expires_at": route.expires_at,
        },
    )


def of_row(row: Row[tuple[str, str, str, str, int, str, str, datetime, datetime]]) -> Route:
    """The value of a row that has all columns of the table."""
    question = QuestionId(row.question_id) if row.question_id else None
    return Route(
        id=RouteId(row.id),
        purpose=Purpose(row.purpose),
        session_id=SessionId(row.session_id),
        machine_id=MachineId(row.machine_id),
        recipient=row.recipient,
        expires_at=row.expires_at,
        question_id=question,
        revision=row.revision if question is not None else None,
    )
