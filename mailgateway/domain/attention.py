"""When a person is written to: quiet hours, bundles, reminders and a second address.

People get few, good mails.  What a session says by the way may wait until the night is over, or for a moment
in which more of it comes; a session that waits for an answer is not made to wait.  All of it is a function of
the settings and of the time: what was decided before is decided anew with the time of now, so that other
settings, or a clock that was set, hold no mail back for ever.

Quiet hours are times of a wall clock.  They are turned into instants as RFC 5545 (section 3.3.5) does: a time
that a change of the clocks leaves out counts by the offset before it, one that comes twice is the first.
"""

from datetime import UTC, datetime, time, timedelta, tzinfo
from enum import StrEnum, unique

from attrs import frozen

from mailgateway.domain.outbox import MailKind

REMIND_AGAIN = timedelta(days=1)
"""How long after a reminder the next one leaves."""

REMINDERS_TO_A_PERSON = (10, timedelta(hours=2))
"""How many reminders one person gets at most, and in which time; the others wait for their turn.

Below the bound of all that the gateway says by itself, so that reminders never silence its answers.
"""


@unique
class HeldFor(StrEnum):
    """Why a mail is held back."""

    QUIET = "quiet"
    """The person wants to be left alone."""
    BUNDLE = "bundle"
    """More of the same session may come."""


@frozen
class Hold:
    """A mail is held back, and until when as far as is known."""

    why: HeldFor
    until: datetime


@frozen
class QuietHours:
    """A span of every day, by the clock on the wall of ``zone``; it may go over midnight."""

    start: time
    end: time
    zone: tzinfo

    def until(self, moment: datetime) -> datetime | None:
        """When the quiet that reigns at ``moment`` (aware) ends, in its zone; ``None``: it is not quiet.

        At the instant that is returned it is not quiet.
        """
        end: datetime | None = None
        for _ in range(_SPANS):
            later = self._end_of_span(moment if end is None else end)
            if later is None:
                break
            end = later
        return None if end is None else end.astimezone(moment.tzinfo)

    def _end_of_span(self, moment: datetime) -> datetime | None:
        """The end of the latest span that ``moment`` lies in."""
        today = moment.astimezone(self.zone).date()
        for days in (1, 0, -1, -2):  # a day of a zone may be left out altogether
            day = today + timedelta(days=days)
            begin = _instant(datetime.combine(day, self.start), self.zone)
            last = day if self.start < self.end else day + timedelta(days=1)
            end = _instant(datetime.combine(last, self.end), self.zone)
            if begin <= moment < end:
                return end
        return None


_SPANS = 3
"""Spans of days that follow each other may touch where the clocks change."""


def _instant(wall: datetime, zone: tzinfo) -> datetime:
    """The instant at which the clock on the wall shows this time, in UTC."""
    aware = wall.replace(tzinfo=zone, fold=0)
    offset = aware.utcoffset() or timedelta(0)
    return (wall - offset).replace(tzinfo=UTC)


@frozen(kw_only=True)
class Attention:
    """What the settings say about when a person is written to.

    ``remind_after`` and ``escalate_after`` count from when the first mail of a decision had left; zero is
    never.  ``escalate_to`` is the second address, ``""``: nobody.  ``zone`` is that of the clock on the
    person's wall, as far as the settings tell.
    """

    zone: tzinfo = UTC
    quiet: QuietHours | None = None
    quiet_decisions: bool = False
    bundle: timedelta = timedelta(0)
    remind_after: timedelta = timedelta(0)
    escalate_after: timedelta = timedelta(0)
    escalate_to: str = ""

    def quiet_until(self, now: datetime) -> datetime | None:
        """When the quiet of now ends; ``None``: the gateway may write by itself."""
        return None if self.quiet is None else self.quiet.until(now)

    def hold(self, kind: MailKind, now: datetime, bundle_until: datetime | None = None) -> Hold | None:
        """Whether a mail that is submitted now is held back.

        ``bundle_until`` is when the bundle leaves that its session has begun, if it has.
        """
        quiet = self._quiet_for(kind, now)
        if quiet is not None:
            return Hold(HeldFor.QUIET, quiet)
        if kind is not MailKind.NOTIFICATION or not self.bundle:
            return None
        if bundle_until is None or not now < bundle_until <= now + self.bundle:
            bundle_until = now + self.bundle
        soon_quiet = self._quiet_for(kind, bundle_until) is not None  # then rather now than in the morning
        return None if soon_quiet else Hold(HeldFor.BUNDLE, bundle_until)

    def still(self, kind: MailKind, hold: Hold, now: datetime) -> Hold | None:
        """What is left of a hold by the time of now; ``None``: the mail may leave."""
        quiet = self._quiet_for(kind, now)
        if quiet is not None:
            return Hold(HeldFor.QUIET, quiet)
        if hold.why is HeldFor.BUNDLE and now < hold.until <= now + self.bundle:
            return hold
        return None

    def _quiet_for(self, kind: MailKind, now: datetime) -> datetime | None:
        waits = kind in _MAY_WAIT or (kind is MailKind.DECISION and self.quiet_decisions)
        return self.quiet_until(now) if waits else None

    def reminds_at(self, asked_at: datetime, reminded_at: datetime | None) -> datetime | None:
        """When a decision that nobody has answered is to be brought to mind next; ``None``: never.

        ``asked_at`` is when its mail had left.  Quiet hours are not looked at.
        """
        if not self.remind_after:
            return None
        first = asked_at + self.remind_after
        return first if reminded_at is None else max(first, reminded_at + REMIND_AGAIN)

    def escalates_at(self, asked_at: datetime) -> datetime | None:
        """When a decision that nobody has answered goes to the second address; ``None``: never."""
        return asked_at + self.escalate_after if self.escalate_to and self.escalate_after else None


_MAY_WAIT = frozenset({MailKind.NOTIFICATION, MailKind.SETTLE})
"""What sessions say by the way."""

ALWAYS = Attention()
"""Nothing is held back, and nobody is reminded."""
