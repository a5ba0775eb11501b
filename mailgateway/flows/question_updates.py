"""What the owner of an open question may do with it, and who else may end it.

Each request names the revision of the text and of the owner that it has seen; when either has moved, nothing
happens.  So a session that has slept cannot undo what was done meanwhile, and of two that take the same
question over, one does.
"""

from collections.abc import Sequence

from attrs import field, frozen

from mailgateway.domain.decision_log import Act
from mailgateway.domain.presence import Presence
from mailgateway.domain.question import Content, Question, QuestionEvent, QuestionKind, QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows import presence
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.questions import Asker, place_below, speak_for
from mailgateway.flows.resolve import end
from mailgateway.flows.waiting import commit
from mailgateway.ids import QuestionId, SessionId
from mailgateway.store import question_changes, questions, sessions
from mailgateway.store.database import Database, Tx


@frozen
class Seen:
    """The question that is meant, as the caller has seen it."""

    question_id: QuestionId
    revision: int
    owner_revision: int


@frozen
class Person:
    """Somebody who ends a question by hand: ``name`` is a key's or an address; and whom they speak for."""

    name: str = field(repr=False)
    door: str
    sessions: frozenset[SessionId] = frozenset()


async def revise(database: Database, bell: Bell, asker: Asker, seen: Seen, content: Content) -> Question:
    """Give an own question a new text, as a whole.

    Refusals of this and all that follow: ``unknown``, ``not_yours`` (the instance), ``wrong_owner``,
    ``question_terminal``, ``stale_owner_revision``, ``stale_revision``; of all but ``cancel``
    ``question_mailed``, since what went out by mail stays as it is.
    """

    def work(tx: Tx) -> tuple[Question, Sequence[Event]]:
        found = _owned(tx, asker, seen)
        changed = question_changes.revise(tx, found, content, by=asker.session)
        return changed, [_changed(changed)]

    return await commit(database, bell, work)


async def cancel(database: Database, bell: Bell, asker: Asker, seen: Seen, note: str | None) -> Question:
    """End an own question, since its answer is not needed any more."""

    def work(tx: Tx) -> tuple[Question, Sequence[Event]]:
        found = _owned(tx, asker, seen, mailed=True)
        ended = questions.settle(
            tx, found, QuestionEvent.CANCEL, by=asker.session, door=questions.SESSION, note=note
        )
        return ended, [_changed(ended)]

    return await commit(database, bell, work)


async def cancel_by_person(
    database: Database, bell: Bell, person: Person, question_id: QuestionId, revision: int, note: str | None
) -> Question:
    """End a question in place of answering it; its owner is told.

    Refusals: ``unknown``, ``wrong_owner`` (the key speaks for other sessions), ``already_resolved``,
    ``question_terminal``, ``stale_revision``.
    """

    def work(tx: Tx) -> tuple[Question, Sequence[Event]]:
        found = asked(tx, question_id)
        if person.sessions and found.session_id not in person.sessions:
            raise wrong_owner()
        _open(tx, found)
        if found.revision != revision:
            raise stale_revision(found)
        return end(tx, found, QuestionEvent.CANCEL, by=person.name, door=person.door, note=note)

    return await commit(database, bell, work)


async def supersede(
    database: Database, bell: Bell, asker: Asker, seen: Seen, replacement_id: QuestionId
) -> Question:
    """End an own question because another open one of the same owner stands in its place."""

    def work(tx: Tx) -> tuple[Question, Sequence[Event]]:
        found = _owned(tx, asker, seen)
        replacement = questions.find(tx, replacement_id)
        where = {"field": "replacementQuestionId"}
        if replacement is None or replacement.status is QuestionStatus.RESERVED:
            raise Refusal("unknown", "the replacement is no question", where)
        if replacement.session_id != asker.session:
            raise Refusal("wrong_owner", "the replacement is another session's question", where)
        if replacement.id == found.id:
            raise Refusal("invalid", "a question cannot stand in its own place", where)
        if replacement.status_at(tx.now) in {QuestionStatus.CANCELLED, QuestionStatus.EXPIRED}:
            raise Refusal("question_terminal", f"the replacement is {replacement.status_at(tx.now)}", where)
        ended = questions.settle(
            tx,
            found,
            QuestionEvent.SUPERSEDE,
            by=asker.session,
            door=questions.SESSION,
            replacement=replacement_id,
        )
        return ended, [_changed(ended)]

    return await commit(database, bell, work)


async def reparent(
    database: Database, bell: Bell, asker: Asker, seen: Seen, parent_id: QuestionId | None
) -> Question:
    """Put an own question, with all that stands below it, below another one, or (``None``) below none.

    Refusals, too: ``parent_cycle``, ``child_limit_reached``, ``depth_limit_reached``.
    """

    def work(tx: Tx) -> tuple[Question, Sequence[Event]]:
        found = _owned(tx, asker, seen)
        place_below(tx, asker.session, parent_id, found)
        changed = question_changes.reparent(tx, found, parent_id, by=asker.session)
        return changed, [_changed(changed)]

    return await commit(database, bell, work)


