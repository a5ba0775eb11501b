"""The life of a question: ``reserved -> open -> answered``, ``cancelled``, ``superseded`` or ``expired``.

A *decision* is a question that went out by mail; a session has one at a time that *blocks* it.  Other
questions are many, block nobody and wait in the web inbox.  Both have one life, and one way to be answered:
the first answer wins, whatever door it comes through; the loser is told who won.

What a question says may change while it is open: each text is a *revision*, which is never changed itself,
and an answer names the revision that was shown.  Whose it is may change too, counted by its own number.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum, StrEnum
from types import MappingProxyType

from attrs import field, frozen

from mailgateway.domain.choice import Option
from mailgateway.ids import MachineId, QuestionId, RouteId, SessionId

MOST_CHILDREN = 5
"""So many questions below one other, not counting those that came to nothing."""

MOST_LEVELS = 4
"""So many generations of questions, the first one included."""

OTHER = "other"
"""The value of an answer that none of the options is; what is meant stands in the note."""

LONGEST_SUBJECT = 120


class QuestionKind(StrEnum):
    """By which door it was asked."""

    DECISION = "decision"
    """By mail, with a thread of its own; its text cannot change any more."""
    QUESTION = "question"
    """In the web inbox alone."""


class QuestionStatus(StrEnum):
    """Where a question stands."""

    RESERVED = "reserved"
    """A session has announced its one decision; nothing is asked yet."""
    OPEN = "open"
    """Asked; the next answer wins."""
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    """Another question stands in its place."""


class QuestionEvent(StrEnum):
    """What may happen to a question."""

    ASK = "ask"
    ANSWER = "answer"
    CANCEL = "cancel"
    EXPIRE = "expire"
    SUPERSEDE = "supersede"


MOVES = MappingProxyType(
    {
        (QuestionStatus.RESERVED, QuestionEvent.ASK): QuestionStatus.OPEN,
        (QuestionStatus.RESERVED, QuestionEvent.CANCEL): QuestionStatus.CANCELLED,
        (QuestionStatus.RESERVED, QuestionEvent.EXPIRE): QuestionStatus.EXPIRED,
        (QuestionStatus.OPEN, QuestionEvent.ANSWER): QuestionStatus.ANSWERED,
        (QuestionStatus.OPEN, QuestionEvent.CANCEL): QuestionStatus.CANCELLED,
        (QuestionStatus.OPEN, QuestionEvent.EXPIRE): QuestionStatus.EXPIRED,
        (QuestionStatus.OPEN, QuestionEvent.SUPERSEDE): QuestionStatus.SUPERSEDED,
    }
)
"""Every legal move; what is not here is refused."""


def advance(status: QuestionStatus, event: QuestionEvent) -> QuestionStatus | None:
    """The status after ``event``, or ``None`` when the event is not possible in ``status``."""
    return MOVES.get((status, event))


class AnswerMode(StrEnum):
    """How many options an answer takes."""

    SINGLE = "single"
    MULTI = "multi"


class Urgency(IntEnum):
    """Which question comes first; the smaller, the sooner."""

    HIGH = 0
    NORMAL = 1
    LOW = 2


@frozen
class Content:
    """What one revision of a question says."""

    prompt: str = field(repr=False)
    ambiguity: str = field(repr=False)
    """Which uncertainty the answer is to resolve."""
    options: tuple[Option, ...] = field(repr=False)
    mode: AnswerMode = AnswerMode.SINGLE
    urgency: Urgency = Urgency.NORMAL

    def subject(self) -> str:
        """The first line of the prompt that says something, cut."""
        lines = (" ".join(line.split()) for line in self.prompt.splitlines())
        line = next((line for line in lines if line), "")
        return line if len(line) <= LONGEST_SUBJECT else f"{line[: LONGEST_SUBJECT - 1].rstrip()}…"

    def digest(self, *more: str) -> str:
        """SHA-256 in hex of all that is said, and of what else belongs to it."""
        options = [
            [each.value, each.label, each.description, each.impact, each.preview] for each in self.options
        ]
        said = [self.prompt, self.ambiguity, options, self.mode, int(self.urgency), *more]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()


@frozen
class Question:
    """One question of one session, with the text of its revision."""

    id: QuestionId
    session_id: SessionId
    """Its owner, who gets the answer."""
    machine_id: MachineId
    blocking: bool
    status: QuestionStatus
    revision: int
    subject: str = field(repr=False)
    prompt: str = field(repr=False)
    options: tuple[Option, ...] = field(repr=False)
    recommendation: str = field(repr=False)
    route_id: RouteId | None
    created_at: datetime
    expires_at: datetime | None
    """When nobody may answer any more; ``None``: never."""
    settled_at: datetime | None = None
    kind: QuestionKind = QuestionKind.DECISION
    creator_id: str = ""
    """The session that asked it, whoever owns it now."""
    owner_revision: int = 1
    ambiguity: str = field(default="", repr=False)
    mode: AnswerMode = AnswerMode.SINGLE
    urgency: Urgency = Urgency.NORMAL
    parent_id: QuestionId | None = None
    content_digest: str = ""
    """Of what was first asked: by it a repeated request is told from another one."""
    source_path: str = field(default="", repr=False)
    source_leaf: str = ""
    """Where in the session's own record it was asked."""
    replacement_id: QuestionId | None = None
    note: str | None = field(default=None, repr=False)
    """Why it was cancelled."""
    attention: bool = True
    """Whether it is open, or has ended and its owner has not read that yet."""

    @property
    def content(self) -> Content:
        """What its revision says."""
        return Content(self.prompt, self.ambiguity, self.options, self.mode, self.urgency)

    def status_at(self, now: datetime) -> QuestionStatus:
        """Where it stands at a time: what nobody has ended yet ends by itself when its time is over."""
        over = self.expires_at is not None and self.expires_at <= now
        return QuestionStatus.EXPIRED if over and self.status is QuestionStatus.OPEN else self.status


