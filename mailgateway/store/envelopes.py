"""Envelopes and the moves of their delivery.

Each move follows ``domain.delivery.MOVES`` and is made by compare-and-set on the state and the claimant that
were read: of two that meet one wins, the other raises ``StaleWrite`` (or, on PostgreSQL, is repeated and
reads anew).  The last claimant's name stays on a row whose lease has ended, so that a late ack is known.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

from attrs import evolve, frozen
from sqlalchemy import ColumnElement, Row, and_, bindparam, func, insert, or_, select, update

from mailgateway.domain.delivery import DeliveryEvent, DeliveryState, advance
from mailgateway.domain.envelope import Envelope, EnvelopeKind, Source, Trust
from mailgateway.errors import StaleWrite
from mailgateway.ids import EnvelopeId, InstanceId, MachineId, SessionId
from mailgateway.store import attachments, modes
from mailgateway.store.database import Tx
from mailgateway.store.places import columns_of, place_of
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import EPOCH
from mailgateway.store.tables import envelope as table

OPEN = (DeliveryState.NEW.value, DeliveryState.CLAIMED.value)
"""States in which an envelope still waits for its session."""

RENUMBERED = "renumbered"
"""Why an envelope was dropped whose mail was not found again under the folder's new numbers."""

CHUNK = 500
"""How many ids one statement names at most."""

TEXT_BUDGET = 8_000_000
"""Characters of body that one listing brings along at most; what is over it comes after an ack."""


@frozen
class Claim:
    """Who claims, until when; ``pid`` and ``started_at`` (Unix seconds) tell the process, when known."""

    instance: InstanceId
    machine: MachineId
    until: datetime
    pid: int | None = None
    started_at: float | None = None


@frozen
class ClaimedBy:
    """An envelope under claim and the process that holds it."""

    envelope: Envelope
    machine: str
    pid: int | None
    started_at: float | None


_WHOLE = select(table, attachments.exist_for(table.c.id).label("has_parts"))
"""What ``_whole`` makes envelopes of."""

_FIND = Prepared(_WHOLE.where(table.c.id == bindparam("id_")))
_TAKEN = Prepared(select(table.c.id).where(table.c.id.in_(bindparam("ids", expanding=True))))
_DROPPED_REASON = Prepared(select(table.c.dropped_reason).where(table.c.id == bindparam("id_")))
_CAS = (
    table.c.id == bindparam("id_"),
    table.c.state == bindparam("was"),
    table.c.claimant == bindparam("by"),
)
_MOVE = Prepared(update(table).where(*_CAS))
"""Sets whatever columns are among the parameters."""

_ADD = Prepared(insert(table))


def add(tx: Tx, envelope: Envelope, order: int = 0) -> None:
    """File a new envelope; ``order`` tells those of one transaction apart, the first filed the smallest.

    ``sqlalchemy.exc.IntegrityError`` when the id is taken: whoever files has looked before.
    """
    place = envelope.source
    tx.execute(
        _ADD,
        {
            "id": envelope.id,
            "number": int((tx.now - EPOCH).total_seconds() * 1_000) * 1_000 + order,
            "kind": envelope.kind.value,
            "trust": envelope.trust.value,
            "session_id": envelope.session_id,
            "machine_id": envelope.machine_id,
            "state": envelope.state.value,
            "subject": envelope.subject,
            "body": envelope.body,
            "quoted": envelope.quoted,
            "from_address": envelope.from_address,
            "from_name": envelope.from_name,
            "received_at": envelope.received_at,
            "filed_at": tx.now,
            "settled_at": None if envelope.state.value in OPEN else tx.now,
            "route_id": envelope.route_id or "",
            "device": envelope.device,
            "account": place.account if place else "",
            "folder": place.folder if place else "",
            "uid_validity": place.uid_validity if place else None,
            "uid": place.uid if place else None,
            "message_id": envelope.message_id,
            "in_reply_to": envelope.in_reply_to,
            "question_id": envelope.question_id or "",
            "choice": envelope.choice,
            "note": envelope.note,
        },
    )


def find(tx: Tx, envelope_id: str) -> Envelope | None:
    """One envelope in whatever state, or ``None``."""
    row = tx.execute(_FIND, {"id_": envelope_id}).one_or_none()
    return None if row is None else _whole(tx, [row])[0]


def taken(tx: Tx, ids: Sequence[EnvelopeId]) -> set[EnvelopeId]:
    """Those of the ids that are taken."""
    found: set[EnvelopeId] = set()
    for start in range(0, len(ids), CHUNK):
        found.update(tx.execute(_TAKEN, {"ids": list(ids[start : start + CHUNK])}).scalars())
    return found


