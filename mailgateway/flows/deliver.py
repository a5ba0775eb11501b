"""Handing envelopes to their sessions: look, claim, give back, ack.

Every refusal says what to do; who may is decided in one order: the envelope must exist, its numbering must
be the caller's, the caller and the instance must speak for its session, and it must be this machine's.  Only
then its state counts.  A claim whose lease has run out is as good as none, except that its holder's ack still
counts until another has claimed.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import assert_never

from attrs import evolve, frozen

from mailgateway.domain.delivery import DeliveryState
from mailgateway.domain.envelope import AttachmentInfo, Envelope, EnvelopeKind
from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.ids import EnvelopeId, InstanceId, MachineId, SessionId
from mailgateway.store import attachments, cursors, envelopes, flagging, journal, modes, sessions
from mailgateway.store.database import Database, Tx, Work

LIMIT = 1_000
"""Envelopes that one listing shows at most."""

LEASE_SECONDS = 60

_ID = re.compile(r"m-[0-9a-f]{4,24}", re.ASCII)


@frozen
class Claimant:
    """Who claims: a running instance; its process, when told, ends the claim by ending."""

    instance: InstanceId
    machine: MachineId
    pid: int | None = None
    process_started_at: float | None = None
    """Unix seconds."""
    sessions: frozenset[SessionId] = frozenset()
    """The only sessions that whoever asks may speak for; none named: all."""


@frozen
class Target:
    """Which envelope is meant: by its id (or 4 hex digits of it and more), or by the place of its mail."""

    id: str | None = None
    uid: int | None = None
    uid_validity: int | None = None
    account: str | None = None
    folder: str | None = None


async def pending(
    database: Database,
    identity: Identity,
    *,
    session: SessionId | None,
    kind: EnvelopeKind | None,
    among: frozenset[SessionId] = frozenset(),
) -> tuple[Envelope, ...]:
    """What waits for a session (``None``: for any) of this machine or of none, oldest first.

    ``among`` are the only sessions that whoever asks may speak for; none named: all.
    Claimed ones are shown as such; one whose lease has run out is shown as new.  Nothing while the mode is
    off.  At most ``LIMIT``, fewer when they are long.
    """
    return await database.read(waiting(identity, session=session, kind=kind, among=among))


def waiting(
    identity: Identity,
    *,
    session: SessionId | None,
    kind: EnvelopeKind | None,
    among: frozenset[SessionId] = frozenset(),
) -> Work[tuple[Envelope, ...]]:
    """The reading of ``pending``, for who waits until there is something."""

    def work(tx: Tx) -> tuple[Envelope, ...]:
        found = envelopes.waiting(tx, identity.machine_id, session, kind, LIMIT, among=among)
        return tuple(_seen_by_others(envelope, tx.now) for envelope in found)

    return work


async def claim(
    database: Database,
    bell: Bell,
    identity: Identity,
    target: Target,
    claimant: Claimant,
    *,
    lease_seconds: float = LEASE_SECONDS,
) -> Envelope:
    """Claim one envelope, or renew the claim by claiming again.

    Refusals: ``unknown``, ``ambiguous_id``, ``stale-space``, ``not_yours``, ``foreign-device``, ``mode_off``,
    ``acked``, ``already_claimed``.
    """
    life = timedelta(seconds=lease_seconds)

    def work(tx: Tx) -> Envelope:
        envelope = _permitted(tx, identity, target, claimant)
        if modes.current(tx, identity.machine_id) is Mode.OFF:
            raise Refusal(
                "mode_off", "The gateway is off on this machine; nothing is handed out until it is on."
            )
        match envelope.state:
            case DeliveryState.ACKED:
                raise Refusal("acked", "This message was acked already; there is nothing left to do.")
            case DeliveryState.DROPPED:
                raise _dropped(tx, envelope)
            case DeliveryState.CLAIMED if envelope.claimant != claimant.instance and _alive(envelope, tx.now):
                raise Refusal(
                    "already_claimed",
                    "Another instance is working on this message; try again when its lease has ended.",
                )
            case DeliveryState.NEW | DeliveryState.CLAIMED:
                by = envelopes.Claim(
                    claimant.instance,
                    claimant.machine,
                    tx.now + life,
                    claimant.pid,
                    claimant.process_started_at,
                )
                return envelopes.claim(tx, envelope, by)
            case _:
                assert_never(envelope.state)

    claimed = await database.run(work)
    bell.ring(Event(EventKind.DELIVERY, claimed.id, claimed.session_id))
    return claimed


async def release(
    database: Database, bell: Bell, identity: Identity, target: Target, claimant: Claimant
) -> Envelope:
    """Give a claimed envelope back; it is new again.

    Refusals: those of ``claim`` about who may, and ``not_claimant``.
    """

    def work(tx: Tx) -> Envelope:
        envelope = _permitted(tx, identity, target, claimant)
        match envelope.state:
            case DeliveryState.DROPPED:
                raise _dropped(tx, envelope)
            case DeliveryState.ACKED:
                raise Refusal("acked", "This message was acked already; there is nothing to give back.")
            case DeliveryState.CLAIMED if envelope.claimant == claimant.instance:
                return envelopes.release(tx, envelope)
            case DeliveryState.NEW | DeliveryState.CLAIMED:
                raise _not_claimant()
            case _:
                assert_never(envelope.state)

    released = await database.run(work)
    bell.ring(Event(EventKind.DELIVERY, released.id, released.session_id))
    return released


async def ack(database: Database, bell: Bell, identity: Identity, target: Target, claimant: Claimant) -> None:
    r"""The session has the message: journal it, and ask for ``\Seen``.

    Again by the same instance: nothing more happens.  After the lease has ended it counts as long as nobody
    else has claimed.  Refusals: those of ``claim`` about who may, and ``not_claimant``.
    """

    def work(tx: Tx) -> Envelope | None:
        envelope = _permitted(tx, identity, target, claimant)
        mine = envelope.claimant == claimant.instance
        match envelope.state:
            case DeliveryState.ACKED if mine:
                return None
            case DeliveryState.DROPPED:
                raise _dropped(tx, envelope)
            case DeliveryState.NEW if mine:
                # the lease had ended and nobody has claimed since: claim and ack at once
                again = envelopes.Claim(claimant.instance, claimant.machine, tx.now)
                envelopes.ack(tx, envelopes.claim(tx, envelope, again))
            case DeliveryState.CLAIMED if mine:
                envelopes.ack(tx, envelope)
            case DeliveryState.NEW | DeliveryState.CLAIMED | DeliveryState.ACKED:
                raise _not_claimant()
            case _:
                assert_never(envelope.state)
        consumed(tx, envelope, claimant.instance)
        return envelope

    acked = await database.run(work)
    if acked is not None:
        bell.ring(Event(EventKind.FLAGGING, acked.id), Event(EventKind.DELIVERY, acked.id, acked.session_id))


def consumed(tx: Tx, envelope: Envelope, instance: InstanceId) -> None:
    r"""Journal an envelope and ask for ``\Seen`` on its mail; an empty instance: the gateway itself."""
    journal.add(tx, envelope.id, envelope.session_id, instance)
    if envelope.source is not None:
        flagging.ask(tx, envelope.source)


async def attachment(
    database: Database, identity: Identity, envelope_id: str, attachment_id: str, claimant: Claimant
) -> tuple[AttachmentInfo, bytes]:
    """One part of a mail with its bytes, for the instance that claimed it (also after its ack).

    Refusals: those of ``claim`` about who may, ``not_claimant``; ``unknown`` for a part that is not there.
    """

    def work(tx: Tx) -> tuple[AttachmentInfo, bytes]:
        envelope = _permitted(tx, identity, Target(id=envelope_id), claimant)
        if envelope.claimant != claimant.instance:
            raise _not_claimant()
        found = attachments.find(tx, envelope.id, attachment_id)
        if found is None:
            raise Refusal("unknown", "This message has no such attachment, or it is kept no longer.")
        if found[0].left_out:
            raise Refusal("unknown", "This file was not kept; the message says why, and the mail has it.")
        return found

    return await database.read(work)


# --- who may ----------------------------------------------------------------------------------------------


def _permitted(tx: Tx, identity: Identity, target: Target, claimant: Claimant) -> Envelope:
    """The envelope that is meant, if this claimant may touch it at all."""
    envelope = _find(tx, target)
    if claimant.sessions and envelope.session_id not in claimant.sessions:
        raise Refusal("not_yours", "This message is for a session that your key does not speak for.")
    speaks_for = sessions.of_instance(tx, claimant.instance)
    if speaks_for and envelope.session_id not in speaks_for:
        raise Refusal("not_yours", "This message is for another session than the one this instance runs.")
    if envelope.machine_id is not None and envelope.machine_id != identity.machine_id:
        raise Refusal("foreign-device", "This message is for a session on another machine; take it there.")
    return envelope


def _find(tx: Tx, target: Target) -> Envelope:
    if target.id is not None:
        envelope = _by_id(tx, target.id)
        place = envelope.source
        if (
            target.uid_validity is not None
            and place is not None
            and place.uid_validity != target.uid_validity
        ):
            raise _stale()
        return envelope
    if target.uid is None:
        raise Refusal("invalid", "Name the message: by id, or by uid with uidValidity and account.")
    found = envelopes.at_uid(tx, target.uid, target.account, target.folder)
    if target.uid_validity is not None:
        fitting = _in_space(found, target.uid_validity)
        if not fitting and (found or _other_space(tx, target)):
            raise _stale()
        found = fitting
    if len(found) > 1:
        # without its numbering a uid may name an acked mail and a waiting one: the waiting one is meant
        waiting = tuple(each for each in found if each.state.value in envelopes.OPEN)
        found = waiting or found
    match found:
        case ():
            raise _unknown()
        case (envelope,):
            return envelope
        case _:
            raise Refusal("ambiguous_id", "Several messages have this uid; add account and uidValidity.")


def _by_id(tx: Tx, name: str) -> Envelope:
    if _ID.fullmatch(name) is None:
        raise _unknown()
    envelope = envelopes.find(tx, name)
    if envelope is not None:
        return envelope
    match envelopes.with_prefix(tx, name):
        case ():
            raise _unknown()
        case (only,):
            return only
        case _:
            raise Refusal("ambiguous_id", "Several messages begin with this id; give more of it.")


def _in_space(found: Sequence[Envelope], uid_validity: int) -> tuple[Envelope, ...]:
    return tuple(
        each for each in found if each.source is not None and each.source.uid_validity == uid_validity
    )


def _other_space(tx: Tx, target: Target) -> bool:
    """Whether the folders that may be meant are all numbered otherwise than the caller believes."""
    known = [
        cursor.uid_validity
        for (_, folder), cursor in cursors.of_account(tx, target.account).items()
        if target.folder in (None, folder)
    ]
    return bool(known) and target.uid_validity not in known


def _seen_by_others(envelope: Envelope, now: datetime) -> Envelope:
    """The envelope as one who has not claimed it should see it."""
    if envelope.state is DeliveryState.CLAIMED and _alive(envelope, now):
        return envelope
    return evolve(envelope, state=DeliveryState.NEW, claimant=None, lease_until=None)


def _alive(envelope: Envelope, now: datetime) -> bool:
    return envelope.lease_until is not None and envelope.lease_until > now


def _unknown() -> Refusal:
    return Refusal("unknown", "There is no such message; list what is pending.")


def _stale() -> Refusal:
    return Refusal(
        "stale-space", "The mail server has numbered this folder anew; list what is pending and use its ids."
    )


def _not_claimant() -> Refusal:
    return Refusal("not_claimant", "This instance has not claimed the message; claim it first.")


def _dropped(tx: Tx, envelope: Envelope) -> Refusal:
    reason = envelopes.dropped_reason(tx, EnvelopeId(envelope.id))
    return _stale() if reason == envelopes.RENUMBERED else _unknown()
