"""A watcher and the habits of real IMAP servers: what it does over hours, and how often it logs in.

The rows are those of the list in ``tests.protocols.test_rows``.
"""

from itertools import repeat

from mailgateway.domain.reconnect import FailureClass
from mailgateway.flows import deliver, folders
from tests.daemons.small_imap import Habits
from tests.daemons.watching import THROTTLED, WatcherTestCase
from tests.daemons.world import IMAP_PORT
from tests.flows.inbound import letter
from tests.flows.outbound import ACCOUNT, IDENTITY, S1

STRANGER = b"From: somebody@elsewhere.example\r\nSubject: sale\r\n\r\n"
HOUR = 3_600
REST = 67
"""Seconds after which a watcher whose scan interval is 60 s has certainly looked again."""

UNAVAILABLE = b"NO [UNAVAILABLE] Temporary authentication failure"
NOT_CONNECTED = b"BAD User is authenticated but not connected."
CROWDED = b"NO [ALERT] Too many simultaneous connections. (Failure)"


class HostileTestCase(WatcherTestCase):
    """What these tests share."""

    def pass_time(self, seconds: float, step: float = 30) -> None:
        """Let a long time pass."""
        for _ in range(round(seconds / step)):
            self.later(step)

    def cursor(self) -> tuple[int, int] | None:
        """Up to where the folder was read."""
        return self.now(folders.cursor(self.gateway.database, ACCOUNT, "INBOX"))

    @property
    def logins(self) -> int:
        """How often the server was asked to check the password."""
        return self.habits.verbs.count("AUTHENTICATE")


class ConnectionTests(HostileTestCase):
    """Connections that look alive, and connections that end."""

    def test_half_open_idle(self) -> None:
        """Row 1: DONE that is not answered within 15 s ends the connection, and a new one is made."""
        self.begin()
        self.habits.hangs_at = "DONE"
        self.later(REST)
        self.assertFalse(self.network.accepted[0].gone)
        self.later(14)
        self.assertEqual(self.dialled, 1)
        self.later(1)
        self.assertTrue(self.network.accepted[0].gone)
        self.later(2)
        self.assertEqual((self.dialled, self.state), (2, "watching"))

    def test_mail_that_is_never_announced(self) -> None:
        """Row 2: each renewal looks, in an empty folder too."""
        self.begin()
        for uid in (1, 2):
            self.habits.mails.append(STRANGER)
            self.later(REST)
            self.assertEqual(self.cursor(), (7, uid))
        self.assertEqual(self.dialled, 1)

    def test_a_server_without_idle_is_polled(self) -> None:
        """Row 3: by NOOP, on the one connection."""
        self.habits.login = b"OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] welcome"
        self.begin()
        self.assertEqual(self.state, "polling")
        self.habits.mails.append(STRANGER)
        self.later(REST)
        self.assertEqual((self.cursor(), self.dialled), ((7, 1), 1))
        self.assertNotIn("IDLE", self.habits.verbs)

    def test_an_idle_session_that_the_server_ends_each_minute(self) -> None:
        """Row 5: it is no failure that grows, and nobody waits long."""
        self.begin()
        for number in range(5):
            self.later(61)
            self.network.accepted[-1].say(b"* BYE Autologout; idle for too long")
            self.network.accepted[-1].hang_up()
            self.network.settle()
            self.later(2)
            self.assertEqual((self.dialled, self.state), (number + 2, "watching"))

    def test_a_token_that_ran_out(self) -> None:
        """Rows 10 and 11: back at once, and nothing is held against the credential."""
        self.begin()
        self.pass_time(HOUR)
        for words in (b"* BYE Session invalidated - AccessTokenExpired", b"* BYE Session expired"):
            before = self.dialled
            self.network.accepted[-1].say(words)
            self.network.accepted[-1].hang_up()
            self.network.settle()
            self.later(2)
            self.assertEqual((self.dialled, self.state), (before + 1, "watching"), words)
            self.assertEqual(self.health.login.refusals, 0)
            self.pass_time(400)

    def test_a_login_that_is_worth_nothing(self) -> None:
        """Row 12: five minutes at least, then ten; the password is not to blame."""
        self.habits.answers["SELECT"] = repeat(NOT_CONNECTED)
        self.begin()
        self.later(299)
        self.assertEqual((self.dialled, self.state), (1, "backing-off"))
        self.later(32)
        self.assertEqual(self.dialled, 2)
        self.later(590)
        self.assertEqual((self.dialled, self.health.login.refusals), (2, 0))

    def test_too_many_connections_at_login(self) -> None:
        """Row 13: a minute's patience, one connection at a time, no refusal."""
        self.habits.login = CROWDED
        self.begin()
        self.later(59)
        self.assertEqual((self.dialled, self.network.accepted[0].gone), (1, True))
        self.assertEqual(self.health.remembered_failure, (FailureClass.THROTTLE, 1))
        self.habits.login = Habits().login
        self.later(8)
        self.assertEqual((self.dialled, self.state, self.health.login.refusals), (2, "watching", 0))

    def test_one_login_for_a_whole_day(self) -> None:
        """Row 14: a server that behaves sees one."""
        self.begin()
        self.pass_time(24 * HOUR, step=300)
        self.assertEqual((self.logins, self.dialled, self.state), (1, 1, "watching"))

    def test_a_hint_is_obeyed(self) -> None:
        """Row 15: nothing is asked before the server's own time, on the connection that there is."""
        self.begin()
        self.habits.mails.append(STRANGER)
        hint = b"BAD Request is throttled. Suggested Backoff Time: 92415 milliseconds"
        self.habits.answers["UID"] = iter([hint])
        self.later(REST)
        self.assertEqual(self.state, "backing-off")
        asked = len(self.habits.verbs)
        self.later(92)
        self.assertEqual((self.dialled, self.cursor(), len(self.habits.verbs)), (1, (7, 0), asked))
        self.later(1)
        self.assertEqual((self.dialled, self.state, self.cursor()), (1, "watching", (7, 1)))

    def test_a_command_that_is_refused_for_now(self) -> None:
        """Row 16: cursor and connection stay, and the mail is found when the server has recovered."""
        for code in (b"TEMPFAIL", b"UNAVAILABLE", b"INUSE", b"SERVERBUG", b"OVERQUOTA"):
            self.setUp()
            watcher = self.begin()
            self.habits.mails.append(STRANGER)
            self.habits.answers["UID"] = iter([b"NO [" + code + b"] UID FETCH Temporary failure"] * 3)
            self.later(REST)
            self.assertEqual((self.state, self.cursor()), ("backing-off", (7, 0)), code)
            self.pass_time(900)
            self.assertEqual((self.state, self.cursor()), ("watching", (7, 1)), code)
            self.assertEqual(len(self.network.accepted), 1, code)
            self.end(watcher)


