"""What may change while a question is open: its text, its place, its owner; and who read how it ended.

Each change is written only when the question still is what it was read as (compare-and-set), and logged.
"""

from collections.abc import Sequence
from typing import Any

from attrs import evolve
from sqlalchemy import func, select, update

from mailgateway.domain.choice import Option
from mailgateway.domain.decision_log import Act
from mailgateway.domain.question import (
    MOST_LEVELS,
    AnswerMode,
    Content,
    Question,
    QuestionKind,
    QuestionStatus,
    Urgency,
)
from mailgateway.errors import StaleWrite
from mailgateway.ids import QuestionId, SessionId
from mailgateway.store import decision_log
from mailgateway.store.database import Tx
from mailgateway.store.questions import SESSION, begun, find, keep_revision, options_json, value_of
from mailgateway.store.tables import answer, question, question_revision

CHUNK = 500
MOST_DESCENDANTS = 1_000
"""So many of a family are looked at; the bounds on children and levels keep all below."""

COUNTED = (QuestionStatus.OPEN.value, QuestionStatus.ANSWERED.value)
"""Children that came to nothing leave their place to others."""


def add(
    tx: Tx,
    asked: Question,
    *,
    request_id: str | None,
) -> None:
    """Write a new open question with its first revision; a taken ``request_id`` is refused by its key."""
    tx.execute(
        question.insert(),
        {
            "id": asked.id,
            "session_id": asked.session_id,
            "creator_id": asked.creator_id,
            "machine_id": asked.machine_id,
            "blocking": False,
            "status": asked.status.value,
            "kind": asked.kind.value,
            "subject": asked.subject,
            "prompt": asked.prompt,
            "ambiguity": asked.ambiguity,
            "options": options_json(asked.options),
            "mode": asked.mode.value,
            "urgency": int(asked.urgency),
            "parent_id": asked.parent_id or "",
            "request_id": request_id,
            "content_digest": asked.content_digest,
            "source_path": asked.source_path,
            "source_leaf": asked.source_leaf,
            "created_at": asked.created_at,
            "expires_at": asked.expires_at,
            "attention": True,
        },
    )
    begun(tx, asked, asked.content)


def by_request(tx: Tx, creator: SessionId, request_id: str) -> Question | None:
    """The question that the session has asked under this id of its own."""
    row = tx.execute(
        select(question).where(question.c.creator_id == creator, question.c.request_id == request_id)
    ).one_or_none()
    return None if row is None else value_of(row)


def revise(tx: Tx, found: Question, content: Content, *, by: str) -> Question:
    """Give the question a new text, as its next revision."""
    revised = _change(
        tx,
        found,
        revision=found.revision + 1,
        subject=content.subject(),
        prompt=content.prompt,
        ambiguity=content.ambiguity,
        options=content.options,
        mode=content.mode,
        urgency=content.urgency,
    )
    keep_revision(tx, found.id, revised.revision, content)
    decision_log.append(tx, revised, Act.REVISED, by=by, door=SESSION, details={"content": content.digest()})
    return revised


def reparent(tx: Tx, found: Question, parent: QuestionId | None, *, by: str) -> Question:
    """Give the question another place; its text is the same, its revision the next."""
    moved = _change(tx, found, revision=found.revision + 1, parent_id=parent)
    keep_revision(tx, found.id, moved.revision, found.content)
    details = {"from": found.parent_id or "", "to": parent or ""}
    decision_log.append(tx, moved, Act.REPARENTED, by=by, door=SESSION, details=details)
    return moved


def give(tx: Tx, found: Question, owner: SessionId, act: Act, *, by: str) -> Question:
    """Give the question to another owner; its text and its revision are the same."""
    given = _change(tx, found, owner_revision=found.owner_revision + 1, session_id=owner)
    details = {"from": found.session_id, "to": owner}
    decision_log.append(tx, given, act, by=by, door=SESSION, details=details)
    return given


