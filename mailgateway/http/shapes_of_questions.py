"""Between the shapes of questions and the values of the flows, field by field."""

from collections.abc import Mapping
from typing import Any, assert_never

from mailgateway import shapes
from mailgateway.domain.choice import Option
from mailgateway.domain.decision_log import LogEntry
from mailgateway.domain.question import (
    Answered,
    AnswerMode,
    Content,
    Question,
    QuestionKind,
    QuestionStatus,
    Urgency,
)
from mailgateway.domain.question_list import Wanted
from mailgateway.errors import Refusal
from mailgateway.flows.question_reading import (
    Ending,
    Happening,
    History,
    Lifecycle,
    Page,
    Pending,
    Read,
    Reader,
)
from mailgateway.flows.questions import Asked, Draft, Item, ItemOutcome
from mailgateway.flows.waiting_questions import Woken
from mailgateway.ids import MachineId
from mailgateway.shapes.questions import (
    ItemRequest,
    OptionShape,
    QuestionRequest,
    QuestionsQuery,
    ReviseRequest,
    SourceShape,
)

GUIDANCE = (
    "Questions below this one are still open: see whether the answer settles them, and revise, supersede or "
    "cancel those that it does."
)

PENDING = "pending"
"""How an open question is called outside."""


def content(asked: "QuestionRequest | ItemRequest | ReviseRequest") -> Content:
    """Make the value of what a question says."""
    return Content(
        prompt=asked.prompt,
        ambiguity=asked.ambiguity,
        options=tuple(
            Option(each.value, each.label, each.description, each.impact, each.preview)
            for each in asked.options
        ),
        mode=AnswerMode(asked.mode),
        urgency=Urgency[asked.urgency.upper()],
    )


def draft(asked: "QuestionRequest | ItemRequest") -> Draft:
    """Make the value of a question to be asked."""
    return Draft(
        content=content(asked),
        request_id=asked.request_id,
        parent_id=asked.parent_question_id,
        expires_at=asked.expires_at,
        source_path=asked.source.path,
        source_leaf=asked.source.leaf,
    )


def item(asked: ItemRequest | Mapping[str, Any]) -> Item:
    """Make the value of one question of a batch, or of what could not be read as one."""
    if isinstance(asked, ItemRequest):
        return Item(asked.local_ref, draft(asked), asked.parent_local_ref)
    return Item(asked["localRef"], asked["refusal"])


def status(found: QuestionStatus) -> str:
    """Name a status as the API does."""
    return PENDING if found is QuestionStatus.OPEN else str(found)


def status_of(name: str | None) -> QuestionStatus | None:
    """Find the status that the API calls so."""
    if name is None:
        return None
    return QuestionStatus.OPEN if name == PENDING else QuestionStatus(name)


def wanted(asked: QuestionsQuery, reader: Reader) -> Wanted:
    """Say which questions are meant."""
    return Wanted(reader.session, reader.scope, status_of(asked.status), asked.read, reader.among)


def handle(found: Question) -> shapes.HandleShape:
    """Tell what a session needs to go on with a question."""
    return shapes.HandleShape(found.id, found.revision, found.owner_revision, status(found.status))


def asked(outcome: Asked) -> shapes.HandleShape:
    """Tell that a question is there."""
    found = outcome.question
    return shapes.HandleShape(
        found.id,
        found.revision,
        found.owner_revision,
        status(found.status),
        disposition=outcome.disposition,
        nudge=outcome.nudge,
    )


def batch(outcomes: tuple[ItemOutcome, ...]) -> shapes.BatchShape:
    """Tell what has become of a batch."""
    there = sum(isinstance(each.outcome, Asked) for each in outcomes)
    name = "created" if there == len(outcomes) else "partial" if there else "rejected"
    return shapes.BatchShape(name, tuple(_item(each) for each in outcomes))


def _item(found: ItemOutcome) -> shapes.ItemShape:
    match found.outcome:
        case Refusal(code=code, message=message):
            return shapes.ItemShape(found.ref, error=code, message=message)
        case Asked(question, disposition):
            return shapes.ItemShape(
                found.ref,
                question_id=question.id,
                revision=question.revision,
                owner_revision=question.owner_revision,
                status=status(question.status),
                disposition=disposition,
            )
        case _:
            assert_never(found.outcome)


def _options(found: tuple[Option, ...]) -> tuple[OptionShape, ...]:
    return tuple(
        OptionShape(each.value, each.label, each.description, each.impact, each.preview) for each in found
    )


