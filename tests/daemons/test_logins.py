"""Logins and what is remembered of them: a wrong password is tried twice, whatever happens."""

from datetime import timedelta
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.logger import ILogObserver, LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase, TestCase
from zope.interface import implementer

from mailgateway.daemons.health import DoorHealth
from mailgateway.daemons.logins import Door
from mailgateway.daemons.tasks import Tasks, to_the_end
from mailgateway.daemons.watching import Condition, Held
from mailgateway.domain.account import AccountState
from mailgateway.domain.reconnect import FailureClass
from mailgateway.errors import (
    LoginRefused,
    LoginUnavailable,
    StoreUnavailable,
    TokenUnavailable,
    Unreachable,
)
from mailgateway.flows import health as rows
from mailgateway.flows.health import AccountHealth
from mailgateway.ids import AccountName
from mailgateway.secrets import PasswordCommand, PasswordEnv, PasswordFile, TokenCommand
from mailgateway.wire.sasl import BearerToken, Password
from tests.daemons.world import IMAP_PORT, PASSWORD, SMTP_PORT, Network, Run, SlowDatabase, account, server
from tests.fakes.database import ImmediateDatabase

REFUSED = LoginRefused("[AUTHENTICATIONFAILED] wrong", code="535 5.7.8")


async def let_in() -> str:
    """A server that takes the credential."""
    return "a connection"


async def refuse() -> str:
    """A server that does not."""
    raise REFUSED


async def be_away() -> str:
    """A server that is not there."""
    raise Unreachable("reset")


class LoginsTestCase(SynchronousTestCase):
    """Runs of a process on one database."""

    def setUp(self) -> None:
        self.database = ImmediateDatabase()
        self.addCleanup(self.database.close)
        self.run_ = self.restart()

    def restart(self, **changes: Any) -> Run:
        """A new process with the same database."""
        run = Run(Network(), self.database, **changes)
        self.successResultOf(Deferred.fromCoroutine(run.load()))
        self.run_ = run
        return run

    def attempt(self, door: Door, login: Any = refuse) -> Any:
        """One login from the credential on: its result, or what stood in the way."""

        async def whole() -> Any:
            credential = await self.run_.logins.credential(door)
            return await self.run_.logins.log_in(door, credential, login)

        result: list[Any] = []
        Deferred.fromCoroutine(whole()).addCallbacks(
            result.append, lambda failure: result.append(failure.value)
        )
        self.assertEqual(len(result), 1, "it waits")
        return result[0]

    def held(self, door: Door, login: Any = refuse) -> Held:
        """A login that was held back, or refused just now."""
        held = self.attempt(door, login)
        self.assertIsInstance(held, Held, held)
        result: Held = held
        return result


