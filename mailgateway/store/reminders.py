"""Open decisions whose mail has left, and how often they were brought to mind."""

from datetime import datetime

from attrs import frozen
from sqlalchemy import delete, select

from mailgateway.domain.outbox import MailKind, OutboxState
from mailgateway.domain.question import QuestionStatus
from mailgateway.ids import MachineId, MessageId, OutboxId, QuestionId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_update
from mailgateway.store.tables import outbox, question
from mailgateway.store.tables import recipient as recipients
from mailgateway.store.tables import reminder as table


@frozen(kw_only=True)
class Unanswered:
    """An open decision whose mail has left at ``asked_at``, for ``recipient``.

    ``bounced``: it came back, so that the recipient knows nothing of it.
    """

    question_id: QuestionId
    outbox_id: OutboxId
    message_id: MessageId
    recipient: str
    asked_at: datetime
    bounced: bool = False
    times: int = 0
    reminded_at: datetime | None = None
    escalated_at: datetime | None = None


_QUERY = (
    select(
        question.c.id,
        outbox.c.id.label("outbox_id"),
        outbox.c.message_id,
        outbox.c.settled_at,
        outbox.c.state,
        recipients.c.address,
        table.c.times,
        table.c.last_at,
        table.c.escalated_at,
    )
    .join(outbox, outbox.c.question_id == question.c.id)
    .join(recipients, recipients.c.outbox_id == outbox.c.id)
    .outerjoin(table, table.c.question_id == question.c.id)
    .where(
        question.c.status == QuestionStatus.OPEN.value,
        question.c.route_id == outbox.c.route_id,
        outbox.c.kind == MailKind.DECISION.value,
        outbox.c.state.in_((OutboxState.SENT.value, OutboxState.FAILED.value)),
    )
)


def unanswered(
    tx: Tx, machine_id: MachineId, *, asked_before: datetime, limit: int
) -> tuple[Unanswered, ...]:
    """The machine's decisions that are open and were mailed before then, those asked first first."""
    rows = tx.execute(
        _QUERY.where(
            question.c.machine_id == machine_id,
            question.c.expires_at > tx.now,
            outbox.c.settled_at <= asked_before,
        )
        .order_by(outbox.c.settled_at)
        .limit(limit)
    ).all()
    return tuple(
        Unanswered(
            question_id=row.id,
            outbox_id=row.outbox_id,
            message_id=row.message_id,
            recipient=row.address,
            asked_at=row.settled_at,
            bounced=row.state == OutboxState.FAILED.value,
            times=row.times or 0,
            reminded_at=row.last_at,
            escalated_at=row.escalated_at,
        )
        for row in rows
    )


def same(tx: Tx, found: Unanswered) -> bool:
    """Whether the decision is still as it was found: open, and brought to mind no more often."""
    row = tx.execute(
        _QUERY.where(
            question.c.id == found.question_id,
            question.c.expires_at > tx.now,
            outbox.c.id == found.outbox_id,
        )
    ).first()
    return (
        row is not None
        and (row.times or 0) == found.times
        and row.last_at == found.reminded_at
        and row.escalated_at == found.escalated_at
    )


def remember(tx: Tx, found: Unanswered, *, reminded: bool = False, escalated: bool = False) -> None:
    """The decision is brought to mind now, or goes to the second address."""
    insert_or_update(
        tx,
        table,
        ["question_id"],
        {
            "question_id": found.question_id,
            "times": found.times + reminded,
            "last_at": tx.now if reminded else found.reminded_at,
            "escalated_at": tx.now if escalated else found.escalated_at,
        },
    )


def prune(tx: Tx) -> int:
    """Forget it for questions that are open no more; how many."""
    is_open = select(question.c.id).where(
        question.c.id == table.c.question_id, question.c.status == QuestionStatus.OPEN.value
    )
    return tx.execute(delete(table).where(~is_open.exists())).rowcount
