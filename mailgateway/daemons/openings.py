"""How many connections to one server are being made at a time.

A start with a thousand mailboxes must be neither a storm at their server, whose defences would count it as
an attack, nor one in our own memory: each handshake needs several times of what its connection needs later.
A server that answers nobody holds up its own mailboxes only.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredSemaphore

T = TypeVar("T")

AT_A_TIME = 50
"""At a server that takes a second for each, a thousand mailboxes are connected within half a minute."""


@define(eq=False)
class Openings:
    """Hands out the places, for each server its own."""

    _servers: dict[tuple[str, int], DeferredSemaphore] = field(factory=dict, init=False)

    async def make(self, host: str, port: int, connect: Callable[[], Coroutine[Deferred[Any], Any, T]]) -> T:
        """Run ``connect`` when there is a place at the server; it has a deadline of its own."""
        places = self._servers.setdefault((host, port), DeferredSemaphore(AT_A_TIME))
        taken: Deferred[Any] = places.acquire()
        await taken
        try:
            return await connect()
        finally:
            places.release()
