"""The mode of this machine: read it, change it, tell everybody."""

from mailgateway.domain import mode as rules
from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import By, Mode
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.store import modes
from mailgateway.store.database import Database, Tx


async def current(database: Database, identity: Identity) -> Mode:
    """The mode of this machine."""
    return await database.read(lambda tx: modes.current(tx, identity.machine_id))


async def change(database: Database, bell: Bell, identity: Identity, mode: Mode, *, by: By) -> Mode:
    """Set the mode; ``Refusal("person_required")`` when a session wants to undo a person's ``off``."""

    def work(tx: Tx) -> bool:
        before = modes.setting(tx, identity.machine_id)
        after = rules.change(before, mode, by)
        if after is None:
            raise Refusal("person_required", "a person switched this machine off; only a person undoes that")
        if after != before:
            modes.write(tx, identity.machine_id, after)
        return after.mode is not before.mode

    if await database.run(work):
        bell.ring(Event(EventKind.MODE, mode.value))
        if mode is Mode.ON:  # what was held back may go on
            bell.ring(Event(EventKind.OUTBOX), Event(EventKind.DELIVERY), Event(EventKind.SETTLE))
    return mode
