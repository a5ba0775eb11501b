"""The life of a question: ``reserved -> open -> answered``, or ``cancelled`` or ``expired``.

A *blocking* question is a session's one outstanding decision: while one is reserved or open, the session may
not ask another.  A question that stopped blocking may still be answered.  The first answer wins, whatever
door it comes through; the loser is told who won.
"""

from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from attrs import field, frozen

from mailgateway.domain.choice import Option
from mailgateway.ids import MachineId, QuestionId, RouteId, SessionId


class QuestionStatus(StrEnum):
    """Where a question stands."""

    RESERVED = "reserved"
    """A session has announced its one decision; nothing is asked yet."""
    OPEN = "open"
    """Asked; the next answer wins."""
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class QuestionEvent(StrEnum):
    """What may happen to a question."""

    ASK = "ask"
    ANSWER = "answer"
    CANCEL = "cancel"
    EXPIRE = "expire"


MOVES = MappingProxyType(
    {
        (QuestionStatus.RESERVED, QuestionEvent.ASK): QuestionStatus.OPEN,
        (QuestionStatus.RESERVED, QuestionEvent.CANCEL): QuestionStatus.CANCELLED,
        (QuestionStatus.RESERVED, QuestionEvent.EXPIRE): QuestionStatus.EXPIRED,
        (QuestionStatus.OPEN, QuestionEvent.ANSWER): QuestionStatus.ANSWERED,
        (QuestionStatus.OPEN, QuestionEvent.CANCEL): QuestionStatus.CANCELLED,
        (QuestionStatus.OPEN, QuestionEvent.EXPIRE): QuestionStatus.EXPIRED,
    }
)
"""Every legal move; what is not here is refused."""


def advance(status: QuestionStatus, event: QuestionEvent) -> QuestionStatus | None:
    """The status after ``event``, or ``None`` when the event is not possible in ``status``."""
    return MOVES.get((status, event))


@frozen
class Question:
    """One question of one session, with the text of its revision."""

    id: QuestionId
    session_id: SessionId
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
    """When nobody may answer any more; ``None`` while nothing was asked."""
    settled_at: datetime | None = None


@frozen
class Answered:
    """This answer won."""

    question: Question
    answer_id: str


@frozen
class AlreadyResolved:
    """Another answer came first: by whom, through which door (``mail``, ``web``, ``terminal``), and when."""

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
