"""Upkeep, now and then: dead claims, decisions whose time is over, and whatever would grow without end."""

from collections.abc import Callable
from datetime import timedelta

from attrs import frozen

from mailgateway.domain.identity import Identity
from mailgateway.domain.people import IDLE
from mailgateway.domain.question import QuestionEvent
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.notify_person import ONCE_IN
from mailgateway.flows.resolve import end
from mailgateway.flows.settle import WITHHELD_FOR
from mailgateway.mail.authenticity import AHEAD, OLDEST
from mailgateway.store import (
    envelopes,
    fates,
    held,
    held_mails,
    people,
    questions,
    reminders,
    sessions,
    settles,
    sources,
    told,
    upkeep,
    uploads,
)
from mailgateway.store.database import Database, Tx

LIMIT = 1_000
"""Rows of a kind that one sweep looks at; the rest waits for the next."""

UPLOAD_LIFE = timedelta(hours=1)
OFFLINE_LIFE = timedelta(days=30)
MEMORY = OLDEST + AHEAD
"""How long a mail is known again at least; twice the life of a route when that is longer."""


@frozen
class Swept:
    """What one sweep did, as numbers of rows."""

    released: int = 0
    """Claims that had died."""
    expired: int = 0
    """Decisions whose time was over."""
    pruned: int = 0
    """Words, bytes and rows that were kept long enough."""


async def sweep(
    database: Database,
    bell: Bell,
    identity: Identity,
    *,
    bodies_days: int,
    route_ttl: timedelta,
    alive: Callable[[int, float | None], bool],
    discard: Callable[[str], None],
) -> Swept:
    """Sweep once, in two transactions: what others wait for first, then what is only old.

    ``alive(pid, started_at)`` says whether a process of this machine still runs (``started_at`` in Unix
    seconds, ``None``: not told); ``discard(path)`` deletes an uploaded file, gone already or not.  Both are
    called on a database thread, maybe twice, and must not raise.
    """

    def work(tx: Tx) -> tuple[Swept, tuple[Event, ...]]:
        released = _release(tx, identity, alive)
        expired = _expire(tx, route_ttl)
        return Swept(len(released), len(expired)), (*released, *expired)

    def prune(tx: Tx) -> int:
        return _prune(tx, bodies_days, route_ttl, discard)

    swept, events = await database.run(work)
    bell.ring(*events)
    pruned = await database.run(prune)
    return Swept(swept.released, swept.expired, pruned)


def _release(tx: Tx, identity: Identity, alive: Callable[[int, float | None], bool]) -> list[Event]:
    """End claims whose lease is over, and those of this machine whose process has died."""
    events = []
    for claimed in envelopes.claimed(tx, LIMIT):
        lease = claimed.envelope.lease_until
        dead = lease is None or lease <= tx.now
        if not dead and claimed.machine == identity.machine_id and claimed.pid is not None:
            dead = not alive(claimed.pid, claimed.started_at)
        if dead:
            envelope = envelopes.end_lease(tx, claimed.envelope)
            events.append(Event(EventKind.DELIVERY, envelope.id, envelope.session_id))
    return events


def _expire(tx: Tx, route_ttl: timedelta) -> list[Event]:
    """End open questions past their expiry, and reservations that nobody used as long as a route lives."""
    unused = (questions.find(tx, each) for each in upkeep.reservations(tx, tx.now - route_ttl))
    over = [*questions.expired(tx, LIMIT), *(each for each in unused if each is not None)]
    return [event for question in over for event in end(tx, question, QuestionEvent.EXPIRE)[1]]


def _prune(tx: Tx, bodies_days: int, route_ttl: timedelta, discard: Callable[[str], None]) -> int:
    bodies = tx.now - timedelta(days=bodies_days)
    memory = tx.now - max(MEMORY, 2 * route_ttl, timedelta(days=bodies_days))
    pruned = fates.prune(tx)
    pruned += envelopes.prune_bodies(tx, bodies)
    pruned += upkeep.prune_sent_bytes(tx, bodies)
    pruned += upkeep.prune_threads(tx, memory)
    pruned += sources.prune(tx, memory)
    pruned += held.prune(tx, memory)
    pruned += upkeep.prune_envelopes(tx, memory)
    pruned += reminders.prune(tx)
    pruned += upkeep.prune_questions(tx, memory)
    pruned += held_mails.forget_touched(tx)
    pruned += upkeep.prune_outbox(tx, memory)
    pruned += told.prune(tx, tx.now - ONCE_IN)
    pruned += people.prune(tx, tx.now - IDLE)
    pruned += settles.prune_withheld(tx, tx.now - WITHHELD_FOR)
    pruned += sessions.forget_offline(tx, tx.now - OFFLINE_LIFE)
    for upload in uploads.older_than(tx, tx.now - UPLOAD_LIFE, LIMIT):
        discard(upload.path)
        uploads.remove(tx, upload.id)
        pruned += 1
    return pruned
