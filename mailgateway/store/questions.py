"""Questions and their answers.

Whatever happens to a question is written here together with its line in the log of decisions, so that no use
case can forget it.  ``question_changes`` has what may change while a question is open, ``question_lists`` how
many of them are found.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from attrs import evolve, field, frozen
from sqlalchemy import Row, bindparam, func, or_, select, update

from mailgateway.domain.choice import Option
from mailgateway.domain.decision_log import Act
from mailgateway.domain.question import (
    AnswerMode,
    Content,
    Question,
    QuestionEvent,
    QuestionKind,
    QuestionStatus,
    Urgency,
    advance,
)
from mailgateway.errors import StaleWrite
from mailgateway.ids import MachineId, QuestionId, RouteId, SessionId
from mailgateway.store import decision_log
from mailgateway.store.database import Tx
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import answer, question, question_revision, route

OUTSTANDING = (QuestionStatus.RESERVED.value, QuestionStatus.OPEN.value)

GATEWAY = "gateway"
"""The door of what happens by itself."""

SESSION = "session"
"""The door by which sessions act."""

ACTS = {
    QuestionEvent.ANSWER: Act.ANSWERED,
    QuestionEvent.CANCEL: Act.CANCELLED,
    QuestionEvent.EXPIRE: Act.EXPIRED,
    QuestionEvent.SUPERSEDE: Act.SUPERSEDED,
}


@frozen
class AnswerRow:
    """The answer that won."""

    id: str
    question_id: QuestionId
    revision: int
    values: tuple[str, ...] = field(repr=False)
    """Of the options that were chosen; none of an answer in words alone."""
    note: str | None = field(repr=False)
    text: str = field(repr=False)
    by: str = field(repr=False)
    door: str
    at: datetime
    read_at: datetime | None = None
    """When a session read it first."""

    @property
    def choice(self) -> str | None:
        """The one value that was chosen; ``None`` of several, or of none."""
        return self.values[0] if len(self.values) == 1 else None


_FIND = Prepared(select(question).where(question.c.id == bindparam("id_")))


def find(tx: Tx, question_id: QuestionId) -> Question | None:
    """One question, or ``None``."""
    row = tx.execute(_FIND, {"id_": question_id}).one_or_none()
    return None if row is None else value_of(row)


def blocking(tx: Tx, session_id: SessionId) -> Question | None:
    """The session's one outstanding decision, reserved or open; ``None``: it may ask."""
    row = tx.execute(
        select(question).where(
            question.c.session_id == session_id, question.c.blocking, question.c.status.in_(OUTSTANDING)
        )
    ).one_or_none()
    return None if row is None else value_of(row)


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
            living(tx),
        )
        .order_by(question.c.created_at.desc())
        .limit(limit)
    )
    if recipient is not None:
        query = query.join(route, route.c.id == question.c.route_id).where(route.c.recipient == recipient)
    return tuple(value_of(row) for row in tx.execute(query))


def living(tx: Tx) -> Any:
    """The condition that a question's time is not over."""
    return or_(question.c.expires_at.is_(None), question.c.expires_at > tx.now)


