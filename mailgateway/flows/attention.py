"""Everything that a person is written because time has gone by, in one look.

Settled turns first, then what was held back, then decisions that nobody has answered: each is done in
transactions of its own, and what fails in one does not keep the ones before it from being done.
"""

from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.flows import digest, reminders, settle
from mailgateway.flows.bell import Bell
from mailgateway.flows.letters import Mint, Sender
from mailgateway.store import held_mails, modes, settles
from mailgateway.store.database import Database, Tx

LOOK_SECONDS = 60.0
"""How long after a look the next one is, when nothing is known to be due before."""

SOONEST_SECONDS = 0.05


async def attend(database: Database, bell: Bell, identity: Identity, sender: Sender, *, mint: Mint) -> float:
    """Queue all mails that are due; in how many seconds to look again."""
    await settle.due(database, bell, identity, sender, mint=mint)
    await digest.release(database, bell, identity, sender, mint=mint)
    await reminders.due(database, bell, identity, sender, mint=mint)
    return await database.read(lambda tx: _wait(tx, identity))


def _wait(tx: Tx, identity: Identity) -> float:
    """By the database's clock, which the rows go by; while the mode is off nothing that is held leaves."""
    off = modes.current(tx, identity.machine_id) is Mode.OFF
    held = None if off else held_mails.count(tx, identity.machine_id)[1]
    times = (settles.next_due(tx, identity.machine_id), held)
    seconds = (max(SOONEST_SECONDS, (at - tx.now).total_seconds()) for at in times if at is not None)
    return min(LOOK_SECONDS, *seconds, LOOK_SECONDS)
