"""The sender's side of the outbox: take the next mail, say how it went, look after what was interrupted.

A mail is claimed in a transaction of its own before anybody dials; the answers of the mail server are
judged by ``domain.outbox``.  Each machine sends what was submitted on it.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from attrs import evolve, field, frozen

from mailgateway.domain import outbox as rules
from mailgateway.domain.identity import Identity
from mailgateway.domain.outbox import (
    Conclusion,
    MailKind,
    OutboxEvent,
    OutboxRow,
    OutboxState,
    RecipientOutcome,
    RecipientVerdict,
)
from mailgateway.domain.question import QuestionEvent, QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.ids import AccountName, MachineId, MessageId, OutboxId
from mailgateway.store import copies, outbox, questions, routes, threads
from mailgateway.store.database import Database, Tx, Work

ERROR_LIMIT = 1_000
"""The server's words are kept up to so many characters."""


@frozen
class Claimed:
    """A mail that we are about to send, and to whom: who has it already is not among ``recipients``."""

    id: OutboxId
    attempt: int
    """From 1; names this claim, so that late news of an earlier one is told apart."""
    account: AccountName
    sender: str = field(repr=False)
    recipients: tuple[str, ...] = field(repr=False)
    raw: bytes = field(repr=False)
    kind: MailKind


@frozen
class _Concluded:
    state: OutboxState
    events: tuple[Event, ...]


async def claim_next(
    database: Database,
    identity: Identity,
    account: AccountName,
    *,
    lease_seconds: float,
    looked: Collection[OutboxId] | None = None,
) -> Claimed | None:
    """The oldest mail that is due, marked as being sent; ``None`` when none is.

    ``lease_seconds`` must outlast every deadline of the attempt; a mail whose lease has ended counts as
    interrupted (``recover``).  While the mode is off only the gateway's own notices go.  A mail of unclear
    fate goes once more only when it is among ``looked``: somebody has looked whether it arrived (``None``:
    nobody can look).
    """

    def work(tx: Tx) -> Claimed | None:
        found = _next_wanted(tx, identity, account, looked)
        if found is None:
            return None
        outbox.claim(tx, found, timedelta(seconds=lease_seconds))
        content = outbox.bytes_of(tx, found.id)
        return Claimed(
            id=found.id,
            attempt=found.attempts + 1,
            account=account,
            sender=content.sender,
            recipients=tuple(one.address for one in found.recipients if one.state in rules.OPEN_RECIPIENTS),
            raw=content.raw,
            kind=found.kind,
        )

    return await database.run(work)


def _next_wanted(
    tx: Tx, identity: Identity, account: AccountName, looked: Collection[OutboxId] | None
) -> OutboxRow | None:
    """The oldest mail that is due; a reminder of what was answered meanwhile is cancelled on the way."""
    while True:
        due = outbox.next_sendable(tx, identity.machine_id, account, due_only=True, looked=looked)
        found = None if due is None else outbox.find(tx, due[0])
        if found is None or found.kind is not MailKind.REMINDER or found.state is not OutboxState.QUEUED:
            return found
        route = routes.find(tx, found.route_id)
        question = (
            None if route is None or route.question_id is None else questions.find(tx, route.question_id)
        )
        if question is not None and question.status_at(tx.now) is QuestionStatus.OPEN:
            return found
        outbox.move(tx, found, OutboxEvent.CANCEL, last_error="the question is open no more")


async def doubtful(database: Database, identity: Identity, account: AccountName) -> tuple[OutboxRow, ...]:
    """The mails of unclear fate that may go once more now, if they have not arrived."""
    return await database.read(lambda tx: outbox.doubtful(tx, identity.machine_id, account))


async def arrived(database: Database, bell: Bell, outbox_id: OutboxId) -> bool:
    """A mail of unclear fate was found where only what was sent is; whether that was news."""

    def work(tx: Tx) -> OutboxRow | None:
        found = outbox.find(tx, outbox_id)
        if found is None or found.state is not OutboxState.UNCLEAR:
            return None
        outbox.has_arrived(tx, found)
        return found

    found = await database.run(work)
    if found is not None:
        bell.ring(Event(EventKind.OUTBOX, found.id, found.session_id))
    return found is not None


