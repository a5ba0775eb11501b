"""How the way to an account's server goes: the states that are told, and which of them are well.

The words stand in ``/health`` and in a row that outlives the process, so they are never renamed.  When to
try again is decided in ``domain.reconnect``.
"""

from enum import StrEnum


class AccountState(StrEnum):
    """What is done at one door of an account."""

    STOPPED = "stopped"
    """Nothing was tried yet in this run."""
    CONNECTING = "connecting"
    """The server is dialled, or logged in to; the first look at the folder belongs to it."""
    WATCHING = "watching"
    """All mail was looked at, and the server tells of more by itself (IDLE)."""
    POLLING = "polling"
    """All mail was looked at, and it is looked again from time to time: the server tells nothing."""
    SENDING = "sending"
    """The submission server has taken up the last mail that was given to it."""
    BACKING_OFF = "backing-off"
    """Something failed; it is tried again after a while."""
    REFUSED = "refused"
    """The login was refused; it is tried once more later, or not before the operator has changed it."""
    STANDBY = "standby"
    """Another gateway on the same database watches the folder."""


_WELL = frozenset(
    {
        AccountState.CONNECTING,
        AccountState.WATCHING,
        AccountState.POLLING,
        AccountState.SENDING,
    }
)


def is_well(state: AccountState, failure: str) -> bool:
    """Whether a door works, and is not just trying again after a failure (its class; ``""``: none).

    Who stands by is well whatever failed before: it tries nothing, and another gateway watches.
    """
    return state is AccountState.STANDBY or (state in _WELL and not failure)
