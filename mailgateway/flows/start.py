"""The first transaction of a process: who we are, and what a crash left half done."""

from mailgateway.flows import outbox
from mailgateway.ids import MachineId
from mailgateway.store import machines, modes
from mailgateway.store.database import Database, Tx


async def introduce(database: Database, machine_id: MachineId, name: str) -> None:
    """Write the machine, the name it has today, and ``on`` as its mode at the very first start.

    The caller holds the lock of the state directory, so nothing of this machine is being sent: a mail that
    is still marked as being sent was interrupted, and its fate is unclear.
    """

    def work(tx: Tx) -> None:
        machines.introduce(tx, machine_id, name)
        modes.start(tx, machine_id)
        outbox.lose_sight(tx, machine_id, lease_ended_only=False)

    await database.run(work)