class RefusalTests(LoginsTestCase):
    """The count of refusals."""

    def test_a_refusal_is_committed_before_anybody_hears_of_it(self) -> None:
        """Killed in the next instruction, the next run still knows."""
        held = self.held(Door.IMAP)
        self.assertIs(held.refusal, REFUSED)
        row = self.successResultOf(Deferred.fromCoroutine(rows.load(self.database, AccountName("main"))))
        assert isinstance(row, AccountHealth)
        self.assertEqual((row.refusals, row.failure), (1, FailureClass.CREDENTIAL))
        self.assertNotIn(PASSWORD, repr(row))

    def test_twice_in_all_over_both_doors_and_restarts(self) -> None:
        """One password, one count: ten minutes between the two, and then nobody tries."""
        first = self.held(Door.IMAP)
        self.assertIsNotNone(first.until)
        self.restart()
        waiting = self.held(Door.SMTP, let_in)
        self.assertIsNone(waiting.refusal, "it was asked before its time")
        self.database.advance(minutes=10)
        last = self.held(Door.SMTP)
        self.assertEqual((last.refusal, last.until), (REFUSED, None))
        for _ in range(3):
            self.restart()
            self.database.advance(days=1)
            for door in Door:
                held = self.held(door, let_in)
                self.assertEqual((held.refusal, held.until), (None, None))

    def test_two_names_of_one_account_count_together(self) -> None:
        """Some providers know it by its local part at one door, and by the whole address at the other."""
        named = evolve(server(SMTP_PORT, "IMAP_PASSWORD"), username="another-name")
        self.restart(account=account(smtp=named))
        self.held(Door.IMAP)
        self.restart(account=account(smtp=named))
        self.assertIsNone(self.held(Door.SMTP, let_in).refusal, "it was asked before its time")
        self.database.advance(minutes=10)
        last = self.held(Door.SMTP)
        self.assertEqual((last.refusal, last.until), (REFUSED, None))
        for door in Door:
            self.assertEqual(self.held(door, let_in).until, None)

    def test_a_changed_password_begins_anew(self) -> None:
        """The operator has acted: the new one is tried at once."""
        self.held(Door.IMAP)
        self.restart(environ={"IMAP_PASSWORD": "mended"})
        self.assertEqual(self.attempt(Door.IMAP, let_in), "a connection")

    def test_the_old_password_is_not_held_back_for_a_slip(self) -> None:
        """SMTP was never tried with the wrong one; when that is taken back, nothing speaks against IMAP."""
        self.attempt(Door.SMTP, let_in)
        self.restart(environ={"IMAP_PASSWORD": "a slip"})
        self.held(Door.IMAP)
        self.run_.smtp.tell(Condition(AccountState.REFUSED, FailureClass.CREDENTIAL, seconds=600.0))
        self.restart()
        self.assertEqual(self.attempt(Door.IMAP, let_in), "a connection")

    def test_different_passwords_count_together(self) -> None:
        """The provider sees one account, whatever the passwords of its doors are."""
        self.restart(account=account(smtp=server(SMTP_PORT, "SMTP_PASSWORD")))
        self.held(Door.IMAP)
        self.assertIsNone(self.held(Door.SMTP, let_in).refusal)

    def test_a_proven_door_is_not_held_back(self) -> None:
        """Submission may be switched off for a mailbox that can be read."""
        self.assertEqual(self.attempt(Door.IMAP, let_in), "a connection")
        self.held(Door.SMTP)
        self.database.advance(minutes=10)
        self.held(Door.SMTP)
        self.restart()
        self.assertEqual(self.attempt(Door.IMAP, let_in), "a connection")

    def test_a_lost_connection_is_no_refusal(self) -> None:
        """Only the server's word about the credential counts."""
        for _ in range(5):
            self.assertIsInstance(self.attempt(Door.IMAP, be_away), Unreachable)
        self.assertEqual(self.attempt(Door.IMAP, let_in), "a connection")

    def test_a_refusal_that_cannot_be_committed_still_counts_here(self) -> None:
        """While the disk is full, this process does not forget."""

        async def refuse_on_a_full_disk() -> str:
            self.database.failures.append(StoreUnavailable("disk full"))
            raise REFUSED

        self.assertIsInstance(self.attempt(Door.IMAP, refuse_on_a_full_disk), StoreUnavailable)
        self.assertIsNone(self.held(Door.IMAP, let_in).refusal)

    def test_several_folders_do_not_spend_a_password_together(self) -> None:
        """An unproven credential is tried by one connection at a time, and the others learn from it."""
        asked: list[Deferred[None]] = []

        async def slowly() -> None:
            waiting: Deferred[None] = Deferred()
            asked.append(waiting)
            await waiting

        async def whole(door: Door) -> None:
            credential = await self.run_.logins.credential(door)
            await self.run_.logins.log_in(door, credential, slowly)

        attempts = [Deferred.fromCoroutine(whole(door)) for door in (Door.IMAP, Door.IMAP, Door.SMTP)]
        self.assertEqual(len(asked), 1)
        asked[0].errback(REFUSED)
        for attempt in attempts:
            self.failureResultOf(attempt, Held)
        self.assertEqual(len(asked), 1)

    def test_proven_credentials_do_not_wait_for_each_other(self) -> None:
        """Otherwise a slow server would keep every connection of the account waiting."""
        self.attempt(Door.IMAP, let_in)

        async def slowly() -> None:
            await Deferred()

        async def whole() -> None:
            credential = await self.run_.logins.credential(Door.IMAP)
            await self.run_.logins.log_in(Door.IMAP, credential, slowly)

        first = Deferred.fromCoroutine(whole())
        self.assertEqual(self.attempt(Door.IMAP, let_in), "a connection")
        first.cancel()
        self.failureResultOf(first)


