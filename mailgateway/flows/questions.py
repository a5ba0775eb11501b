"""Asking without mail: one question, or several that belong together.

A question that was asked is there when the caller hears of it, and stays there whatever becomes of the
caller.  Under a ``request_id`` of its own making a session asks once, however often it says so: it finds what
has become of its question meanwhile.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum

from attrs import evolve, field, frozen

from mailgateway.domain.identity import Identity
from mailgateway.domain.question import (
    Content,
    Question,
    QuestionKind,
    QuestionStatus,
    misplaced,
    nudge,
)
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.sessions import question_id_of, register
from mailgateway.flows.waiting import commit
from mailgateway.ids import InstanceId, QuestionId, SessionId
from mailgateway.store import question_changes, question_lists, questions, sessions
from mailgateway.store.database import Database, Tx

MOST_WAITING = 20_000
"""So many questions of one machine may be open, or ended and unread."""

MOST_ITEMS = 50
"""So many questions are asked in one batch."""


@frozen
class Asker:
    """Who acts: a session, by the instance that runs it."""

    session: SessionId
    instance: InstanceId


@frozen
class Draft:
    """A question to be asked."""

    content: Content
    request_id: str | None = None
    parent_id: QuestionId | None = None
    expires_at: datetime | None = None
    source_path: str = field(default="", repr=False)
    source_leaf: str = ""

    def digest(self) -> str:
        """Of what is asked: not of the place in the session, which moves on before a request is repeated."""
        expires = "" if self.expires_at is None else self.expires_at.isoformat()
        return self.content.digest(self.parent_id or "", expires)


class Disposition(StrEnum):
    """What a request to ask has led to."""

    CREATED = "created"
    IDEMPOTENT = "idempotent"
    """It was asked before; nothing has changed."""


@frozen
class Asked:
    """A question that is there; ``nudge`` says that its family grows too large."""

    question: Question
    disposition: Disposition
    nudge: str | None = None


@frozen
class Item:
    """One question of a batch; it may stand below an earlier one, named by ``parent_ref``."""

    ref: str
    draft: Draft | Refusal
    """What is asked, or why it cannot be read."""
    parent_ref: str | None = None


@frozen
class ItemOutcome:
    """What has become of one question of a batch."""

    ref: str
    outcome: Asked | Refusal


async def create(
    database: Database, bell: Bell, identity: Identity, asker: Asker, draft: Draft, random: bytes
) -> Asked:
    """Ask one question; ``random`` are at least 12 random bytes.

    Refusals: ``not_yours`` (the instance runs another session), ``key_reused`` (the request id has asked
    something else), ``unknown`` (the parent), ``wrong_owner`` (of the parent), ``question_terminal`` (the
    parent came to nothing), ``child_limit_reached``, ``depth_limit_reached``, ``invalid`` (an expiry that is
    over), ``registry_full``.
    """

    def work(tx: Tx) -> tuple[Asked, Sequence[Event]]:
        speak_for(tx, asker)
        asked = _ask(tx, identity, asker, draft, random)
        return asked, _rings([asked])

    return await commit(database, bell, work)


async def create_batch(
    database: Database, bell: Bell, identity: Identity, asker: Asker, items: Sequence[Item], random: bytes
) -> tuple[ItemOutcome, ...]:
    """Ask several questions in their order, up to the first that is refused; the outcome of each.

    ``random`` are at least 12 random bytes for each item.  What stands before the refused one is asked, what
    stands behind it is ``batch_aborted``.  Beside the codes of ``create``, an item may be refused with
    ``forward_parent_reference``: it names a parent that does not stand before it.
    """

    def work(tx: Tx) -> tuple[tuple[ItemOutcome, ...], Sequence[Event]]:
        speak_for(tx, asker)
        outcomes: list[ItemOutcome] = []
        known: dict[str, QuestionId] = {}
        failed = False
        for number, item in enumerate(items):
            outcome: Asked | Refusal
            if failed:
                outcome = Refusal(
                    "batch_aborted", "an item before this one was refused; ask again without it"
                )
            else:
                try:
                    draft = _placed(item, known)
                    chance = random[12 * number : 12 * (number + 1)]
                    outcome = _ask(tx, identity, asker, draft, chance)
                    known[item.ref] = outcome.question.id
                except Refusal as refusal:  # nothing of this item was written before it was refused
                    outcome, failed = refusal, True
            outcomes.append(ItemOutcome(item.ref, outcome))
        return tuple(outcomes), _rings([each.outcome for each in outcomes])

    return await commit(database, bell, work)


def _placed(item: Item, known: Mapping[str, QuestionId]) -> Draft:
    """The draft of an item, with the parent that it names by its place in the batch."""
    if isinstance(item.draft, Refusal):
        raise item.draft
    if item.ref in known:
        raise Refusal("invalid", "`localRef` is that of an item before", {"field": "localRef"})
    if item.parent_ref is None:
        return item.draft
    if item.draft.parent_id is not None:
        raise Refusal(
            "invalid",
            "`parentLocalRef` and `parentQuestionId` exclude each other",
            {"field": "parentLocalRef"},
        )
    parent = known.get(item.parent_ref)
    if parent is None:
        raise Refusal("forward_parent_reference", "`parentLocalRef` must be the localRef of an item before")
    return evolve(item.draft, parent_id=parent)


def _rings(outcomes: Sequence[Asked | Refusal]) -> list[Event]:
    return [
        Event(EventKind.QUESTION, each.question.id, each.question.session_id)
        for each in outcomes
        if isinstance(each, Asked) and each.disposition is Disposition.CREATED
    ]


def _ask(tx: Tx, identity: Identity, asker: Asker, draft: Draft, random: bytes) -> Asked:
    """Ask, unless it was asked before; every refusal comes before anything is written."""
    digest = draft.digest()
    if draft.request_id is not None:
        before = question_changes.by_request(tx, asker.session, draft.request_id)
        if before is not None:
            if before.content_digest != digest:
                raise Refusal(
                    "key_reused",
                    "this requestId has asked something else; take a new one, or revise the question",
                    {"questionId": before.id},
                )
            return Asked(before, Disposition.IDEMPOTENT)
    if draft.expires_at is not None and draft.expires_at <= tx.now:
        raise Refusal("invalid", "`expiresAt` is over already", {"field": "expiresAt"})
    if question_lists.count_attention(tx) >= MOST_WAITING:
        raise Refusal("registry_full", f"{MOST_WAITING} questions wait already, here")
    said = place_below(tx, asker.session, draft.parent_id)
    register(tx, identity, asker.session)
    asked = Question(
        id=question_id_of(random),
        session_id=asker.session,
        creator_id=asker.session,
        machine_id=identity.machine_id,
        blocking=False,
        status=QuestionStatus.OPEN,
        kind=QuestionKind.QUESTION,
        revision=1,
        subject=draft.content.subject(),
        prompt=draft.content.prompt,
        ambiguity=draft.content.ambiguity,
        options=draft.content.options,
        mode=draft.content.mode,
        urgency=draft.content.urgency,
        recommendation="",
        route_id=None,
        created_at=tx.now,
        expires_at=draft.expires_at,
        parent_id=draft.parent_id,
        content_digest=digest,
        source_path=draft.source_path,
        source_leaf=draft.source_leaf,
    )
    question_changes.add(tx, asked, request_id=draft.request_id)
    return Asked(asked, Disposition.CREATED, said)


def speak_for(tx: Tx, asker: Asker) -> None:
    """Refuse an instance that runs other sessions and not this one."""
    runs = sessions.of_instance(tx, asker.instance)
    if runs and asker.session not in runs:
        raise Refusal("not_yours", "this instance runs another session; a session acts for itself alone")


def place_below(
    tx: Tx, owner: SessionId, parent_id: QuestionId | None, moved: Question | None = None
) -> str | None:
    """Make sure that a question may stand below another one; what to tell about the place.

    ``moved`` is one that stands elsewhere already, with its family.
    """
    if parent_id is None:
        return None
    parent = questions.find(tx, parent_id)
    if parent is None or parent.status is QuestionStatus.RESERVED:
        raise Refusal("unknown", "the parent is no question", {"field": "parentQuestionId"})
    if parent.session_id != owner:
        raise Refusal(
            "wrong_owner", "the parent is another session's question", {"field": "parentQuestionId"}
        )
    if parent.status_at(tx.now) not in {QuestionStatus.OPEN, QuestionStatus.ANSWERED}:
        raise Refusal(
            "question_terminal",
            f"the parent is {parent.status_at(tx.now)}; ask below another question, or below none",
            {"field": "parentQuestionId"},
        )
    family = [] if moved is None else question_changes.generations(tx, moved.id)
    if moved is not None and (parent_id == moved.id or any(parent_id in each for each in family)):
        raise Refusal("parent_cycle", "a question cannot stand below itself", {"field": "parentQuestionId"})
    above = question_changes.level(tx, parent)
    siblings = question_changes.children(tx, parent_id, but=None if moved is None else moved.id)
    code = misplaced(above, 1 + len(family), siblings)
    if code == "depth_limit_reached":
        raise Refusal("depth_limit_reached", "questions stand on four levels at most; ask further up")
    if code == "child_limit_reached":
        raise Refusal("child_limit_reached", "a question has five children at most; ask elsewhere, or less")
    return nudge(above + 1, siblings + 1)
