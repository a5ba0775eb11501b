"""Looking at questions and reading how they ended; nothing here ever waits.

Looking changes nothing.  Reading an answer is noted: the first session that does so is the one that did not
find it read already, whatever happens at the same time.
"""

from collections.abc import Sequence
from datetime import timedelta

from attrs import evolve, field, frozen

from mailgateway.domain.decision_log import EPOCH, Act, LogEntry
from mailgateway.domain.question import Content, Question, QuestionEvent, QuestionStatus
from mailgateway.domain.question_list import Position, Scope, Wanted
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.question_cursors import cursor_of, position_of
from mailgateway.flows.question_updates import require_offline, unknown
from mailgateway.flows.resolve import end
from mailgateway.flows.waiting import commit
from mailgateway.ids import QuestionId, SessionId
from mailgateway.store import decision_log, question_changes, question_lists, questions
from mailgateway.store.database import Database, Tx

MICROSECOND = timedelta(microseconds=1)


@frozen
class Page:
    """Some of what was asked for; ``cursor`` leads to more, ``None``: there is no more."""

    questions: tuple[Question, ...]
    cursor: str | None


@frozen
class Reader:
    """Who looks: a session, or (``None``) nobody in particular; and which sessions the key may see."""

    session: SessionId | None
    among: frozenset[SessionId] = frozenset()
    scope: Scope = Scope.OWN


@frozen
class Pending:
    """Nobody has answered yet."""

    question: Question


@frozen
class Read:
    """The answer; ``already`` when a session has read it before."""

    question: Question
    answer_id: str
    values: tuple[str, ...] = field(repr=False)
    note: str | None = field(repr=False)
    already: bool
    open_descendants: tuple[QuestionId, ...]


@frozen
class Lifecycle:
    """It has ended, and nobody will answer."""

    question: Question


Ending = Pending | Read | Lifecycle


@frozen
class Happening:
    """One line of a question's history; ``content`` is what it says since then, where that has changed."""

    entry: LogEntry
    content: Content | None = None
    before: Content | None = None


@frozen
class History:
    """Some of what was done to a question, oldest first."""

    happenings: tuple[Happening, ...]
    cursor: str | None


async def listing(database: Database, wanted: Wanted, cursor: str | None, limit: int) -> Page:
    """A page of questions; ``Refusal("invalid")`` for a cursor of another query."""
    asked = (wanted.session, wanted.scope, wanted.status, wanted.read, sorted(wanted.among))
    after = None
    if cursor is not None:
        urgency, created, name = position_of(asked, cursor, int, int, str)
        after = Position(int(urgency), EPOCH + int(created) * MICROSECOND, QuestionId(str(name)))

    def work(tx: Tx) -> tuple[Question, ...]:
        return question_lists.page(tx, wanted, after, limit + 1)

    found = await database.read(work)
    page, more = found[:limit], found[limit:]
    if not more:
        return Page(page, None)
    last = page[-1]
    position = (int(last.urgency), (last.created_at - EPOCH) // MICROSECOND, last.id)
    return Page(page, cursor_of(asked, position))


async def one(database: Database, reader: Reader, question_id: QuestionId) -> tuple[Question, Read | None]:
    """A question as it stands, and its answer when there is one (looking does not read it).

    Refusals: ``unknown``; ``wrong_owner`` when it lies outside of what the reader may see.
    """

    def work(tx: Tx) -> tuple[Question, Read | None]:
        found = _seen(tx, reader, question_id)
        if found.status is not QuestionStatus.ANSWERED:
            return found, None
        return found, _answer(tx, found, already=True)

    return await database.read(work)


async def read_answer(
    database: Database, bell: Bell, reader: Reader, question_id: QuestionId, *, recover: bool, look: bool
) -> Ending:
    """How a question ended, if it has; noted as read unless nobody in particular asks, or it is a ``look``.

    ``recover`` reads in place of an owner that is offline, without becoming the owner.
    Refusals: ``unknown``, ``wrong_owner``, ``owner_not_offline``.
    """

    def work(tx: Tx) -> tuple[Ending, Sequence[Event]]:
        found = questions.find(tx, question_id)
        if found is None or found.status is QuestionStatus.RESERVED:
            raise unknown()
        if reader.among and found.session_id not in reader.among:
            raise _not_visible()
        mine = reader.session is None or found.session_id == reader.session
        if not mine and not recover:
            raise _not_visible()
        if not mine:
            require_offline(tx, found)
        happened: tuple[Event, ...] = ()
        if found.status is QuestionStatus.OPEN:
            if found.status_at(tx.now) is QuestionStatus.OPEN:
                return Pending(found), ()
            found, happened = end(tx, found, QuestionEvent.EXPIRE)
        reads = reader.session is not None and not look
        if found.status is not QuestionStatus.ANSWERED:
            if reads:
                question_changes.read_ending(tx, found)
            return Lifecycle(found), happened
        assert reader.session is not None or not reads  # noqa: S101 (for the type checker)
        first = (
            reads and reader.session is not None and question_changes.read_answer(tx, found, reader.session)
        )
        if first:
            happened = (Event(EventKind.QUESTION, found.id, found.session_id),)
        ending = _answer(tx, found, already=not first)
        return (Lifecycle(found) if ending is None else ending), happened

    return await commit(database, bell, work)


async def history(
    database: Database, reader: Reader, question_id: QuestionId, cursor: str | None, limit: int
) -> History:
    """What was done to a question, oldest first: who, by which door, when; texts only where they changed."""
    asked = ("history", question_id)
    after = 0 if cursor is None else int(position_of(asked, cursor, int)[0])

    def work(tx: Tx) -> History:
        _seen(tx, reader, question_id)
        found = decision_log.of_question(tx, question_id, after, limit + 1)
        entries = found[:limit]
        told = {each.revision for each in entries if each.act in {Act.CREATED, Act.REVISED}}
        wanted = sorted(told | {number - 1 for number in told})
        texts = question_changes.revisions(tx, question_id, wanted)
        happenings = tuple(
            Happening(each, texts.get(each.revision), texts.get(each.revision - 1))
            if each.act in {Act.CREATED, Act.REVISED}
            else Happening(each)
            for each in entries
        )
        more = len(found) > limit
        return History(happenings, cursor_of(asked, (entries[-1].number,)) if more else None)

    return await database.read(work)


def _seen(tx: Tx, reader: Reader, question_id: QuestionId) -> Question:
    found = questions.find(tx, question_id)
    if found is None or found.status is QuestionStatus.RESERVED:
        raise unknown()
    wanted = Wanted(reader.session, reader.scope, among=reader.among)
    if not question_lists.visible(tx, found, wanted):
        raise _not_visible()
    return evolve(found, status=found.status_at(tx.now))


def _answer(tx: Tx, found: Question, *, already: bool) -> Read | None:
    won = questions.answer_of(tx, found.id)
    if won is None:
        return None
    return Read(
        question=found,
        answer_id=won.id,
        values=won.values,
        note=won.note or (None if won.values else won.text or None),
        already=already,
        open_descendants=question_changes.open_descendants(tx, found.id),
    )


def _not_visible() -> Refusal:
    return Refusal("wrong_owner", "the question is another session's; widen `scope` to look at it")
