"""Mails on their way out, and how far each has come for each recipient."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from attrs import field, frozen
from sqlalchemy import Row, bindparam, func, literal, or_, select, update

from mailgateway.domain.outbox import (
    MailKind,
    OutboxEvent,
    OutboxRow,
    OutboxState,
    RecipientRow,
    RecipientState,
    advance,
)
from mailgateway.errors import StaleWrite
from mailgateway.ids import AccountName, MachineId, MessageId, OutboxId, QuestionId, RouteId, SessionId
from mailgateway.store import modes
from mailgateway.store.database import Tx
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import outbox, recipient, thread

SENDABLE = (OutboxState.QUEUED.value, OutboxState.UNCLEAR.value)

_FACTS = [column for column in outbox.c if column.name != "raw"]

_UNSETTLED = Prepared(
    select(*_FACTS).where(
        outbox.c.route_id.in_(bindparam("routes", expanding=True)),
        outbox.c.attempts > 0,
        outbox.c.state.in_((*SENDABLE, OutboxState.SENDING.value)),
    )
)


@frozen(kw_only=True)
class NewMail:
    """A mail as it is submitted: composed, to be sent as soon as may be."""

    id: OutboxId
    kind: MailKind
    account: AccountName
    machine_id: MachineId
    session_id: SessionId
    question_id: QuestionId | None
    route_id: RouteId
    message_id: MessageId
    subject: str = field(repr=False)
    sender: str = field(repr=False)
    recipients: tuple[str, ...] = field(repr=False)
    raw: bytes = field(repr=False)
    idempotency_key: str | None = None
    content_digest: str = ""
    submitted_by: str = ""


@frozen
class Bytes:
    """What is handed to the mail server."""

    sender: str = field(repr=False)
    raw: bytes = field(repr=False)


def add(tx: Tx, mail: NewMail) -> None:
    """Queue a mail, due now."""
    number = tx.execute(select(func.coalesce(func.max(outbox.c.number), 0) + 1)).scalar_one()
    tx.execute(
        outbox.insert(),
        {
            "id": mail.id,
            "number": number,
            "kind": mail.kind.value,
            "account": mail.account,
            "machine_id": mail.machine_id,
            "session_id": mail.session_id,
            "question_id": mail.question_id or "",
            "route_id": mail.route_id,
            "message_id": mail.message_id,
            "subject": mail.subject,
            "sender": mail.sender,
            "raw": mail.raw,
            "state": OutboxState.QUEUED.value,
            "next_attempt_at": tx.now,
            "idempotency_key": mail.idempotency_key,
            "content_digest": mail.content_digest,
            "submitted_by": mail.submitted_by,
            "created_at": tx.now,
        },
    )
    tx.execute(
        recipient.insert(),
        [
            {"outbox_id": mail.id, "address": address, "state": RecipientState.WAITING.value}
            for address in mail.recipients
        ],
    )


def find(tx: Tx, outbox_id: OutboxId) -> OutboxRow | None:
    """One mail with its recipients, or ``None``."""
    row = tx.execute(select(*_FACTS).where(outbox.c.id == outbox_id)).one_or_none()
    return None if row is None else _value(tx, row)


def of_machine(tx: Tx, outbox_id: OutboxId, machine_id: MachineId) -> OutboxRow | None:
    """One mail that was submitted on this machine, with its recipients, or ``None``."""
    row = tx.execute(
        select(*_FACTS).where(outbox.c.id == outbox_id, outbox.c.machine_id == machine_id)
    ).one_or_none()
    return None if row is None else _value(tx, row)


def page(
    tx: Tx,
    machine_id: MachineId,
    states: Collection[OutboxState],
    sessions: Collection[SessionId],
    before: int | None,
    limit: int,
) -> tuple[tuple[int, OutboxRow], ...]:
    """The machine's mails in these states, the last submitted first, each with its number.

    With ``sessions`` those of these sessions alone, with ``before`` those of a smaller number.
    """
    query = select(*_FACTS).where(outbox.c.machine_id == machine_id)
    if states:
        query = query.where(outbox.c.state.in_([state.value for state in states]))
    if sessions:
        query = query.where(outbox.c.session_id.in_(list(sessions)))
    if before is not None:
        query = query.where(outbox.c.number < before)
    rows = tx.execute(query.order_by(outbox.c.number.desc()).limit(limit)).all()
    return tuple((row.number, _value(tx, row)) for row in rows)


def by_key(tx: Tx, session_id: SessionId, key: str) -> tuple[OutboxRow, str] | None:
    """The mail that the session submitted under this idempotency key, and the digest of its content."""
    row = tx.execute(
        select(*_FACTS).where(outbox.c.session_id == session_id, outbox.c.idempotency_key == key)
    ).one_or_none()
    return None if row is None else (_value(tx, row), row.content_digest)


def bytes_of(tx: Tx, outbox_id: OutboxId) -> Bytes:
    """The envelope sender and the final bytes."""
    row = tx.execute(select(outbox.c.sender, outbox.c.raw).where(outbox.c.id == outbox_id)).one()
    return Bytes(row.sender, bytes(row.raw))


def submitted_since(
    tx: Tx,
    machine_id: MachineId,
    kind: MailKind,
    since: datetime,
    *,
    by: str | None = None,
    session: SessionId | None = None,
) -> tuple[datetime, ...]:
    """When the machine's mails of this kind were submitted since then; cancelled ones do not count.

    With ``by`` those that came with this key, with ``session`` those of this session.
    """
    query = select(outbox.c.created_at).where(
        outbox.c.machine_id == machine_id,
        outbox.c.kind == kind.value,
        outbox.c.created_at > since,
        outbox.c.state != OutboxState.CANCELLED.value,
    )
    if by is not None:
        query = query.where(outbox.c.submitted_by == by)
    if session is not None:
        query = query.where(outbox.c.session_id == session)
    return tuple(tx.execute(query).scalars())


def next_sendable(
    tx: Tx,
    machine_id: MachineId,
    account: AccountName,
    *,
    due_only: bool,
    looked: Collection[OutboxId] | None = None,
) -> tuple[OutboxId, datetime] | None:
    """The mail that the machine may send next over the account, and when; while its mode is off: notices.

    With ``looked``, mails of unclear fate are passed over unless they are among these.
    """
    query = (
        select(outbox.c.id, outbox.c.next_attempt_at)
        .where(
            outbox.c.machine_id == machine_id,
            outbox.c.account == account,
            outbox.c.state.in_(SENDABLE),
            outbox.c.next_attempt_at.is_not(None),
            or_(outbox.c.kind == MailKind.NOTICE.value, modes.is_on(literal(machine_id))),
        )
        .limit(1)
    )
    if looked is not None:
        query = query.where(or_(outbox.c.state != OutboxState.UNCLEAR.value, outbox.c.id.in_(list(looked))))
    if due_only:
        query = query.where(outbox.c.next_attempt_at <= tx.now).order_by(outbox.c.number)
    else:
        query = query.order_by(outbox.c.next_attempt_at)
    row = tx.execute(query).first()
    return None if row is None else (row.id, row.next_attempt_at)


def claim(tx: Tx, found: OutboxRow, lease: timedelta) -> None:
    """Mark it as being sent, one attempt more; ``StaleWrite`` when somebody else was faster."""
    move(
        tx,
        found,
        OutboxEvent.CLAIM,
        attempts=found.attempts + 1,
        next_attempt_at=None,
        lease_until=tx.now + lease,
    )


def move(tx: Tx, found: OutboxRow, event: OutboxEvent, **values: Any) -> OutboxState:
    """Make a move and write what goes with it; ``StaleWrite`` when the row is not what ``found`` says."""
    new = advance(found.state, event)
    if new is None:
        raise StaleWrite(f"the mail {found.id} is {found.state}: {event} is not possible")
    if new not in {OutboxState.QUEUED, OutboxState.SENDING, OutboxState.UNCLEAR}:
        values |= {"settled_at": tx.now, "next_attempt_at": None}
    if new is not OutboxState.SENDING:
        values |= {"lease_until": None}
    values |= {"held_until": None}  # whoever moves it has it in hand
    done = tx.execute(
        update(outbox)
        .where(
            outbox.c.id == found.id, outbox.c.state == found.state.value, outbox.c.attempts == found.attempts
        )
        .values(state=new.value, **values)
    )
    if done.rowcount != 1:
        raise StaleWrite(f"the mail {found.id} was moved by somebody else")
    return new


def write_recipients(tx: Tx, outbox_id: OutboxId, rows: Iterable[RecipientRow]) -> None:
    """Write how far the mail has come for these recipients."""
    for row in rows:
        tx.execute(
            update(recipient)
            .where(recipient.c.outbox_id == outbox_id, recipient.c.address == row.address)
            .values(state=row.state.value, code=row.code, reply=row.reply)
        )


def interrupted(tx: Tx, machine_id: MachineId, *, lease_ended_only: bool) -> tuple[OutboxRow, ...]:
    """The machine's mails that are marked as being sent; with ``lease_ended_only``: for too long."""
    query = select(*_FACTS).where(
        outbox.c.machine_id == machine_id, outbox.c.state == OutboxState.SENDING.value
    )
    if lease_ended_only:
        query = query.where(outbox.c.lease_until <= tx.now)
    return tuple(_value(tx, row) for row in tx.execute(query.order_by(outbox.c.number)).all())


