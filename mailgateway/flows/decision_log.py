"""Reading the log of decisions; it is written where decisions are."""

from mailgateway.domain.decision_log import LogEntry
from mailgateway.ids import MachineId
from mailgateway.store import decision_log
from mailgateway.store.database import Database, Tx


async def page(
    database: Database, machine: MachineId, after: int, limit: int
) -> tuple[tuple[tuple[MachineId, int], ...], tuple[LogEntry, ...]]:
    """Every machine that has a log, with its last number; and the entries of one of them after a number."""

    def work(tx: Tx) -> tuple[tuple[tuple[MachineId, int], ...], tuple[LogEntry, ...]]:
        return decision_log.machines(tx), decision_log.page(tx, machine, after, limit)

    return await database.read(work)
