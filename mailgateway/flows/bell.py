"""The bell: wakes whoever waits, after a commit, in this process.

A ring is a hint and never the truth: who wakes reads the table.  A waiter takes its ticket *before* it
reads, so that nothing can happen unheard in between.  The last events are kept, so that a subscriber that
was away for a moment catches up, and one that was away longer is told to read everything again.
Other processes on the same database are not heard here; who waits polls beside the bell.
"""

from collections import deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred

from mailgateway.ids import SessionId
from mailgateway.store.database import Work

KEPT = 1_000
"""How many events are kept for subscribers that come back."""


class EventKind(StrEnum):
    """What changed."""

    DELIVERY = "delivery"
    MODE = "mode"
    QUESTION = "question"
    APPROVAL = "approval"
    SESSION = "session"
    OUTBOX = "outbox"
    FLAGGING = "flagging"
    SETTLE = "settle"
    HELD = "held"
    """A mail waits for its time."""


PUBLIC = frozenset(
    {EventKind.DELIVERY, EventKind.MODE, EventKind.QUESTION, EventKind.APPROVAL, EventKind.SESSION}
)
"""Kinds that subscribers of the API see; the others wake our own loops."""


@frozen
class Event:
    """Something changed: ids only, no content."""

    kind: EventKind
    id: str = ""
    session: SessionId | None = None


@frozen
class Numbered:
    """An event with its place in the stream of this process."""

    number: int
    event: Event


@define(eq=False)
class Ticket:
    """A place at the bell, taken before reading; ``rung`` fires once, at the first event that concerns it.

    It fires with what was read for it behind the commit, ``None`` where nothing was.
    """

    _bell: "Bell"
    concerns: Callable[[Event], bool]
    """Looks at nothing that another thread must not see."""
    work: Work[Any] | None = None
    """What its holder will read."""
    rung: Deferred[Any] = field(factory=Deferred)

    def hear(self, event: Event, found: Any = None) -> None:
        """Fire when the event concerns this ticket."""
        if self.concerns(event):
            self.cancel()
            self.rung.callback(found)

    def cancel(self) -> None:
        """Give the place back; safe to call again."""
        self._bell.leave(self)


@define(eq=False)
class Bell:
    """Who waits, who subscribes, and what was rung lately."""

    _tickets: set[Ticket] = field(factory=set, init=False)
    _subscribers: set[Callable[[Numbered], None]] = field(factory=set, init=False)
    _kept: deque[Numbered] = field(factory=lambda: deque(maxlen=KEPT), init=False)
    _number: int = field(default=0, init=False)

    @property
    def tickets(self) -> tuple[Ticket, ...]:
        """Who waits now."""
        return tuple(self._tickets)

    def ticket(self, concerns: Callable[[Event], bool], work: Work[Any] | None = None) -> Ticket:
        """Take a place; read the table only afterwards."""
        ticket = Ticket(self, concerns, work)
        self._tickets.add(ticket)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give a place back."""
        self._tickets.discard(ticket)

    def ring(self, *events: Event, found: Mapping[Ticket, Any] = MappingProxyType({})) -> None:
        """Tell everybody, and some what was read for them; on the reactor's thread, after the commit."""
        for event in events:
            self._number += 1
            numbered = Numbered(self._number, event)
            self._kept.append(numbered)
            for ticket in tuple(self._tickets):
                ticket.hear(event, found.get(ticket))
            for subscriber in tuple(self._subscribers):
                subscriber(numbered)

    def subscribe(self, subscriber: Callable[[Numbered], None]) -> Callable[[], None]:
        """Hear every event from now on; the returned function ends it.  It must not raise."""
        self._subscribers.add(subscriber)
        return lambda: self._subscribers.discard(subscriber)

    @property
    def number(self) -> int:
        """The number of the last event."""
        return self._number

    def since(self, number: int) -> list[Numbered] | None:
        """Events after ``number``; ``None`` when they are not all kept any more (read everything again)."""
        if number > self._number or (self._kept and number < self._kept[0].number - 1):
            return None
        return [kept for kept in self._kept if kept.number > number]
