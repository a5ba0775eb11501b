"""The life of a mail on its way out, and what the answers of the mail server mean for it.

``queued -> sending -> sent``, with the ways ``failed``, ``cancelled`` and ``unclear`` out of it.  The row is
moved to ``sending`` before anybody dials, so that a crash leaves a mark.  A mail whose fate is unclear (the
final dot was written and no answer came, RFC 5321 section 4.5.3.2.6 and RFC 1047) rests ten minutes and is
then sent once more with the same Message-ID, unless a reply shows that it arrived; there are never more
than two copies.  Each recipient has a fate of its own: who has it gets it no second time.

A decision has a caller that waits.  While it does, a refusal of any kind cancels the mail and frees the
caller to decide anew; afterwards a decision is retried like any other mail.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from attrs import field, frozen

from mailgateway.ids import AccountName, MessageId, OutboxId, QuestionId, RouteId, SessionId

RETRIES = tuple(timedelta(minutes=minutes) for minutes in (5, 15, 30, 60, 120))
"""How long to wait after the first, second, ... attempt; the last one stays.  Greylisting wants 5 min."""

GIVE_UP = timedelta(hours=48)
"""A mail that nobody has taken after so long has failed."""

UNCLEAR_REST = timedelta(minutes=10)
"""How long a mail of unclear fate is left alone: the longest that a server may think about a final dot."""

CALLER_WAITS = timedelta(seconds=55)
"""How long after the submission a decision's caller surely still waits (it does for 60 s)."""


class MailKind(StrEnum):
    """Why a mail leaves."""

    NOTIFICATION = "notification"
    SETTLE = "settle"
    DECISION = "decision"
    NOTICE = "notice"
    """The gateway's own word: an answer to a command, a refusal that a person must know of."""
    REMINDER = "reminder"
    """A decision that nobody has answered, brought to mind, or sent to a second person."""
    DIGEST = "digest"
    """What several sessions wanted to say while the person was left alone."""


BY_ITSELF = frozenset({MailKind.NOTICE, MailKind.REMINDER})
"""What the gateway says by itself, and bounds for each person and each thread."""


class OutboxState(StrEnum):
    """Where a mail stands."""

    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    CANCELLED = "cancelled"
    UNCLEAR = "unclear"
    """It may have arrived."""
    CARRIED = "carried"
    """Another mail says what it was to say; that one's fate is its own."""


class OutboxEvent(StrEnum):
    """What may happen to a mail."""

    CLAIM = "claim"
    ACCEPTED = "accepted"
    TRY_LATER = "try-later"
    REJECTED = "rejected"
    CANCEL = "cancel"
    LOST_SIGHT = "lost-sight"
    """Nobody knows whether the server has it."""
    ARRIVED = "arrived"
    """A reply shows that it arrived."""
    BOUNCED = "bounced"
    """A server has taken it, and reports that nobody will get it."""
    CARRY = "carry"
    """It leaves within another mail."""
    RETRY = "retry"
    """Somebody wants it to be tried now."""
    DROP = "drop"
    """Somebody wants it to be tried no more."""


def _moves() -> dict[tuple[OutboxState, OutboxEvent], OutboxState]:
    moves = {
        (OutboxState.QUEUED, OutboxEvent.CLAIM): OutboxState.SENDING,
        (OutboxState.UNCLEAR, OutboxEvent.CLAIM): OutboxState.SENDING,
        (OutboxState.SENDING, OutboxEvent.LOST_SIGHT): OutboxState.UNCLEAR,
        (OutboxState.QUEUED, OutboxEvent.CANCEL): OutboxState.CANCELLED,
        (OutboxState.SENDING, OutboxEvent.CANCEL): OutboxState.CANCELLED,
        (OutboxState.QUEUED, OutboxEvent.ARRIVED): OutboxState.SENT,
        (OutboxState.QUEUED, OutboxEvent.CARRY): OutboxState.CARRIED,
    }
    for state in (OutboxState.QUEUED, OutboxState.UNCLEAR):
        moves[state, OutboxEvent.RETRY] = state
        moves[state, OutboxEvent.DROP] = OutboxState.CANCELLED
    moves[OutboxState.FAILED, OutboxEvent.RETRY] = OutboxState.QUEUED
    # A late answer still counts for a mail that was given up as unclear meanwhile.
    for state in (OutboxState.SENDING, OutboxState.UNCLEAR):
        moves[state, OutboxEvent.ACCEPTED] = OutboxState.SENT
        moves[state, OutboxEvent.ARRIVED] = OutboxState.SENT
        moves[state, OutboxEvent.TRY_LATER] = OutboxState.QUEUED
        moves[state, OutboxEvent.REJECTED] = OutboxState.FAILED
    for state in (OutboxState.SENT, OutboxState.UNCLEAR):
        moves[state, OutboxEvent.BOUNCED] = OutboxState.FAILED
    return moves


MOVES = MappingProxyType(_moves())
"""Every legal move; what is not here is refused."""


def advance(state: OutboxState, event: OutboxEvent) -> OutboxState | None:
    """The state after ``event``, or ``None`` when the event is not possible in ``state``."""
    return MOVES.get((state, event))


class RecipientState(StrEnum):
    """How far a mail has come for one recipient."""

    WAITING = "waiting"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNCLEAR = "unclear"
    """One attempt ended without a clear answer: it may have arrived, and may go once more."""
    LOST = "lost"
    """Two attempts ended without a clear answer: it may have arrived, and goes no more."""
    BOUNCED = "bounced"
    """A server has taken it, and reports that it could not be delivered."""


