"""What was tried in vain with single mails, over scans and connections.

Some mails make a server answer nonsense, give no text, or hang up, every time.  A scan must not pass over a
mail because of one bad moment, and must not stand before it for ever.  So after a failure fewer mails are
asked for at once, until the guilty one is alone; and what has failed often enough alone is given up, visibly.
Kept in memory: a restart begins with fresh patience.
"""

from collections.abc import Iterator, Sequence

from attrs import define, field

from mailgateway.errors import CommandRefused, LoginUnavailable, PeerError, Throttled, Unreachable

WINDOW = 500
"""UIDs whose header fields are asked for in one command."""

NARROWER = (WINDOW, 30, 1)
"""How many UIDs are asked for at once: usually, and after each failure, as far as the guilty one may be."""

PATIENCE = 3
"""How often one mail alone may fail before it is given up."""

LOST_WEIGHT = 0.3
"""A lost connection, or a refusal for now, says less than an answer that makes no sense.

It may have been the network, or the server's disk; but some servers treat a poisoned mail like that for ever.
"""

_FOR_NOW = frozenset({"TEMPFAIL", "UNAVAILABLE", "INUSE", "SERVERBUG", "OVERQUOTA"})
"""Response codes (RFC 5530) of a server that may give later what it refuses now."""

Place = tuple[int, int]
"""UIDVALIDITY and UID."""


@define
class Patience:
    """How much of it is left."""

    _texts: dict[Place, float] = field(factory=dict)
    _level: int = 0
    """Where in ``NARROWER`` asking stands."""
    _suspects: Place = (0, 0)
    """The guilty mail has at most this UID."""
    _alone: Place = (0, 0)
    """The cursor under the mail that failed alone."""
    _times: float = 0.0
    _apart: Place = (0, 0)
    """Texts up to this one are asked for one by one: among them is one that spoiled it for the others."""

    def width(self, cursor: Place) -> int:
        """How many UIDs to ask for above this cursor; 0: the next one is to be given up."""
        if cursor[0] != self._suspects[0] or cursor[1] >= self._suspects[1]:
            return WINDOW
        if cursor == self._alone and self._times >= PATIENCE:
            return 0
        return NARROWER[self._level]

    def stumbled(self, cursor: Place, last: int, error: PeerError) -> None:
        """Asking for header fields above this cursor, up to UID ``last``, has failed."""
        weight = _weight(error)
        if not weight:
            return
        width = self.width(cursor)
        if width == 1:
            self._times = self._times + weight if cursor == self._alone else weight
            self._alone = cursor
            return
        self._level = 1 if width == WINDOW else self._level + 1
        self._suspects = (cursor[0], last)

    def is_apart(self, mail: Place) -> bool:
        """Whether the text of this mail is to be asked for by itself."""
        return mail[0] == self._apart[0] and mail[1] <= self._apart[1]

    def failed_together(self, last: Place) -> None:
        """Asking for several texts at once, the last of them this one, has failed."""
        self._apart = last

    def text_failed(self, mail: Place, error: PeerError | None = None) -> bool:
        """A text did not come; whether the mail is to be given up now."""
        weight = 1.0 if error is None else _weight(error)
        self._texts[mail] = self._texts.get(mail, 0.0) + weight
        return self.is_over(mail)

    def is_over(self, mail: Place) -> bool:
        """Whether the text of this mail is not to be asked for any more."""
        return self._texts.get(mail, 0.0) >= PATIENCE

    def forget(self, mail: Place) -> None:
        """The mail was dealt with."""
        self._texts.pop(mail, None)


def _weight(error: PeerError) -> float:
    """How much a failure speaks against the mail that was asked for."""
    match error:
        case Throttled() | LoginUnavailable():
            return 0.0  # every mail would have met with it
        case Unreachable():
            return LOST_WEIGHT
        case CommandRefused(code=code) if code in _FOR_NOW:
            return LOST_WEIGHT
        case _:
            return 1.0


def ranges(uids: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges that cover the sorted UIDs, none wider than a window."""
    start = previous = None
    for uid in uids:
        if start is None or previous is None:
            start = previous = uid
        elif uid - start >= WINDOW:
            yield start, previous
            start = previous = uid
        else:
            previous = uid
    if start is not None and previous is not None:
        yield start, previous
