"""Sets of message UIDs in the wire form ``1:3,7`` (RFC 3501 section 9, ``sequence-set``, without ``*``).

UIDs are numbers from 1 to 4294967295.  A set is kept as ordered ranges that neither touch nor overlap, so
that ``1:4294967295`` costs as little as ``7``.
"""

from collections.abc import Iterable, Iterator
from typing import Self

from attrs import frozen

MAX_UID = 0xFFFF_FFFF


@frozen
class UidSet:
    """An ordered set of UIDs.

    ``ranges`` holds first and last UID of each run, ascending, with a gap between any two; use ``of``,
    ``span`` and ``parse`` to build one.
    """

    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, uids: Iterable[int]) -> Self:
        """The set of these UIDs, in any order and with repetitions; ``ValueError`` if one is out of range."""
        return cls._joined((uid, uid) for uid in uids)

    @classmethod
    def span(cls, first: int, last: int) -> Self:
        """The UIDs from ``first`` to ``last``, both included; empty if ``last`` lies before ``first``."""
        return cls._joined([(first, last)] if first <= last else [])

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """The set that ``text`` writes; ``ValueError`` if it is no set of numbers.

        A range may be written backwards (``5:1``), as the RFC allows.
        """
        ranges = []
        for part in text.split(b","):
            first, colon, last = part.partition(b":")
            if not first.isdigit() or (colon and not last.isdigit()) or len(part) > 21:
                raise ValueError("not a set of UIDs")
            low = int(first)
            high = int(last) if colon else low
            ranges.append((low, high) if low <= high else (high, low))
        return cls._joined(ranges)

    @classmethod
    def _joined(cls, ranges: Iterable[tuple[int, int]]) -> Self:
        """Order the ranges and melt those that touch."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted(ranges):
            if not 1 <= first <= last <= MAX_UID:
                raise ValueError("a UID is a number from 1 to 4294967295")
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
            else:
                joined.append((first, last))
        return cls(tuple(joined))

    def __iter__(self) -> Iterator[int]:
        """Each UID, ascending."""
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def __len__(self) -> int:
        """How many UIDs there are."""
        return sum(last - first + 1 for first, last in self.ranges)

    def __contains__(self, uid: object) -> bool:
        """Whether this UID is in the set."""
        return any(first <= uid <= last for first, last in self.ranges) if isinstance(uid, int) else False

    def __or__(self, other: "UidSet") -> "UidSet":
        """The UIDs of both."""
        return UidSet._joined((*self.ranges, *other.ranges))

    def __bytes__(self) -> bytes:
        """The wire form; empty for the empty set, which the wire cannot say."""
        return b",".join(_range(first, last) for first, last in self.ranges)

    def batches(self, size: int = 800) -> Iterator["UidSet"]:
        """The same UIDs in sets whose wire form has at most ``size`` bytes (at least 21).

        RFC 2683 section 3.2.1.5 advises command lines below 1000 bytes; Exchange refuses long ones.
        """
        batch: list[tuple[int, int]] = []
        length = 0
        for first, last in self.ranges:
            more = len(_range(first, last)) + 1
            if batch and length + more > size:
                yield UidSet(tuple(batch))
                batch, length = [], 0
            batch.append((first, last))
            length += more
        if batch:
            yield UidSet(tuple(batch))


def _range(first: int, last: int) -> bytes:
    """One run in its wire form."""
    return b"%d" % first if first == last else b"%d:%d" % (first, last)
