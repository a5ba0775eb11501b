"""The numbers that ``/health`` shows: how much waits, how many are there."""

from datetime import datetime

from attrs import frozen

from mailgateway.domain.identity import Identity
from mailgateway.flows.settle import WITHHELD_FOR
from mailgateway.ids import MachineId
from mailgateway.store import envelopes, held_mails, outbox, questions, sessions, settles, told
from mailgateway.store.database import Database, Tx


@frozen
class Counts:
    """Of this machine: open envelopes, outstanding decisions, live sessions, mails that wait to be sent.

    ``held_elsewhere`` are open envelopes for sessions of other machines; ``muted`` the threads and people to
    whom the gateway says nothing by itself for now, since it has said so much.  ``held`` are mails that wait
    for the end of quiet hours or of a bundle, the first until ``held_until``; ``withheld`` settled turns of
    the last day that are not mailed, since their summary holds a secret.
    """

    pending: int = 0
    registry: int = 0
    clients: int = 0
    last_ping_at: datetime | None = None
    held_elsewhere: int = 0
    outbox_waiting: int = 0
    muted: int = 0
    held: int = 0
    held_until: datetime | None = None
    withheld: int = 0


async def counts(database: Database, identity: Identity) -> Counts:
    """Count; whatever the mode is."""
    return await database.read(lambda tx: count(tx, identity.machine_id))


def count(tx: Tx, machine: MachineId) -> Counts:
    """The same inside the caller's transaction."""
    held, held_until = held_mails.count(tx, machine)
    return Counts(
        pending=envelopes.count_waiting(tx, machine, None),
        registry=questions.count_blocking(tx, machine),
        clients=sessions.live(tx, machine),
        last_ping_at=sessions.last_ping(tx, machine),
        held_elsewhere=envelopes.count_elsewhere(tx, machine),
        outbox_waiting=outbox.waiting(tx, machine),
        muted=told.count_muted(tx),
        held=held,
        held_until=held_until,
        withheld=settles.count_withheld(tx, machine, tx.now - WITHHELD_FOR),
    )