class LossTests(HostileTestCase):
    """Connections that are lost at any moment."""

    def take_in(self, cut_at: int | None) -> int:
        """Three replies come, and the connection that tells of them is cut; octets since the news."""
        self.setUp()
        self.ping()
        sent = self.submit()
        watcher = self.begin()
        connection = self.network.accepted[0]
        before: int = connection.spoken
        if cut_at is not None:
            connection.cut_at = before + cut_at
        for words in ("one", "two", "three"):
            self.habits.mails.append(letter(words, replies_to=sent.message_id))
        connection.say(b"* 3 EXISTS")
        self.network.settle()
        spoken: int = connection.spoken - before
        for _ in range(4):
            self.later(2)
        self.assertEqual(self.state, "watching", cut_at)
        gateway = self.gateway
        pending = self.now(deliver.pending(gateway.database, IDENTITY, session=S1, kind=None))
        self.assertEqual([envelope.body for envelope in pending], ["one", "two", "three"], cut_at)
        self.end(watcher)
        return spoken

    def test_a_connection_that_is_cut_at_any_byte(self) -> None:
        """Row 36: every mail is there in the end, once, in its order."""
        total = self.take_in(None)
        self.assertGreater(total, 1_000)
        for cut_at in range(1, total + 1, 41):
            self.take_in(cut_at)


class AccountTests(HostileTestCase):
    """Logins that are refused, and how often they are tried: providers lock accounts."""

    def test_a_day_with_a_server_that_always_says_the_same(self) -> None:
        """Row 49: with the service restarted every half hour, each kind of failure keeps its budget."""
        wrong = b"NO [AUTHENTICATIONFAILED] Invalid credentials"
        for login, most in ((wrong, 2), (b"NO LOGIN failed.", 2), (UNAVAILABLE, 40), (CROWDED, 60)):
            self.setUp()
            self.habits.login = login
            for _ in range(2 * 24):
                watcher = self.begin()
                self.pass_time(1_800, step=100)
                self.end(watcher)
            self.assertLessEqual(self.logins, most, login)
            self.assertGreater(self.logins, 1, login)

    def test_a_day_of_farewells(self) -> None:
        """Row 49: a server that is crowded is left alone, without a login."""
        self.habits.greeting = THROTTLED
        self.begin()
        self.pass_time(24 * HOUR, step=100)
        self.assertTrue(24 < self.dialled <= 60, self.dialled)
        self.assertEqual(self.logins, 0)

    def test_a_day_without_a_server(self) -> None:
        """Row 49: nobody is hurt by a refused connection, and yet it is not tried every second."""
        self.network.servers.pop(IMAP_PORT)
        self.begin()
        self.pass_time(24 * HOUR, step=100)
        self.assertTrue(200 < self.dialled < 500, self.dialled)

    def test_a_login_that_cannot_be_checked_now(self) -> None:
        """Row 47: three times in vain, then in; it was never taken for a wrong password."""
        self.habits.answers["AUTHENTICATE"] = iter([UNAVAILABLE] * 3)
        self.begin()
        states = set()
        for _ in range(90):
            self.later(30)
            states.add(self.state)
        self.assertEqual((self.logins, self.state, self.health.login.refusals), (4, "watching", 0))
        self.assertNotIn("refused", states)

    def test_a_wrong_password_is_tried_once_more_after_ten_minutes(self) -> None:
        """Row 46: and then never again by itself."""
        self.habits.login = b"NO [AUTHENTICATIONFAILED] Invalid credentials or IMAP is disabled"
        self.begin()
        self.later(599)
        self.assertEqual((self.logins, self.state), (1, "refused"))
        self.later(3)
        self.assertEqual(self.logins, 2)
        self.pass_time(24 * HOUR, step=600)
        self.assertEqual((self.logins, self.state), (2, "refused"))