def with_prefix(tx: Tx, prefix: str) -> tuple[Envelope, ...]:
    """Envelopes whose id begins so (only ``m-`` and hex digits; checked by the caller); two at most."""
    return _whole(tx, tx.execute(_WHOLE.where(table.c.id.like(f"{prefix}%")).limit(2)).all())


def at_uid(tx: Tx, uid: int, account: str | None, folder: str | None) -> tuple[Envelope, ...]:
    """Envelopes of mails under this UID, in whatever numbering; 20 at most, the youngest first."""
    where = [table.c.uid == uid]
    if account is not None:
        where.append(table.c.account == account)
    if folder is not None:
        where.append(table.c.folder == folder)
    return _whole(tx, tx.execute(_WHOLE.where(*where).order_by(table.c.number.desc()).limit(20)).all())


def waiting(
    tx: Tx,
    machine: MachineId,
    session: SessionId | None,
    kind: EnvelopeKind | None,
    limit: int,
    *,
    among: Collection[SessionId] = (),
) -> tuple[Envelope, ...]:
    """Open envelopes of a machine or of none, oldest first, up to ``limit`` and ``TEXT_BUDGET``.

    ``session``, and ``among`` when it names any, say of which sessions; neither: of all.  None while the
    machine's mode is off.
    """
    statement = _waiting(one=session is not None, several=bool(among), kind=kind is not None)
    wanted = {
        "machine": machine,
        "session": session,
        "among": list(among),
        "kind_": kind and kind.value,
        "limit_": limit,
    }
    rows: list[Row[Any]] = []
    budget = TEXT_BUDGET
    for row in tx.execute(statement, wanted):
        budget -= len(row.body) + len(row.quoted)
        if budget < 0 and rows:
            break
        rows.append(row)
    return _whole(tx, rows)


def count_waiting(tx: Tx, machine: MachineId, session: SessionId | None) -> int:
    """How many open envelopes wait for a session (``None``: for any) of the machine, whatever its mode."""
    statement = _count_waiting(one=session is not None)
    found: int = tx.execute(statement, {"machine": machine, "session": session}).scalar()
    return found


def count_elsewhere(tx: Tx, machine: MachineId) -> int:
    """How many open envelopes are held for other machines."""
    found: int = tx.execute(
        select(func.count())
        .select_from(table)
        .where(table.c.state.in_(OPEN), table.c.machine_id.is_not(None), table.c.machine_id != machine)
    ).scalar_one()
    return found


def count_notices(tx: Tx, session: SessionId) -> int:
    """How many open notices a session holds."""
    found: int = tx.execute(
        select(func.count())
        .select_from(table)
        .where(
            table.c.session_id == session,
            table.c.state.in_(OPEN),
            table.c.kind == EnvelopeKind.NOTICE.value,
        )
    ).scalar_one()
    return found


@lru_cache(maxsize=8)
def _waiting(*, one: bool, several: bool, kind: bool) -> Prepared:
    """The statement, built once for each combination of what may be asked."""
    where = [modes.is_on(bindparam("machine")), *_offered(one=one)]
    if several:
        where.append(table.c.session_id.in_(bindparam("among", expanding=True)))
    if kind:
        where.append(table.c.kind == bindparam("kind_"))
    return Prepared(_WHOLE.where(*where).order_by(table.c.number, table.c.id).limit(bindparam("limit_")))


@lru_cache(maxsize=2)
def _count_waiting(*, one: bool) -> Prepared:
    return Prepared(select(func.count()).select_from(table).where(*_offered(one=one)))


def _offered(*, one: bool) -> list[ColumnElement[bool]]:
    where = [
        table.c.state.in_(OPEN),
        or_(table.c.machine_id == bindparam("machine"), table.c.machine_id.is_(None)),
        table.c.kind != EnvelopeKind.ANSWER.value,
    ]
    if one:
        where.append(table.c.session_id == bindparam("session"))
    return where


# --- moves ----------------------------------------------------------------------------------------------


def claim(tx: Tx, envelope: Envelope, by: Claim) -> Envelope:
    """Claim, or renew a claim: the row is the claimant's until ``by.until``."""
    state = _move(
        tx,
        envelope,
        DeliveryEvent.CLAIM,
        {
            "claimant": by.instance,
            "claimant_machine": by.machine,
            "claimant_pid": by.pid,
            "claimant_started_at": by.started_at,
            "lease_until": by.until,
        },
    )
    return evolve(envelope, state=state, claimant=by.instance, lease_until=by.until)


