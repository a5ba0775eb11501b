"""When a person is written to: quiet hours on any wall clock, holds, reminders."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.attention import REMIND_AGAIN, Attention, HeldFor, Hold, QuietHours
from mailgateway.domain.outbox import MailKind

BERLIN = ZoneInfo("Europe/Berlin")  # 2026: 29 March 02:00 -> 03:00, 25 October 03:00 -> 02:00
LORD_HOWE = ZoneInfo("Australia/Lord_Howe")  # half an hour
ZONES = (UTC, BERLIN, LORD_HOWE, *map(ZoneInfo, ("America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu")))
NIGHT = QuietHours(time(22), time(7), BERLIN)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 6, 1, 22, tzinfo=UTC)
MORNING = datetime(2026, 6, 2, 5, tzinfo=UTC)

_TIMES = st.builds(time, st.integers(0, 23), st.integers(0, 59))
_MOMENTS = st.datetimes(datetime(1990, 1, 1), datetime(2035, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_QUIET = st.builds(QuietHours, _TIMES, _TIMES, st.sampled_from(ZONES)).filter(lambda q: q.start != q.end)


def berlin(text: str, fold: int = 0) -> datetime:
    """An instant by the clock in Berlin."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).astimezone(UTC)


class QuietHoursTests(SynchronousTestCase):
    """Spans of a wall clock as instants."""

    def test_table(self) -> None:
        """Over midnight, by day, at the edges, and where the clocks change."""
        rows = [
            ("22:00", "07:00", "2026-06-01 21:59:59", None),
            ("22:00", "07:00", "2026-06-01 22:00", "2026-06-02 07:00"),
            ("22:00", "07:00", "2026-06-02 00:00", "2026-06-02 07:00"),
            ("22:00", "07:00", "2026-06-02 06:59:59", "2026-06-02 07:00"),
            ("22:00", "07:00", "2026-06-02 07:00", None),
            ("12:00", "13:30", "2026-06-01 12:45", "2026-06-01 13:30"),
            ("12:00", "13:30", "2026-06-01 13:30", None),
            ("00:00", "06:00", "2026-06-01 00:00", "2026-06-01 06:00"),
            ("18:00", "00:00", "2026-06-01 23:59", "2026-06-02 00:00"),
            ("22:00", "07:00", "2026-03-28 23:00", "2026-03-29 07:00"),  # a night of eight hours
            ("22:00", "07:00", "2026-10-24 23:00", "2026-10-25 07:00"),  # one of ten
            ("22:00", "02:30", "2026-03-28 23:00", "2026-03-29 03:30"),  # an end that is left out
            ("22:00", "02:30", "2026-10-24 23:00", "2026-10-25 02:30"),  # an end that comes twice: the first
            ("02:30", "07:00", "2026-03-29 03:10", None),  # a beginning that is left out
            ("02:30", "07:00", "2026-03-29 03:30", "2026-03-29 07:00"),
        ]
        for start, end, moment, expected in rows:
            quiet = QuietHours(time.fromisoformat(start), time.fromisoformat(end), BERLIN)
            wanted = None if expected is None else berlin(expected)
            self.assertEqual(quiet.until(berlin(moment)), wanted, (start, end, moment))

    def test_a_night_of_changing_clocks_has_its_length(self) -> None:
        """From one wall time to the other, whatever lies between."""
        for begin, hours in (("2026-03-28 22:00", 8), ("2026-06-01 22:00", 9), ("2026-10-24 22:00", 10)):
            begun = berlin(begin)
            self.assertEqual(NIGHT.until(begun), begun + timedelta(hours=hours))

    def test_the_second_of_two_equal_times_is_not_quiet(self) -> None:
        """The quiet that ended with the first does not begin again within the hour that is repeated."""
        quiet = QuietHours(time(22), time(2, 30), BERLIN)
        self.assertIsNone(quiet.until(berlin("2026-10-25 02:15", fold=1)))

    def test_a_day_that_is_left_out(self) -> None:
        """Samoa skipped 30 December 2011; the night before it lasts until a morning that exists."""
        quiet = QuietHours(time(22), time(7), ZoneInfo("Pacific/Apia"))
        begun = datetime(2011, 12, 29, 23, tzinfo=ZoneInfo("Pacific/Apia")).astimezone(UTC)
        until = quiet.until(begun)
        assert until is not None
        self.assertTrue(timedelta(0) < until - begun <= timedelta(hours=33), until)

    @given(_QUIET, _MOMENTS)
    @settings(max_examples=100)
    def test_the_end_is_the_end(self, quiet: QuietHours, moment: datetime) -> None:
        """It lies ahead, at most two days; it is quiet up to it, and not at it."""
        until = quiet.until(moment)
        if until is None:
            return
        self.assertTrue(moment < until <= moment + timedelta(hours=51))
        self.assertIsNone(quiet.until(until))
        for part in (0.25, 0.5, 0.999):
            self.assertEqual(quiet.until(moment + (until - moment) * part), until)

    @given(_QUIET, _MOMENTS)
    @settings(max_examples=100)
    def test_every_day_has_its_quiet_and_its_noise(self, quiet: QuietHours, moment: datetime) -> None:
        """Within three days both come, unless the span is shorter than an hour that clocks leave out."""
        minutes = (quiet.end.hour - quiet.start.hour) * 60 + quiet.end.minute - quiet.start.minute
        if not 90 < minutes % 1440 < 1350:
            return
        steps = [moment + timedelta(minutes=30 * step) for step in range(3 * 48)]
        self.assertEqual({quiet.until(each) is None for each in steps}, {True, False})