def wrong_selection(options: Sequence[Option], mode: AnswerMode, values: Sequence[str]) -> str | None:
    """Why these values are no answer, as the end of a sentence; ``None``: they are one."""
    if not values:
        return "is empty: choose at least one value"
    if mode is AnswerMode.SINGLE and len(values) != 1:
        return "holds several values, and this question takes one"
    if len(set(values)) != len(values):
        return "holds a value twice"
    known = [each.value for each in options]
    if any(value not in known and value != OTHER for value in values):
        return f"holds a value that is not offered; known: {', '.join([*known, OTHER])}"
    return None


def misplaced(above: int, below: int, siblings: int) -> str | None:
    """The code with which a place among other questions is refused; ``None``: it is free.

    ``above`` counts the generations from the first question down to the new parent, ``below`` those from the
    question itself down to its last descendant, ``siblings`` the parent's other children that count.
    """
    if above + below > MOST_LEVELS:
        return "depth_limit_reached"
    return "child_limit_reached" if siblings >= MOST_CHILDREN else None


def nudge(level: int, children: int) -> str | None:
    """What to tell who asks a question on this level as the so-many-th child; ``None``: nothing."""
    if level >= MOST_LEVELS:
        return (
            f"This is level {level} of {MOST_LEVELS}: nothing can be asked below it. Ask less, or elsewhere."
        )
    if children == MOST_CHILDREN - 1:
        return f"This is child {children} of {MOST_CHILDREN} of its parent: only one more can be asked there."
    return None


@frozen
class Answered:
    """This answer won; ``open_descendants`` are questions below it that still wait."""

    question: Question
    answer_id: str
    open_descendants: tuple[QuestionId, ...] = ()


@frozen
class AlreadyResolved:
    """Another answer came first: by whom, through which door, and when.

    Doors are ``mail``, ``web``, ``terminal`` and ``api``.
    """

    by: str = field(repr=False)
    door: str
    at: datetime


@frozen
class StaleRevision:
    """The answer is to an older text of the question; ``current`` is its revision now."""

    current: int


@frozen
class NotOpen:
    """The question cannot be answered: not asked yet, cancelled, or expired; ``None``: there is none."""

    status: QuestionStatus | None


Resolution = Answered | AlreadyResolved | StaleRevision | NotOpen
