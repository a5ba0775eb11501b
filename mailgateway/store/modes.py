"""The mode of each machine."""

from sqlalchemy import ColumnElement, bindparam, exists, select

from mailgateway.domain.mode import Mode, ModeSetting
from mailgateway.ids import MachineId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_ignore, insert_or_update
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import mode as table

_FIND = Prepared(select(table.c.mode, table.c.set_by).where(table.c.machine_id == bindparam("machine")))


def start(tx: Tx, machine_id: MachineId) -> None:
    """``on`` at the very first start; a restart changes nothing."""
    insert_or_ignore(tx, table, _row(tx, machine_id, ModeSetting(Mode.ON, "session")))


def setting(tx: Tx, machine_id: MachineId) -> ModeSetting:
    """The mode and who set it; ``on`` for a machine that has never said."""
    row = tx.execute(_FIND, {"machine": machine_id}).first()
    return ModeSetting(Mode.ON, "session") if row is None else ModeSetting(Mode(row.mode), row.set_by)


def current(tx: Tx, machine_id: MachineId) -> Mode:
    """The mode alone."""
    return setting(tx, machine_id).mode


def is_on(machine_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether the machine is not off, as a part of a statement."""
    return ~exists().where(table.c.machine_id == machine_id, table.c.mode == Mode.OFF.value)


def write(tx: Tx, machine_id: MachineId, new: ModeSetting) -> None:
    """Put ``new`` in force."""
    insert_or_update(tx, table, ["machine_id"], _row(tx, machine_id, new))


def _row(tx: Tx, machine_id: MachineId, new: ModeSetting) -> dict[str, object]:
    return {"machine_id": machine_id, "mode": new.mode.value, "set_by": new.set_by, "changed_at": tx.now}
