"""Where a reply went: the fates of mail that concerns us, for a person who asks."""

from datetime import datetime

from mailgateway.store import fates as rows
from mailgateway.store.database import Database, Tx
from mailgateway.store.fates import KEPT, Fate

__all__ = ["Fate", "fates"]


async def fates(database: Database, *, since: datetime | None, limit: int) -> tuple[Fate, ...]:
    """The newest fates, newest first, of those decided at ``since`` or later; 1,000 at most."""

    def work(tx: Tx) -> tuple[Fate, ...]:
        return rows.since(tx, since, max(0, min(limit, KEPT)))

    return await database.read(work)
