"""Answering a question: one transaction for mail, web, terminal and API, and the first answer wins.

Its owner hears of it in the same transaction: the answer to a decision is delivered with its words, that to
another question as a notice that names it alone; what was chosen is read when the session has a mind for it.
"""

import hashlib
from collections.abc import Sequence

from mailgateway.domain.envelope import Envelope, EnvelopeKind, Trust
from mailgateway.domain.question import (
    AlreadyResolved,
    Answered,
    NotOpen,
    Question,
    QuestionEvent,
    QuestionKind,
    QuestionStatus,
    Resolution,
    StaleRevision,
)
from mailgateway.flows.bell import Event, EventKind
from mailgateway.ids import EnvelopeId, QuestionId
from mailgateway.store import envelopes, question_changes, questions, sessions
from mailgateway.store.database import Tx


def resolve(
    tx: Tx,
    *,
    question_id: QuestionId,
    expected_revision: int,
    values: Sequence[str],
    note: str | None,
    text: str,
    by: str,
    door: str,
    random: bytes,
) -> Resolution:
    """Answer the question inside the caller's transaction, when it can still be answered.

    ``values`` are those of the options that were chosen (checked by the caller), none for an answer in words
    alone; ``by`` is a person's address or the name of a key, ``door`` one of ``mail``, ``web``, ``terminal``
    and ``api``; ``random`` are at least 12 random bytes.  The notice to the owner of a question is filed
    here; the words of the answer to a decision are the caller's to file, and so is ringing (``rings``).
    """
    found = questions.find(tx, question_id)
    if found is None:
        return NotOpen(None)
    if found.status is QuestionStatus.ANSWERED:
        won = questions.answer_of(tx, question_id)
        return NotOpen(found.status) if won is None else AlreadyResolved(won.by, won.door, won.at)
    status = found.status_at(tx.now)
    if status is not QuestionStatus.OPEN:
        return NotOpen(status)
    if found.revision != expected_revision:
        return StaleRevision(found.revision)
    answer_id = "n-" + random[:12].hex()
    ended = questions.answered(
        tx,
        found,
        questions.AnswerRow(
            id=answer_id,
            question_id=question_id,
            revision=expected_revision,
            values=tuple(values),
            note=note,
            text=text,
            by=by,
            door=door,
            at=tx.now,
        ),
    )
    if ended.kind is QuestionKind.QUESTION:
        _tell_owner(tx, ended)
    return Answered(ended, answer_id, question_changes.open_descendants(tx, question_id))


def end(
    tx: Tx,
    found: Question,
    event: QuestionEvent,
    *,
    by: str = "",
    door: str = questions.GATEWAY,
    note: str | None = None,
) -> tuple[Question, tuple[Event, ...]]:
    """End a question without an answer, for a reason that is not its owner's; it as it is then, what to ring.

    The owner is told as of an answer; of a decision only when a person has ended it.
    """
    asked = found.kind is QuestionKind.QUESTION
    ended = questions.settle(tx, found, event, by=by, door=door, note=note, unread=asked)
    if not asked and door == questions.GATEWAY:
        return ended, (Event(EventKind.QUESTION, ended.id, ended.session_id),)
    _tell_owner(tx, ended)
    return ended, rings(ended, told=True)


def rings(ended: Question, *, told: bool) -> tuple[Event, ...]:
    """What to ring when a question has ended, and when its owner was told so by an envelope of its own."""
    asked = Event(EventKind.QUESTION, ended.id, ended.session_id)
    if not told:
        return (asked,)
    return (asked, Event(EventKind.DELIVERY, ending_id(ended.id), ended.session_id))


def ending_id(question_id: QuestionId) -> EnvelopeId:
    """The id of the envelope that tells how a question has ended: it ends once, and is told once."""
    return EnvelopeId("m-" + hashlib.sha256(f"ended\0{question_id}".encode()).hexdigest()[:24])


def _tell_owner(tx: Tx, ended: Question) -> None:
    """File a notice that a question has ended: its id, and nothing of what it says."""
    happened = "was answered" if ended.status is QuestionStatus.ANSWERED else f"is {ended.status}"
    ways = f"GET /questions/{ended.id}/answer, or `mailgateway questions {ended.id} --answer`"
    read = f"Read how it ended: {ways}."
    envelopes.add(
        tx, ending(tx, ended, EnvelopeKind.NOTICE, Trust.SYSTEM, f"Question {ended.id} {happened}.", read)
    )


def ending(tx: Tx, ended: Question, kind: EnvelopeKind, trust: Trust, subject: str, body: str) -> Envelope:
    """The envelope by which the owner hears how a question has ended."""
    return Envelope(
        id=ending_id(ended.id),
        kind=kind,
        trust=trust,
        session_id=ended.session_id,
        machine_id=sessions.machine_of(tx, ended.session_id) or ended.machine_id,
        subject=subject,
        body=body,
        quoted="",
        from_address="",
        from_name="mailgateway",
        received_at=tx.now,
        question_id=ended.id,
    )
