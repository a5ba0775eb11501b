"""Questions and their answers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from attrs import field, frozen
from sqlalchemy import Row, bindparam, func, select, update

from mailgateway.domain.choice import Option
from mailgateway.domain.question import Question, QuestionEvent, QuestionStatus, advance
from mailgateway.errors import StaleWrite
from mailgateway.ids import MachineId, QuestionId, RouteId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import answer, question, route

OUTSTANDING = (QuestionStatus.RESERVED.value, QuestionStatus.OPEN.value)


@frozen
class AnswerRow:
    """The answer that won."""

    id: str
    question_id: QuestionId
    revision: int
    choice: str | None = field(repr=False)
    note: str | None = field(repr=False)
    text: str = field(repr=False)
    by: str = field(repr=False)
    door: str
    at: datetime


_FIND = Prepared(select(question).where(question.c.id == bindparam("id_")))


def find(tx: Tx, question_id: QuestionId) -> Question | None:
    """One question, or ``None``."""
    row = tx.execute(_FIND, {"id_": question_id}).one_or_none()
    return None if row is None else _value(row)


def blocking(tx: Tx, session_id: SessionId) -> Question | None:
    """The session's one outstanding decision, reserved or open; ``None``: it may ask."""
    row = tx.execute(
        select(question).where(
            question.c.session_id == session_id, question.c.blocking, question.c.status.in_(OUTSTANDING)
        )
    ).one_or_none()
    return None if row is None else _value(row)


def count_blocking(tx: Tx, machine_id: MachineId) -> int:
    """How many decisions of the machine are outstanding."""
    count: int = tx.execute(
        select(func.count())
        .select_from(question)
        .where(question.c.machine_id == machine_id, question.c.blocking, question.c.status.in_(OUTSTANDING))
    ).scalar_one()
    return count


def open_for(tx: Tx, machine_id: MachineId, recipient: str | None, limit: int) -> tuple[Question, ...]:
    """The machine's open questions, newest first, with ``recipient`` those that were mailed to it."""
    query = (
        select(question)
        .where(
            question.c.machine_id == machine_id,
            question.c.status == QuestionStatus.OPEN.value,
            question.c.expires_at > tx.now,
        )
        .order_by(question.c.created_at.desc())
        .limit(limit)
    )
    if recipient is not None:
        query = query.join(route, route.c.id == question.c.route_id).where(route.c.recipient == recipient)
    return tuple(_value(row) for row in tx.execute(query))


def reserve(tx: Tx, question_id: QuestionId, session_id: SessionId, machine_id: MachineId) -> None:
    """Write a reservation; the unique key refuses a second one of the same session."""
    tx.execute(
        question.insert(),
        {
            "id": question_id,
            "session_id": session_id,
            "machine_id": machine_id,
            "blocking": True,
            "status": QuestionStatus.RESERVED.value,
            "options": [],
            "created_at": tx.now,
        },
    )


def ask(
    tx: Tx,
    question_id: QuestionId,
    *,
    subject: str,
    prompt: str,
    options: Sequence[Option],
    recommendation: str,
    route_id: RouteId,
    expires_at: datetime,
) -> None:
    """Turn a reservation into an open question; ``StaleWrite`` when it is reserved no more."""
    _move(
        tx,
        question_id,
        QuestionStatus.RESERVED,
        QuestionEvent.ASK,
        subject=subject,
        prompt=prompt,
        options=[{"value": option.value, "label": option.label} for option in options],
        recommendation=recommendation,
        route_id=route_id,
        expires_at=expires_at,
    )


def settle(tx: Tx, found: Question, event: QuestionEvent) -> None:
    """End the question by ``event``; ``StaleWrite`` when it is not any more what ``found`` says."""
    _move(tx, found.id, found.status, event, settled_at=tx.now)


def unblock(tx: Tx, question_id: QuestionId) -> None:
    """Let the session ask another; the question stays answerable."""
    tx.execute(update(question).where(question.c.id == question_id).values(blocking=False))


def answered(tx: Tx, found: Question, won: AnswerRow) -> None:
    """Write the answer that won; ``StaleWrite`` when the question is not open any more."""
    settle(tx, found, QuestionEvent.ANSWER)
    tx.execute(
        answer.insert(),
        {
            "id": won.id,
            "question_id": won.question_id,
            "revision": won.revision,
            "choice": won.choice,
            "note": won.note,
            "text": won.text,
            "answered_by": won.by,
            "door": won.door,
            "answered_at": won.at,
        },
    )


def answer_of(tx: Tx, question_id: QuestionId) -> AnswerRow | None:
    """The answer that won, or ``None`` while there is none."""
    row = tx.execute(select(answer).where(answer.c.question_id == question_id)).one_or_none()
    if row is None:
        return None
    return AnswerRow(
        id=row.id,
        question_id=row.question_id,
        revision=row.revision,
        choice=row.choice,
        note=row.note,
        text=row.text,
        by=row.answered_by,
        door=row.door,
        at=row.answered_at,
    )


def expired(tx: Tx, limit: int = 1_000) -> tuple[Question, ...]:
    """Open questions whose time is over; end each with ``settle(..., EXPIRE)``."""
    rows = tx.execute(
        select(question)
        .where(question.c.status == QuestionStatus.OPEN.value, question.c.expires_at <= tx.now)
        .order_by(question.c.expires_at)
        .limit(limit)
    )
    return tuple(_value(row) for row in rows)


def _move(
    tx: Tx, question_id: QuestionId, status: QuestionStatus, event: QuestionEvent, **values: Any
) -> None:
    new = advance(status, event)
    if new is None:
        raise StaleWrite(f"the question {question_id} is {status}: {event} is not possible")
    done = tx.execute(
        update(question)
        .where(question.c.id == question_id, question.c.status == status.value)
        .values(status=new.value, **values)
    )
    if done.rowcount != 1:
        raise StaleWrite(f"the question {question_id} is not {status} any more")


def _value(row: Row[Any]) -> Question:
    return Question(
        id=row.id,
        session_id=row.session_id,
        machine_id=row.machine_id,
        blocking=bool(row.blocking),
        status=QuestionStatus(row.status),
        revision=row.revision,
        subject=row.subject,
        prompt=row.prompt,
        options=tuple(Option(option["value"], option["label"]) for option in row.options),
        recommendation=row.recommendation,
        route_id=row.route_id or None,
        created_at=row.created_at,
        expires_at=row.expires_at,
        settled_at=row.settled_at,
    )