async def conclude(
    database: Database,
    bell: Bell,
    claimed: Claimed,
    outcomes: Sequence[RecipientOutcome],
    *,
    error: str,
    code: int | None = None,
    other_id: MessageId | None = None,
    copy_after: timedelta | None = None,
) -> OutboxState:
    """Write how the attempt went; the state of the mail afterwards.

    ``outcomes`` has an entry for each recipient that the server spoke about; a recipient without one was
    not reached and is tried again.  ``error`` is what stood in the way, in the server's words, ``""`` when
    all went well; ``code`` is the SMTP code of a refusal that was about no recipient (of the login, say).
    Late news (the mail was claimed again, or a reply showed that it arrived) changes nothing.

    ``other_id`` is the Message-ID that the server gave the mail in place of ours: answers name it, and are
    routed by it too.  With ``copy_after``, a copy of a mail that is thereby sent is put into the Sent folder
    after that time (``flows.copies``).
    """
    by_address = {outcome.address: outcome for outcome in outcomes}

    def work(tx: Tx) -> _Concluded:
        found = outbox.find(tx, claimed.id)
        if found is None:
            raise Refusal("unknown", f"there is no mail {claimed.id}")
        if found.attempts != claimed.attempt or found.state not in _OPEN_TO_NEWS:
            return _Concluded(found.state, ())
        if found.state is OutboxState.UNCLEAR and _says_nothing(by_address):
            return _Concluded(found.state, ())
        concluded = _write(tx, found, by_address, error=error, code=code)
        if other_id is not None and other_id != found.message_id:
            threads.add_other(tx, found.message_id, other_id)
        if copy_after is not None and concluded.state is OutboxState.SENT:
            copies.add(tx, found.id, copy_after)
        return concluded

    done = await database.run(work)
    bell.ring(*done.events)
    return done.state


async def renamed(database: Database, outbox_id: OutboxId, other_id: MessageId) -> bool:
    """A mail that was sent has this Message-ID at its reader's; whether that was news."""

    def work(tx: Tx) -> bool:
        found = outbox.find(tx, outbox_id)
        if found is None or found.message_id == other_id:
            return False
        threads.add_other(tx, found.message_id, other_id)
        return True

    return await database.run(work)


_OPEN_TO_NEWS = frozenset({OutboxState.SENDING, OutboxState.UNCLEAR})


def _says_nothing(outcomes: Mapping[str, RecipientOutcome]) -> bool:
    """Whether nothing was learned: what is unclear stays so."""
    clear = {RecipientVerdict.ACCEPTED, RecipientVerdict.REJECTED, RecipientVerdict.TRY_LATER}
    return not any(outcome.verdict in clear for outcome in outcomes.values())


def _write(
    tx: Tx, found: OutboxRow, outcomes: Mapping[str, RecipientOutcome], *, error: str, code: int | None = None
) -> _Concluded:
    conclusion = rules.conclude(
        found.kind,
        attempt=found.attempts,
        created_at=found.created_at,
        now=tx.now,
        before=found.recipients,
        outcomes=outcomes,
    )
    heard = conclusion.code if conclusion.code is not None else code
    values: dict[str, object] = {
        "last_error": _with_code(error, heard)[:ERROR_LIMIT],
        "last_code": heard,
        "next_attempt_at": conclusion.next_attempt_at,
    }
    if conclusion.event is OutboxEvent.CANCEL:
        values["idempotency_key"] = None  # a refused submission has changed nothing: the key is free again
    state = outbox.move(tx, found, conclusion.event, **values)
    outbox.write_recipients(tx, found.id, conclusion.recipients)
    events = [Event(EventKind.OUTBOX, found.id, found.session_id)]
    if _settle_question(tx, found, conclusion):
        events.append(Event(EventKind.QUESTION, found.question_id or "", found.session_id))
    return _Concluded(state, tuple(events))


def _with_code(error: str, code: int | None) -> str:
    """The error with the reply code in front, unless it is named already."""
    return error if not error or code is None or str(code) in error else f"{code} {error}"


