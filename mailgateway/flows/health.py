"""How each account's connection goes, over restarts too (what to do about it: ``domain.reconnect``)."""

from mailgateway.ids import AccountName
from mailgateway.store import health as rows
from mailgateway.store.database import Database, Tx
from mailgateway.store.health import AccountHealth

__all__ = ["AccountHealth", "load", "load_all", "save"]


async def load(database: Database, account: AccountName) -> AccountHealth | None:
    """What is known of one account; ``None`` when it was never tried."""

    def work(tx: Tx) -> AccountHealth | None:
        return rows.load(tx, account)

    return await database.read(work)


async def load_all(database: Database) -> tuple[AccountHealth, ...]:
    """What is known of every account, by name."""
    return await database.read(rows.load_all)


async def save(database: Database, health: AccountHealth) -> None:
    """Remember how an account's connection goes."""

    def work(tx: Tx) -> None:
        rows.save(tx, health)

    await database.run(work)