def _change(tx: Tx, found: Question, **changes: Any) -> Question:
    """Write the changes if the question is open and neither of its revisions has moved."""
    written = dict(changes)
    if "options" in changes:
        written |= {
            "options": options_json(changes["options"]),
            "mode": changes["mode"].value,
            "urgency": int(changes["urgency"]),
        }
    if "parent_id" in changes:
        written["parent_id"] = changes["parent_id"] or ""
    done = tx.execute(
        update(question)
        .where(
            question.c.id == found.id,
            question.c.status == found.status.value,
            question.c.revision == found.revision,
            question.c.owner_revision == found.owner_revision,
        )
        .values(**written)
    )
    if done.rowcount != 1:
        raise StaleWrite(f"the question {found.id} is not what it was")
    return evolve(found, **changes)


# --- families ---------------------------------------------------------------------------------------------


def level(tx: Tx, found: Question | None) -> int:
    """On which level a question stands: 1 without a parent; 0 for none."""
    height = 0
    while found is not None and height <= MOST_LEVELS:
        height += 1
        found = None if found.parent_id is None else find(tx, found.parent_id)
    return height


def children(tx: Tx, parent: QuestionId, *, but: QuestionId | None = None) -> int:
    """How many children a question has that count, ``but`` one."""
    count: int = tx.execute(
        select(func.count())
        .select_from(question)
        .where(question.c.parent_id == parent, question.c.status.in_(COUNTED), question.c.id != (but or ""))
    ).scalar_one()
    return count


def generations(tx: Tx, root: QuestionId) -> list[dict[QuestionId, QuestionStatus]]:
    """All that stands below a question, one generation after the other, with their statuses."""
    found: list[dict[QuestionId, QuestionStatus]] = []
    parents: Sequence[QuestionId] = [root]
    left = MOST_DESCENDANTS
    while parents and left > 0:
        rows = tx.execute(
            select(question.c.id, question.c.status)
            .where(question.c.parent_id.in_(parents[:CHUNK]))
            .order_by(question.c.created_at, question.c.id)
            .limit(left)
        )
        generation = {row.id: QuestionStatus(row.status) for row in rows}
        left -= len(generation)
        parents = [*generation]
        if generation:
            found.append(generation)
    return found


def open_descendants(tx: Tx, root: QuestionId) -> tuple[QuestionId, ...]:
    """The questions below this one that still wait for an answer."""
    return tuple(
        each
        for generation in generations(tx, root)
        for each, status in generation.items()
        if status is QuestionStatus.OPEN
    )


# --- who read it ------------------------------------------------------------------------------------------


def read_answer(tx: Tx, found: Question, reader: SessionId) -> bool:
    """Note that the session reads the answer; whether it is the first one to do so."""
    first = tx.execute(
        update(answer)
        .where(answer.c.question_id == found.id, answer.c.read_at.is_(None))
        .values(read_at=tx.now, read_by=reader)
    )
    _attended(tx, found)
    return first.rowcount == 1


def read_ending(tx: Tx, found: Question) -> None:
    """Note that somebody has read how a question ended without an answer."""
    _attended(tx, found)


def _attended(tx: Tx, found: Question) -> None:
    if found.attention and found.kind is QuestionKind.QUESTION:
        tx.execute(
            update(question)
            .where(question.c.id == found.id, question.c.status != QuestionStatus.OPEN.value)
            .values(attention=False)
        )


def revisions(tx: Tx, question_id: QuestionId, numbers: Sequence[int]) -> dict[int, Content]:
    """What the question said in these revisions."""
    rows = tx.execute(
        select(question_revision).where(
            question_revision.c.question_id == question_id, question_revision.c.revision.in_(numbers)
        )
    )
    return {
        row.revision: Content(
            prompt=row.prompt,
            ambiguity=row.ambiguity,
            options=tuple(Option(**option) for option in row.options),
            mode=AnswerMode(row.mode),
            urgency=Urgency(row.urgency),
        )
        for row in rows
    }
