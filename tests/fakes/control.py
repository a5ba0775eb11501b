"""A running process in memory: says what it is told to say, and remembers what it was asked."""

from collections.abc import Sequence
from datetime import UTC, datetime

from attrs import define, field

from mailgateway.domain.account import AccountState
from mailgateway.flows.ports import AccountStatus, ProcessControl, Reloaded, ScanSummary

LOADED_AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@define(eq=False)
class FakeControl:
    """What the API may ask of the process; ``events`` are its acts, in order."""

    states: list[AccountStatus] = field(
        factory=lambda: [AccountStatus(AccountState.WATCHING, LOADED_AT, None)]
    )
    scan: ScanSummary | None = None
    warning: str = ""
    events: list[str] = field(factory=list)
    store_trouble: str = ""

    @property
    def loaded_at(self) -> datetime:
        """When the settings in force were read."""
        return LOADED_AT

    def accounts(self) -> Sequence[AccountStatus]:
        """Every watched account."""
        return self.states

    def last_scan(self) -> ScanSummary | None:
        """The last scan that examined a mail."""
        return self.scan

    async def reload(self) -> Reloaded:
        """Read the settings again."""
        self.events.append("reload")
        return Reloaded(LOADED_AT, self.warning)

    async def prime(self) -> int:
        """Move fresh cursors."""
        self.events.append("prime")
        return 2

    def shutdown(self) -> None:
        """Stop."""
        self.events.append("shutdown")


_proof: type[ProcessControl] = FakeControl
