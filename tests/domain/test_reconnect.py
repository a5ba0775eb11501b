"""When a mail server may be tried again: classes, delays, and the count of refused passwords."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.reconnect import (
    FailureClass,
    LoginRecord,
    MayTry,
    TryLater,
    WaitForOperator,
    delay_seconds,
    failure_class,
    may_log_in,
)
from mailgateway.errors import (
    CommandRefused,
    LoginRefused,
    LoginUnavailable,
    ProtocolViolation,
    Throttled,
    TlsRefused,
    TokenUnavailable,
    Unreachable,
)

NOW = datetime(2026, 11, 30, tzinfo=UTC)
LONGEST = {
    FailureClass.CLEAN: 2,
    FailureClass.NETWORK: 300,
    FailureClass.THROTTLE: 1_980,
    FailureClass.LOGIN_UNAVAILABLE: 3_960,
    FailureClass.TOKEN: 990,
    FailureClass.CREDENTIAL: 660,
    FailureClass.PROTOCOL: 990,
}


class DelayTests(SynchronousTestCase):
    """How long to wait."""

    def test_every_error_has_its_class(self) -> None:
        """The seven classes, by the error that ended the connection."""
        classes = {
            LoginRefused("no"): FailureClass.CREDENTIAL,
            LoginUnavailable("later"): FailureClass.LOGIN_UNAVAILABLE,
            Throttled("slow down"): FailureClass.THROTTLE,
            TokenUnavailable("nothing"): FailureClass.TOKEN,
            ProtocolViolation("what?"): FailureClass.PROTOCOL,
            CommandRefused("no"): FailureClass.PROTOCOL,
            TlsRefused("not offered"): FailureClass.NETWORK,
            Unreachable("reset"): FailureClass.NETWORK,
        }
        for error, kind in classes.items():
            self.assertIs(failure_class(error), kind, type(error).__name__)

    def test_an_old_connection_that_is_lost_ended_cleanly(self) -> None:
        """Servers end sessions after a while; that is no failure."""
        self.assertIs(failure_class(Unreachable("BYE"), alive_seconds=299), FailureClass.NETWORK)
        self.assertIs(failure_class(Unreachable("BYE"), alive_seconds=300), FailureClass.CLEAN)

    def test_a_session_that_the_server_ends_is_over_cleanly_after_half_a_minute(self) -> None:
        """Some end IDLE every minute; a server that says so at once is not dialled again at once."""
        ended = Unreachable("BYE Autologout; idle for too long", code="ENDED")
        self.assertIs(failure_class(ended, alive_seconds=29), FailureClass.NETWORK)
        self.assertIs(failure_class(ended, alive_seconds=30), FailureClass.CLEAN)

    def test_delays_double_up_to_the_longest(self) -> None:
        """The middle of the range, failure by failure."""
        delays = [delay_seconds(FailureClass.THROTTLE, n, 0.0) for n in range(1, 8)]
        self.assertEqual(delays, [60, 120, 240, 480, 960, 1_800, 1_800])

    @given(st.sampled_from(FailureClass), st.integers(1, 10**9), st.floats(0, 1, exclude_max=True))
    def test_no_delay_is_ever_negative_or_beyond_its_bound(
        self, kind: FailureClass, failures: int, chance: float
    ) -> None:
        """Also after any number of failures."""
        seconds = delay_seconds(kind, failures, chance)
        self.assertGreaterEqual(seconds, 0)
        self.assertLessEqual(seconds, LONGEST[kind] + 1e-6)

    def test_a_hint_of_the_server_wins_when_it_is_longer(self) -> None:
        """Exchange says how many milliseconds to stay away."""
        self.assertEqual(delay_seconds(FailureClass.THROTTLE, 1, 0.0, hint=92.4), 92.4)
        self.assertEqual(delay_seconds(FailureClass.THROTTLE, 1, 0.0, hint=5), 60)


class LoginTests(SynchronousTestCase):
    """How often a credential is tried."""

    def test_a_refused_credential_is_tried_once_more_after_ten_minutes_and_never_again(self) -> None:
        """Two tries at most, whatever the time."""
        record, other = LoginRecord("d"), LoginRecord()
        self.assertEqual(may_log_in(record, other, NOW), MayTry())
        record = record.refused(NOW)
        self.assertEqual(may_log_in(record, other, NOW), TryLater(NOW + timedelta(minutes=10)))
        later = NOW + timedelta(minutes=11)
        self.assertEqual(may_log_in(record, other, later), MayTry())
        record = record.refused(later)
        self.assertEqual(may_log_in(record, other, later + timedelta(days=365)), WaitForOperator())

    def test_both_doors_count_together(self) -> None:
        """A password that SMTP and IMAP have refused once each is not tried a third time."""
        here, there = LoginRecord("d").refused(NOW), LoginRecord("d").refused(NOW)
        self.assertEqual(may_log_in(here, there, NOW + timedelta(days=1)), WaitForOperator())

    def test_a_door_that_has_logged_in_is_not_held_back_by_the_other(self) -> None:
        """A submission server that refuses must not end the watching."""
        refused = LoginRecord("d").refused(NOW).refused(NOW)
        self.assertEqual(may_log_in(LoginRecord("d").succeeded(), refused, NOW), MayTry())

    def test_a_changed_credential_starts_anew(self) -> None:
        """What was refused was another one."""
        refused = LoginRecord("old").refused(NOW).refused(NOW)
        self.assertEqual(may_log_in(refused.about("new"), LoginRecord(), NOW), MayTry())
        self.assertEqual(may_log_in(refused.about("old"), LoginRecord(), NOW), WaitForOperator())
