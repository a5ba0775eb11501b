"""Watching as a service: leases, restarts and stops; the machine itself has its own tests."""

from datetime import UTC, datetime, timedelta

from mailgateway.daemons.watcher import (
    LEASE_RENEWAL_SECONDS,
    NO_FENCE,
    STOP_SECONDS,
)
from mailgateway.domain.envelope import Source
from mailgateway.domain.reconnect import FailureClass
from mailgateway.errors import StoreUnavailable
from mailgateway.flows import leases
from mailgateway.ids import AccountName, MachineId
from mailgateway.store import flagging, held
from tests.daemons.small_imap import Habits
from tests.daemons.watching import THROTTLED, WatcherTestCase
from tests.daemons.world import SlowDatabase


class OwnTests(WatcherTestCase):
    """On a database of its own."""

    def test_it_watches(self) -> None:
        """From the start to IDLE without anybody's help."""
        self.begin()
        self.assertEqual(self.habits.verbs[-1], "IDLE")
        self.assertEqual(self.state, "watching")

    def test_it_looks_by_itself(self) -> None:
        """A server that has gone deaf is found out."""
        self.begin()
        self.later(67)
        self.assertEqual(self.habits.verbs.count("IDLE"), 2)

    def test_held_mail_is_tried_again_in_its_time(self) -> None:
        """Not only when it looks by itself; a mail that was taken away meanwhile is forgotten."""
        self.begin()
        place = Source(AccountName("main"), "INBOX", 7, 3)
        soon = self.network_now() + timedelta(seconds=20)
        row = held.Held(place, "", soon, "key", soon + timedelta(hours=1), soon)
        self.gateway.rows(lambda tx: held.keep(tx, row))
        self.end(self.begin())
        self.begin()
        idles = self.habits.verbs.count("IDLE")
        self.later(21)
        self.assertEqual(self.habits.verbs.count("IDLE"), idles + 1)
        self.assertEqual(self.gateway.rows(held.count), 0)

    def network_now(self) -> datetime:
        """The time by the database's clock."""
        return datetime.now(UTC) + self.database.offset

    def test_a_sleep_ends_the_connection(self) -> None:
        """Though it looks alive: a new one is made at once, and mail that came meanwhile is found."""
        watcher = self.begin()
        self.habits.hangs_at = "DONE"
        watcher.woke()
        self.later(0)
        self.assertEqual((self.dialled, self.state), (2, "watching"))
        self.assertTrue(self.network.accepted[0].gone)

    def test_a_sleep_before_the_beginning(self) -> None:
        """A watcher that waits for its time goes on waiting."""
        self.habits.greeting = THROTTLED
        self.end(self.begin())
        watcher = self.begin()
        watcher.woke()
        self.later(10)
        self.assertEqual(self.dialled, 1)

    def test_a_stop_says_goodbye(self) -> None:
        """Within the same second, when the server plays along."""
        watcher = self.begin()
        stopping = watcher.stopService()
        self.network.settle()
        self.successResultOf(stopping)
        self.assertEqual(self.habits.verbs[-1], "LOGOUT")
        self.assertEqual(self.network.getDelayedCalls(), [])

    def test_a_stop_ends_in_time_though_the_server_hangs(self) -> None:
        """Nobody's LOGOUT may hold up our end."""
        self.habits.hangs_at = "LOGOUT"
        watcher = self.begin()
        stopping = watcher.stopService()
        self.network.settle()
        self.assertNoResult(stopping)
        self.later(STOP_SECONDS)
        self.successResultOf(stopping)
        self.assertTrue(self.network.accepted[-1].gone)
        self.assertEqual(self.network.getDelayedCalls(), [])

    def test_a_stop_in_every_phase(self) -> None:
        """Wherever the dialogue stands, all of it ends, and no fault of ours is logged."""
        for verb in ("AUTHENTICATE", "SELECT", "IDLE"):
            self.habits.hangs_at = verb
            watcher = self.begin()
            self.assertEqual(self.habits.verbs[-1], verb)
            self.end(watcher)
            self.assertTrue(self.network.accepted[-1].gone, verb)
            self.assertEqual(self.network.getDelayedCalls(), [], verb)
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_a_stop_while_rows_are_written(self) -> None:
        """The line is given up while the database works: its late success starts nothing any more."""
        for hangs_at in ("", "LOGOUT"):
            self.habits.verbs.clear()
            self.habits.hangs_at = hangs_at
            self.forget()
            self.database.slow = True
            watcher = self.begin()
            self.assertEqual(self.habits.verbs, ["AUTHENTICATE"])
            stopping = watcher.stopService()
            self.network.settle()
            self.database.let_go()
            self.later(STOP_SECONDS)
            self.successResultOf(stopping)
            self.assertEqual(self.habits.verbs, ["AUTHENTICATE", "LOGOUT"])
            self.assertEqual(self.flushLoggedErrors(), [])

    def forget(self) -> None:
        """Another database, which knows of no login: the next one is written down."""
        self.database = SlowDatabase()
        self.addCleanup(self.database.close)

    def test_a_restart_honours_a_throttle(self) -> None:
        """A service manager that restarts us cannot make us hammer."""
        self.habits.greeting = THROTTLED
        self.end(self.begin())
        self.assertEqual(self.dialled, 1)
        for _ in range(3):
            watcher = self.begin()
            self.later(10)
            self.end(watcher)
        self.assertEqual(self.dialled, 1)
        self.habits.greeting = Habits().greeting
        self.begin()
        self.later(61)
        self.assertEqual((self.dialled, self.state), (2, "watching"))

    def test_a_restart_remembers_how_often_it_failed(self) -> None:
        """The next pause is twice as long as the last one was."""
        self.habits.greeting = THROTTLED
        self.end(self.begin())
        self.begin()
        self.later(67)
        self.assertEqual(self.dialled, 2)
        self.assertEqual(self.health.remembered_failure, (FailureClass.THROTTLE, 2))
        self.later(100)
        self.assertEqual(self.dialled, 2)

    def test_a_refused_password_over_restarts(self) -> None:
        """Two logins, however often the service is started."""
        self.habits.login = b"NO [AUTHENTICATIONFAILED] wrong"
        for _ in range(4):
            self.end(self.begin())
        self.assertEqual(self.habits.verbs.count("AUTHENTICATE"), 1)
        self.begin()
        self.later(601)
        self.assertEqual(self.habits.verbs.count("AUTHENTICATE"), 2)
        self.later(86_400)
        self.assertEqual(self.habits.verbs.count("AUTHENTICATE"), 2)
        self.assertEqual(self.state, "refused")


