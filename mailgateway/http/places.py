"""Places: how many requests may stay at a time, in all and of one key, so that no key keeps the others out.

For whatever stays long: polls that wait, streams, uploads that come.  Our own keys (session and person) are
used by everybody at this machine and may take more than the key of another machine or of a confined agent.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define, field

from mailgateway.errors import Refusal
from mailgateway.http.keys import Bearer


@define(eq=False)
class Places:
    """Places of one kind: ``most`` in all, and bounds for one of our own keys and for any other one."""

    most: int
    own: int
    other: int
    _taken: Counter[tuple[bool, str]] = field(factory=Counter, init=False)

    def take(self, bearer: Bearer) -> bool:
        """Take a place, if there is one for this bearer's key; whoever got it gives it back."""
        key = (bearer.own, bearer.name)
        if self._taken[key] >= (self.own if bearer.own else self.other) or self._taken.total() >= self.most:
            return False
        self._taken[key] += 1
        return True

    def give_back(self, bearer: Bearer) -> None:
        """Give a place back."""
        key = (bearer.own, bearer.name)
        self._taken[key] -= 1
        if not self._taken[key]:
            del self._taken[key]

    @contextmanager
    def place(self, bearer: Bearer, otherwise: Refusal) -> Iterator[None]:
        """Hold a place; raises ``otherwise`` when there is none."""
        if not self.take(bearer):
            raise otherwise
        try:
            yield
        finally:
            self.give_back(bearer)
