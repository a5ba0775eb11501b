"""What NO, BAD and BYE mean."""

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import CommandRefused, LoginRefused, LoginUnavailable, Throttled, Unreachable
from mailgateway.wire.imap_lexer import Framer
from mailgateway.wire.imap_outcome import command_failure, farewell, is_gap, login_failure, words
from mailgateway.wire.imap_response import Status, parse


def status(line: bytes) -> Status:
    """A status response, as read from the wire."""
    framer = Framer()
    framer.feed(line + b"\r\n")
    frame = framer.next_frame()
    assert frame is not None
    response = parse(frame)
    assert isinstance(response, Status), response
    return response


class OutcomeTests(SynchronousTestCase):
    """Classes by code, and by text where there is no code."""

    def test_commands(self) -> None:
        """Rows 12, 15, 16."""
        for line, kind, code in (
            (b"A1 NO [TEMPFAIL] UID FETCH Temporary failure", CommandRefused, "TEMPFAIL"),
            (b"A1 NO [INUSE] busy", CommandRefused, "INUSE"),
            (b"A1 NO [LIMIT] too much", Throttled, "LIMIT"),
            (b"A1 BAD Request is throttled. Suggested Backoff Time: 92415 milliseconds", Throttled, ""),
            (b"A1 BAD User is authenticated but not connected.", LoginUnavailable, "NOTCONNECTED"),
            (b"A1 BAD Command Error. 10", CommandRefused, "BAD"),
            (b"A1 NO", CommandRefused, ""),
        ):
            error = command_failure(b"SELECT", status(line))
            self.assertEqual((type(error), error.code), (kind, code), line)
            self.assertTrue(error.text.startswith("SELECT: "))

    def test_farewells(self) -> None:
        """Rows 10, 11, 13: a session that is over is no trouble."""
        for line, kind, code in (
            (b"* BYE Session invalidated - AccessTokenExpired", Unreachable, "ENDED"),
            (b"* BYE Session expired, please login again.", Unreachable, "ENDED"),
            (b"* BYE Disconnected for inactivity.", Unreachable, "ENDED"),
            (b"* BYE Autologout; idle for too long", Unreachable, "ENDED"),
            (b"* BYE Too many simultaneous connections", Throttled, ""),
            (b"* BYE [UNAVAILABLE] Shutting down", LoginUnavailable, "UNAVAILABLE"),
            (b"* BYE", Unreachable, "BYE"),
        ):
            error = farewell(status(line))
            self.assertEqual((type(error), error.code), (kind, code), line)

    def test_a_wrong_password_is_never_taken_for_a_busy_server(self) -> None:
        """Trying again would lock the account."""
        for text in (
            b"Invalid password, please try again",
            b"Login failed: check the password and try again.",
        ):
            self.assertIs(type(login_failure(status(b"A1 NO " + text))), LoginRefused)
        later = login_failure(status(b"A1 NO Please try again later"))
        self.assertIs(type(later), LoginUnavailable)

    def test_hint(self) -> None:
        """The server's own number of seconds."""
        line = b"A1 BAD Request is throttled. Suggested Backoff Time: 92415 milliseconds"
        self.assertEqual(login_failure(status(line)).retry_after, 92.415)
        self.assertIsNone(login_failure(status(b"A1 NO [LIMIT] no")).retry_after)

    def test_gaps(self) -> None:
        """Row 30, and what is none."""
        self.assertTrue(is_gap(status(b"A1 NO Some of the requested messages no longer exist.")))
        self.assertTrue(is_gap(status(b"A1 NO [EXPUNGEISSUED] gone")))
        self.assertFalse(is_gap(status(b"A1 NO [SERVERBUG] Server error while fetching")))
        self.assertFalse(is_gap(status(b"A1 BAD message does not exist")))

    def test_hostile_length(self) -> None:
        """A megabyte of beginnings costs no more than one."""
        for text in (
            b"too many " * 110_000,
            b"[x" + b" " * 1_000_000,
            b"exceeded a " * 90_000,
            b"[" * 1_000_000,
        ):
            self.assertIs(type(farewell(status(b"* BYE " + text))), Unreachable)

    def test_words(self) -> None:
        """One line, printable, bounded."""
        self.assertEqual(words(status(b"A1 NO [ALERT] a\x07b\xff")), "NO [ALERT] a b\ufffd")
        self.assertLess(len(words(status(b"A1 NO " + b"x" * 5000))), 600)
        self.assertEqual(words(status(b"A1 OK")), "OK")