class SharedTests(WatcherTestCase):
    """On a database that several gateways share."""

    def setUp(self) -> None:
        super().setUp()
        self.database.shared = True

    def steal(self) -> None:
        """Another machine takes the lease when it has run out."""
        self.database.advance(seconds=21)
        taken = leases.acquire(self.database, "folder:main/INBOX", MachineId("machine-two"), seconds=1_000)
        self.assertIsNotNone(self.now(taken))

    def test_only_the_holder_watches(self) -> None:
        """The others stand by, and ask again until the lease is free."""
        other = self.now(leases.acquire(self.database, "folder:main/INBOX", MachineId("machine-two")))
        self.begin()
        self.assertEqual((self.state, self.dialled), ("standby", 0))
        assert other is not None
        self.now(leases.release(self.database, other))
        self.later(LEASE_RENEWAL_SECONDS)
        self.assertEqual((self.state, self.dialled), ("watching", 1))

    def test_who_has_lost_the_lease_lets_go(self) -> None:
        """The connection ends, and whatever is still filed is refused."""
        watcher = self.begin()
        self.assertNotIn(watcher._fence(), {None, NO_FENCE})
        self.steal()
        self.later(LEASE_RENEWAL_SECONDS)
        self.assertEqual(self.state, "standby")
        self.assertTrue(self.network.accepted[-1].gone)
        self.assertEqual(watcher._fence(), NO_FENCE)

    def test_a_stop_gives_the_lease_back(self) -> None:
        """Another gateway goes on at once."""
        self.end(self.begin())
        taken = leases.acquire(self.database, "folder:main/INBOX", MachineId("machine-two"))
        self.assertIsNotNone(self.now(taken))

    def test_a_stop_without_a_database(self) -> None:
        """The lease ends by time; the stop does not fail for it."""
        watcher = self.begin()
        stopping = watcher.stopService()
        self.database.failures = [StoreUnavailable("gone")]
        self.network.settle()
        self.successResultOf(stopping)

    def test_keeping_the_lease_does_not_cut_a_pause_short(self) -> None:
        """It is renewed every few seconds; the server that asked for patience must not feel it."""
        self.habits.greeting = THROTTLED
        self.begin()
        for _ in range(8):
            self.later(LEASE_RENEWAL_SECONDS)
        self.assertEqual(self.dialled, 1)

    def test_a_restart_honours_a_throttle(self) -> None:
        """With a lease, too."""
        self.habits.greeting = THROTTLED
        self.end(self.begin())
        self.begin()
        self.later(LEASE_RENEWAL_SECONDS)
        self.assertEqual(self.dialled, 1)

    def test_a_database_that_comes_back(self) -> None:
        """Without it nobody knows who may watch: let go, and begin again."""
        self.begin()
        self.database.failures = [StoreUnavailable("gone")]
        self.later(LEASE_RENEWAL_SECONDS)
        self.assertEqual(self.state, "standby")
        self.later(LEASE_RENEWAL_SECONDS)
        self.assertEqual(self.state, "watching")

    def test_a_sleep_with_the_lease(self) -> None:
        """Nothing is dialled before the lease is found to be ours still."""
        watcher = self.begin()
        watcher.woke()
        self.later(0)
        self.assertEqual((self.dialled, self.network.accepted[0].gone), (1, True))
        self.later(LEASE_RENEWAL_SECONDS)
        self.assertEqual((self.dialled, self.state), (2, "watching"))

    def test_a_sleep_that_cost_the_lease(self) -> None:
        """Another gateway watches meanwhile: whoever wakes files nothing and dials nobody."""
        watcher = self.begin()
        self.database.advance(seconds=3_600)
        resource = leases.folder_resource(AccountName("main"), "INBOX")
        other = self.now(leases.acquire(self.database, resource, MachineId("another")))
        self.assertIsNotNone(other)
        watcher.woke()
        for _ in range(3):
            self.later(1)
            self.network.advance(LEASE_RENEWAL_SECONDS - 1)
            self.network.settle()
        self.assertEqual((self.dialled, self.state), (1, "standby"))

    def test_acks_at_another_gateway(self) -> None:
        r"""They ring no bell here; their mails become ``\Seen`` all the same, and soon."""
        self.begin()
        self.gateway.rows(lambda tx: flagging.ask(tx, Source(AccountName("main"), "INBOX", 7, 1)))
        self.later(LEASE_RENEWAL_SECONDS)
        self.assertEqual(self.habits.verbs.count("IDLE"), 2)
        self.assertEqual(
            self.gateway.rows(lambda tx: flagging.due(tx, AccountName("main"), "INBOX", 7, 9)), ()
        )
