"""Sessions and the instances that run them."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from attrs import frozen
from sqlalchemy import bindparam, delete, func, select, update

from mailgateway.ids import InstanceId, MachineId, SessionId, session_digest
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_ignore, insert_or_update
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import question, runtime, session

CHUNK = 500
"""How many keys one statement names at most."""

LIVE = timedelta(seconds=120)
"""A session that was silent for longer is offline."""


@frozen
class Session:
    """What a session told about itself; ``""`` where it never did."""

    id: SessionId
    machine_id: MachineId
    harness: str
    title: str
    cwd: str
    project: str
    branch: str
    worktree: str
    head: str
    dirty: bool
    state: str
    first_seen_at: datetime
    last_ping_at: datetime
    left_at: datetime | None
    state_at: datetime | None = None
    """Since when it is in its state."""


_OF_INSTANCE = Prepared(select(runtime.c.session_id).where(runtime.c.instance_id == bindparam("instance")))
_MACHINE_OF = Prepared(select(session.c.machine_id).where(session.c.id == bindparam("id_")))


def find(tx: Tx, session_id: SessionId) -> Session | None:
    """One session, or ``None``."""
    row = tx.execute(select(session).where(session.c.id == session_id)).one_or_none()
    if row is None:
        return None
    return Session(
        id=row.id,
        machine_id=row.machine_id,
        harness=row.harness,
        title=row.title,
        cwd=row.cwd,
        project=row.project,
        branch=row.branch,
        worktree=row.worktree,
        head=row.head,
        dirty=bool(row.dirty),
        state=row.state,
        first_seen_at=row.first_seen_at,
        last_ping_at=row.last_ping_at,
        left_at=row.left_at,
        state_at=row.state_at,
    )


def ensure(tx: Tx, session_id: SessionId, machine_id: MachineId) -> bool:
    """Write the session unless it is known; whether it is new."""
    return insert_or_ignore(
        tx,
        session,
        {
            "id": session_id,
            "machine_id": machine_id,
            "digest": session_digest(session_id).hex(),
            "first_seen_at": tx.now,
            "last_ping_at": tx.now,
        },
    )


def touch(tx: Tx, session_id: SessionId, machine_id: MachineId, facts: Mapping[str, Any]) -> None:
    """The session is alive, on this machine; ``facts`` are the columns that it told anew."""
    tx.execute(
        update(session)
        .where(session.c.id == session_id)
        .values(machine_id=machine_id, last_ping_at=tx.now, left_at=None, **facts)
    )


def touch_runtime(tx: Tx, session_id: SessionId, instance: InstanceId) -> None:
    """This instance runs the session."""
    insert_or_update(
        tx,
        runtime,
        ["instance_id", "session_id"],
        {"instance_id": instance, "session_id": session_id, "last_ping_at": tx.now},
    )


def leave(tx: Tx, session_id: SessionId, instance: InstanceId) -> bool:
    """The instance runs the session no more; the session has left when no other live one runs it.

    Whether nobody else carries the session on: no other instance is live, or none has pinged since this one
    did.  A stale instance that says bye late is thus told from the one that took its place.
    """
    mine = (runtime.c.session_id == session_id, runtime.c.instance_id == instance)
    pinged = tx.execute(select(runtime.c.last_ping_at).where(*mine)).scalar()
    tx.execute(delete(runtime).where(*mine))
    latest = tx.execute(
        select(runtime.c.last_ping_at)
        .where(runtime.c.session_id == session_id, runtime.c.last_ping_at > tx.now - LIVE)
        .order_by(runtime.c.last_ping_at.desc())
        .limit(1)
    ).scalar()
    if latest is None:
        tx.execute(update(session).where(session.c.id == session_id).values(left_at=tx.now))
    return latest is None or (pinged is not None and pinged > latest)


def live(tx: Tx, machine_id: MachineId) -> int:
    """How many sessions of the machine pinged lately and did not say bye."""
    count: int = tx.execute(
        select(func.count())
        .select_from(session)
        .where(
            session.c.machine_id == machine_id,
            session.c.left_at.is_(None),
            session.c.last_ping_at > tx.now - LIVE,
        )
    ).scalar_one()
    return count


def titles(tx: Tx, machine_id: MachineId, limit: int) -> tuple[str, ...]:
    """What the machine's live sessions call themselves, or their ids; those heard of last come first."""
    rows = tx.execute(
        select(session.c.title, session.c.id)
        .where(
            session.c.machine_id == machine_id,
            session.c.left_at.is_(None),
            session.c.last_ping_at > tx.now - LIVE,
        )
        .order_by(session.c.last_ping_at.desc())
        .limit(limit)
    )
    return tuple(row.title or row.id for row in rows)


