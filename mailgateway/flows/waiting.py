"""Waiting for rows: take a ticket, read, and read again whenever the bell rings, until there is something.

On a shared database other processes write too and their bells are not heard here, so the read is repeated
every two seconds as well.  A wait ends by itself; cancelling it (a client that hung up) gives everything
back at once.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from mailgateway.flows.bell import Bell, Event

T = TypeVar("T")

POLL_SECONDS = 2.0
"""How often a shared database is read again without a ring."""


class Timers(Protocol):
    """The part of a reactor that waiting needs."""

    def seconds(self) -> float:
        """Monotonic seconds."""

    def callLater(self, delay: float, call: Callable[..., Any], /, *args: Any) -> IDelayedCall:  # noqa: N802 (Twisted's name)
        """Call later."""


async def wait_until(
    timers: Timers,
    bell: Bell,
    concerns: Callable[[Event], bool],
    read: Callable[[], Awaitable[T]],
    *,
    seconds: float,
    shared: bool,
    enough: Callable[[T], bool] = bool,
) -> T:
    """Read until ``enough`` holds or ``seconds`` are over; the last thing read."""
    end = timers.seconds() + seconds
    while True:
        ticket = bell.ticket(concerns)
        try:
            found = await read()
            left = end - timers.seconds()
            if enough(found) or left <= 0:
                return found
            await _rung_or_later(timers, ticket.rung, min(left, POLL_SECONDS) if shared else left)
        finally:
            ticket.cancel()


async def _rung_or_later(timers: Timers, rung: Deferred[None], seconds: float) -> None:
    """Wait for the ring, at most so long."""
    waiting: Deferred[None] = Deferred()
    rung.addCallback(lambda _: None if waiting.called else waiting.callback(None))
    timer = timers.callLater(seconds, waiting.callback, None)
    try:
        await waiting
    finally:
        if timer.active():
            timer.cancel()
