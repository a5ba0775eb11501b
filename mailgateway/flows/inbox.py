"""What the pages of people show of questions: the queue, one card, and what has ended.

Texts of sessions become HTML here, in the reading transaction, as those of mails do; nothing is decided.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from attrs import Factory, define, evolve, field, frozen

from mailgateway.domain.presence import Activity, Heard, Presence, activity, presence
from mailgateway.domain.question import Question, QuestionStatus
from mailgateway.domain.question_list import Scope, Wanted
from mailgateway.errors import Refusal
from mailgateway.flows.inbox_text import page_of_text
from mailgateway.flows.question_reading import listing
from mailgateway.flows.question_updates import unknown
from mailgateway.ids import MachineId, QuestionId, SessionId
from mailgateway.store import machines, modes, people, question_changes, question_lists, questions, sessions
from mailgateway.store.database import Database, Tx
from mailgateway.store.questions import AnswerRow

QUEUE = 50
"""Questions of the queue on one page; the others are counted."""

HISTORY = 30
SEARCHED = 500
"""So many questions of each ending, the newest, are searched through."""

ENDED = (QuestionStatus.ANSWERED, QuestionStatus.CANCELLED, QuestionStatus.EXPIRED, QuestionStatus.SUPERSEDED)


@frozen
class From:
    """Who asks, and from where; ``title`` is the person's own name for the session, where there is one."""

    session: SessionId
    title: str = field(repr=False)
    project: str = field(default="", repr=False)
    branch: str = field(default="", repr=False)
    machine: str = ""
    presence: Presence = Presence.OFFLINE
    activity: Activity = Activity.UNKNOWN
    own_title: str = field(default="", repr=False)
    """What the session calls itself."""
    harness: str = ""
    cwd: str = field(default="", repr=False)
    seen_at: datetime | None = None

    @property
    def places(self) -> tuple[str, ...]:
        """The parts of the line that tell from where."""
        return tuple(each for each in (self.title, self.project, self.branch, self.machine) if each)


@frozen
class Row:
    """One question of a list; ``depth`` counts the questions above it that the list shows, too."""

    question: Question
    asker: From
    answer: AnswerRow | None = None
    depth: int = 0


@frozen
class Queue:
    """The questions that wait, the most urgent first, children below their parents."""

    rows: tuple[Row, ...]
    more: int
    """How many wait beside these."""
    now: datetime
    off: bool
    """Whether the gateway is off, so that no mail leaves."""


@frozen
class Card:
    """One question, whole; its session's Markdown as HTML."""

    row: Row
    text: str = field(repr=False)
    ambiguity: str = field(repr=False)
    parent: Question | None
    open_below: tuple[QuestionId, ...]
    replacement: QuestionId | None
    now: datetime


@frozen
class History:
    """Questions that have ended, the newest first."""

    rows: tuple[Row, ...]
    cursor: str | None
    now: datetime


@define(eq=False)
class Askers:
    """Who asks, looked up once for each session of a page; ``waits`` says which sessions wait."""

    _tx: Tx
    _waits: Callable[[SessionId], bool]
    _known: dict[SessionId, From] = Factory(dict)
    _machines: dict[MachineId, str] = Factory(dict)

    def of(self, question: Question) -> From:
        """Who asks a question."""
        return self.of_session(question.session_id, question.machine_id)

    def of_session(self, session_id: SessionId, machine_id: MachineId) -> From:
        """A session, as it is now."""
        known = self._known.get(session_id)
        if known is None:
            known = self._known[session_id] = self._look(session_id, machine_id)
        return known

    def _look(self, session_id: SessionId, machine_id: MachineId) -> From:
        tx = self._tx
        found = sessions.find(tx, session_id)
        alias = people.aliases(tx, [session_id]).get(session_id, "")
        if found is None:
            return From(session_id, alias or session_id, machine=self._machine(machine_id))
        heard = Heard(
            pings=sessions.pings(tx, session_id),
            last_ping_at=found.last_ping_at,
            left_at=found.left_at,
            state=found.state,
            state_at=found.state_at or found.first_seen_at,
        )
        return From(
            session=session_id,
            title=alias or found.title or session_id,
            project=found.project,
            branch=found.branch,
            machine=self._machine(found.machine_id),
            presence=presence(heard, tx.now),
            activity=activity(heard, tx.now, waits=self._waits(session_id)),
            own_title=found.title,
            harness=found.harness,
            cwd=found.cwd,
            seen_at=found.last_ping_at,
        )

    def _machine(self, machine_id: MachineId) -> str:
        if machine_id not in self._machines:
            self._machines[machine_id] = machines.name(self._tx, machine_id)
        return self._machines[machine_id]


