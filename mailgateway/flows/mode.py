"""The mode of this machine: read it, change it, tell everybody."""

from mailgateway.domain import mode as rules
from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import By, Mode
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.ids import MachineId
from mailgateway.store import modes
from mailgateway.store.database import Database, Tx


async def current(database: Database, identity: Identity) -> Mode:
    """The mode of this machine."""
    return await database.read(lambda tx: modes.current(tx, identity.machine_id))


async def change(database: Database, bell: Bell, identity: Identity, mode: Mode, *, by: By) -> Mode:
    """Set the mode; ``Refusal("person_required")`` when a session wants to undo a person's ``off``."""
    if await database.run(lambda tx: switch(tx, identity.machine_id, mode, by=by)):
        bell.ring(*rings(mode))
    return mode


def switch(tx: Tx, machine_id: MachineId, mode: Mode, *, by: By) -> bool:
    """Set the mode of a machine inside the caller's transaction; whether it is another than before.

    Refuses as ``change``.  The caller rings ``rings`` after the commit.
    """
    before = modes.setting(tx, machine_id)
    after = rules.change(before, mode, by)
    if after is None:
        raise Refusal("person_required", "a person switched this machine off; only a person undoes that")
    if after != before:
        modes.write(tx, machine_id, after)
    return after.mode is not before.mode


def rings(mode: Mode) -> tuple[Event, ...]:
    """What to ring after the mode has changed."""
    changed = Event(EventKind.MODE, mode.value)
    if mode is Mode.OFF:
        return (changed,)
    # what was held back may go on
    return changed, Event(EventKind.OUTBOX), Event(EventKind.DELIVERY), Event(EventKind.SETTLE)
