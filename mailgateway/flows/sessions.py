"""Sessions come, tell about themselves, reserve their one decision, and go."""

from typing import Any, NoReturn

from attrs import field, frozen

from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.domain.question import Question, QuestionEvent, QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.ids import InstanceId, QuestionId, SessionId
from mailgateway.store import envelopes, modes, questions, sessions, settles
from mailgateway.store.database import Database, Tx

LIVE_SESSIONS = 10_000
"""So many sessions may live on one machine at a time."""

OUTSTANDING_DECISIONS = 10_000
"""So many decisions of one machine may be outstanding at a time."""

KEPT_SESSIONS = 20_000
"""So many sessions of one machine are remembered; those that are silent longest are forgotten before."""

TEXT_LIMIT = 4_096
"""A fact that a session tells about itself is cut after so many characters."""

_TEXTS = ("harness", "title", "cwd", "project", "branch", "worktree", "head", "state")
_SHORT = {"harness": 64, "state": 16}


@frozen
class Ping:
    """A session's word that it lives; an empty or absent fact keeps what is known.

    ``state`` is ``working``, ``blocked``, ``idle``, or ``""`` for not told.
    """

    session: SessionId
    instance: InstanceId
    harness: str = ""
    title: str = field(default="", repr=False)
    cwd: str = field(default="", repr=False)
    project: str = field(default="", repr=False)
    branch: str = field(default="", repr=False)
    worktree: str = field(default="", repr=False)
    head: str = ""
    dirty: bool | None = None
    state: str = ""


@frozen
class Presence:
    """What a session learns by pinging; ``pending`` counts what waits for it (0 while the mode is off)."""

    mode: Mode
    pending: int


@frozen
class _Pinged:
    presence: Presence
    events: tuple[Event, ...]


async def ping(database: Database, bell: Bell, identity: Identity, ping: Ping) -> Presence:
    """Take note of a session; a new one is registered (``registry_full`` over 10,000 live ones).

    ``working`` cancels a settle that waits: the turn goes on.
    """

    def work(tx: Tx) -> _Pinged:
        known = register(tx, identity, ping.session)
        facts = _facts(ping)
        if "state" in facts and (known is None or known.state != facts["state"]):
            facts["state_at"] = tx.now
        sessions.touch(tx, ping.session, identity.machine_id, facts)
        sessions.touch_runtime(tx, ping.session, ping.instance)
        events = []
        if known is None or known.left_at is not None or facts.get("state", known.state) != known.state:
            events.append(Event(EventKind.SESSION, ping.session, ping.session))
        if ping.state == "working" and settles.cancel(tx, ping.session):
            events.append(Event(EventKind.SETTLE, ping.session, ping.session))
        mode = modes.current(tx, identity.machine_id)
        pending = 0 if mode is Mode.OFF else envelopes.count_waiting(tx, identity.machine_id, ping.session)
        return _Pinged(Presence(mode, pending), tuple(events))

    done = await database.run(work)
    bell.ring(*done.events)
    return done.presence


def register(tx: Tx, identity: Identity, session: SessionId) -> sessions.Session | None:
    """Make sure that the session has a row; what was known of it before, ``None`` when it is new."""
    known = sessions.find(tx, session)
    if known is None:
        if sessions.live(tx, identity.machine_id) >= LIVE_SESSIONS:
            raise Refusal("registry_full", f"{LIVE_SESSIONS} sessions live on this machine already")
        sessions.forget_surplus(tx, identity.machine_id, KEPT_SESSIONS - 1)
        sessions.ensure(tx, session, identity.machine_id)
    return known


def _facts(ping: Ping) -> dict[str, Any]:
    facts: dict[str, Any] = {
        name: value[: _SHORT.get(name, TEXT_LIMIT)] for name in _TEXTS if (value := getattr(ping, name))
    }
    if ping.dirty is not None:
        facts["dirty"] = ping.dirty
    return facts


async def bye(database: Database, bell: Bell, session: SessionId, instance: InstanceId) -> None:
    """The instance leaves; its session's outstanding decision is freed as by ``free``.

    Not so when another live instance carries the session on: the decision is that one's by now.
    """

    def work(tx: Tx) -> QuestionId | None:
        return _free(tx, session) if sessions.leave(tx, session, instance) else None

    freed = await database.run(work)
    bell.ring(Event(EventKind.SESSION, session, session))
    _ring_question(bell, session, freed)


async def reserve(
    database: Database,
    bell: Bell,
    identity: Identity,
    session: SessionId,
    random: bytes,
) -> QuestionId:
    """Reserve the session's one blocking decision; ``random`` are at least 12 random bytes.

    It is the session's, whichever instance runs it.
    Refusals: ``decision_outstanding`` while one is reserved or open; ``registry_full`` over 10,000.
    """
    question_id = question_id_of(random)

    def work(tx: Tx) -> None:
        if (found := questions.blocking(tx, session)) is not None:
            outstanding(found)
        make_room(tx, identity)
        register(tx, identity, session)
        questions.reserve(tx, question_id, session, identity.machine_id)

    await database.run(work)
    _ring_question(bell, session, question_id)
    return question_id


async def free(database: Database, bell: Bell, session: SessionId) -> None:
    """Free the session's decision: an unused reservation is gone, an open question stays answerable."""
    freed = await database.run(lambda tx: _free(tx, session))
    _ring_question(bell, session, freed)


def question_id_of(random: bytes) -> QuestionId:
    """``q-`` and 24 hex digits, from at least 12 random bytes."""
    return QuestionId("q-" + random[:12].hex())


def outstanding(found: Question) -> NoReturn:
    """Refuse with ``decision_outstanding``: the session has one already."""
    raise Refusal(
        "decision_outstanding",
        "this session has a decision outstanding; wait for its answer, or free it (DELETE /register)",
        {"questionId": found.id},
    )


def make_room(tx: Tx, identity: Identity) -> None:
    """Refuse with ``registry_full`` when the machine has too many outstanding decisions."""
    if questions.count_blocking(tx, identity.machine_id) >= OUTSTANDING_DECISIONS:
        raise Refusal("registry_full", f"{OUTSTANDING_DECISIONS} decisions are outstanding on this machine")


def _free(tx: Tx, session: SessionId) -> QuestionId | None:
    found = questions.blocking(tx, session)
    if found is None:
        return None
    if found.status is QuestionStatus.RESERVED:
        questions.settle(tx, found, QuestionEvent.CANCEL)
    else:
        questions.unblock(tx, found.id)
    return found.id


def _ring_question(bell: Bell, session: SessionId, question: QuestionId | None) -> None:
    if question is not None:
        bell.ring(Event(EventKind.QUESTION, question, session))
