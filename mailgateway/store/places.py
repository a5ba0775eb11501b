"""The places of mails (account, folder, UIDVALIDITY, UID), as columns that several tables share.

Those tables follow together when a server numbers a folder anew.
"""

from typing import Any

from sqlalchemy import ColumnElement, Table, and_, delete, update

from mailgateway.domain.envelope import Source
from mailgateway.ids import AccountName
from mailgateway.store.database import Tx
from mailgateway.store.tables import envelope, flagging, held, source


def columns_of(place: Source) -> dict[str, str | int]:
    """A place as the values of its columns."""
    return {
        "account": place.account,
        "folder": place.folder,
        "uid_validity": place.uid_validity,
        "uid": place.uid,
    }


def place_of(row: Any) -> Source:
    """The place that a row names."""
    return Source(row.account, row.folder, row.uid_validity, row.uid)


def is_at(table: Table, place: Source) -> ColumnElement[bool]:
    """Whether a row is that of the mail at a place."""
    return and_(*(table.c[name] == value for name, value in columns_of(place).items()))


def is_numbered(table: Table, account: AccountName, folder: str, uid_validity: int) -> ColumnElement[bool]:
    """Whether a row belongs to one numbering of a folder."""
    return and_(table.c.account == account, table.c.folder == folder, table.c.uid_validity == uid_validity)


def renumber(tx: Tx, account: AccountName, folder: str, old: int, new: int) -> None:
    """Give every row of one numbering of a folder another UIDVALIDITY, its UID kept."""
    for table in (envelope, source, flagging, held):
        tx.execute(update(table).where(is_numbered(table, account, folder, old)).values(uid_validity=new))


def forget_other(tx: Tx, account: AccountName, folder: str, uid_validity: int) -> None:
    """Forget what waits for mails of a folder's other numberings: their flags, and their evidence."""
    for table in (flagging, held):
        tx.execute(
            delete(table).where(
                table.c.account == account, table.c.folder == folder, table.c.uid_validity != uid_validity
            )
        )
