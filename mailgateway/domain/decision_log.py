"""The log of decisions: who did what to which question, by which door, when, in a chain of digests.

Each entry's digest is over the entry and the digest of the one before, so that no entry can be changed, left
out or put in without changing every digest after it.  Who notes the last digest somewhere else can also tell
that the end was cut off.  Texts are not in it, only their digests: the log may outlive them.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from attrs import evolve, field, frozen

from mailgateway.ids import MachineId, QuestionId

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Act(StrEnum):
    """What was done to a question."""

    CREATED = "created"
    REVISED = "revised"
    REPARENTED = "reparented"
    TRANSFERRED = "transferred"
    TAKEN_OVER = "taken_over"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"


@frozen
class LogEntry:
    """One line of a machine's log; ``number`` counts from 1 without gaps."""

    machine_id: MachineId
    number: int
    question_id: QuestionId
    act: str
    """An ``Act``, unless somebody has spoiled it."""
    revision: int
    owner_revision: int
    by: str = field(repr=False)
    """A session's id, a person's address, or the name of a key; ``""``: the gateway itself."""
    door: str
    """``session``, ``mail``, ``web``, ``terminal``, ``api``, or ``gateway``."""
    at: datetime
    details: Mapping[str, str] = field(repr=False)
    digest: str = ""

    def chained(self, previous: str) -> "LogEntry":
        """The entry with its digest, after an entry with the digest ``previous`` (``""``: the first)."""
        said = [
            previous,
            self.machine_id,
            self.number,
            self.question_id,
            self.act,
            self.revision,
            self.owner_revision,
            self.by,
            self.door,
            (self.at - EPOCH) // timedelta(microseconds=1),
            canonical(self.details),
        ]
        return evolve(self, digest=hashlib.sha256(canonical(said).encode()).hexdigest())


@frozen
class Broken:
    """The chain does not hold at this entry; ``reason`` ends a sentence that begins with its number."""

    number: int
    reason: str


@frozen
class Chain:
    """How far a chain was followed: the number and the digest of the last entry (0 and ``""``: of none)."""

    number: int = 0
    digest: str = ""

    def follow(self, entries: Iterable[LogEntry]) -> "Chain | Broken":
        """Go on along the next entries, or say where they do not fit."""
        chain = self
        for entry in entries:
            if entry.number != chain.number + 1:
                return Broken(chain.number + 1, f"is missing; entry {entry.number} comes instead")
            if entry.chained(chain.digest).digest != entry.digest:
                return Broken(entry.number, "is not what was written, or does not follow on the one before")
            chain = Chain(entry.number, entry.digest)
        return chain


def canonical(value: object) -> str:
    """JSON in the one spelling that digests are made of."""
    return json.dumps(value, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
