"""Numbers right below a cursor under which no mail was there: one may become visible later."""

from collections.abc import Mapping

from sqlalchemy import bindparam, delete, select

from mailgateway.ids import AccountName
from mailgateway.store.database import Tx
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import gap as table

_OF_FOLDER = Prepared(
    select(table.c.uid, table.c.looks).where(
        table.c.account == bindparam("account_"),
        table.c.folder == bindparam("folder_"),
        table.c.uid_validity == bindparam("validity"),
    )
)


def of_folder(tx: Tx, account: AccountName, folder: str, uid_validity: int) -> dict[int, int]:
    """The UIDs of one numbering, and how often each was looked for since."""
    rows = tx.execute(_OF_FOLDER, {"account_": account, "folder_": folder, "validity": uid_validity})
    return {row.uid: row.looks for row in rows}


def replace(tx: Tx, account: AccountName, folder: str, uid_validity: int, looks: Mapping[int, int]) -> None:
    """Write all of a folder's; those of another numbering mean nothing any more."""
    tx.execute(delete(table).where(table.c.account == account, table.c.folder == folder))
    if looks:
        place = {"account": account, "folder": folder, "uid_validity": uid_validity}
        tx.execute(table.insert(), [{**place, "uid": uid, "looks": count} for uid, count in looks.items()])
