"""The one kind of INSERT that the two databases spell differently: insert, unless the key is taken.

Both spellings stand side by side here, so that no other module needs to know which database it speaks to.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import sqlite

from mailgateway.store.database import Tx
from mailgateway.store.prepared import Prepared


def insert_or_ignore(tx: Tx, table: Table, values: Mapping[str, Any]) -> bool:
    """Insert one row unless a unique key of it is taken; whether it was inserted."""
    return tx.execute(_or_ignore(table, tx.dialect), values).rowcount == 1


@lru_cache(maxsize=64)
def _or_ignore(table: Table, dialect: str) -> Prepared:
    """The statement, built once."""
    match dialect:
        case "sqlite":
            return Prepared(sqlite.insert(table).on_conflict_do_nothing())
        case _:
            from sqlalchemy.dialects import postgresql  # noqa: PLC0415 (2 MB, for those who use it)

            return Prepared(postgresql.insert(table).on_conflict_do_nothing())


def insert_or_update(tx: Tx, table: Table, keys: Sequence[str], values: Mapping[str, Any]) -> None:
    """Insert one row; when its primary key (``keys``) is taken, write the other ``values`` into that row."""
    rest = tuple(name for name in values if name not in keys)
    tx.execute(_or_update(table, tuple(keys), rest, tx.dialect), values)


@lru_cache(maxsize=64)
def _or_update(table: Table, keys: tuple[str, ...], rest: tuple[str, ...], dialect: str) -> Prepared:
    """The statement, built once."""
    match dialect:
        case "sqlite":
            lite = sqlite.insert(table)
            return Prepared(
                lite.on_conflict_do_update(
                    index_elements=keys, set_={name: lite.excluded[name] for name in rest}
                )
            )
        case _:
            from sqlalchemy.dialects import postgresql  # noqa: PLC0415 (as above)

            big = postgresql.insert(table)
            return Prepared(
                big.on_conflict_do_update(
                    index_elements=keys, set_={name: big.excluded[name] for name in rest}
                )
            )
