"""What a scan counts while it goes on, and what it tells of it."""

from collections.abc import Mapping

from attrs import define, field, frozen

from mailgateway.mail.verdict import Verdict


@frozen
class Scanned:
    """What a scan did: mails looked at, envelopes filed, and the refused by verdict."""

    examined: int
    routed: int
    refused: Mapping[str, int]
    stopped_at: int | None = None
    """UID of a mail whose text would not come; the scan ended in front of it."""
    again_in: float | None = None
    """In how many seconds a mail that is held is to be tried again; ``None``: none is held."""


@define
class Tally:
    """Counts of one scan while it goes on."""

    examined: int = 0
    routed: int = 0
    refused: dict[str, int] = field(factory=dict)

    def refuse(self, verdict: Verdict, count: int) -> None:
        """So many mails were refused without being read."""
        self.examined += count
        if count:
            self.refused[verdict] = self.refused.get(verdict, 0) + count

    def add(self, examined: int, routed: int, refused: Mapping[str, int]) -> None:
        """So many mails were read and filed, or refused."""
        self.examined += examined
        self.routed += routed
        for verdict, count in refused.items():
            self.refused[verdict] = self.refused.get(verdict, 0) + count

    def result(self, stopped_at: int | None = None, again_in: float | None = None) -> Scanned:
        """All of it, at the end."""
        return Scanned(self.examined, self.routed, dict(self.refused), stopped_at, again_in)