class DoubtTests(LoginsTestCase):
    """Refusals without a reason, of a credential that has logged in before (row 48)."""

    def doubt(self) -> Any:
        """The server says no and no more."""

        async def refuse_barely() -> str:
            raise LoginRefused("NO LOGIN failed")

        return self.attempt(Door.IMAP, refuse_barely)

    def test_three_times_it_is_the_server(self) -> None:
        """After 5, 15 and 45 minutes, over restarts; then it is the credential."""
        self.attempt(Door.IMAP, let_in)
        for seconds in (300, 900, 2_700):
            error = self.doubt()
            self.assertIsInstance(error, LoginUnavailable)
            self.assertEqual((error.retry_after, self.run_.imap.login.refusals), (seconds, 0))
            self.restart()
        self.assertIsInstance(self.doubt(), Held)
        self.database.advance(minutes=11)
        self.restart()
        last = self.doubt()
        self.assertIsInstance(last, Held)
        self.assertIsNone(last.until)

    def test_several_folders_doubt_once(self) -> None:
        """Connections that are refused together, and those that come meanwhile, do not use the benefit up."""
        self.attempt(Door.IMAP, let_in)
        asked: list[Deferred[None]] = []

        async def slowly() -> None:
            waiting: Deferred[None] = Deferred()
            asked.append(waiting)
            await waiting

        async def whole() -> None:
            credential = await self.run_.logins.credential(Door.IMAP)
            await self.run_.logins.log_in(Door.IMAP, credential, slowly)

        attempts = [Deferred.fromCoroutine(whole()) for _ in range(5)]
        for each in asked:
            each.errback(LoginRefused("NO LOGIN failed"))
        attempts.append(Deferred.fromCoroutine(whole()))
        self.assertEqual(len(asked), 5)
        for attempt in attempts:
            error = self.failureResultOf(attempt, LoginUnavailable).value
            self.assertTrue(299 < error.retry_after <= 300, error.retry_after)
        self.assertEqual((self.run_.imap.login.doubts, self.run_.imap.login.refusals), (1, 0))
        self.database.advance(minutes=5)
        self.assertEqual(self.attempt(Door.IMAP, let_in), "a connection")
        self.assertEqual(self.run_.imap.login.doubts, 0)

    def test_a_login_ends_the_doubt(self) -> None:
        """The next three are three again."""
        self.attempt(Door.IMAP, let_in)
        for _ in range(5):
            self.assertEqual(self.doubt().retry_after, 300)
            self.restart()
            self.attempt(Door.IMAP, let_in)

    def test_a_credential_that_never_logged_in_has_no_benefit(self) -> None:
        """It is wrong until it has shown that it is not."""
        self.assertIsInstance(self.doubt(), Held)

    def test_a_reason_is_a_reason(self) -> None:
        """Also for a credential that has logged in."""
        self.attempt(Door.IMAP, let_in)
        self.held(Door.IMAP)


class ProviderTests(LoginsTestCase):
    """What is known of a provider."""

    def test_a_refusal_that_comes_and_goes_rests_longer(self) -> None:
        """Row 61: a quarter of an hour where it is known for that."""
        host = "smtp.qq.com"
        self.restart(account=account(smtp=server(SMTP_PORT, "IMAP_PASSWORD", host=host)))
        held = self.held(Door.SMTP)
        assert held.until is not None
        wait = (held.until - self.run_.now()).total_seconds()
        self.assertTrue(890 < wait <= 900, wait)

    def test_people_are_told_what_it_may_mean_there(self) -> None:
        """Row 46: a wrong password is not the only reason."""
        told: list[str] = []

        @implementer(ILogObserver)
        def hear(event: LogEvent) -> None:
            told.append(formatEvent(event))

        globalLogPublisher.addObserver(hear)
        self.addCleanup(globalLogPublisher.removeObserver, hear)
        self.restart(account=account(imap=server(IMAP_PORT, "IMAP_PASSWORD", host="imap.yandex.com")))
        self.held(Door.IMAP)
        self.assertTrue(any("IMAP is switched off, or an app password is needed" in line for line in told))