def _read(found: Question) -> bool | None:
    """Whether an answer was read; of anything else there is nothing to say."""
    waits = found.status is QuestionStatus.ANSWERED and found.kind is QuestionKind.QUESTION
    return not found.attention if waits else None


def page(found: Page) -> shapes.QuestionPage:
    """Tell a page of questions."""
    return shapes.QuestionPage(tuple(_line(each) for each in found.questions), found.cursor)


def _line(found: Question) -> shapes.QuestionLine:
    return shapes.QuestionLine(
        question_id=found.id,
        revision=found.revision,
        owner_revision=found.owner_revision,
        status=status(found.status),
        owner=found.session_id,
        kind=found.kind,
        subject=found.subject,
        mode=found.mode,
        urgency=found.urgency.name.lower(),
        created_at=found.created_at,
        parent_question_id=found.parent_id,
        expires_at=found.expires_at,
        resolved_at=found.settled_at,
        read=_read(found),
    )


def whole(found: Question, read: Read | None) -> shapes.QuestionShape:
    """Tell a question as a whole."""
    return shapes.QuestionShape(
        question_id=found.id,
        revision=found.revision,
        owner_revision=found.owner_revision,
        status=status(found.status),
        owner=found.session_id,
        creator=found.creator_id,
        kind=found.kind,
        subject=found.subject,
        prompt=found.prompt,
        ambiguity=found.ambiguity,
        options=_options(found.options),
        mode=found.mode,
        urgency=found.urgency.name.lower(),
        created_at=found.created_at,
        source=SourceShape(found.source_path, found.source_leaf),
        recommendation=found.recommendation or None,
        parent_question_id=found.parent_id,
        expires_at=found.expires_at,
        resolved_at=found.settled_at,
        replacement_question_id=found.replacement_id,
        note=found.note if read is None else read.note,
        answer_id=None if read is None else read.answer_id,
        answer=None if read is None else read.values,
    )


def ending(found: Ending) -> shapes.EndingShape:
    """Tell how a question ended, if it has."""
    match found:
        case Pending(question):
            return shapes.EndingShape(PENDING, question.id, revision=question.revision)
        case Read(question, answer_id, values, note, already, below):
            return shapes.EndingShape(
                "answer",
                question.id,
                answer_id=answer_id,
                answer=values,
                note=note,
                already_read=already,
                open_descendants=below or None,
                guidance=GUIDANCE if below else None,
            )
        case Lifecycle(question):
            return shapes.EndingShape(
                "lifecycle",
                question.id,
                status=status(question.status),
                resolved_at=question.settled_at,
                note=question.note,
                replacement_question_id=question.replacement_id,
            )
        case _:
            assert_never(found)


def answered(found: Answered) -> shapes.AnsweredShape:
    """Tell that an answer has won."""
    below = found.open_descendants
    return shapes.AnsweredShape(found.answer_id, found.question.id, below, GUIDANCE if below else None)


def history(found: History) -> shapes.HistoryPage:
    """Tell a page of a history."""
    return shapes.HistoryPage(tuple(_happening(each) for each in found.happenings), found.cursor)


def _happening(found: Happening) -> shapes.HappeningShape:
    """Tell one line, with the texts that it has changed."""
    new, old, entry = found.content, found.before, found.entry

    def changed(name: str) -> Any:
        if new is None:
            return None
        value = getattr(new, name)
        return None if old is not None and getattr(old, name) == value else value

    options, urgency = changed("options"), changed("urgency")
    return shapes.HappeningShape(
        act=entry.act,
        revision=entry.revision,
        owner_revision=entry.owner_revision,
        by=entry.by,
        door=entry.door,
        at=entry.at,
        details=entry.details,
        prompt=changed("prompt"),
        ambiguity=changed("ambiguity"),
        options=None if options is None else _options(options),
        mode=changed("mode"),
        urgency=None if urgency is None else urgency.name.lower(),
    )


def woken(found: Woken) -> shapes.WokenShape:
    """Tell why a wait has ended."""
    return shapes.WokenShape(found.type, found.question_id)


def log(machines: tuple[tuple[MachineId, int], ...], entries: tuple[LogEntry, ...]) -> shapes.LogPage:
    """Tell a page of the log of decisions."""
    return shapes.LogPage(
        tuple(shapes.LogHead(machine, number) for machine, number in machines),
        tuple(
            shapes.LogLine(
                machine_id=each.machine_id,
                number=each.number,
                question_id=each.question_id,
                act=each.act,
                revision=each.revision,
                owner_revision=each.owner_revision,
                by=each.by,
                door=each.door,
                at=each.at,
                details=each.details,
                digest=each.digest,
            )
            for each in entries
        ),
    )
