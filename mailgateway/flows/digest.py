"""Mails that were held back leave when their time has come: each as itself, or several in one.

Several of one session leave as one mail in the session's thread, so that a reply reaches it.  Those of
several sessions leave as one digest, in which each message has its own link with its own tag; a reply to the
digest as a whole belongs to no session.  What is held back is looked at anew each time, by the settings and
the time of now; the row that is held back and the mail that carries it change hands in one transaction.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from attrs import evolve, frozen
from twisted.logger import Logger

from mailgateway.domain.attention import Attention, HeldFor, Hold
from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import MailKind
from mailgateway.domain.route import Purpose, Route
from mailgateway.errors import Refusal, StaleWrite
from mailgateway.flows.attention_letters import prepare_digest
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.letters import Chance, Mint, Sender
from mailgateway.flows.submit import queue
from mailgateway.ids import OutboxId, SessionId
from mailgateway.store import held_mails, modes, routes
from mailgateway.store.database import Database, Tx
from mailgateway.store.held_mails import HeldMail

AT_ONCE = 500
"""So many mails are looked at in one go; the rest comes at the next."""

MOST_IN_ONE = 50
WORDS_IN_ONE = 40_000
"""Messages, and characters of them, that one mail carries; with more it would not be shown as HTML."""

_log = Logger()


@frozen
class Looked:
    """What is to be done with the mails that are held back."""

    changed: tuple[tuple[HeldMail, Hold], ...]
    """They are held back for another reason, or until another time."""
    alone: tuple[HeldMail, ...]
    """They leave as they are."""
    parcels: tuple[tuple[HeldMail, ...], ...]
    """They leave together: two at least, all for one person."""


async def release(
    database: Database, bell: Bell, identity: Identity, sender: Sender, *, mint: Mint
) -> tuple[OutboxId, ...]:
    """Let go of what is not to be held back any more; the mails that may leave now.

    While the mode is off, all stay where they are.
    """

    def look(tx: Tx) -> Looked:
        if modes.current(tx, identity.machine_id) is Mode.OFF:
            return Looked((), (), ())
        return sorted_out(held_mails.waiting(tx, identity.machine_id, AT_ONCE), sender.attention, tx.now)

    looked = await database.read(look)
    leaving = list(await _let_go(database, bell, looked))
    for parcel in looked.parcels:
        leaving += await _send_together(database, bell, identity, sender, parcel, Chance.draw(mint))
    return tuple(leaving)


def sorted_out(waiting: Sequence[HeldMail], attention: Attention, now: datetime) -> Looked:
    """What is to be done with these mails, which come in the order of their submission."""
    changed, alone, parcels = [], [], []
    leaving: dict[tuple[str, str], list[HeldMail]] = {}
    for held in waiting:
        hold = attention.still(held.kind, held.hold, now)
        if hold is not None:
            if hold != held.hold:
                changed.append((held, hold))
        elif held.alone:
            alone.append(held)
        else:
            bundled = held.hold.why is HeldFor.BUNDLE
            leaving.setdefault((held.recipient, held.session_id if bundled else ""), []).append(held)
    for group in leaving.values():
        for parcel in _parcels(group):
            if len(parcel) == 1:
                alone += parcel
            else:
                parcels.append(parcel)
    return Looked(tuple(changed), tuple(alone), tuple(parcels))


def _parcels(group: Sequence[HeldMail]) -> Iterator[tuple[HeldMail, ...]]:
    """One person's mails, those of a session side by side, cut where one mail would be too large."""
    first: dict[SessionId, int] = {}
    for number, held in enumerate(group):
        first.setdefault(held.session_id, number)
    parcel: list[HeldMail] = []
    size = 0
    for held in sorted(group, key=lambda each: first[each.session_id]):
        length = len(held.subject) + len(held.words)
        if parcel and (len(parcel) == MOST_IN_ONE or size + length > WORDS_IN_ONE):
            yield tuple(parcel)
            parcel, size = [], 0
        parcel.append(held)
        size += length
    if parcel:
        yield tuple(parcel)


async def _let_go(database: Database, bell: Bell, looked: Looked) -> tuple[OutboxId, ...]:
    """Let mails leave as they are, and write anew until when the others wait."""

    def work(tx: Tx) -> tuple[HeldMail, ...]:
        for held, hold in looked.changed:
            held_mails.hold_on(tx, held, hold)
        return tuple(held for held in looked.alone if held_mails.let_go(tx, held))

    if not looked.changed and not looked.alone:
        return ()
    gone = await database.run(work)
    bell.ring(*(Event(EventKind.OUTBOX, held.id, held.session_id) for held in gone))
    return tuple(held.id for held in gone)


async def _send_together(
    database: Database,
    bell: Bell,
    identity: Identity,
    sender: Sender,
    parcel: tuple[HeldMail, ...],
    chance: Chance,
) -> tuple[OutboxId, ...]:
    """Put one mail into the outbox that carries all of these."""
    to = evolve(sender, recipient=parcel[0].recipient)
    sessions = [session for session, _ in groupby(parcel, key=lambda held: held.session_id)]
    session = sessions[0] if len(sessions) == 1 else None

    def work(tx: Tx) -> bool:
        if modes.current(tx, identity.machine_id) is Mode.OFF:
            return False
        route = Route(
            id=ready.route_id,
            purpose=Purpose.DIGEST if session is None else Purpose.SESSION,
            session_id=session or SessionId(""),
            machine_id=identity.machine_id,
            recipient=to.recipient,
            expires_at=ready.expires_at,
        )
        if not routes.add(tx, route):
            raise StaleWrite(f"the route {route.id} was issued meanwhile")
        queue(tx, identity, to, ready, MailKind.DIGEST, route.session_id)
        for held in parcel:
            held_mails.carry(tx, held, ready.outbox_id)
        return True

    try:
        ready = await database.read(lambda tx: prepare_digest(tx, identity, to, session, parcel, chance))
        done = await database.run(work)
    except StaleWrite:
        return ()  # rolled back: the next look sees what is left
    except Refusal as refusal:  # it cannot be one mail: let each try
        _log.warn("mails that were held back leave one by one: {why}", why=refusal.message)
        return await _let_go(database, bell, Looked((), parcel, ()))
    if not done:
        return ()
    touched = [ready.outbox_id, *(held.id for held in parcel)]
    bell.ring(*(Event(EventKind.OUTBOX, each, session) for each in touched))
    return (ready.outbox_id,)
