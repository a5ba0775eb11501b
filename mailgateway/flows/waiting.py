"""Waiting for rows: take a ticket, read, and read again whenever the bell rings, until there is something.

The way from a commit to who waits for it is short: ``commit`` reads for the first of them on the thread that
has just committed, so that nobody else has to be woken for it.  What they get is what the table says then, as
if they had read by themselves; and whoever gets nothing does.

On a shared database other processes write too and their bells are not heard here, so the read is repeated
every two seconds as well.  A wait ends by itself; cancelling it (a client that hung up) gives everything
back at once.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from mailgateway.flows.bell import Bell, Event, Ticket
from mailgateway.store.database import Database, Tx, Work

T = TypeVar("T")

POLL_SECONDS = 2.0
"""How often a shared database is read again without a ring."""

READ_BEHIND = 4
"""For so many waiters a commit reads along; the others read by themselves, or writers would wait for long."""


class Timers(Protocol):
    """The part of a reactor that waiting needs."""

    def seconds(self) -> float:
        """Monotonic seconds."""

    def callLater(self, delay: float, call: Callable[..., Any], /, *args: Any) -> IDelayedCall:  # noqa: N802 (Twisted's name)
        """Call later."""


async def commit(database: Database, bell: Bell, work: Work[tuple[T, Sequence[Event]]]) -> T:
    """Run ``work`` in one transaction, and ring the events that it returns beside its result."""
    tickets = bell.tickets

    def reading(tx: Tx, outcome: tuple[T, Sequence[Event]]) -> dict[Ticket, Any]:
        _, events = outcome
        concerned = [each for each in tickets if each.work and any(map(each.concerns, events))]
        return {each: each.work(tx) for each in concerned[:READ_BEHIND] if each.work}

    (result, events), found = await database.run_then_read(work, reading)
    bell.ring(*events, found=found or {})
    return result


async def wait_until(
    timers: Timers,
    bell: Bell,
    database: Database,
    concerns: Callable[[Event], bool],
    work: Work[T],
    *,
    seconds: float,
    enough: Callable[[T], bool] = bool,
) -> T:
    """Read until ``enough`` holds or ``seconds`` are over; the last thing read.

    ``concerns`` says which events are a reason to read again, from what stands in the event and in values.
    """
    end = timers.seconds() + seconds
    found: T | None = None
    while True:
        ticket = bell.ticket(concerns, work)
        try:
            if found is None:
                found = await database.read(work)
            left = end - timers.seconds()
            if enough(found) or left <= 0:
                return found
            found = await _rung_or_later(
                timers, ticket.rung, min(left, POLL_SECONDS) if database.shared else left
            )
        finally:
            ticket.cancel()


async def _rung_or_later(timers: Timers, rung: Deferred[Any], seconds: float) -> Any:
    """Wait for the ring, at most so long; what came with it."""
    waiting: Deferred[Any] = Deferred()
    rung.addCallback(lambda found: None if waiting.called else waiting.callback(found))
    timer = timers.callLater(seconds, waiting.callback, None)
    try:
        return await waiting
    finally:
        if timer.active():
            timer.cancel()