def heard_last(tx: Tx, limit: int) -> tuple[tuple[SessionId, MachineId], ...]:
    """The sessions of all machines that were heard of last, the latest first, each with its machine."""
    rows = tx.execute(
        select(session.c.id, session.c.machine_id).order_by(session.c.last_ping_at.desc()).limit(limit)
    )
    return tuple((row.id, row.machine_id) for row in rows)


def last_ping(tx: Tx, machine_id: MachineId) -> datetime | None:
    """When a session of the machine pinged last."""
    return tx.execute(
        select(session.c.last_ping_at)
        .where(session.c.machine_id == machine_id)
        .order_by(session.c.last_ping_at.desc())
        .limit(1)
    ).scalar()


def by_digest(tx: Tx, digest: str) -> list[SessionId]:
    """The sessions whose ``ids.session_digest`` has this hex form; more than one is a collision."""
    return list(tx.execute(select(session.c.id).where(session.c.digest == digest)).scalars())


def of_instance(tx: Tx, instance: InstanceId) -> set[SessionId]:
    """The sessions that the instance has pinged for."""
    return set(tx.execute(_OF_INSTANCE, {"instance": instance}).scalars())


def pings(tx: Tx, session_id: SessionId) -> bool:
    """Whether an instance has pinged for the session; else only hooks speak for it."""
    mine = select(runtime.c.instance_id).where(runtime.c.session_id == session_id).limit(1)
    return tx.execute(mine).one_or_none() is not None


def machine_of(tx: Tx, session_id: SessionId) -> MachineId | None:
    """The machine that the session was seen on last."""
    found: MachineId | None = tx.execute(_MACHINE_OF, {"id_": session_id}).scalar()
    return found


def forget_surplus(tx: Tx, machine_id: MachineId, keep: int) -> int:
    """Forget the machine's sessions that are silent longest until ``keep`` are left; live ones stay.

    How many.  What waits for a forgotten session stays, and is there when it comes again.
    """
    mine = session.c.machine_id == machine_id
    count: int = tx.execute(select(func.count()).select_from(session).where(mine)).scalar_one()
    if count <= keep:
        return 0
    silent = (
        select(session.c.id)
        .where(mine, session.c.last_ping_at <= tx.now - LIVE)
        .order_by(session.c.last_ping_at)
        .limit(count - keep)
    )
    names = list(tx.execute(silent).scalars())
    for start in range(0, len(names), CHUNK):
        chunk = names[start : start + CHUNK]
        tx.execute(delete(runtime).where(runtime.c.session_id.in_(chunk)))
        tx.execute(delete(session).where(session.c.id.in_(chunk)))
    return len(names)


def forget_offline(tx: Tx, before: datetime) -> int:
    """Forget sessions and runtimes that were silent since ``before``; how many sessions.

    One whose question is open, or has ended unread, is remembered: people see who asks.
    """
    asks = select(question.c.session_id).where(question.c.attention)
    old = (session.c.last_ping_at < before, session.c.id.not_in(asks))
    tx.execute(delete(runtime).where(runtime.c.last_ping_at < before))
    return tx.execute(delete(session).where(*old)).rowcount
