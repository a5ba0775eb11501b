"""Leases: one gateway at a time works for a folder or an account, also when several share a database."""

from datetime import timedelta

from mailgateway.ids import MachineId
from mailgateway.store import leases
from mailgateway.store.database import Database, Tx
from mailgateway.store.leases import Lease

__all__ = ["Lease", "acquire", "release", "renew"]

SECONDS = 20
"""Life of a lease; its holder renews it every 7 s."""


async def acquire(
    database: Database, resource: str, holder: MachineId, *, seconds: float = SECONDS
) -> Lease | None:
    """Take the lease of a resource; ``None`` while another machine holds it.

    A machine that was restarted takes its own lease back at once, under a new fence.
    """
    life = timedelta(seconds=seconds)

    def work(tx: Tx) -> Lease | None:
        return leases.take(tx, resource, holder, life)

    return await database.run(work)


async def renew(database: Database, lease: Lease, *, seconds: float = SECONDS) -> Lease | None:
    """Keep a lease; ``None`` when it was lost to another machine."""
    life = timedelta(seconds=seconds)

    def work(tx: Tx) -> Lease | None:
        return leases.extend(tx, lease, life)

    return await database.run(work)


async def release(database: Database, lease: Lease) -> None:
    """Let another machine take it at once."""

    def work(tx: Tx) -> None:
        leases.give_back(tx, lease)

    await database.run(work)