class HoldTests(SynchronousTestCase):
    """What is held back, and for how long."""

    def test_nothing_without_settings(self) -> None:
        """As it always was."""
        for kind in MailKind:
            self.assertIsNone(Attention().hold(kind, MIDNIGHT))
            self.assertIsNone(Attention().still(kind, Hold(HeldFor.QUIET, MORNING), MIDNIGHT))

    def test_quiet_hours(self) -> None:
        """What is said by the way waits; decisions when that is wanted; our own words never."""
        quiet = Hold(HeldFor.QUIET, MORNING)
        usual, strict = Attention(quiet=NIGHT), Attention(quiet=NIGHT, quiet_decisions=True)
        waits = {MailKind.NOTIFICATION, MailKind.SETTLE}
        for kind in MailKind:
            self.assertEqual(usual.hold(kind, MIDNIGHT), quiet if kind in waits else None)
            also = waits | {MailKind.DECISION}
            self.assertEqual(strict.hold(kind, MIDNIGHT), quiet if kind in also else None)
            self.assertIsNone(strict.hold(kind, NOON))

    def test_bundles(self) -> None:
        """The first begins one, the others join it; only notifications."""
        attention = Attention(bundle=timedelta(seconds=60))
        begun = Hold(HeldFor.BUNDLE, NOON + timedelta(seconds=60))
        later = NOON + timedelta(seconds=40)
        self.assertEqual(attention.hold(MailKind.NOTIFICATION, NOON), begun)
        self.assertEqual(attention.hold(MailKind.NOTIFICATION, later, begun.until), begun)
        for odd in (NOON, later, later + timedelta(seconds=61)):  # it is over, or of another clock
            self.assertEqual(
                attention.hold(MailKind.NOTIFICATION, later, odd),
                Hold(HeldFor.BUNDLE, later + timedelta(seconds=60)),
            )
        for kind in set(MailKind) - {MailKind.NOTIFICATION}:
            self.assertIsNone(attention.hold(kind, NOON, begun.until))

    def test_a_bundle_that_would_end_in_the_quiet(self) -> None:
        """It is not begun: the mail leaves now, and not in the morning."""
        attention = Attention(quiet=NIGHT, bundle=timedelta(minutes=10))
        evening = berlin("2026-06-01 21:55")
        self.assertIsNone(attention.hold(MailKind.NOTIFICATION, evening))

    def test_what_is_held_is_looked_at_anew(self) -> None:
        """Other settings, or a clock that was set, hold nothing back for ever."""
        kind = MailKind.NOTIFICATION
        quiet, bundle = Hold(HeldFor.QUIET, MORNING), Hold(HeldFor.BUNDLE, NOON + timedelta(seconds=60))
        night, both = Attention(quiet=NIGHT), Attention(quiet=NIGHT, bundle=timedelta(seconds=60))
        far = timedelta(days=400)
        rows = [
            (night, quiet, MIDNIGHT, quiet),
            (night, quiet, MORNING, None),
            (night, quiet, NOON, None),  # the clock went back, out of the night
            (Attention(), quiet, MIDNIGHT, None),  # the night was taken out of the settings
            (night, Hold(HeldFor.QUIET, MORNING + far), MIDNIGHT, quiet),  # the clock went back far
            (night, Hold(HeldFor.QUIET, MORNING - far), MIDNIGHT, quiet),  # it was off, until the next night
            (both, bundle, NOON, bundle),
            (both, bundle, bundle.until, None),
            (both, bundle, NOON - far, None),
            (both, bundle, MIDNIGHT, quiet),
            (Attention(), bundle, NOON, None),
        ]
        for attention, hold, now, expected in rows:
            self.assertEqual(attention.still(kind, hold, now), expected, (hold, now))
        self.assertIsNone(night.still(MailKind.DECISION, quiet, MIDNIGHT))  # decisions wait no more

    @given(_QUIET, _MOMENTS, st.integers(0, 3_600), st.sampled_from(list(MailKind)), _MOMENTS)
    @settings(max_examples=100)
    def test_a_hold_ends_when_it_says(
        self, quiet: QuietHours, now: datetime, bundle: int, kind: MailKind, other: datetime
    ) -> None:
        """Nothing is held longer than the longest quiet and a bundle, and at its time it may leave."""
        attention = Attention(quiet=quiet, bundle=timedelta(seconds=bundle), quiet_decisions=True)
        hold = attention.hold(kind, now)
        if hold is not None:
            self.assertTrue(now < hold.until <= now + timedelta(hours=52))
            self.assertIsNone(attention.still(kind, hold, hold.until))
            self.assertEqual(attention.still(kind, hold, now), hold)
            at_other = attention.still(kind, hold, other)
            self.assertTrue(at_other is None or other < at_other.until <= other + timedelta(hours=52))


class ReminderTests(SynchronousTestCase):
    """When a decision is brought to mind, and goes to a second person."""

    def test_once_then_daily(self) -> None:
        """Never without an hour; a reminder that came late delays the next."""
        attention = Attention(remind_after=timedelta(hours=3))
        first = NOON + timedelta(hours=3)
        self.assertEqual(attention.reminds_at(NOON, None), first)
        late = first + timedelta(hours=9)
        self.assertEqual(attention.reminds_at(NOON, late), late + REMIND_AGAIN)
        self.assertIsNone(Attention().reminds_at(NOON, None))

    def test_the_second_address(self) -> None:
        """Needs both an hour and an address."""
        hours = timedelta(hours=8)
        self.assertEqual(
            Attention(escalate_after=hours, escalate_to="sam@example.org").escalates_at(NOON), NOON + hours
        )
        self.assertIsNone(Attention(escalate_after=hours).escalates_at(NOON))
        self.assertIsNone(Attention(escalate_to="sam@example.org").escalates_at(NOON))