OPEN_STATES = frozenset({OutboxState.QUEUED, OutboxState.SENDING, OutboxState.UNCLEAR})
"""Where a mail has not come to its end."""

OPEN_RECIPIENTS = frozenset({RecipientState.WAITING, RecipientState.UNCLEAR})
"""Whoever may get the mail still."""


class RecipientVerdict(StrEnum):
    """What one attempt brought for one recipient."""

    ACCEPTED = "accepted"
    TRY_LATER = "try-later"
    REJECTED = "rejected"
    UNCLEAR = "unclear"


@frozen
class RecipientOutcome:
    """What one attempt brought for one recipient; ``code`` is the SMTP reply's, ``None`` without a reply."""

    address: str = field(repr=False)
    verdict: RecipientVerdict
    code: int | None = None
    reply: str = field(default="", repr=False)


@frozen
class RecipientRow:
    """How far a mail has come for one recipient, with the last reply about it."""

    address: str = field(repr=False)
    state: RecipientState
    code: int | None = None
    reply: str = field(default="", repr=False)


@frozen
class OutboxRow:
    """One mail on its way out, without its bytes."""

    id: OutboxId
    kind: MailKind
    account: AccountName
    session_id: SessionId
    question_id: QuestionId | None
    route_id: RouteId
    message_id: MessageId
    subject: str = field(repr=False)
    state: OutboxState
    attempts: int
    last_error: str
    last_code: int | None
    created_at: datetime
    next_attempt_at: datetime | None
    recipients: tuple[RecipientRow, ...] = ()
    held_until: datetime | None = None
    """When it may leave, as far as is known; ``None``: it is not held back."""
    carried_by: OutboxId | None = None
    """The mail that it left within."""

    @property
    def doubtful(self) -> bool:
        """Whether it may have arrived though nobody has said so."""
        return not _DOUBTS.isdisjoint(recipient.state for recipient in self.recipients)

    @property
    def temporary(self) -> bool:
        """Whether what was refused may be taken when it is tried again: no final refusal was heard."""
        permanent = self.last_code is not None and self.last_code >= 500 and self.last_code != 503
        waiting = any(recipient.state is RecipientState.WAITING for recipient in self.recipients)
        return waiting and not permanent


@frozen
class Conclusion:
    """What becomes of a mail after an attempt."""

    event: OutboxEvent
    recipients: tuple[RecipientRow, ...]
    """Those whose row changes."""
    next_attempt_at: datetime | None = None
    code: int | None = None
    doubtful: bool = False
    """The mail has failed, and yet it may have arrived."""


def conclude(
    kind: MailKind,
    *,
    attempt: int,
    created_at: datetime,
    now: datetime,
    before: Sequence[RecipientRow],
    outcomes: Mapping[str, RecipientOutcome],
) -> Conclusion:
    """What the ``attempt``-th attempt (from 1) means for the mail.

    ``before`` are all recipients as they stood; a recipient that was to get the mail and has no outcome
    counts as one to try again (the connection never came so far).
    """
    changed = tuple(
        _after(row, outcomes.get(row.address) or RecipientOutcome(row.address, RecipientVerdict.TRY_LATER))
        for row in before
        if row.state in OPEN_RECIPIENTS
    )
    states = {row.address: row.state for row in (*before, *changed)}
    again = {row.address for row in changed if row.state in OPEN_RECIPIENTS}
    unclear_now = any(
        outcomes[address].verdict is RecipientVerdict.UNCLEAR for address in again if address in outcomes
    )
    accepted = RecipientState.ACCEPTED in states.values()
    doubtful = not accepted and not _DOUBTS.isdisjoint(states.values())
    code = next((row.code for row in changed if row.code is not None), None)
    caller_waits = kind is MailKind.DECISION and attempt == 1 and now < created_at + CALLER_WAITS
    if caller_waits and not accepted and not doubtful:
        return Conclusion(OutboxEvent.CANCEL, changed, code=code)
    wait = _pause(attempt, unclear=unclear_now, waiting=RecipientState.WAITING in states.values())
    if again and now + wait <= created_at + GIVE_UP:
        event = OutboxEvent.LOST_SIGHT if unclear_now else OutboxEvent.TRY_LATER
        return Conclusion(event, changed, next_attempt_at=now + wait, code=code)
    event = OutboxEvent.ACCEPTED if accepted else OutboxEvent.REJECTED
    return Conclusion(event, changed, code=code, doubtful=doubtful)


_DOUBTS = frozenset({RecipientState.UNCLEAR, RecipientState.LOST})


def _pause(attempt: int, *, unclear: bool, waiting: bool) -> timedelta:
    """How long the mail rests after the attempt."""
    scheduled = RETRIES[min(attempt, len(RETRIES)) - 1]
    if not unclear:
        return scheduled
    return max(scheduled, UNCLEAR_REST) if waiting else UNCLEAR_REST


def _after(before: RecipientRow, outcome: RecipientOutcome) -> RecipientRow:
    """A recipient after an attempt; a doubt stays until a clear yes or no, or a second doubt."""
    match outcome.verdict:
        case RecipientVerdict.ACCEPTED:
            state = RecipientState.ACCEPTED
        case RecipientVerdict.REJECTED:
            state = RecipientState.REJECTED
        case RecipientVerdict.UNCLEAR if before.state is RecipientState.UNCLEAR:
            state = RecipientState.LOST
        case RecipientVerdict.UNCLEAR:
            state = RecipientState.UNCLEAR
        case RecipientVerdict.TRY_LATER:
            state = before.state
    return RecipientRow(before.address, state, outcome.code, outcome.reply)
