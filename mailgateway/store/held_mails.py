"""Mails of the outbox that are held back, and what they say, should they leave together with others."""

from datetime import datetime

from attrs import field, frozen
from sqlalchemy import delete, func, select, update

from mailgateway.domain.attention import HeldFor, Hold
from mailgateway.domain.outbox import MailKind, OutboxState
from mailgateway.errors import StaleWrite
from mailgateway.ids import MachineId, OutboxId, RouteId, SessionId
from mailgateway.store.database import Tx
from mailgateway.store.tables import held_mail as table
from mailgateway.store.tables import outbox, recipient


@frozen(kw_only=True)
class HeldMail:
    """One mail that is held back; ``subject`` is without its tag, ``words`` are Markdown."""

    id: OutboxId
    kind: MailKind
    session_id: SessionId
    route_id: RouteId
    recipient: str = field(repr=False)
    hold: Hold
    alone: bool
    subject: str = field(repr=False)
    words: str = field(repr=False)
    created_at: datetime


_UNTOUCHED = (
    outbox.c.state == OutboxState.QUEUED.value,
    outbox.c.attempts == 0,
    outbox.c.next_attempt_at.is_(None),
)
"""A mail that is held back still: nobody has dropped it, or wants it to be sent at once."""


def add(
    tx: Tx,
    outbox_id: OutboxId,
    machine_id: MachineId,
    hold: Hold,
    *,
    alone: bool,
    subject: str,
    words: str,
) -> None:
    """Hold a mail back that was queued in this transaction."""
    tx.execute(
        table.insert(),
        {
            "outbox_id": outbox_id,
            "machine_id": machine_id,
            "held_for": hold.why.value,
            "until": hold.until,
            "alone": alone,
            "subject": subject,
            "words": "" if alone else words,
        },
    )
    tx.execute(
        update(outbox).where(outbox.c.id == outbox_id).values(held_until=hold.until, next_attempt_at=None)
    )


def bundle_until(tx: Tx, session_id: SessionId) -> datetime | None:
    """When the bundle leaves that the session has begun; ``None``: it has begun none."""
    return tx.execute(
        select(func.min(table.c.until))
        .join(outbox, outbox.c.id == table.c.outbox_id)
        .where(outbox.c.session_id == session_id, table.c.held_for == HeldFor.BUNDLE.value, *_UNTOUCHED)
    ).scalar()


def waiting(tx: Tx, machine_id: MachineId, limit: int) -> tuple[HeldMail, ...]:
    """The machine's mails that are held back, in the order of their submission."""
    rows = tx.execute(
        select(
            table,
            outbox.c.kind,
            outbox.c.session_id,
            outbox.c.route_id,
            outbox.c.created_at,
            recipient.c.address,
        )
        .join(outbox, outbox.c.id == table.c.outbox_id)
        .join(recipient, recipient.c.outbox_id == outbox.c.id)
        .where(table.c.machine_id == machine_id, *_UNTOUCHED)
        .order_by(outbox.c.number)
        .limit(limit)
    )
    return tuple(
        HeldMail(
            id=row.outbox_id,
            kind=MailKind(row.kind),
            session_id=row.session_id,
            route_id=row.route_id,
            recipient=row.address,
            hold=Hold(HeldFor(row.held_for), row.until),
            alone=bool(row.alone),
            subject=row.subject,
            words=row.words,
            created_at=row.created_at,
        )
        for row in rows
    )


def count(tx: Tx, machine_id: MachineId) -> tuple[int, datetime | None]:
    """How many of the machine's mails are held back, and when the first of them may leave."""
    row = tx.execute(
        select(func.count().label("mails"), func.min(table.c.until).label("first"))
        .select_from(table)
        .join(outbox, outbox.c.id == table.c.outbox_id)
        .where(table.c.machine_id == machine_id, *_UNTOUCHED)
    ).one()
    return row.mails, row.first


def hold_on(tx: Tx, held: HeldMail, hold: Hold) -> None:
    """Hold it back for another reason, or until another time; nothing when somebody has taken it in hand."""
    done = tx.execute(update(outbox).where(outbox.c.id == held.id, *_UNTOUCHED).values(held_until=hold.until))
    if done.rowcount == 1:
        tx.execute(
            update(table)
            .where(table.c.outbox_id == held.id)
            .values(held_for=hold.why.value, until=hold.until)
        )


def let_go(tx: Tx, held: HeldMail) -> bool:
    """The mail may leave now, as it is; ``False`` when somebody has taken it in hand meanwhile."""
    _forget(tx, held.id)
    done = tx.execute(
        update(outbox)
        .where(outbox.c.id == held.id, *_UNTOUCHED)
        .values(held_until=None, next_attempt_at=tx.now)
    )
    return done.rowcount == 1


def carry(tx: Tx, held: HeldMail, carrier: OutboxId) -> None:
    """The mail leaves within another one; ``StaleWrite`` when somebody has taken it in hand meanwhile."""
    done = tx.execute(
        update(outbox)
        .where(outbox.c.id == held.id, *_UNTOUCHED)
        .values(
            state=OutboxState.CARRIED.value,
            held_until=None,
            next_attempt_at=None,
            carried_by=carrier,
            settled_at=tx.now,
        )
    )
    if done.rowcount != 1:
        raise StaleWrite(f"the mail {held.id} was moved by somebody else")
    _forget(tx, held.id)


def carried(tx: Tx, route_id: RouteId, limit: int) -> tuple[tuple[RouteId, str], ...]:
    """What the mail with this route carries: by which route each piece is answered, and its whole subject."""
    carriers = select(outbox.c.id).where(outbox.c.route_id == route_id)
    rows = tx.execute(
        select(outbox.c.route_id, outbox.c.subject)
        .where(outbox.c.carried_by.in_(carriers), outbox.c.route_id != "")
        .order_by(outbox.c.number)
        .limit(limit)
    )
    return tuple((row.route_id, row.subject) for row in rows)


def forget_touched(tx: Tx) -> int:
    """Forget what is said of mails that somebody has taken in hand; how many."""
    touched = select(outbox.c.id).where(
        outbox.c.id == table.c.outbox_id,
        (outbox.c.state != OutboxState.QUEUED.value)
        | (outbox.c.attempts > 0)
        | outbox.c.next_attempt_at.is_not(None),
    )
    return tx.execute(delete(table).where(touched.exists())).rowcount


def _forget(tx: Tx, outbox_id: OutboxId) -> None:
    tx.execute(delete(table).where(table.c.outbox_id == outbox_id))
