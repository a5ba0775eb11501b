"""Mail that is held: the evidence that a person wrote it may come yet.

One row for each, under its place; its bytes stay on the server and are fetched again.  The row is written in
the transaction that moves the cursor past the mail, and goes in the one that says what became of it.
"""

from collections.abc import Iterable
from datetime import datetime

from attrs import frozen
from sqlalchemy import delete, func, select

from mailgateway.domain.envelope import Source
from mailgateway.ids import AccountName
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_update
from mailgateway.store.places import columns_of, is_at, place_of
from mailgateway.store.tables import held as table

_KEY = ("account", "folder", "uid_validity", "uid")


@frozen
class Held:
    """One mail that waits: until when at most, and when it is tried next."""

    place: Source
    raw_sha256: str
    received_at: datetime
    awaits: str
    """What it waits for (``mail.evidence.Awaited``)."""
    until: datetime
    next_at: datetime
    tries: int = 0
    fate_id: int | None = None


def keep(tx: Tx, held: Held) -> None:
    """Write a row, or write it anew."""
    insert_or_update(
        tx,
        table,
        _KEY,
        {
            **columns_of(held.place),
            "raw_sha256": held.raw_sha256,
            "received_at": held.received_at,
            "awaits": held.awaits,
            "until": held.until,
            "next_at": held.next_at,
            "tries": held.tries,
            "fate_id": held.fate_id,
        },
    )


def of_folder(tx: Tx, account: AccountName, folder: str) -> tuple[Held, ...]:
    """All of a folder, in whatever numbering, the one that is due first in front."""
    rows = tx.execute(
        select(table).where(table.c.account == account, table.c.folder == folder).order_by(table.c.next_at)
    )
    return tuple(
        Held(
            place_of(row),
            row.raw_sha256,
            row.received_at,
            row.awaits,
            row.until,
            row.next_at,
            row.tries,
            row.fate_id,
        )
        for row in rows
    )


def drop(tx: Tx, places: Iterable[Source]) -> None:
    """Forget these."""
    for place in places:
        tx.execute(delete(table).where(is_at(table, place)))


def prune(tx: Tx, before: datetime) -> int:
    """Forget what was to be judged before a time and never was: its account is not watched any more."""
    return tx.execute(delete(table).where(table.c.until < before)).rowcount


def count(tx: Tx) -> int:
    """How many wait."""
    found: int = tx.execute(select(func.count()).select_from(table)).scalar_one()
    return found
