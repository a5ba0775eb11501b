"""The seven classes of failures, each with its numbers, over restarts of the service."""

from collections.abc import Callable

from attrs import frozen

from mailgateway.daemons.watcher import Watcher
from mailgateway.domain.reconnect import FailureClass
from tests.daemons.small_imap import Habits
from tests.daemons.watching import THROTTLED, WatcherTestCase
from tests.daemons.world import ENVIRON, IMAP_PORT


@frozen
class Case:
    """How a server makes the watcher fail, and how long it is left alone after the first and second time."""

    kind: FailureClass
    arrange: "Callable[[RestartTests], None]"
    first: float
    """Seconds in which nobody may dial after the first failure."""
    second: float
    longest: float
    """Seconds after which somebody has dialled for the second time."""


def _gone(test: "RestartTests") -> None:
    test.network.servers.pop(IMAP_PORT, None)


def _greeting(words: bytes) -> "Callable[[RestartTests], None]":
    def arrange(test: "RestartTests") -> None:
        test.habits.greeting = words

    return arrange


def _login(words: bytes) -> "Callable[[RestartTests], None]":
    def arrange(test: "RestartTests") -> None:
        test.habits.login = words

    return arrange


CASES = (
    Case(FailureClass.NETWORK, _gone, 0.5, 0.3, 2.5),
    Case(FailureClass.THROTTLE, _greeting(THROTTLED), 59, 112, 67),
    Case(FailureClass.LOGIN_UNAVAILABLE, _login(b"NO [UNAVAILABLE] later"), 299, 568, 331),
    Case(FailureClass.PROTOCOL, _greeting(b"220 mail.example.org ESMTP"), 29, 55, 34),
    Case(FailureClass.CREDENTIAL, _login(b"NO [AUTHENTICATIONFAILED] wrong"), 599, 10_000_000, 602),
)


class RestartTests(WatcherTestCase):
    """A service manager that restarts us at once makes us no quicker."""

    def stop(self, watcher: Watcher) -> None:
        """Stop at once: there is nobody to say goodbye to."""
        stopping = watcher.stopService()
        self.network.settle()
        self.successResultOf(stopping)

    def test_each_class_keeps_its_pause_and_its_count(self) -> None:
        """After the first failure, after a restart, and longer after the second, over a restart too."""
        for case in CASES:
            self.setUp()
            case.arrange(self)
            watcher = self.begin()
            self.later(0.4)
            self.assertEqual(self.dialled, 1, case.kind)
            self.stop(watcher)
            known = self.health.remembered_failure
            assert known is not None
            self.assertIs(known[0], case.kind)
            watcher = self.begin()
            self.later(case.first)
            self.assertEqual(self.dialled, 1, case.kind)
            self.later(case.longest - case.first)
            self.later(0.4)  # until the second attempt has failed as well
            self.assertEqual(self.dialled, 2, case.kind)
            self.stop(watcher)
            watcher = self.begin()
            self.later(case.second)
            self.assertEqual(self.dialled, 2, case.kind)
            self.stop(watcher)

    def test_a_token_that_cannot_be_had(self) -> None:
        """Half a minute, then a whole one; the mail server is not asked at all."""
        secret = ENVIRON.pop("IMAP_PASSWORD")
        self.addCleanup(ENVIRON.__setitem__, "IMAP_PASSWORD", secret)
        self.stop(self.begin())
        self.assertEqual(self.health.remembered_failure, (FailureClass.TOKEN, 1))
        watcher = self.begin()
        self.later(29)
        self.assertEqual(self.health.remembered_failure, (FailureClass.TOKEN, 1))
        self.later(5)
        self.assertEqual(self.health.remembered_failure, (FailureClass.TOKEN, 2))
        self.stop(watcher)
        watcher = self.begin()
        self.assertGreater(self.health.seconds_to_wait(), 50)
        self.assertEqual(self.dialled, 0)
        self.stop(watcher)

    def test_a_clean_end(self) -> None:
        """It costs two seconds at most, and is no failure that grows."""
        watcher = self.begin()
        for number in range(1, 6):
            self.later(61)
            self.network.accepted[-1].say(b"* BYE Autologout; idle for too long")
            self.network.accepted[-1].hang_up()
            self.network.settle()
            self.assertEqual(self.health.remembered_failure, (FailureClass.CLEAN, 1), number)
            self.stop(watcher)
            watcher = self.begin()
            self.later(2)
            self.assertEqual((self.dialled, self.state), (1 + number, "watching"))

    def test_health_makes_good(self) -> None:
        """After a minute of watching the next failure is a first one again, over a restart too."""
        self.habits.greeting = THROTTLED
        self.begin()
        self.later(67)
        self.assertEqual(self.health.remembered_failure, (FailureClass.THROTTLE, 2))
        self.habits.greeting = Habits().greeting
        self.later(133)
        self.assertEqual((self.state, self.health.remembered_failure), ("watching", None))
