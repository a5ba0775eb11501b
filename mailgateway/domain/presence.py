"""Whether a session is there, and what it does: told by its pings and by what it waits for, never stored.

A session pings every ten seconds.  One that is silent is *stale* after 30 seconds and *offline* after two
minutes, or as soon as it says bye.  One that never pings, since only hooks speak for it, is *unknown*:
silence says nothing about it.
"""

from collections import Counter
from datetime import datetime, timedelta
from enum import StrEnum

from attrs import define, field, frozen

from mailgateway.ids import SessionId

STALE = timedelta(seconds=30)
OFFLINE = timedelta(seconds=120)
SETTLED = timedelta(milliseconds=750)
"""So long a session must be idle before it counts as done: between two turns it is idle for a moment."""


class Presence(StrEnum):
    """How surely a session is there."""

    LIVE = "live"
    STALE = "stale"
    OFFLINE = "offline"
    UNKNOWN = "unknown"


class Activity(StrEnum):
    """What a session does."""

    WORKING = "working"
    BLOCKED = "blocked"
    """It waits for a person."""
    IDLE = "idle"
    UNKNOWN = "unknown"


@frozen
class Heard:
    """What was heard of a session: by a ping, at last, its bye, and since when it is in its state."""

    pings: bool
    """Whether an instance pings for it, or has pinged; else only hooks speak for it."""
    last_ping_at: datetime
    left_at: datetime | None
    state: str
    """As it told last: ``working``, ``blocked``, ``idle`` or ``""``."""
    state_at: datetime


def presence(heard: Heard | None, now: datetime) -> Presence:
    """How surely the session is there; one that nobody knows any more is offline."""
    if heard is None or heard.left_at is not None:
        return Presence.OFFLINE
    if not heard.pings:
        return Presence.UNKNOWN
    silent = now - heard.last_ping_at
    if silent >= OFFLINE:
        return Presence.OFFLINE
    return Presence.STALE if silent >= STALE else Presence.LIVE


def activity(heard: Heard, now: datetime, *, waits: bool) -> Activity:
    """What the session does: ``waits`` for a person, or else what it told, idle when that has lasted."""
    if waits:
        return Activity.BLOCKED
    if heard.state == Activity.IDLE and now - heard.state_at < SETTLED:
        return Activity.WORKING
    return Activity(heard.state) if heard.state else Activity.UNKNOWN


@define(eq=False)
class Waits:
    """How many waits each session is in; they may overlap."""

    _counts: Counter[SessionId] = field(factory=Counter)

    def begin(self, session: SessionId) -> bool:
        """One more; whether it is the first."""
        self._counts[session] += 1
        return self._counts[session] == 1

    def end(self, session: SessionId) -> bool:
        """One less; whether it was the last.  Ending more than was begun changes nothing."""
        if self._counts[session] <= 1:
            return self._counts.pop(session, 0) == 1
        self._counts[session] -= 1
        return False

    def __contains__(self, session: object) -> bool:
        return session in self._counts
