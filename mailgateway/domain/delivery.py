"""The life of an envelope towards its session: ``new -> claimed -> acked``, or ``dropped``.

The table of moves is the whole rule; the store makes a move by compare-and-set on the state it read, so
that of two that meet one wins.  A claim is a lease: it dies at ``lease_until`` or with its process, and
then another may claim.  An ack after the lease's end still counts unless somebody else has claimed.
"""

from enum import StrEnum
from types import MappingProxyType


class DeliveryState(StrEnum):
    """Where an envelope stands."""

    NEW = "new"
    """Filed, nobody is working on it."""
    CLAIMED = "claimed"
    """An instance is giving it to its session, until the lease ends."""
    ACKED = "acked"
    """The session has it; journaled."""
    DROPPED = "dropped"
    """It will not be delivered; the reason stands beside it (``renumbered``)."""


class DeliveryEvent(StrEnum):
    """What may happen to an envelope."""

    CLAIM = "claim"
    RELEASE = "release"
    LEASE_ENDED = "lease-ended"
    ACK = "ack"
    DROP = "drop"


MOVES = MappingProxyType(
    {
        (DeliveryState.NEW, DeliveryEvent.CLAIM): DeliveryState.CLAIMED,
        (DeliveryState.NEW, DeliveryEvent.DROP): DeliveryState.DROPPED,
        (DeliveryState.CLAIMED, DeliveryEvent.CLAIM): DeliveryState.CLAIMED,
        (DeliveryState.CLAIMED, DeliveryEvent.RELEASE): DeliveryState.NEW,
        (DeliveryState.CLAIMED, DeliveryEvent.LEASE_ENDED): DeliveryState.NEW,
        (DeliveryState.CLAIMED, DeliveryEvent.ACK): DeliveryState.ACKED,
        (DeliveryState.CLAIMED, DeliveryEvent.DROP): DeliveryState.DROPPED,
    }
)
"""Every legal move; what is not here is refused."""


def advance(state: DeliveryState, event: DeliveryEvent) -> DeliveryState | None:
    """The state after ``event``, or ``None`` when the event is not possible in ``state``."""
    return MOVES.get((state, event))