def untried_decisions(
    tx: Tx, machine_id: MachineId, account: AccountName, since: datetime
) -> tuple[OutboxRow, ...]:
    """The machine's decisions, submitted after ``since``, that wait for their first attempt."""
    rows = tx.execute(
        select(*_FACTS)
        .where(
            outbox.c.machine_id == machine_id,
            outbox.c.account == account,
            outbox.c.kind == MailKind.DECISION.value,
            outbox.c.state == OutboxState.QUEUED.value,
            outbox.c.attempts == 0,
            outbox.c.held_until.is_(None),
            outbox.c.created_at > since,
        )
        .order_by(outbox.c.number)
    ).all()
    return tuple(_value(tx, row) for row in rows)


def arrived(tx: Tx, *route_ids: RouteId) -> tuple[tuple[OutboxId, RouteId], ...]:
    """Replies came back on these routes: what was unclear, or was to go again, has arrived.

    Returns the mails that are thereby sent, with their routes; their rings are the caller's.
    """
    if not route_ids:
        return ()
    rows = tx.execute(_UNSETTLED, {"routes": list(route_ids)}).all()
    for row in rows:
        has_arrived(tx, _value(tx, row))
    return tuple((row.id, row.route_id) for row in rows)


def has_arrived(tx: Tx, found: OutboxRow) -> None:
    """Something shows that the mail arrived."""
    move(tx, found, OutboxEvent.ARRIVED)
    accepted = [
        RecipientRow(one.address, RecipientState.ACCEPTED, one.code, one.reply)
        for one in found.recipients
        if one.state not in {RecipientState.REJECTED, RecipientState.BOUNCED}
    ]
    write_recipients(tx, found.id, accepted)


