"""Machines: the gateways that share this database, and every name they ever had."""

from sqlalchemy import bindparam, select

from mailgateway.ids import MachineId, device_digest
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_ignore, insert_or_update
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import machine, machine_name

_NAME = Prepared(select(machine.c.name).where(machine.c.id == bindparam("id_")))


def introduce(tx: Tx, machine_id: MachineId, name: str) -> None:
    """Write the machine and the name it has today; former names stay, since tokens name them."""
    insert_or_update(tx, machine, ["id"], {"id": machine_id, "name": name, "seen_at": tx.now})
    insert_or_ignore(
        tx,
        machine_name,
        {
            "machine_id": machine_id,
            "name": name,
            "digest": device_digest(name).hex(),
            "first_used_at": tx.now,
        },
    )


def name(tx: Tx, machine_id: MachineId) -> str:
    """The name that people see today; ``""`` for a machine that is not known here."""
    found: str | None = tx.execute(_NAME, {"id_": machine_id}).scalar()
    return found or ""


def digests(tx: Tx, machine_id: MachineId) -> set[str]:
    """Hex digests (``ids.device_digest``) of all names that the machine ever had."""
    return set(
        tx.execute(select(machine_name.c.digest).where(machine_name.c.machine_id == machine_id)).scalars()
    )
