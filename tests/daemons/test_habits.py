"""How a server is asked for news: what is known of its provider, and what it teaches."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.habits import (
    FORGIVEN_SECONDS,
    POLL_SECONDS,
    SELECT_SECONDS,
    SHORTEST_SECONDS,
    STATUS_SECONDS,
    Habits,
)
from mailgateway.daemons.logins import Door, Logins
from mailgateway.daemons.watcher import Watcher
from mailgateway.flows import folders
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.scan import ScanRules
from mailgateway.providers import Poll, of_imap
from mailgateway.wire.sasl import BearerToken, end_of_token
from tests.daemons.small_imap import Habits as ServerHabits
from tests.daemons.small_imap import SmallImap
from tests.daemons.watching import WatcherTestCase
from tests.daemons.world import IMAP_PORT, KEY, Run
from tests.flows.inbound import OWN, TTL
from tests.flows.outbound import ACCOUNT, IDENTITY

STRANGER = b"From: somebody@elsewhere.example\r\nSubject: sale\r\n\r\n"


STAND_IN = ("reactor", "account", "key", "imap", "smtp", "environ", "now")


@define(eq=False)
class StandIn(Logins):
    """Logins whose credentials the test makes."""

    obtaining: Callable[[Door], Awaitable[BearerToken]] = field(init=False)

    async def credential(self, door: Door) -> BearerToken:
        """Make one."""
        return await self.obtaining(door)


class RestTests(SynchronousTestCase):
    """How long to rest."""

    def rest(self, host: str = "", *, idles: bool = True, scan: float = 0, chance: float = 0.5) -> float:
        """In the middle of the jitter."""
        return Habits(of_imap(host)).rest_seconds(idles=idles, scan_interval=scan, chance=chance)

    def test_by_host(self) -> None:
        """Row 5: each provider's own patience."""
        for host, seconds in (
            ("imap.example.org", 540),
            ("imap.gmail.com", 540),
            ("imap.rambler.ru", 50),
            ("imap.mail.yahoo.com", 180),
            ("imap.aol.com", 180),
            ("outlook.office365.com", 300),
        ):
            self.assertEqual(self.rest(host), seconds, host)

    def test_the_shorter_one_counts(self) -> None:
        """The interval of the settings, or the provider's."""
        self.assertEqual(self.rest(scan=60), 60)
        self.assertEqual(self.rest("imap.rambler.ru", scan=60), 50)
        self.assertEqual(self.rest(scan=3_600), 540)

    def test_without_idle(self) -> None:
        """By the settings, the provider, or every two minutes; never without a rest."""
        self.assertEqual(self.rest(idles=False), POLL_SECONDS)
        self.assertEqual(self.rest(idles=False, scan=600), 600)
        self.assertEqual(self.rest("imap.163.com", idles=False, scan=600), 50)

    @given(st.integers(0, 86_400), st.floats(0, 1, exclude_max=True), st.booleans())
    def test_never_longer_than_idle_lasts(self, interval: int, chance: float, idles: bool) -> None:
        """Under the half hour after which servers log an idle client out, and never without a rest."""
        seconds = self.rest(idles=idles, scan=interval, chance=chance)
        self.assertLessEqual(seconds, 570 if idles else max(127, interval * 1.11))
        self.assertGreaterEqual(seconds, min(100, interval * 0.89) if interval else 100)

    def test_spread(self) -> None:
        """Half a minute around nine."""
        self.assertEqual((self.rest(chance=0.0), self.rest(chance=1.0)), (510, 570))