async def transfer(
    database: Database, bell: Bell, asker: Asker, seen: Seen, expected_owner: SessionId, owner: SessionId
) -> Question:
    """Give an own question to another session, which must be known."""

    def work(tx: Tx) -> tuple[Question, Sequence[Event]]:
        found = _owned(tx, asker, seen)
        if expected_owner != found.session_id:
            raise _stale_owner(found)
        if sessions.machine_of(tx, owner) is None:
            raise Refusal("unknown", "the new owner is no session that is known here", {"field": "owner"})
        return _given(tx, found, owner, Act.TRANSFERRED, asker)

    return await commit(database, bell, work)


async def take_over(
    database: Database,
    bell: Bell,
    asker: Asker,
    seen: Seen,
    expected_owner: SessionId,
    among: frozenset[SessionId] = frozenset(),
) -> Question:
    """Take the question of an owner that is offline; ``owner_not_offline`` of any other.

    Only silence counts: neither kinship nor a finished transcript nor a dead process makes an owner offline.
    ``among`` are the sessions that the key speaks for (none named: all): it takes nothing of others.
    """

    def work(tx: Tx) -> tuple[Question, Sequence[Event]]:
        speak_for(tx, asker)
        found = asked(tx, seen.question_id)
        if among and found.session_id not in among:
            raise wrong_owner()
        _open(tx, found)
        if found.session_id != expected_owner or found.owner_revision != seen.owner_revision:
            raise _stale_owner(found)
        if found.revision != seen.revision:
            raise stale_revision(found)
        _not_mailed(found)
        require_offline(tx, found)
        if sessions.machine_of(tx, asker.session) is None:
            raise Refusal("unknown", "this session is not known here yet; ping first", {"field": "sessionId"})
        return _given(tx, found, asker.session, Act.TAKEN_OVER, asker)

    return await commit(database, bell, work)


def _given(
    tx: Tx, found: Question, owner: SessionId, act: Act, asker: Asker
) -> tuple[Question, Sequence[Event]]:
    changed = question_changes.give(tx, found, owner, act, by=asker.session)
    before = Event(EventKind.QUESTION, changed.id, found.session_id)
    return changed, [before, _changed(changed)]


def require_offline(tx: Tx, found: Question) -> None:
    """Refuse to act in place of an owner that may still be there."""
    if presence.of(tx, found.session_id) is not Presence.OFFLINE:
        raise Refusal(
            "owner_not_offline",
            "the owner of the question is not offline; it must have been silent for two minutes",
            {"owner": found.session_id},
        )


def _owned(tx: Tx, asker: Asker, seen: Seen, *, mailed: bool = False) -> Question:
    """The open question, if it is the asker's and as the asker has seen it."""
    speak_for(tx, asker)
    found = asked(tx, seen.question_id)
    if found.session_id != asker.session:
        raise wrong_owner()
    _open(tx, found)
    if found.owner_revision != seen.owner_revision:
        raise _stale_owner(found)
    if found.revision != seen.revision:
        raise stale_revision(found)
    if not mailed:
        _not_mailed(found)
    return found


def asked(tx: Tx, question_id: QuestionId) -> Question:
    """The question, if it was ever asked; a mere reservation is none."""
    found = questions.find(tx, question_id)
    if found is None or found.status is QuestionStatus.RESERVED:
        raise unknown()
    return found


def _open(tx: Tx, found: Question) -> None:
    status = found.status_at(tx.now)
    if status is not QuestionStatus.OPEN:
        raise Refusal(
            "question_terminal", f"the question is {status}, and that is final", {"status": str(status)}
        )


def _not_mailed(found: Question) -> None:
    if found.kind is QuestionKind.DECISION:
        raise Refusal(
            "question_mailed", "a decision went out by mail as it stands; cancel it, and ask anew if need be"
        )


def unknown() -> Refusal:
    """No such question."""
    return Refusal("unknown", "there is no such question; `GET /questions` lists what there is")


def wrong_owner() -> Refusal:
    """The question is another session's."""
    return Refusal("wrong_owner", "the question is another session's; only its owner may do this")


def stale_revision(found: Question) -> Refusal:
    """The text has changed since the caller has seen it."""
    return Refusal(
        "stale_revision",
        f"the question has revision {found.revision} by now; read it again",
        {"revision": found.revision},
    )


def _stale_owner(found: Question) -> Refusal:
    return Refusal(
        "stale_owner_revision",
        f"the question has changed hands; its owner revision is {found.owner_revision} by now",
        {"ownerRevision": found.owner_revision},
    )


def _changed(changed: Question) -> Event:
    return Event(EventKind.QUESTION, changed.id, changed.session_id)
