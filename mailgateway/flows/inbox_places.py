"""What the pages of people show beside questions: sessions, mails on both ways, accounts, the mode."""

from collections.abc import Callable, Sequence
from datetime import datetime

from attrs import frozen

from mailgateway.domain.envelope import Envelope
from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import ModeSetting
from mailgateway.domain.outbox import OutboxRow
from mailgateway.flows.counts import Counts, count
from mailgateway.flows.inbox import Askers, From
from mailgateway.ids import SessionId
from mailgateway.store import envelopes, fates, health, modes, outbox, sessions
from mailgateway.store.database import Database, Tx
from mailgateway.store.fates import Fate
from mailgateway.store.health import AccountHealth

SESSIONS = 100
"""Sessions on the page, those heard of last."""

LINES = 30
"""Lines of each list on the page of mails, the newest."""


@frozen
class Sessions:
    """The sessions that were heard of last."""

    sessions: tuple[From, ...]
    now: datetime


@frozen
class Mails:
    """Mails on their way in and out; each list is bounded, and the counts are whole."""

    waiting: Sequence[tuple[Envelope, From]]
    """What sessions have yet to take; empty while the mode is off."""
    fates: Sequence[Fate]
    sent: Sequence[OutboxRow]
    counts: Counts
    now: datetime


@frozen
class Service:
    """How the gateway is: its mode, its accounts, what waits."""

    mode: ModeSetting
    accounts: tuple[AccountHealth, ...]
    counts: Counts
    now: datetime


async def all_sessions(database: Database, waits: Callable[[SessionId], bool]) -> Sessions:
    """The sessions that were heard of last."""

    def work(tx: Tx) -> Sessions:
        askers = Askers(tx, waits)
        found = sessions.heard_last(tx, SESSIONS)
        return Sessions(tuple(askers.of_session(each, machine) for each, machine in found), tx.now)

    return await database.read(work)


async def mails(database: Database, identity: Identity, waits: Callable[[SessionId], bool]) -> Mails:
    """Mails on both ways."""

    def work(tx: Tx) -> Mails:
        askers = Askers(tx, waits)
        machine = identity.machine_id
        waiting = envelopes.waiting(tx, machine, None, None, LINES)
        return Mails(
            waiting=[(each, askers.of_session(each.session_id, machine)) for each in waiting],
            fates=fates.since(tx, None, LINES),
            sent=[mail for _, mail in outbox.page(tx, machine, (), (), None, LINES)],
            counts=count(tx, machine),
            now=tx.now,
        )

    return await database.read(work)


async def service(database: Database, identity: Identity) -> Service:
    """How the gateway is."""

    def work(tx: Tx) -> Service:
        return Service(
            mode=modes.setting(tx, identity.machine_id),
            accounts=health.load_all(tx),
            counts=count(tx, identity.machine_id),
            now=tx.now,
        )

    return await database.read(work)
