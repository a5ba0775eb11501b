"""Leases: one gateway at a time watches a folder, also when several share a database."""

from datetime import timedelta

from mailgateway.errors import StaleWrite
from mailgateway.ids import AccountName, MachineId
from mailgateway.store import leases
from mailgateway.store.database import Database, Tx
from mailgateway.store.leases import Lease

__all__ = ["Lease", "acquire", "check_folder", "folder_resource", "release", "renew"]

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


def folder_resource(account: AccountName, folder: str) -> str:
    """The name under which the watching of a folder is leased."""
    return f"folder:{account}/{folder}"


def check_folder(tx: Tx, account: AccountName, folder: str, fence: int | None) -> None:
    """Raise ``StaleWrite`` when another machine, or another run of this one, watches the folder by now.

    Whoever slept through the end of its lease (a suspended machine, a stopped process) believes what it knew
    of the folder before; nothing of that may be written.  ``fence`` ``None``: the folder is not leased.
    """
    resource = folder_resource(account, folder)
    if fence is not None and leases.fence(tx, resource) != fence:
        raise StaleWrite(f"the lease of {resource} was taken by another gateway")
