"""How the connection to each account goes, kept so that a restart neither forgets a refusal nor hammers."""

from datetime import datetime
from typing import Any

from attrs import asdict, frozen
from sqlalchemy import Row, select

from mailgateway.domain.account import AccountState
from mailgateway.ids import AccountName
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_update
from mailgateway.store.tables import account_health as table


@frozen
class AccountHealth:
    """The state of one account.  ``next_attempt_at`` is ``None`` when nothing is waited for, or the operator.

    ``credential_digest`` is a keyed digest, by which a changed credential is told; ``refusals`` counts how
    often this credential was refused, ``proven`` says whether it has ever logged in, ``doubts`` how often it
    was refused without a reason since.
    """

    account: AccountName
    state: AccountState
    since: datetime
    failure: str = ""
    failures: int = 0
    next_attempt_at: datetime | None = None
    refusals: int = 0
    credential_digest: str = ""
    last_error: str = ""
    proven: bool = False
    doubts: int = 0


def load(tx: Tx, account: AccountName) -> AccountHealth | None:
    """What is known of one account, or ``None``."""
    row = tx.execute(select(table).where(table.c.account == account)).one_or_none()
    return None if row is None else _health(row)


def load_all(tx: Tx) -> tuple[AccountHealth, ...]:
    """What is known of every account, by name."""
    return tuple(_health(row) for row in tx.execute(select(table).order_by(table.c.account)))


def save(tx: Tx, health: AccountHealth) -> None:
    """Write what is known of one account."""
    insert_or_update(tx, table, ("account",), asdict(health))


def _health(row: Row[Any]) -> AccountHealth:
    columns = dict(row._mapping)  # noqa: SLF001 (SQLAlchemy's public name for a row as a mapping)
    return AccountHealth(**columns | {"state": AccountState(columns["state"])})
