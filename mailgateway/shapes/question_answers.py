"""Questions, as answers tell them: short handles, lines of lists, whole questions, endings, histories."""

from collections.abc import Mapping
from datetime import datetime

from attrs import field, frozen

from mailgateway.shapes.questions import OptionShape, SourceShape


@frozen
class HandleShape:
    """A question by its id and revisions: all that a session needs to go on with it."""

    question_id: str
    revision: int
    owner_revision: int
    status: str
    disposition: str | None = None
    nudge: str | None = None


@frozen
class ItemShape:
    """What has become of one question of a batch; ``error`` is a code, ``message`` says what to do."""

    local_ref: str
    question_id: str | None = None
    revision: int | None = None
    owner_revision: int | None = None
    status: str | None = None
    disposition: str | None = None
    error: str | None = None
    message: str | None = None


@frozen
class BatchShape:
    """What has become of a batch: ``created``, ``partial`` or ``rejected``."""

    batch_status: str
    items: tuple[ItemShape, ...]


@frozen
class QuestionLine:
    """One question of a list; what it says stands in ``GET /questions/{id}``."""

    question_id: str
    revision: int
    owner_revision: int
    status: str
    owner: str
    kind: str
    subject: str = field(repr=False)
    mode: str
    urgency: str
    created_at: datetime
    parent_question_id: str | None = None
    expires_at: datetime | None = None
    resolved_at: datetime | None = None
    read: bool | None = None


@frozen
class QuestionPage:
    """Questions, the most urgent first, or what is over, the newest first."""

    questions: tuple[QuestionLine, ...]
    next_cursor: str | None = None


@frozen
class QuestionShape:
    """One question, as a whole."""

    question_id: str
    revision: int
    owner_revision: int
    status: str
    owner: str
    creator: str
    kind: str
    subject: str = field(repr=False)
    prompt: str = field(repr=False)
    ambiguity: str = field(repr=False)
    options: tuple[OptionShape, ...] = field(repr=False)
    mode: str
    urgency: str
    created_at: datetime
    source: SourceShape
    recommendation: str | None = field(default=None, repr=False)
    parent_question_id: str | None = None
    expires_at: datetime | None = None
    resolved_at: datetime | None = None
    replacement_question_id: str | None = None
    note: str | None = field(default=None, repr=False)
    answer_id: str | None = None
    answer: tuple[str, ...] | None = field(default=None, repr=False)


@frozen
class EndingShape:
    """How a question ended: ``pending``, ``answer`` or ``lifecycle``; only an answer has an id."""

    type: str
    question_id: str
    revision: int | None = None
    answer_id: str | None = None
    answer: tuple[str, ...] | None = field(default=None, repr=False)
    note: str | None = field(default=None, repr=False)
    already_read: bool | None = None
    status: str | None = None
    resolved_at: datetime | None = None
    replacement_question_id: str | None = None
    open_descendants: tuple[str, ...] | None = None
    guidance: str | None = None


@frozen
class AnsweredShape:
    """An answer that won; ``openDescendants`` are questions below that still wait."""

    answer_id: str
    question_id: str
    open_descendants: tuple[str, ...]
    guidance: str | None = None


@frozen
class HappeningShape:
    """One line of a history; texts stand only where they changed."""

    act: str
    revision: int
    owner_revision: int
    by: str = field(repr=False)
    door: str
    at: datetime
    details: Mapping[str, str] = field(repr=False)
    prompt: str | None = field(default=None, repr=False)
    ambiguity: str | None = field(default=None, repr=False)
    options: tuple[OptionShape, ...] | None = field(default=None, repr=False)
    mode: str | None = None
    urgency: str | None = None


@frozen
class HistoryPage:
    """What was done to a question, oldest first."""

    history: tuple[HappeningShape, ...]
    next_cursor: str | None = None


@frozen
class WokenShape:
    """Why a wait has ended, and with which question to go on."""

    type: str
    question_id: str | None = None


@frozen
class LogLine:
    """One entry of the log of decisions, with its digest."""

    machine_id: str
    number: int
    question_id: str
    act: str
    revision: int
    owner_revision: int
    by: str = field(repr=False)
    door: str
    at: datetime
    details: Mapping[str, str] = field(repr=False)
    digest: str


@frozen
class LogHead:
    """A machine that has a log, and the number of its last entry."""

    machine_id: str
    number: int


@frozen
class LogPage:
    """Entries of one machine in their order; ``machines`` are all that have a log."""

    machines: tuple[LogHead, ...]
    entries: tuple[LogLine, ...]
