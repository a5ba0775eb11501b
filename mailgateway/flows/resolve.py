"""Answering a question: one transaction for mail, web and terminal, and the first answer wins."""

import hashlib

from attrs import evolve

from mailgateway.domain.choice import parse_choice
from mailgateway.domain.envelope import Envelope
from mailgateway.domain.question import (
    AlreadyResolved,
    Answered,
    NotOpen,
    QuestionStatus,
    Resolution,
    StaleRevision,
)
from mailgateway.ids import QuestionId
from mailgateway.store import questions
from mailgateway.store.database import Tx


def resolve(
    tx: Tx,
    *,
    question_id: QuestionId,
    expected_revision: int,
    choice: str | None,
    note: str | None,
    text: str,
    by: str,
    door: str,
    random: bytes,
) -> Resolution:
    """Answer the question inside the caller's transaction, when it can still be answered.

    ``choice`` is the value of an option, ``None`` for an answer in words alone; ``by`` is a person's
    address and ``door`` is ``mail``, ``web`` or ``terminal``; ``random`` are at least 12 random bytes.
    Telling the session (an envelope) and ringing the bell are the caller's.
    """
    found = questions.find(tx, question_id)
    if found is None:
        return NotOpen(None)
    if found.status is QuestionStatus.ANSWERED:
        won = questions.answer_of(tx, question_id)
        return NotOpen(found.status) if won is None else AlreadyResolved(won.by, won.door, won.at)
    if found.status is not QuestionStatus.OPEN:
        return NotOpen(found.status)
    if found.expires_at is not None and found.expires_at <= tx.now:
        return NotOpen(QuestionStatus.EXPIRED)
    if found.revision != expected_revision:
        return StaleRevision(found.revision)
    answer_id = "n-" + random[:12].hex()
    questions.answered(
        tx,
        found,
        questions.AnswerRow(
            id=answer_id,
            question_id=question_id,
            revision=expected_revision,
            choice=choice,
            note=note,
            text=text,
            by=by,
            door=door,
            at=tx.now,
        ),
    )
    return Answered(evolve(found, status=QuestionStatus.ANSWERED, settled_at=tx.now), answer_id)


def answer_by_mail(
    tx: Tx, envelope: Envelope, question_id: QuestionId, revision: int
) -> tuple[Envelope, bool]:
    """Answer the question that a mail replies to, if nobody has; else its words are just words.

    Returns the envelope to file, which carries an answer that won, and whether it did.
    """
    question = questions.find(tx, question_id)
    if question is None:
        return envelope, False
    choice = parse_choice(envelope.body, question.options)
    value, note = (None, None) if choice is None else (choice.value, choice.note or None)
    resolution = resolve(
        tx,
        question_id=question.id,
        expected_revision=revision,
        choice=value,
        note=note,
        text=envelope.body,
        by=envelope.from_address,
        door="mail",
        random=hashlib.sha256(envelope.id.encode()).digest(),
    )
    if not isinstance(resolution, Answered):
        return envelope, False
    return evolve(envelope, question_id=question.id, choice=value, note=note), True
