"""Checking the log of decisions: every machine's chain, from its first entry to its last.

The service only hands the entries over; that they fit together is found out here.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from attrs import frozen

from mailgateway.domain.decision_log import Broken, Chain, LogEntry
from mailgateway.ids import MachineId, QuestionId


class Log(Protocol):
    """Where entries come from."""

    def log(self, machine: str | None = None, after: int = 0) -> dict[str, Any]:
        """Every machine with a log, and a page of entries of one of them after a number."""


@frozen
class Checked:
    """One machine's chain: how far it holds, and where and why it does not."""

    machine: str
    chain: Chain
    broken: Broken | None = None


@frozen
class Noted:
    """A place of a chain that somebody wrote down: ``MACHINE:NUMBER:DIGEST``."""

    machine: str
    number: int
    digest: str

    @classmethod
    def read(cls, text: str) -> "Noted":
        """Read it; ``ValueError`` when it is none."""
        machine, number, digest = text.rsplit(":", 2)
        return cls(machine, int(number), digest.lower())


def verify(log: Log, noted: tuple[Noted, ...] = ()) -> tuple[Checked, ...]:
    """Follow every chain to its end; a machine that somebody has noted must have reached that place."""
    heads: Mapping[str, int] = {each["machineId"]: each["number"] for each in log.log()["machines"]}
    machines = [*heads, *(each.machine for each in noted if each.machine not in heads)]
    return tuple(_follow(log, machine, heads.get(machine, 0), noted) for machine in dict.fromkeys(machines))


def entries(log: Log, machine: str | None, after: int = 0) -> Iterator[dict[str, Any]]:
    """The entries of one machine, oldest first."""
    while page := log.log(machine, after)["entries"]:
        yield from page
        after = page[-1]["number"]


def _follow(log: Log, machine: str, last: int, noted: tuple[Noted, ...]) -> Checked:
    wanted = {each.number: each.digest for each in noted if each.machine == machine}
    chain = Chain()
    for line in entries(log, machine):
        followed = chain.follow([_entry(line)])
        if isinstance(followed, Broken):
            return Checked(machine, chain, followed)
        chain = followed
        if wanted.pop(chain.number, chain.digest) != chain.digest:
            return Checked(machine, chain, Broken(chain.number, "is not the one that was noted"))
    if chain.number < last or wanted:
        missing = max([last, *wanted])
        return Checked(machine, chain, Broken(chain.number + 1, f"is missing; there was one until {missing}"))
    return Checked(machine, chain)


def _entry(line: Mapping[str, Any]) -> LogEntry:
    return LogEntry(
        machine_id=MachineId(line["machineId"]),
        number=line["number"],
        question_id=QuestionId(line["questionId"]),
        act=line["act"],
        revision=line["revision"],
        owner_revision=line["ownerRevision"],
        by=line["by"],
        door=line["door"],
        at=datetime.fromisoformat(line["at"]),
        details=line["details"],
        digest=line["digest"],
    )