def doubtful(tx: Tx, machine_id: MachineId, account: AccountName) -> tuple[OutboxRow, ...]:
    """The machine's mails of unclear fate that may go once more now."""
    rows = tx.execute(
        select(*_FACTS)
        .where(
            outbox.c.machine_id == machine_id,
            outbox.c.account == account,
            outbox.c.state == OutboxState.UNCLEAR.value,
            outbox.c.next_attempt_at <= tx.now,
        )
        .order_by(outbox.c.number)
        .limit(100)
    ).all()
    return tuple(_value(tx, row) for row in rows)


def of_message_ids(tx: Tx, message_ids: Sequence[MessageId]) -> tuple[OutboxRow, ...]:
    """The mails of the outbox that were sent under these Message-IDs; at most 20 ids are looked up."""
    if not message_ids:
        return ()
    rows = tx.execute(
        select(*_FACTS)
        .join(thread, thread.c.outbox_id == outbox.c.id)
        .where(thread.c.message_id.in_(message_ids[:20]), thread.c.expires_at > tx.now)
        .distinct()
    ).all()
    return tuple(_value(tx, row) for row in rows)


def waiting(tx: Tx, machine_id: MachineId) -> int:
    """How many mails of the machine have not come to an end."""
    count: int = tx.execute(
        select(func.count())
        .select_from(outbox)
        .where(outbox.c.machine_id == machine_id, outbox.c.state.in_((*SENDABLE, OutboxState.SENDING.value)))
    ).scalar_one()
    return count


def _value(tx: Tx, row: Row[Any]) -> OutboxRow:
    return OutboxRow(
        id=row.id,
        kind=MailKind(row.kind),
        account=row.account,
        session_id=row.session_id,
        question_id=row.question_id or None,
        route_id=row.route_id,
        message_id=row.message_id,
        subject=row.subject,
        state=OutboxState(row.state),
        attempts=row.attempts,
        last_error=row.last_error,
        last_code=row.last_code,
        created_at=row.created_at,
        next_attempt_at=row.next_attempt_at,
        recipients=_recipients(tx, row.id),
        held_until=row.held_until,
        carried_by=row.carried_by or None,
    )


def _recipients(tx: Tx, outbox_id: OutboxId) -> tuple[RecipientRow, ...]:
    rows: Sequence[Row[Any]] = tx.execute(
        select(recipient).where(recipient.c.outbox_id == outbox_id).order_by(recipient.c.address)
    ).all()
    return tuple(RecipientRow(row.address, RecipientState(row.state), row.code, row.reply) for row in rows)
