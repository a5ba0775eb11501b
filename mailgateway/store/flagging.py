r"""Mails whose ``\Seen`` is still to be set: asked for by an ack, done by the watcher when it can."""

from collections.abc import Iterable

from sqlalchemy import delete, select, update

from mailgateway.domain.envelope import Source
from mailgateway.ids import AccountName
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_ignore
from mailgateway.store.places import columns_of, is_at, is_numbered
from mailgateway.store.tables import flagging as table

ATTEMPTS = 20
r"""After so many refusals the wish is dropped: ``\Seen`` is a courtesy, the journal is the truth."""


def ask(tx: Tx, place: Source) -> None:
    r"""Ask for ``\Seen`` on one mail; asking twice is asking once."""
    insert_or_ignore(
        tx,
        table,
        {
            **columns_of(place),
            "asked_at": tx.now,
        },
    )


def due(tx: Tx, account: AccountName, folder: str, uid_validity: int, limit: int) -> tuple[int, ...]:
    """UIDs that wait, least tried and longest waiting first."""
    return tuple(
        tx.execute(
            select(table.c.uid)
            .where(is_numbered(table, account, folder, uid_validity))
            .order_by(table.c.attempts, table.c.asked_at, table.c.uid)
            .limit(limit)
        ).scalars()
    )


def done(tx: Tx, account: AccountName, folder: str, uid_validity: int, uids: Iterable[int]) -> None:
    """Forget what was done."""
    tx.execute(
        delete(table).where(is_numbered(table, account, folder, uid_validity), table.c.uid.in_(list(uids)))
    )


def failed(tx: Tx, account: AccountName, folder: str, uid_validity: int, uids: Iterable[int]) -> None:
    """Count one more failure for each; what failed too often is given up."""
    mine = is_numbered(table, account, folder, uid_validity)
    tx.execute(update(table).where(mine, table.c.uid.in_(list(uids))).values(attempts=table.c.attempts + 1))
    tx.execute(delete(table).where(mine, table.c.attempts >= ATTEMPTS))


def rebind(tx: Tx, old: Source, new: Source) -> None:
    """A mail lies at another place now; a wish for it goes along."""
    if tx.execute(delete(table).where(is_at(table, old))).rowcount:
        ask(tx, new)