async def queue(database: Database, machine: MachineId, waits: Callable[[SessionId], bool]) -> Queue:
    """What waits for an answer."""
    wanted = Wanted(None, Scope.GLOBAL, QuestionStatus.OPEN)

    def work(tx: Tx) -> Queue:
        found = question_lists.page(tx, wanted, None, QUEUE)
        more = question_lists.count(tx, wanted) - len(found)
        askers = Askers(tx, waits)
        rows = tuple(Row(each, askers.of(each), depth=depth) for each, depth in _below_parents(found))
        return Queue(rows, more, tx.now, modes.current(tx, machine).value == "off")

    return await database.read(work)


def _below_parents(found: Sequence[Question]) -> Iterable[tuple[Question, int]]:
    """The questions in their order, each behind its parent where that is shown, too.

    A family stands where its most urgent member does.
    """
    by_id = {each.id: each for each in found}
    children: dict[QuestionId, list[Question]] = {}
    roots: dict[QuestionId, Question] = {}
    for each in found:
        root, seen = each, {each.id}
        while root.parent_id in by_id and root.parent_id not in seen:
            root = by_id[root.parent_id]
            seen.add(root.id)
        roots.setdefault(root.id, root)
        if each.parent_id in by_id and each.id != root.id:
            children.setdefault(each.parent_id, []).append(each)

    def family(question: Question, depth: int) -> Iterable[tuple[Question, int]]:
        yield question, depth
        for child in children.get(question.id, ()):
            yield from family(child, depth + 1)

    for root in roots.values():
        yield from family(root, 0)


async def row(
    database: Database, waits: Callable[[SessionId], bool], question_id: QuestionId
) -> tuple[Row, datetime]:
    """One line of the queue as it is now, and the time; refuses (``unknown``) what is no question."""
    return await database.read(lambda tx: (_row(tx, Askers(tx, waits), question_id), tx.now))


def _row(tx: Tx, askers: Askers, question_id: QuestionId) -> Row:
    found = questions.find(tx, question_id)
    if found is None or found.status is QuestionStatus.RESERVED:
        raise unknown()
    found = evolve(found, status=found.status_at(tx.now))
    answered = questions.answer_of(tx, found.id) if found.status is QuestionStatus.ANSWERED else None
    return Row(found, askers.of(found), answered)


async def card(database: Database, waits: Callable[[SessionId], bool], question_id: QuestionId) -> Card:
    """One question with all that is to be known for an answer; refuses (``unknown``) what is none."""

    def work(tx: Tx) -> Card:
        shown = _row(tx, Askers(tx, waits), question_id)
        question = shown.question
        return Card(
            row=shown,
            text=page_of_text(question.prompt, question.subject),
            ambiguity=page_of_text(question.ambiguity, ""),
            parent=questions.find(tx, question.parent_id) if question.parent_id else None,
            open_below=question_changes.open_descendants(tx, question.id),
            replacement=question.replacement_id,
            now=tx.now,
        )

    return await database.read(work)


async def history(
    database: Database,
    waits: Callable[[SessionId], bool],
    status: QuestionStatus,
    words: str,
    cursor: str | None,
) -> History:
    """What has ended so, the newest first; with ``words``, of all of the last those that hold them all.

    Refuses (``invalid``) a cursor of another list.
    """
    if words.strip():
        return await database.read(lambda tx: _searched(tx, waits, words))
    wanted = Wanted(None, Scope.GLOBAL, status)
    page = await listing(database, wanted, cursor, HISTORY)

    def work(tx: Tx) -> History:
        askers = Askers(tx, waits)
        rows = tuple(Row(each, askers.of(each), questions.answer_of(tx, each.id)) for each in page.questions)
        return History(rows, page.cursor, tx.now)

    return await database.read(work)


def _searched(tx: Tx, waits: Callable[[SessionId], bool], words: str) -> History:
    wanted = [word.casefold() for word in words.split()][:10]
    askers = Askers(tx, waits)
    found: list[Row] = []
    for status in ENDED:
        for each in question_lists.page(tx, Wanted(None, Scope.GLOBAL, status), None, SEARCHED):
            asker = askers.of(each)
            answered = questions.answer_of(tx, each.id)
            said = "" if answered is None else answered.text
            text = "\n".join([each.subject, each.prompt, each.ambiguity, said, *asker.places]).casefold()
            if all(word in text for word in wanted):
                found.append(Row(each, asker, answered))
    found.sort(key=lambda row: row.question.created_at, reverse=True)
    return History(tuple(found[:HISTORY]), None, tx.now)


async def call_session(database: Database, session_id: SessionId, name: str) -> None:
    """Call a session by a name of the person's; ``""``: by its own title again.  Refuses ``unknown``."""

    def work(tx: Tx) -> None:
        if sessions.find(tx, session_id) is None:
            raise Refusal("unknown", "there is no such session any more")
        people.call(tx, session_id, name)

    await database.run(work)
