"""How often somebody may try to log in with what is no code of ours: for each address, and in all.

Only failures count, and a code that we have made is always looked at: whoever floods the door keeps others
from guessing, too, but never the owner out.
"""

from collections import OrderedDict, deque

from attrs import define, field

WINDOW_SECONDS = 60.0
FOR_EACH = 10
IN_ALL = 100
MOST_ADDRESSES = 1_000


@define(eq=False)
class Attempts:
    """The failures of the last minute; ``now`` is monotonic seconds."""

    _all: deque[float] = field(factory=deque)
    _each: OrderedDict[str, deque[float]] = field(factory=OrderedDict)

    def wait(self, address: str, now: float) -> float:
        """In how many seconds the address may try again; 0: now."""
        return max(_wait(self._all, IN_ALL, now), _wait(self._each.get(address, deque()), FOR_EACH, now), 0.0)

    def failed(self, address: str, now: float) -> None:
        """Count a failure."""
        mine = self._each.pop(address, None) or deque(maxlen=FOR_EACH)
        mine.append(now)
        self._each[address] = mine
        while len(self._each) > MOST_ADDRESSES:
            self._each.popitem(last=False)
        self._all.append(now)
        while len(self._all) > IN_ALL:
            self._all.popleft()


def _wait(failures: deque[float], most: int, now: float) -> float:
    """Until the oldest of ``most`` failures is a minute old."""
    if len(failures) < most:
        return 0.0
    return failures[-most] + WINDOW_SECONDS - now