def release(tx: Tx, envelope: Envelope) -> Envelope:
    """Give a claimed envelope back; the claimant is forgotten."""
    state = _move(tx, envelope, DeliveryEvent.RELEASE, {"claimant": "", "lease_until": None})
    return evolve(envelope, state=state, claimant=None, lease_until=None)


def end_lease(tx: Tx, envelope: Envelope) -> Envelope:
    """A claim has died; the name of its claimant stays, whose late ack counts until another claims."""
    state = _move(tx, envelope, DeliveryEvent.LEASE_ENDED, {"lease_until": None})
    return evolve(envelope, state=state, lease_until=None)


def ack(tx: Tx, envelope: Envelope) -> Envelope:
    """The session has it."""
    state = _move(tx, envelope, DeliveryEvent.ACK, {"lease_until": None, "settled_at": tx.now})
    return evolve(envelope, state=state, lease_until=None)


def _move(tx: Tx, envelope: Envelope, event: DeliveryEvent, values: Mapping[str, Any]) -> DeliveryState:
    after = advance(envelope.state, event)
    if after is None:
        raise StaleWrite(f"envelope {envelope.id} is {envelope.state}: no {event} from there")
    moved = tx.execute(
        _MOVE,
        {
            "id_": envelope.id,
            "was": envelope.state.value,
            "by": envelope.claimant or "",
            "state": after.value,
            **values,
        },
    )
    if moved.rowcount != 1:
        raise StaleWrite(f"envelope {envelope.id} was moved by somebody else")
    return after


# --- renumbering ----------------------------------------------------------------------------------------


def rebind(tx: Tx, envelope_id: EnvelopeId, place: Source) -> None:
    """The envelope's mail lies at another place now; its id, claim and journal stay."""
    tx.execute(update(table).where(table.c.id == envelope_id).values(**columns_of(place)))


def drop_other(tx: Tx, account: str, folder: str, uid_validity: int) -> int:
    """Drop what waits for mails of numberings that are no more; how many."""
    return tx.execute(
        update(table)
        .where(
            table.c.account == account,
            table.c.folder == folder,
            table.c.uid_validity != uid_validity,
            table.c.state.in_(OPEN),
        )
        .values(
            state=DeliveryState.DROPPED.value,
            dropped_reason=RENUMBERED,
            lease_until=None,
            settled_at=tx.now,
        )
    ).rowcount


def dropped_reason(tx: Tx, envelope_id: EnvelopeId) -> str:
    """Why an envelope was dropped; ``""`` when it was not, or does not exist."""
    return tx.execute(_DROPPED_REASON, {"id_": envelope_id}).scalar() or ""


# --- upkeep -----------------------------------------------------------------------------------------------


def claimed(tx: Tx, limit: int) -> tuple[ClaimedBy, ...]:
    """Envelopes under claim with their claimants' processes, those whose lease ends first at the front."""
    rows = tx.execute(
        _WHOLE.where(table.c.state == DeliveryState.CLAIMED.value).order_by(table.c.lease_until).limit(limit)
    ).all()
    return tuple(
        ClaimedBy(envelope, row.claimant_machine, row.claimant_pid, row.claimant_started_at)
        for envelope, row in zip(_whole(tx, rows), rows, strict=True)
    )


def prune_bodies(tx: Tx, before: datetime) -> int:
    """Forget the words and parts of envelopes that were settled before a time; how many."""
    old = and_(table.c.state.not_in(OPEN), table.c.settled_at < before)
    attachments.prune(tx, select(table.c.id).where(old))
    return tx.execute(
        update(table)
        .where(old, or_(table.c.body != "", table.c.quoted != "", table.c.note.is_not(None)))
        .values(body="", quoted="", note=None)
    ).rowcount


def _whole(tx: Tx, rows: "list[Row[Any]] | Any") -> tuple[Envelope, ...]:
    parts = attachments.of(tx, [row.id for row in rows if row.has_parts])
    return tuple(
        Envelope(
            id=row.id,
            kind=EnvelopeKind(row.kind),
            trust=Trust(row.trust),
            session_id=row.session_id,
            machine_id=row.machine_id,
            subject=row.subject,
            body=row.body,
            quoted=row.quoted,
            from_address=row.from_address,
            from_name=row.from_name,
            received_at=row.received_at,
            state=DeliveryState(row.state),
            claimant=row.claimant or None,
            lease_until=row.lease_until,
            route_id=row.route_id or None,
            device=row.device,
            source=None if row.uid is None else place_of(row),
            message_id=row.message_id,
            in_reply_to=row.in_reply_to,
            question_id=row.question_id or None,
            choice=row.choice,
            note=row.note,
            attachments=parts.get(row.id, ()),
        )
        for row in rows
    )
