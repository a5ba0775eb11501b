"""The numbers that ``/health`` shows: how much waits, how many are there."""

from datetime import datetime

from attrs import frozen

from mailgateway.domain.identity import Identity
from mailgateway.store import envelopes, outbox, questions, sessions
from mailgateway.store.database import Database, Tx


@frozen
class Counts:
    """Of this machine: open envelopes, outstanding decisions, live sessions, mails that wait to be sent.

    ``held_elsewhere`` are open envelopes for sessions of other machines.
    """

    pending: int
    registry: int
    clients: int
    last_ping_at: datetime | None
    held_elsewhere: int
    outbox_waiting: int


async def counts(database: Database, identity: Identity) -> Counts:
    """Count; whatever the mode is."""
    machine = identity.machine_id

    def work(tx: Tx) -> Counts:
        return Counts(
            pending=envelopes.count_waiting(tx, machine, None),
            registry=questions.count_blocking(tx, machine),
            clients=sessions.live(tx, machine),
            last_ping_at=sessions.last_ping(tx, machine),
            held_elsewhere=envelopes.count_elsewhere(tx, machine),
            outbox_waiting=outbox.waiting(tx, machine),
        )

    return await database.read(work)
