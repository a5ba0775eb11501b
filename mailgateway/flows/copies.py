"""Copies in the Sent folder of what was sent: which are due, and how putting them there went.

A copy is a convenience: that it cannot be made is no failure of the mail, which is not sent again for it.
"""

from datetime import datetime, timedelta

from attrs import field, frozen

from mailgateway.domain.identity import Identity
from mailgateway.ids import AccountName, MessageId, OutboxId
from mailgateway.store import copies, outbox
from mailgateway.store.database import Database, Tx

RETRIES = tuple(timedelta(minutes=minutes) for minutes in (2, 10, 60, 240))
"""How long to wait after each try that failed for now; after the last one no copy is made."""


@frozen
class DueCopy:
    """A mail that was sent, to be put into the Sent folder unless it is there."""

    outbox_id: OutboxId
    message_id: MessageId
    raw: bytes = field(repr=False)
    tries: int


async def due(database: Database, identity: Identity, account: AccountName) -> DueCopy | None:
    """The copy that is due first; ``None`` when none is."""

    def work(tx: Tx) -> DueCopy | None:
        found = copies.due(tx, identity.machine_id, account)
        row = None if found is None else outbox.find(tx, found[0])
        if found is None or row is None:
            return None
        return DueCopy(row.id, row.message_id, outbox.bytes_of(tx, row.id).raw, found[1])

    return await database.read(work)


async def next_due(database: Database, identity: Identity, account: AccountName) -> datetime | None:
    """When the next copy is due; ``None``: none is to be made."""
    return await database.read(lambda tx: copies.next_due(tx, identity.machine_id, account))


async def done(database: Database, outbox_id: OutboxId) -> None:
    """There is a copy, or none will be made."""
    await database.run(lambda tx: copies.remove(tx, outbox_id))


async def put_off(database: Database, copy: DueCopy) -> bool:
    """It could not be made now; whether it is tried again."""

    def work(tx: Tx) -> bool:
        if copy.tries >= len(RETRIES):
            copies.remove(tx, copy.outbox_id)
            return False
        copies.put_off(tx, copy.outbox_id, RETRIES[copy.tries])
        return True

    return await database.run(work)
