"""``[notify]``: when people are written to, and which clock that goes by."""

import os
from datetime import UTC, datetime, time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.rules import attention_of, zone_of
from mailgateway.domain.attention import Attention
from mailgateway.settings import parse
from tests.test_settings import ENVIRON, Refusing, tables

SUMMER = datetime(2026, 7, 1, 12, tzinfo=UTC)
BERLIN = Path("/usr/share/zoneinfo/Europe/Berlin")


class NotifyTests(Refusing):
    """What may stand there."""

    def test_quiet_hours(self) -> None:
        """Two times of a wall clock in a zone that exists; none by default."""
        found = parse(tables(), ENVIRON).notify
        self.assertEqual((found.quiet_hours, found.time_zone, found.remind_after_hours), (None, "", 3))
        for text in ("22:00-07:00", " 22:00 - 7:00 ", "22:00\u201307:00"):
            notify = {"quiet_hours": text, "time_zone": "Europe/Berlin"}
            found = parse(tables(notify=notify), ENVIRON).notify
            self.assertEqual(found.quiet_hours, (time(22), time(7)))
        for text in ("22-7", "24:00-07:00", "22:60-07:00", "22:00", "22:00-22:00", "at night"):
            self.assertIn("notify.quiet_hours", self.problems(tables(notify={"quiet_hours": text})))
        for zone in ("Berlin", "Europe/Berlin/", "../../etc/passwd", "/etc/passwd", "x" * 300):
            self.assertIn("notify.time_zone", self.problems(tables(notify={"time_zone": zone})), zone)

    def test_the_second_address(self) -> None:
        """Somebody who is heard, other than the first; needed when there is an hour for it."""
        people = {"allowed": ["robin@example.org", "sam@example.org"]}
        good = {"escalate_after_hours": 8, "escalate_to": "Sam@example.org"}
        self.assertEqual(parse(tables(notify=good, people=people), ENVIRON).notify.escalate_after_hours, 8)
        for wrong in (
            {"escalate_to": "eve@example.org"},
            {"escalate_to": "Robin@example.org"},
            {"escalate_after_hours": 8},
        ):
            self.assertIn("notify.escalate_to", self.problems(tables(notify=wrong, people=people)))


class AttentionTests(SynchronousTestCase):
    """What the settings mean to those who write."""

    def test_nothing_said(self) -> None:
        """A reminder after three hours, and nothing else."""
        found = attention_of(parse(tables(), ENVIRON).notify)
        self.assertEqual((found.quiet, found.bundle.seconds, found.remind_after.seconds), (None, 0, 3 * 3600))
        self.assertEqual(found.zone, Attention().zone)

    def test_all_said(self) -> None:
        """Everything arrives where it is asked for."""
        notify = {
            "quiet_hours": "22:00-07:00",
            "time_zone": "Europe/Berlin",
            "quiet_decisions": True,
            "bundle_seconds": 60,
            "remind_after_hours": 0,
            "escalate_after_hours": 8,
            "escalate_to": "sam@Example.ORG",
        }
        people = {"allowed": ["robin@example.org", "sam@example.org"]}
        found = attention_of(parse(tables(notify=notify, people=people), ENVIRON).notify)
        assert found.quiet is not None
        self.assertEqual((found.quiet.start, found.quiet.end), (time(22), time(7)))
        self.assertEqual(found.zone, found.quiet.zone)
        self.assertEqual(SUMMER.astimezone(found.zone).hour, 14)
        self.assertEqual(
            (found.quiet_decisions, found.bundle.seconds, found.remind_after.seconds), (True, 60, 0)
        )
        self.assertEqual((found.escalate_after.seconds, found.escalate_to), (8 * 3600, "sam@example.org"))


class ZoneTests(SynchronousTestCase):
    """The machine's own clock."""

    def zone(self, variable: str | None, file: Path) -> int:
        """The hour in summer, with $TZ and a file."""
        before = os.environ.pop("TZ", None)
        try:
            if variable is not None:
                os.environ["TZ"] = variable
            zone_of.cache_clear()
            return SUMMER.astimezone(zone_of("", file)).hour
        finally:
            os.environ.pop("TZ", None)
            if before is not None:
                os.environ["TZ"] = before
            zone_of.cache_clear()

    def test_where_it_is_told(self) -> None:
        """$TZ where it names a zone, else the file, else UTC."""
        nowhere = Path("/nowhere")
        broken = Path(self.mktemp())
        broken.write_bytes(b"not a zone")
        for variable, file, hour in (
            (None, nowhere, 12),
            (None, broken, 12),
            (None, BERLIN, 14),
            (":Asia/Tokyo", BERLIN, 21),
            ("Asia/Tokyo", BERLIN, 21),
            ("CET-1CEST,M3.5.0,M10.5.0/3", BERLIN, 14),
            ("", BERLIN, 14),
            ("../../../etc/passwd", BERLIN, 14),
        ):
            self.assertEqual(self.zone(variable, file), hour, (variable, file))