def reserve(tx: Tx, question_id: QuestionId, session_id: SessionId, machine_id: MachineId) -> None:
    """Write a reservation; the unique key refuses a second one of the same session."""
    tx.execute(
        question.insert(),
        {
            "id": question_id,
            "session_id": session_id,
            "creator_id": session_id,
            "machine_id": machine_id,
            "blocking": True,
            "status": QuestionStatus.RESERVED.value,
            "options": [],
            "created_at": tx.now,
            "attention": False,
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
    content = Content(prompt, "", tuple(options))
    _move(
        tx,
        question_id,
        QuestionStatus.RESERVED,
        QuestionEvent.ASK,
        subject=subject,
        prompt=prompt,
        options=options_json(options),
        recommendation=recommendation,
        route_id=route_id,
        expires_at=expires_at,
        attention=True,
    )
    asked = find(tx, question_id)
    assert asked is not None  # noqa: S101 (for the type checker: it was just moved)
    begun(tx, asked, content)


def begun(tx: Tx, asked: Question, content: Content) -> None:
    """Keep the first revision of a question that is there, and log that it was asked."""
    keep_revision(tx, asked.id, asked.revision, content)
    details = {"content": content.digest()}
    if asked.parent_id:
        details["parent"] = asked.parent_id
    decision_log.append(tx, asked, Act.CREATED, by=asked.session_id, door=SESSION, details=details)


def keep_revision(tx: Tx, question_id: QuestionId, revision: int, content: Content) -> None:
    """Write what a revision says; the key refuses to write one again."""
    tx.execute(
        question_revision.insert(),
        {
            "question_id": question_id,
            "revision": revision,
            "prompt": content.prompt,
            "ambiguity": content.ambiguity,
            "options": options_json(content.options),
            "mode": content.mode.value,
            "urgency": int(content.urgency),
            "at": tx.now,
        },
    )


def settle(
    tx: Tx,
    found: Question,
    event: QuestionEvent,
    *,
    by: str = "",
    door: str = GATEWAY,
    note: str | None = None,
    replacement: QuestionId | None = None,
    unread: bool = False,
) -> Question:
    """End the question by ``event``; ``StaleWrite`` when it is not any more what ``found`` says.

    ``unread`` leaves it to its owner's attention, until the end was read.  The question as it is then.
    """
    ended = _end(tx, found, event, note=note, replacement=replacement, unread=unread)
    if found.status is not QuestionStatus.RESERVED:
        details = {} if replacement is None else {"replacement": replacement}
        decision_log.append(tx, ended, ACTS[event], by=by, door=door, details=details)
    return ended


def unblock(tx: Tx, question_id: QuestionId) -> None:
    """Let the session ask another; the question stays answerable."""
    tx.execute(update(question).where(question.c.id == question_id).values(blocking=False))


def answered(tx: Tx, found: Question, won: AnswerRow) -> Question:
    """Write the answer that won; ``StaleWrite`` when the question is not open any more.

    The answer to a decision is delivered by itself; that to another question waits to be read.
    """
    unread = found.kind is QuestionKind.QUESTION
    ended = _end(tx, found, QuestionEvent.ANSWER, unread=unread)
    tx.execute(
        answer.insert(),
        {
            "id": won.id,
            "question_id": won.question_id,
            "revision": won.revision,
            "choice": won.choice,
            "chosen": list(won.values),
            "note": won.note,
            "text": won.text,
            "answered_by": won.by,
            "door": won.door,
            "answered_at": won.at,
        },
    )
    said = Content(won.note or "", won.text, tuple(Option(value, "") for value in won.values))
    details = {"answer": won.id, "content": said.digest()}
    decision_log.append(tx, ended, Act.ANSWERED, by=won.by, door=won.door, details=details)
    return ended


def answer_of(tx: Tx, question_id: QuestionId) -> AnswerRow | None:
    """The answer that won, or ``None`` while there is none."""
    row = tx.execute(select(answer).where(answer.c.question_id == question_id)).one_or_none()
    if row is None:
        return None
    before = () if row.choice is None else (row.choice,)
    return AnswerRow(
        id=row.id,
        question_id=row.question_id,
        revision=row.revision,
        values=before if row.chosen is None else tuple(row.chosen),
        note=row.note,
        text=row.text,
        by=row.answered_by,
        door=row.door,
        at=row.answered_at,
        read_at=row.read_at,
    )


def expired(tx: Tx, limit: int = 1_000) -> tuple[Question, ...]:
    """Open questions whose time is over; end each with ``settle(..., EXPIRE)``."""
    rows = tx.execute(
        select(question)
        .where(question.c.status == QuestionStatus.OPEN.value, question.c.expires_at <= tx.now)
        .order_by(question.c.expires_at)
        .limit(limit)
    )
    return tuple(value_of(row) for row in rows)


def _end(
    tx: Tx,
    found: Question,
    event: QuestionEvent,
    *,
    note: str | None = None,
    replacement: QuestionId | None = None,
    unread: bool = False,
) -> Question:
    status = _move(
        tx,
        found.id,
        found.status,
        event,
        settled_at=tx.now,
        note=note,
        replacement_id=replacement or "",
        attention=unread,
    )
    return evolve(
        found, status=status, settled_at=tx.now, note=note, replacement_id=replacement, attention=unread
    )


def _move(
    tx: Tx, question_id: QuestionId, status: QuestionStatus, event: QuestionEvent, **values: Any
) -> QuestionStatus:
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
    return new


def options_json(options: Sequence[Option]) -> list[dict[str, str]]:
    """Options as they are stored; what is not told is left out."""
    return [
        {
            name: text
            for name in ("value", "label", "description", "impact", "preview")
            if (text := getattr(option, name)) or name in {"value", "label"}
        }
        for option in options
    ]


def value_of(row: "Row[Any]") -> Question:
    """The question of a row that has all columns of the table."""
    return Question(
        id=row.id,
        session_id=row.session_id,
        machine_id=row.machine_id,
        blocking=bool(row.blocking),
        status=QuestionStatus(row.status),
        revision=row.revision,
        subject=row.subject,
        prompt=row.prompt,
        options=tuple(Option(**option) for option in row.options),
        recommendation=row.recommendation,
        route_id=row.route_id or None,
        created_at=row.created_at,
        expires_at=row.expires_at,
        settled_at=row.settled_at,
        kind=QuestionKind(row.kind),
        creator_id=row.creator_id or row.session_id,
        owner_revision=row.owner_revision,
        ambiguity=row.ambiguity,
        mode=AnswerMode(row.mode),
        urgency=Urgency(row.urgency),
        parent_id=row.parent_id or None,
        content_digest=row.content_digest,
        source_path=row.source_path,
        source_leaf=row.source_leaf,
        replacement_id=row.replacement_id or None,
        note=row.note,
        attention=bool(row.attention),
    )