class DeafTests(SynchronousTestCase):
    """A server that leaves mail unannounced (row 2)."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.habits = Habits(seconds=self.clock.seconds)

    def test_twice_halves(self) -> None:
        """Down to a minute, and it is said."""
        periods: list[float] = []
        for _ in range(5):
            self.habits.missed()
            self.assertEqual(self.habits.idle_seconds, periods[-1] if periods else 540)
            self.habits.missed()
            periods.append(self.habits.idle_seconds)
        self.assertEqual(periods, [270, 135, 67.5, SHORTEST_SECONDS, SHORTEST_SECONDS])
        (remark,) = self.habits.remarks
        self.assertIn("60 s", remark)

    def test_an_announcement_in_between(self) -> None:
        """It is not deaf then; one mail may come at the very moment of the renewal."""
        for _ in range(10):
            self.habits.missed()
            self.habits.announced()
        self.assertEqual((self.habits.idle_seconds, self.habits.remarks), (540, ()))

    def test_a_day_without_a_miss(self) -> None:
        """One step back for each."""
        for _ in range(4):
            self.habits.missed()
        self.assertEqual(self.habits.idle_seconds, 135)
        self.clock.advance(FORGIVEN_SECONDS - 1)
        self.assertEqual(self.habits.idle_seconds, 135)
        self.clock.advance(1)
        self.assertEqual(self.habits.idle_seconds, 270)
        self.clock.advance(FORGIVEN_SECONDS)
        self.assertEqual((self.habits.idle_seconds, self.habits.remarks), (540, ()))

    def test_a_provider_with_less_patience_keeps_its_own(self) -> None:
        """Fifty seconds are not made a minute."""
        habits = Habits(of_imap("imap.rambler.ru"), self.clock.seconds)
        for _ in range(4):
            habits.missed()
        self.assertEqual(habits.idle_seconds, 50)


class BlindImap(SmallImap):
    """Shows new mail to NOOP, to STATUS and SELECT, or to SELECT only."""

    shows = Poll.NOOP

    def __init__(self, habits: ServerHabits) -> None:
        super().__init__(habits)
        self.seen = 0

    def lineReceived(self, line: bytes) -> None:
        tag, _, rest = line.partition(b" ")
        verb = rest.partition(b" ")[0]
        if verb == b"SELECT":
            self.seen = len(self.habits.mails)
        if verb == b"NOOP" and self.shows is not Poll.NOOP:
            self.habits.verbs.append("NOOP")
            self._end(tag, b"OK")
        elif verb == b"STATUS":
            self.habits.verbs.append("STATUS")
            count = self.seen if self.shows is Poll.SELECT else len(self.habits.mails)
            self.sendLine(b"* STATUS INBOX (MESSAGES %d UIDNEXT %d UIDVALIDITY 7)" % (count, count + 1))
            self._end(tag, b"OK")
        elif verb == b"UID" and self.shows is not Poll.NOOP:
            mails, self.habits.mails = self.habits.mails, self.habits.mails[: self.seen]
            super().lineReceived(line)
            self.habits.mails = mails
        else:
            super().lineReceived(line)


class AskTests(WatcherTestCase):
    """By which command new mail is looked for (row 4)."""

    def setUp(self) -> None:
        super().setUp()
        self.habits.login = b"OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] welcome"
        self.shows(Poll.NOOP)

    def shows(self, poll: Poll) -> None:
        """From the next connection on the server shows new mail so."""
        blind = type("Blind", (BlindImap,), {"shows": poll})
        self.network.servers[IMAP_PORT] = lambda: blind(self.habits)

    def watch(self, host: str = "127.0.0.1") -> Watcher:
        """A new process that watches a server of this name."""
        return self.begin(habits=Habits(of_imap(host), self.network.seconds))

    def uid(self) -> int:
        """Up to where the folder was read."""
        cursor = self.now(folders.cursor(self.gateway.database, ACCOUNT, "INBOX"))
        assert cursor is not None
        return cursor[1]

    def looks_until_found(self) -> int:
        """How many looks it takes until a mail that comes now is seen."""
        self.habits.mails.append(STRANGER)
        for look in range(1, 200):
            self.later(67)
            if self.uid() == len(self.habits.mails):
                return look
        return 0

    def test_a_provider_that_is_known_for_it(self) -> None:
        """STATUS at 163, SELECT at Naver: at the next look, on the one connection."""
        for host, poll in (("imap.163.com", Poll.STATUS), ("imap.naver.com", Poll.SELECT)):
            self.setUp()
            self.shows(poll)
            watcher = self.watch(host)
            self.assertEqual([self.looks_until_found() for _ in range(3)], [1, 1, 1], host)
            self.assertEqual(self.dialled, 1)
            self.assertEqual(watcher.remarks, ())
            self.end(watcher)

    def test_no_idle_where_it_is_not_worth_it(self) -> None:
        """Though it is offered."""
        self.habits.login = ServerHabits().login
        self.watch("imap.163.com")
        self.assertEqual(self.state, "polling")
        self.assertNotIn("IDLE", self.habits.verbs)

    def test_a_stranger_teaches_that_noop_shows_nothing(self) -> None:
        """Found out within a quarter of an hour, and at the next look from then on."""
        self.shows(Poll.STATUS)
        watcher = self.watch()
        self.assertLessEqual(self.looks_until_found() * 67, STATUS_SECONDS + 67)
        self.assertEqual([self.looks_until_found() for _ in range(3)], [1, 1, 1])
        (remark,) = watcher.remarks
        self.assertIn("STATUS", remark)
        self.assertEqual(self.dialled, 1)

    def test_a_stranger_teaches_that_only_select_shows_something(self) -> None:
        """Within an hour each, twice; at the next look from then on."""
        self.shows(Poll.SELECT)
        watcher = self.watch()
        for _ in range(2):
            self.assertLessEqual(self.looks_until_found() * 67, SELECT_SECONDS + STATUS_SECONDS + 67)
        self.assertEqual([self.looks_until_found() for _ in range(3)], [1, 1, 1])
        self.assertIn("SELECT", watcher.remarks[0])

    def test_a_good_server_is_not_suspected(self) -> None:
        """A day of mail: NOOP stays the way, and the folder is selected once an hour at most."""
        watcher = self.watch()
        for _ in range(60):
            self.assertEqual(self.looks_until_found(), 1)
        for _ in range(24 * 54):
            self.later(67)
        self.assertEqual(watcher.remarks, ())
        self.assertLessEqual(self.habits.verbs.count("SELECT"), 28)

    def test_a_deaf_idle_is_renewed_more_often(self) -> None:
        """Row 2: from nine minutes to four and a half, after two mails that were never announced."""
        self.habits.login = ServerHabits().login
        watcher = self.watch()
        watcher.scan_interval_seconds = 0
        self.later(67)
        for _ in range(2):
            self.habits.mails.append(STRANGER)
            self.later(571)
            self.assertEqual(self.uid(), len(self.habits.mails))
        self.assertIn("270 s", watcher.remarks[0])
        self.later(290)
        self.habits.mails.append(STRANGER)
        self.later(286)
        self.assertEqual(self.uid(), 3)


class TokenTests(WatcherTestCase):
    """A session ends with its token (row 11)."""

    def token(self, lifetime: timedelta) -> str:
        """A token that tells when it ends."""
        claims = json.dumps({"exp": int((self.run_.now() + lifetime).timestamp())}).encode()
        return f"e30.{urlsafe_b64encode(claims).decode().rstrip('=')}.c2ln"

    def begin_with(self, lifetime: timedelta) -> None:
        """Watch with tokens that live so long."""
        offered = b"CAPABILITY IMAP4rev1 IDLE SASL-IR AUTH=XOAUTH2"
        self.habits.greeting = b"* OK [" + offered + b"] ready"
        self.habits.login = b"OK [" + offered + b"] welcome"
        run = self.run_ = Run(self.network, self.database)
        self.now(run.load())

        async def credential(_door: Door) -> BearerToken:
            token = self.token(lifetime)
            return BearerToken("agent", "127.0.0.1", IMAP_PORT, token, end_of_token(token))

        logins = StandIn(*(getattr(run.logins, name) for name in STAND_IN))
        logins.obtaining = credential
        rules = ScanRules(FilingRules(IDENTITY, OWN, KEY), TTL)
        watcher = Watcher(
            self.network,
            self.database,
            self.gateway.bell,
            rules,
            logins,
            "INBOX",
            run.imap,
            60,
            lambda _: None,
        )
        watcher.startService()
        self.addCleanup(self.end, watcher)
        self.health, self.watcher = run.imap, watcher
        self.later(0)
        self.assertEqual((self.dialled, self.state), (1, "watching"))

    def test_renewed_before_the_token_ends(self) -> None:
        """Politely, two to five minutes before, again and again; nothing is held against anybody."""
        self.begin_with(timedelta(hours=1))
        for number in range(3):
            for _ in range(53):
                self.later(60)
            self.assertEqual(self.dialled, 1 + number)
            for _ in range(6):
                self.later(60)
            self.assertEqual((self.dialled, self.state), (2 + number, "watching"))
        self.assertEqual(self.habits.verbs.count("LOGOUT"), 3)
        self.assertEqual((self.health.login.refusals, self.health.remembered_failure), (0, None))

    def test_tokens_that_live_too_short(self) -> None:
        """They make no storm of logins: the server's word is waited for."""
        for minutes in (0, 1, 5, 9):
            self.setUp()
            self.begin_with(timedelta(minutes=minutes))
            for _ in range(60):
                self.later(60)
            self.assertEqual(self.dialled, 1, minutes)
            self.end(self.watcher)

    def test_what_a_token_says(self) -> None:
        """Only of a JWT that says it; anything else says nothing."""
        at = datetime(2030, 1, 1, tzinfo=UTC)
        claims = urlsafe_b64encode(json.dumps({"exp": at.timestamp()}).encode()).decode().rstrip("=")
        self.assertEqual(end_of_token(f"e30.{claims}.x"), at)
        for odd in (
            "",
            "ya29.opaque",
            "a.b.c",
            "e30.e30.x",
            "e30.W10.x",
            "e30.eyJleHAiOiAxZTk5fQ.x",
            "é.é.é",
        ):
            self.assertIsNone(end_of_token(odd), odd)
