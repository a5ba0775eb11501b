"""Login links, the browsers in which people are logged in, and what people call sessions."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, func, select, update

from mailgateway.domain.people import LINK_LIFE, MOST_LINKS, MOST_LOGINS, Login
from mailgateway.ids import SessionId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_update
from mailgateway.store.tables import alias, login, login_link


def add_link(tx: Tx, digest: str, person: str) -> datetime:
    """Keep a login link; until when it may be used."""
    tx.execute(delete(login_link).where(login_link.c.expires_at <= tx.now))
    kept = select(login_link.c.digest).order_by(login_link.c.created_at.desc()).limit(MOST_LINKS - 1)
    tx.execute(delete(login_link).where(login_link.c.digest.not_in(list(tx.execute(kept).scalars()))))
    expires_at = tx.now + LINK_LIFE
    tx.execute(
        login_link.insert(),
        {"digest": digest, "person": person, "created_at": tx.now, "expires_at": expires_at},
    )
    return expires_at


def use_link(tx: Tx, digest: str) -> str | None:
    """Use a link up; whose it is, ``None`` when it is unknown, expired, or used already."""
    mine = (login_link.c.digest == digest, login_link.c.expires_at > tx.now)
    person: str | None = tx.execute(select(login_link.c.person).where(*mine)).scalar()
    used = tx.execute(delete(login_link).where(*mine)).rowcount
    return person if used else None


def add_login(tx: Tx, made: Login, digest: str) -> None:
    """Log a browser in; it may cost the one that was used longest ago its place."""
    kept = select(login.c.id).order_by(login.c.seen_at.desc(), login.c.id).limit(MOST_LOGINS - 1)
    tx.execute(delete(login).where(login.c.id.not_in(list(tx.execute(kept).scalars()))))
    tx.execute(
        login.insert(),
        {
            "id": made.id,
            "digest": digest,
            "person": made.person,
            "name": made.name,
            "created_at": made.created_at,
            "seen_at": made.seen_at,
        },
    )


def by_digest(tx: Tx, digest: str, since: datetime) -> Login | None:
    """The login of a cookie, when it was used at ``since`` or later."""
    row = tx.execute(select(login).where(login.c.digest == digest, login.c.seen_at >= since)).one_or_none()
    return None if row is None else _login(row)


def touch(tx: Tx, login_id: str) -> None:
    """Note that the browser is used now."""
    tx.execute(update(login).where(login.c.id == login_id).values(seen_at=tx.now))


def logins(tx: Tx, since: datetime) -> tuple[Login, ...]:
    """Every login that was used at ``since`` or later, the last used first."""
    rows = tx.execute(
        select(login).where(login.c.seen_at >= since).order_by(login.c.seen_at.desc()).limit(MOST_LOGINS)
    )
    return tuple(map(_login, rows))


def log_out(tx: Tx, login_id: str) -> bool:
    """End a login; whether there was one."""
    return bool(tx.execute(delete(login).where(login.c.id == login_id)).rowcount)


def log_out_by_digest(tx: Tx, digest: str) -> str | None:
    """End the login of a cookie; which one it was."""
    found: str | None = tx.execute(select(login.c.id).where(login.c.digest == digest)).scalar()
    tx.execute(delete(login).where(login.c.digest == digest))
    return found


def prune(tx: Tx, before: datetime) -> int:
    """Forget logins that were last used before a time, and links that cannot be used; how many."""
    pruned: int = tx.execute(delete(login).where(login.c.seen_at < before)).rowcount
    return pruned + tx.execute(delete(login_link).where(login_link.c.expires_at <= tx.now)).rowcount


def count_links(tx: Tx, since: datetime) -> int:
    """How many links were made since a time and not used yet."""
    count: int = tx.execute(
        select(func.count()).select_from(login_link).where(login_link.c.created_at >= since)
    ).scalar_one()
    return count


def aliases(tx: Tx, sessions: Collection[SessionId]) -> Mapping[SessionId, str]:
    """What people call these sessions, where they have said so."""
    rows = tx.execute(select(alias.c.session_id, alias.c.name).where(alias.c.session_id.in_(sessions)))
    return {row.session_id: row.name for row in rows}


def call(tx: Tx, session: SessionId, name: str) -> None:
    """Call a session by a name; ``""``: by its own title again."""
    if name:
        insert_or_update(tx, alias, ["session_id"], {"session_id": session, "name": name, "at": tx.now})
    else:
        tx.execute(delete(alias).where(alias.c.session_id == session))


def _login(row: Row[Any]) -> Login:
    return Login(row.id, row.person, row.name, row.created_at, row.seen_at)
