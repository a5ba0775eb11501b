"""A reply to the mail of a question: what it decides, and what becomes of its words.

The first answer wins.  Words that come after it are more words for the session when the same person has
answered by mail before; from anybody else, or after an answer by another door, they are late: nothing of them
is handed on, and their sender hears who was first.  A decision is answered by words too.  Any other question
with options is answered only by a choice beyond doubt; what is none is handed on as words and leaves it open.

Runs inside the transaction that files the mail, which also keeps what is said here to the sender.
"""

import hashlib
from collections.abc import Sequence
from typing import assert_never

from attrs import evolve, frozen

from mailgateway.domain.choice import Chosen, InWords, Parsed, Unclear, parse_answer
from mailgateway.domain.envelope import Envelope
from mailgateway.domain.question import (
    OTHER,
    AlreadyResolved,
    Answered,
    AnswerMode,
    NotOpen,
    Question,
    QuestionKind,
    QuestionStatus,
    StaleRevision,
)
from mailgateway.flows.bell import Event
from mailgateway.flows.filing import Asked
from mailgateway.flows.resolve import resolve, rings
from mailgateway.flows.troubles import Trouble
from mailgateway.store import questions
from mailgateway.store.database import Tx

DOOR = "mail"


@frozen
class Filed:
    """The mail becomes this envelope; ``events`` are to be rung, ``trouble`` is to be told to its sender."""

    envelope: Envelope
    events: Sequence[Event] = ()
    trouble: Trouble | None = None


@frozen
class Consumed:
    """The gateway itself has dealt with the mail, and no session gets it.

    ``answered`` says that it has answered its question; else ``trouble`` says why it has not.
    """

    answered: bool
    events: Sequence[Event] = ()
    trouble: Trouble | None = None


Outcome = Filed | Consumed


def answer_by_mail(tx: Tx, envelope: Envelope, asked: Asked) -> Outcome:
    """Answer the question that a mail replies to, if it does and can."""
    question = questions.find(tx, asked.question_id)
    if question is None:
        return Filed(envelope)
    if question.status_at(tx.now) is not QuestionStatus.OPEN:
        return _after_the_end(tx, envelope, question)
    if question.revision != asked.revision:
        return Consumed(answered=False, trouble=Trouble.STALE)
    parsed = parse_answer(envelope.body, question.options, question.mode is AnswerMode.MULTI)
    if isinstance(parsed, InWords | Unclear) and not _answered_by_words(question):
        return Filed(envelope, trouble=Trouble.UNCLEAR)
    values, note = _answer(question, parsed, envelope.body)
    resolution = resolve(
        tx,
        question_id=question.id,
        expected_revision=asked.revision,
        values=values,
        note=note,
        text=envelope.body,
        by=envelope.from_address,
        door=DOOR,
        random=hashlib.sha256(envelope.id.encode()).digest(),
    )
    match resolution:
        case Answered(question=ended):
            return _won(envelope, ended, values, note)
        case AlreadyResolved() | NotOpen():
            return Consumed(answered=False, trouble=Trouble.LATE)
        case StaleRevision():
            return Consumed(answered=False, trouble=Trouble.STALE)
        case _:
            assert_never(resolution)


def _answered_by_words(question: Question) -> bool:
    return question.kind is QuestionKind.DECISION or not question.options


def _answer(question: Question, parsed: Parsed, words: str) -> tuple[tuple[str, ...], str | None]:
    """The chosen values, and the note to them; words alone are a note to none of the options."""
    match parsed:
        case Chosen(values=values, note=note):
            return values, note or None
        case InWords() | Unclear():
            return ((), None) if question.kind is QuestionKind.DECISION else ((OTHER,), words.strip())
        case _:
            assert_never(parsed)


def _won(envelope: Envelope, ended: Question, values: tuple[str, ...], note: str | None) -> Outcome:
    """A decision carries its answer; of another question its owner was told already, by its id alone.

    What hangs on such an answer has no other way to the session than the mail itself.
    """
    choice = values[0] if len(values) == 1 else None
    if ended.kind is QuestionKind.DECISION:
        return Filed(
            evolve(envelope, question_id=ended.id, choice=choice, note=note), rings(ended, told=False)
        )
    if envelope.attachments:
        return Filed(evolve(envelope, question_id=ended.id), rings(ended, told=True))
    return Consumed(answered=True, events=rings(ended, told=True))


def _after_the_end(tx: Tx, envelope: Envelope, question: Question) -> Outcome:
    """More words of whoever has answered by mail; anybody else is late."""
    won = questions.answer_of(tx, question.id) if question.status is QuestionStatus.ANSWERED else None
    if won is not None and won.door == DOOR and won.by == envelope.from_address:
        return Filed(envelope)
    return Consumed(answered=False, trouble=Trouble.LATE)