class SourceTests(LoginsTestCase):
    """Where credentials come from."""

    def test_a_password_that_cannot_be_read(self) -> None:
        """The server is not asked, and the text names the setting and no secret."""
        for source in (PasswordEnv("NOT_SET"), PasswordFile(self.make_path())):
            self.restart(account=account(imap=server(IMAP_PORT, "", secret=source)))
            error = self.attempt(Door.IMAP, let_in)
            self.assertIsInstance(error, TokenUnavailable)
            self.assertIn("accounts.main.imap", str(error))

    def make_path(self) -> Any:
        """A path where nothing is."""
        from pathlib import Path  # noqa: PLC0415

        return Path(self.mktemp())

    def test_a_digest_tells_nothing_without_the_key(self) -> None:
        """The row must not help to guess a password."""
        self.attempt(Door.IMAP, let_in)
        known = self.run_.imap.login.credential_digest
        self.assertEqual(len(known), 32)
        other = Run(Network(), ImmediateDatabase())
        other.logins.key = "another key"
        self.successResultOf(
            Deferred.fromCoroutine(other.logins.log_in(Door.IMAP, Password("agent", PASSWORD), let_in))
        )
        self.assertNotEqual(other.imap.login.credential_digest, known)
        self.assertNotIn(PASSWORD, repr(self.run_.logins))

    def test_a_refused_token_is_followed_by_another_one_soon(self) -> None:
        """It may have run out; a second refusal in a row is the operator's business."""
        source = TokenCommand("print-token")
        self.restart(account=account(imap=server(IMAP_PORT, "", secret=source)))
        token = BearerToken("agent", "127.0.0.1", IMAP_PORT, "stale")
        logins = self.run_.logins

        def held(login: Any) -> Held:
            attempt = Deferred.fromCoroutine(logins.log_in(Door.IMAP, token, login))
            failure: Any = self.failureResultOf(attempt, Held)
            result: Held = failure.value
            return result

        first = held(refuse)
        assert first.until is not None
        self.assertLess(first.until - self.run_.now(), timedelta(seconds=5))
        self.database.advance(seconds=5)
        self.assertIsNone(held(refuse).until)


class CommandTests(TestCase):
    """Commands that print a secret are run for every connection."""

    def setUp(self) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 (processes need the real one)

        self.database = ImmediateDatabase()
        self.addCleanup(self.database.close)
        self.count = self.mktemp()
        command = f"echo x >> {self.count}; echo token-$(wc -l < {self.count})"
        self.run_ = Run(
            Network(),
            self.database,
            account(
                imap=server(IMAP_PORT, "", secret=TokenCommand(command)),
                smtp=server(SMTP_PORT, "", secret=PasswordCommand("exit 3")),
            ),
        )
        self.run_.logins.reactor = reactor

    async def test_a_fresh_token_for_every_connection(self) -> None:
        """A token is fresh when it is used."""
        for number in (1, 2):
            credential = await self.run_.logins.credential(Door.IMAP)
            assert isinstance(credential, BearerToken)
            self.assertEqual(credential.token, f"token-{number}")
            self.assertNotIn("token-", repr(credential))

    async def test_a_command_that_fails(self) -> None:
        """The server is not asked."""
        with self.assertRaises(TokenUnavailable):
            await self.run_.logins.credential(Door.SMTP)