def _settle_question(tx: Tx, found: OutboxRow, conclusion: Conclusion) -> bool:
    """A question whose mail will never be read must not block its session; whether something changed.

    When the mail may have arrived after all, the question stays answerable.
    """
    if conclusion.event not in {OutboxEvent.CANCEL, OutboxEvent.REJECTED} or found.question_id is None:
        return False
    question = questions.find(tx, found.question_id)
    if question is None or question.status is not QuestionStatus.OPEN:
        return False
    if conclusion.doubtful:
        questions.unblock(tx, question.id)
    else:
        questions.settle(tx, question, QuestionEvent.CANCEL)
    return True


async def next_due(database: Database, identity: Identity, account: AccountName) -> datetime | None:
    """When the machine's next mail may go over the account; ``None``: none waits, or the mode is off."""

    def work(tx: Tx) -> datetime | None:
        found = outbox.next_sendable(tx, identity.machine_id, account, due_only=False)
        return None if found is None else found[1]

    return await database.read(work)


async def row(database: Database, outbox_id: OutboxId) -> OutboxRow:
    """One mail with its recipients; ``Refusal("unknown")`` when there is none."""
    return await database.read(reading(outbox_id))


def reading(outbox_id: OutboxId) -> Work[OutboxRow]:
    """The reading of ``row``, for who waits until there is something."""

    def work(tx: Tx) -> OutboxRow:
        found = outbox.find(tx, outbox_id)
        if found is None:
            raise Refusal("unknown", f"there is no mail {outbox_id} in the outbox")
        carrier = None if found.carried_by is None else outbox.find(tx, found.carried_by)
        return found if carrier is None else _fate_of(found, carrier)

    return work


def _fate_of(found: OutboxRow, carrier: OutboxRow) -> OutboxRow:
    """A mail that left within another one, with how far that has come."""
    return evolve(
        found,
        state=carrier.state,
        attempts=carrier.attempts,
        last_error=carrier.last_error,
        last_code=carrier.last_code,
        next_attempt_at=carrier.next_attempt_at,
        recipients=carrier.recipients,
    )


async def hold(
    database: Database,
    bell: Bell,
    identity: Identity,
    account: AccountName,
    reason: str,
    *,
    code: int | None = None,
) -> tuple[OutboxId, ...]:
    """The account cannot send (its credential was refused, say): decisions fail to callers that still wait.

    All other mails stay queued.  Returns the decisions that were cancelled.
    """

    def work(tx: Tx) -> tuple[tuple[OutboxId, ...], tuple[Event, ...]]:
        events: list[Event] = []
        since = tx.now - rules.CALLER_WAITS
        cancelled = outbox.untried_decisions(tx, identity.machine_id, account, since)
        for found in cancelled:
            outbox.move(
                tx,
                found,
                OutboxEvent.CANCEL,
                last_error=_with_code(reason, code)[:ERROR_LIMIT],
                last_code=code,
                idempotency_key=None,
            )
            events.append(Event(EventKind.OUTBOX, found.id, found.session_id))
            if _settle_question(tx, found, Conclusion(OutboxEvent.CANCEL, ())):
                events.append(Event(EventKind.QUESTION, found.question_id or "", found.session_id))
        return tuple(found.id for found in cancelled), tuple(events)

    done, events = await database.run(work)
    bell.ring(*events)
    return done


async def recover(database: Database, bell: Bell, identity: Identity) -> int:
    """Mails whose sender fell silent past its lease become unclear; how many."""
    done = await database.run(lambda tx: lose_sight(tx, identity.machine_id, lease_ended_only=True))
    bell.ring(*(Event(EventKind.OUTBOX, found) for found in done))
    return len(done)


def lose_sight(tx: Tx, machine_id: MachineId, *, lease_ended_only: bool) -> tuple[OutboxId, ...]:
    """Mails that were being sent when their sender was interrupted: nobody knows how far it came."""
    interrupted = outbox.interrupted(tx, machine_id, lease_ended_only=lease_ended_only)
    for found in interrupted:
        unclear = {
            one.address: RecipientOutcome(one.address, RecipientVerdict.UNCLEAR, one.code, one.reply)
            for one in found.recipients
        }
        _write(tx, found, unclear, error="sending was interrupted; nobody knows how far it came")
    return tuple(found.id for found in interrupted)
