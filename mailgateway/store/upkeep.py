"""What grows is cut back here: old words, old bytes, old memories.

Each function takes the time before which something is old.  Routes are never deleted, since their ids are
never issued twice; everything else that grows has its end.
"""

from datetime import datetime, timedelta

from sqlalchemy import delete, or_, select, update

from mailgateway.domain.outbox import OutboxState
from mailgateway.domain.question import QuestionStatus
from mailgateway.ids import QuestionId
from mailgateway.store.database import Tx
from mailgateway.store.envelopes import OPEN
from mailgateway.store.tables import (
    answer,
    attachment,
    envelope,
    flagging,
    journal,
    outbox,
    question,
    question_revision,
    recipient,
    sent_copy,
    thread,
)

LIMIT = 1_000
"""Rows that are looked at in one go; the rest comes at the next."""

UNREAD = timedelta(days=365)
"""How much longer the end of a question is kept for an owner who has not read it."""

_AT_REST = (
    OutboxState.SENT.value,
    OutboxState.FAILED.value,
    OutboxState.CANCELLED.value,
    OutboxState.CARRIED.value,
)


def reservations(tx: Tx, before: datetime) -> tuple[QuestionId, ...]:
    """Decisions that were reserved before a time and never asked."""
    return tuple(
        tx.execute(
            select(question.c.id)
            .where(question.c.status == QuestionStatus.RESERVED.value, question.c.created_at < before)
            .limit(LIMIT)
        ).scalars()
    )


def prune_sent_bytes(tx: Tx, before: datetime) -> int:
    """Forget the bytes of mails that came to rest before a time; how many."""
    _forget_copies(tx, before)
    return tx.execute(
        update(outbox)
        .where(outbox.c.state.in_(_AT_REST), outbox.c.settled_at < before, outbox.c.raw != b"")
        .values(raw=b"")
    ).rowcount


def prune_outbox(tx: Tx, before: datetime) -> int:
    """Forget mails that came to rest before a time, with their recipients; how many."""
    old = (outbox.c.state.in_(_AT_REST), outbox.c.settled_at < before)
    tx.execute(delete(recipient).where(recipient.c.outbox_id.in_(select(outbox.c.id).where(*old))))
    _forget_copies(tx, before)
    return tx.execute(delete(outbox).where(*old)).rowcount


def _forget_copies(tx: Tx, before: datetime) -> None:
    """No copy can be made of what is forgotten."""
    old = select(outbox.c.id).where(outbox.c.state.in_(_AT_REST), outbox.c.settled_at < before)
    tx.execute(delete(sent_copy).where(sent_copy.c.outbox_id.in_(old)))


def prune_questions(tx: Tx, before: datetime) -> int:
    """Forget questions that ended before a time, with all that they said and their answers; how many.

    One whose end its owner has not read yet stays for a year.  The log of decisions stays.
    """
    read = or_(question.c.attention.is_(False), question.c.settled_at < before - UNREAD)
    old = select(question.c.id).where(question.c.settled_at < before, read)
    tx.execute(delete(answer).where(answer.c.question_id.in_(old)))
    tx.execute(delete(question_revision).where(question_revision.c.question_id.in_(old)))
    return tx.execute(delete(question).where(question.c.id.in_(old))).rowcount


def prune_threads(tx: Tx, before: datetime) -> int:
    """Forget threads that expired before a time: replies to them find no way then; how many."""
    return tx.execute(delete(thread).where(thread.c.expires_at < before)).rowcount


def prune_envelopes(tx: Tx, before: datetime) -> int:
    """Forget envelopes that were settled before a time, and what was noted of them then; how many."""
    old = select(envelope.c.id).where(envelope.c.state.not_in(OPEN), envelope.c.settled_at < before)
    tx.execute(delete(attachment).where(attachment.c.envelope_id.in_(old)))
    tx.execute(delete(journal).where(journal.c.acked_at < before))
    tx.execute(delete(flagging).where(flagging.c.asked_at < before))
    return tx.execute(
        delete(envelope).where(envelope.c.state.not_in(OPEN), envelope.c.settled_at < before)
    ).rowcount