class HealthTests(SynchronousTestCase):
    """What of an account's health is written, and when."""

    def setUp(self) -> None:
        self.database = SlowDatabase()
        self.addCleanup(self.database.close)
        self.health = DoorHealth(AccountName("main"), self.database, Tasks())

    def stored(self) -> AccountHealth | None:
        """The row."""
        slow, self.database.slow = self.database.slow, False
        try:
            return self.successResultOf(Deferred.fromCoroutine(rows.load(self.database, AccountName("main"))))
        finally:
            self.database.slow = slow

    def test_only_what_a_restart_must_know_is_written(self) -> None:
        """Connecting and watching come and go without a write."""
        connecting, watching = AccountState.CONNECTING, AccountState.WATCHING
        for state in (connecting, watching, connecting, watching, AccountState.POLLING):
            self.health.tell(Condition(state))
        self.assertEqual(self.database.writes, 0)
        self.assertEqual(self.health.status.state, "polling")
        self.health.tell(Condition(AccountState.BACKING_OFF, FailureClass.THROTTLE, 1, 60.0, "too many"))
        self.assertEqual(self.database.writes, 1)
        row = self.stored()
        assert row is not None
        self.assertEqual((row.failure, row.failures, row.last_error), ("throttle", 1, "too many"))
        self.health.tell(Condition(AccountState.WATCHING))
        self.health.tell(Condition(AccountState.WATCHING))
        self.assertEqual(self.database.writes, 2)

    def test_why_it_failed_is_logged_once(self) -> None:
        """A certificate, a folder that is not there: only the log can say it; not at every attempt."""
        told: list[str] = []

        @implementer(ILogObserver)
        def hear(event: LogEvent) -> None:
            told.append(formatEvent(event))

        globalLogPublisher.addObserver(hear)
        self.addCleanup(globalLogPublisher.removeObserver, hear)
        failed = Condition(AccountState.BACKING_OFF, FailureClass.NETWORK, 1, 2.0, "no such certificate")
        for condition in (failed, Condition(AccountState.CONNECTING), failed):
            self.health.tell(condition)
        self.assertEqual(
            [line for line in told if "certificate" in line], ["account main: no such certificate"]
        )
        self.health.tell(Condition(AccountState.WATCHING))
        self.health.tell(failed)
        self.assertEqual(len([line for line in told if "certificate" in line]), 2)

    def test_an_attempt_that_goes_on_is_not_waited_for(self) -> None:
        """While it connects, ``/health`` names no time of a next attempt."""
        self.health.tell(Condition(AccountState.BACKING_OFF, FailureClass.NETWORK, 1, 2.0, "away"))
        self.assertIsNotNone(self.health.status.next_attempt_at)
        self.health.tell(Condition(AccountState.CONNECTING))
        self.assertIsNone(self.health.status.next_attempt_at)

    def test_since_moves_with_the_state_only(self) -> None:
        """``/health`` tells how long the state lasts."""
        self.health.tell(Condition(AccountState.WATCHING))
        since = self.health.status.since
        self.health.tell(Condition(AccountState.WATCHING))
        self.assertEqual(self.health.status.since, since)

    def test_the_last_word_is_the_last_write(self) -> None:
        """Writes of one row do not overtake each other, and an old one never wins."""
        self.database.slow = True
        for failures in (1, 2, 3):
            self.health.tell(Condition(AccountState.BACKING_OFF, FailureClass.NETWORK, failures, 2.0))
        self.database.let_go()
        row = self.stored()
        assert row is not None
        self.assertEqual(row.failures, 3)

    def test_a_refusal_outlives_a_stop_that_comes_before_its_turn(self) -> None:
        """A stop in the wrong moment does not give the password another try."""
        self.database.slow = True
        tasks = Tasks()
        self.health.tell(Condition(AccountState.BACKING_OFF, FailureClass.NETWORK, 1, 2.0))
        record = self.health.login.about("digest").refused(self.health.now())
        tasks.start(self.health.remember_login(record), "refusing")
        stopping = tasks.stop()
        self.assertNoResult(stopping)
        self.database.let_go()
        self.successResultOf(stopping)
        row = self.stored()
        assert row is not None
        self.assertEqual((row.refusals, row.credential_digest), (1, "digest"))


class ToTheEndTests(SynchronousTestCase):
    """Work that a stop does not cut off."""

    def test_a_stop_waits_for_it(self) -> None:
        """The work ends well, what would come after it does not begin, and the owner is stopped only then."""
        gate: Deferred[None] = Deferred()
        steps: list[str] = []

        async def inner() -> None:
            await gate
            steps.append("committed")

        async def outer() -> None:
            await to_the_end(inner())
            steps.append("went on")

        tasks = Tasks()
        tasks.start(outer(), "testing")
        stopping = tasks.stop()
        self.assertNoResult(stopping)
        gate.callback(None)
        self.successResultOf(stopping)
        self.assertEqual(steps, ["committed"])

    def test_whoever_cancels_the_work_need_not_wait_for_it(self) -> None:
        """The wait ends without a failure, and the owner still knows of the work."""
        gate: Deferred[None] = Deferred()

        async def inner() -> None:
            await gate

        tasks = Tasks()
        ended = tasks.start(to_the_end(inner()), "testing")
        ended.cancel()
        self.successResultOf(ended)
        stopping = tasks.stop()
        self.assertNoResult(stopping)
        gate.callback(None)
        self.successResultOf(stopping)

    def test_its_failure_comes_out(self) -> None:
        """Nothing is swallowed but the cancelling."""

        async def inner() -> None:
            raise Unreachable("reset")

        self.failureResultOf(Deferred.fromCoroutine(to_the_end(inner())), Unreachable)
