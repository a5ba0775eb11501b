r"""``\Seen``: what acks have asked for and the watcher has still to set.

An ack never waits for IMAP.  The wish is a row; the watcher takes some, sets the flag, and says which are
done.  A ``uid_validity`` of 0 (the server does not tell) means the numbering of the folder's cursor.
"""

from collections.abc import Iterable

from mailgateway.flows.folders import space
from mailgateway.ids import AccountName
from mailgateway.store import cursors, flagging
from mailgateway.store.database import Database, Tx


async def due(
    database: Database, account: AccountName, folder: str, uid_validity: int, *, limit: int = 50
) -> tuple[int, ...]:
    r"""UIDs whose ``\Seen`` is to be set, the longest waiting first."""

    def work(tx: Tx) -> tuple[int, ...]:
        numbering = space(cursors.find(tx, account, folder), uid_validity)
        return flagging.due(tx, account, folder, numbering, limit)

    return await database.read(work)


async def done(
    database: Database, account: AccountName, folder: str, uid_validity: int, uids: Iterable[int]
) -> None:
    """These are set (or their mails are gone)."""
    ready = tuple(uids)

    def work(tx: Tx) -> None:
        numbering = space(cursors.find(tx, account, folder), uid_validity)
        flagging.done(tx, account, folder, numbering, ready)

    await database.run(work)


async def failed(
    database: Database, account: AccountName, folder: str, uid_validity: int, uids: Iterable[int]
) -> None:
    """The server refused these; they come again after the others, and are given up after many tries."""
    refused = tuple(uids)

    def work(tx: Tx) -> None:
        numbering = space(cursors.find(tx, account, folder), uid_validity)
        flagging.failed(tx, account, folder, numbering, refused)

    await database.run(work)
