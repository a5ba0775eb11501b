"""How far each folder has been read: everything up to ``uid`` is persisted or was refused on purpose."""

from attrs import frozen
from sqlalchemy import bindparam, select

from mailgateway.ids import AccountName
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_update
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import cursor as table


@frozen
class Cursor:
    """A place in one numbering of one folder; ``uid_validity`` 0: the server does not tell it."""

    uid_validity: int
    uid: int


_FIND = Prepared(
    select(table.c.uid_validity, table.c.uid).where(
        table.c.account == bindparam("account_"), table.c.folder == bindparam("folder_")
    )
)


def find(tx: Tx, account: AccountName, folder: str) -> Cursor | None:
    """The cursor of a folder; ``None`` when it was never looked at."""
    row = tx.execute(_FIND, {"account_": account, "folder_": folder}).one_or_none()
    return None if row is None else Cursor(row.uid_validity, row.uid)


def of_account(tx: Tx, account: str | None) -> dict[tuple[str, str], Cursor]:
    """The cursors of an account (``None``: of all), by account and folder."""
    statement = select(table)
    if account is not None:
        statement = statement.where(table.c.account == account)
    return {(row.account, row.folder): Cursor(row.uid_validity, row.uid) for row in tx.execute(statement)}


def move(tx: Tx, account: AccountName, folder: str, cursor: Cursor) -> None:
    """Put the cursor of a folder to a place."""
    insert_or_update(
        tx,
        table,
        ("account", "folder"),
        {
            "account": account,
            "folder": folder,
            "uid_validity": cursor.uid_validity,
            "uid": cursor.uid,
            "moved_at": tx.now,
        },
    )
