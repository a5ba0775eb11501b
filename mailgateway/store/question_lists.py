"""Which questions there are: pages in the order of an index, and what a session that waits can go on with.

A page is found again from the position of the last row of the one before, whatever came and went meanwhile.
"""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, func, literal, select, tuple_

from mailgateway.domain.question import Question, QuestionKind, QuestionStatus
from mailgateway.domain.question_list import Position, Scope, Wanted
from mailgateway.ids import QuestionId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.questions import living, value_of
from mailgateway.store.tables import Instant, question, session

MOST_ENDED = 200
"""So many ended questions of a session are looked at for the one that it hears of first."""

CHUNK = 500


def page(tx: Tx, wanted: Wanted, after: Position | None, limit: int) -> tuple[Question, ...]:
    """The next questions, at most ``limit``.

    Without ``status`` and ``read``, those that need attention: open, or ended and unread by their owner.
    """
    return tuple(value_of(row) for row in tx.execute(query(tx, wanted, after, limit)))


def count(tx: Tx, wanted: Wanted) -> int:
    """How many questions there are of these."""
    statement = select(func.count()).select_from(question).where(*_conditions(tx, wanted))
    found: int = tx.execute(statement).scalar_one()
    return found


def query(tx: Tx, wanted: Wanted, after: Position | None, limit: int) -> "Select[Any]":
    """The statement of ``page``."""
    statement = select(question).where(*_conditions(tx, wanted))
    created = literal(None if after is None else after.created_at, Instant)  # stored as a number
    if wanted.ended:
        place = tuple_(question.c.created_at, question.c.id)
        if after is not None:
            statement = statement.where(place < tuple_(created, after.id))
        return statement.order_by(question.c.created_at.desc(), question.c.id.desc()).limit(limit)
    place = tuple_(question.c.urgency, question.c.created_at, question.c.id)
    if after is not None:
        statement = statement.where(place > tuple_(after.urgency, created, after.id))
    return statement.order_by(question.c.urgency, question.c.created_at, question.c.id).limit(limit)


def visible(tx: Tx, found: Question, wanted: Wanted) -> bool:
    """Whether a question lies within a scope."""
    conditions = _scope(tx, wanted)
    row = tx.execute(select(question.c.id).where(question.c.id == found.id, *conditions)).one_or_none()
    return row is not None


def _conditions(tx: Tx, wanted: Wanted) -> list[ColumnElement[bool]]:
    found = _scope(tx, wanted)
    status = wanted.status
    if wanted.read is not None:  # only answers are read: a filter on reading is one on the status, too
        found.append(question.c.status == QuestionStatus.ANSWERED.value)
        found.append(question.c.attention.is_(not wanted.read))
        if status not in {None, QuestionStatus.ANSWERED}:
            found.append(question.c.status == status)
        return found
    match status:
        case None:
            over = and_(question.c.status == QuestionStatus.OPEN.value, ~living(tx))
            found += [question.c.attention.is_(True), ~over]
        case QuestionStatus.OPEN:
            found += [question.c.attention.is_(True), question.c.status == status.value, living(tx)]
        case _:
            found.append(question.c.status == status.value)
    return found


def _scope(tx: Tx, wanted: Wanted) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.among:
        found.append(question.c.session_id.in_(wanted.among))
    if wanted.session is None or wanted.scope is Scope.GLOBAL:
        return found
    own = question.c.session_id == wanted.session
    place = tx.execute(select(session).where(session.c.id == wanted.session)).one_or_none()
    there: list[ColumnElement[bool]] = []
    if place is not None:
        match wanted.scope:
            case Scope.WORKTREE if place.worktree:
                there = [session.c.machine_id == place.machine_id, session.c.worktree == place.worktree]
            case Scope.REPOSITORY if place.project:
                there = [session.c.project == place.project]
            case Scope.FEATURE if place.project and place.branch:
                there = [session.c.project == place.project, session.c.branch == place.branch]
            case _:
                pass
    near = select(session.c.id).where(*there)
    return [*found, question.c.session_id.in_(near) if there else own]


def count_attention(tx: Tx) -> int:
    """How many questions are open, or have ended and were not read yet."""
    count: int = tx.execute(
        select(func.count()).select_from(question).where(question.c.attention.is_(True))
    ).scalar_one()
    return count


def count_open(tx: Tx, session_id: SessionId) -> int:
    """How many of a session's questions (decisions apart) wait for an answer."""
    count: int = tx.execute(
        select(func.count())
        .select_from(question)
        .where(*_waiting(session_id), question.c.status == QuestionStatus.OPEN.value)
    ).scalar_one()
    return count


def next_ended(tx: Tx, session_id: SessionId) -> Question | None:
    """The question of a session that it hears of first, of those that have ended and that it has not read.

    The one that ended first, unless another one above it has ended too: that comes before.
    """
    rows = tx.execute(
        select(question)
        .where(*_waiting(session_id), question.c.status != QuestionStatus.OPEN.value)
        .order_by(question.c.settled_at, question.c.id)
        .limit(MOST_ENDED)
    )
    ended = {row.id: value_of(row) for row in rows}
    if not ended:
        return None
    first = next(iter(ended.values()))
    parents = _parents(tx, first)
    return next((ended[each] for each in reversed(parents) if each in ended), first)


def _waiting(session_id: SessionId) -> Collection[ColumnElement[bool]]:
    return (
        question.c.session_id == session_id,
        question.c.attention.is_(True),
        question.c.kind == QuestionKind.QUESTION.value,
    )


def _parents(tx: Tx, found: Question) -> list[QuestionId]:
    """Those that a question stands below, its parent first."""
    above: list[QuestionId] = []
    parent = found.parent_id
    while parent and parent not in above:
        above.append(parent)
        parent = tx.execute(select(question.c.parent_id).where(question.c.id == parent)).scalar()
    return above
