"""Leases: which machine works for a folder now, and under which fence.

The row is never deleted, so that the fence of a resource only grows: whoever was overtaken carries a smaller
one and is refused.  A lease that ran out and was not taken by anybody is still its holder's.
"""

from datetime import datetime, timedelta

from attrs import frozen
from sqlalchemy import bindparam, select, update

from mailgateway.ids import MachineId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_ignore
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import lease as table

_FENCE = Prepared(select(table.c.fence).where(table.c.resource == bindparam("resource")))


@frozen
class Lease:
    """The right of one machine to work for one resource, until ``until`` unless it is renewed."""

    resource: str
    holder: MachineId
    fence: int
    until: datetime


def take(tx: Tx, resource: str, holder: MachineId, life: timedelta) -> Lease | None:
    """Take a lease that is free, has run out, or is the holder's own; ``None`` while another holds it.

    A machine that holds its own lease takes it anew with a new fence: it was restarted, and what its former
    process may still be writing must be refused.
    """
    until = tx.now + life
    if insert_or_ignore(tx, table, {"resource": resource, "holder": holder, "fence": 1, "until": until}):
        return Lease(resource, holder, 1, until)
    row = tx.execute(select(table).where(table.c.resource == resource)).one()
    if row.holder != holder and row.until > tx.now:
        return None
    moved = tx.execute(
        update(table)
        .where(table.c.resource == resource, table.c.fence == row.fence)
        .values(holder=holder, fence=row.fence + 1, until=until)
    )
    return Lease(resource, holder, row.fence + 1, until) if moved.rowcount == 1 else None


def extend(tx: Tx, lease: Lease, life: timedelta) -> Lease | None:
    """Renew a lease; ``None`` when somebody else has taken it."""
    until = tx.now + life
    moved = tx.execute(
        update(table)
        .where(
            table.c.resource == lease.resource,
            table.c.holder == lease.holder,
            table.c.fence == lease.fence,
        )
        .values(until=until)
    )
    return Lease(lease.resource, lease.holder, lease.fence, until) if moved.rowcount == 1 else None


def give_back(tx: Tx, lease: Lease) -> None:
    """Let a lease run out now; nothing happens when it was lost already."""
    tx.execute(
        update(table)
        .where(
            table.c.resource == lease.resource,
            table.c.holder == lease.holder,
            table.c.fence == lease.fence,
        )
        .values(until=tx.now)
    )


def fence(tx: Tx, resource: str) -> int | None:
    """The fence in force, or ``None`` when the resource was never leased."""
    found: int | None = tx.execute(_FENCE, {"resource": resource}).scalar()
    return found
