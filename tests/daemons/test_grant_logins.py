"""Logins with the tokens of a grant: what a refusal counts, and who asks for another token."""

from datetime import timedelta
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.line import ImapLine
from mailgateway.daemons.logins import ANOTHER_TOKEN, Door
from mailgateway.daemons.watching import Held
from mailgateway.errors import LoginRefused, LoginUnavailable, TokenUnavailable
from mailgateway.protocols.grants import Grants
from mailgateway.secrets import OAuthGrant
from mailgateway.settings import OAuth
from mailgateway.wire.oauth_answer import Granted
from mailgateway.wire.sasl import BearerToken
from tests.daemons.world import IMAP_PORT, SMTP_PORT, Network, Run, account, server
from tests.fakes.database import ImmediateDatabase
from tests.fakes.posts import Posts

REFUSED: Final = LoginRefused("[AUTHENTICATIONFAILED] no", code="AUTHENTICATIONFAILED")
SILENT: Final = LoginRefused("authentication failed")
WORK: Final = OAuth(client_id="me", token_url="https://x.example/t", device_url="https://x.example/d")
OLD: Final = timedelta(minutes=10)


class GrantLoginsTests(SynchronousTestCase):
    """One account whose doors share a grant."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.database, self.posts = ImmediateDatabase(), Posts()
        self.addCleanup(self.database.close)
        self.restart()
        self.sign_in("a0")

    def restart(self) -> None:
        """A new process with the same database and state directory."""
        secret = OAuthGrant("work")
        doors = account(imap=server(IMAP_PORT, "", secret=secret), smtp=server(SMTP_PORT, "", secret=secret))
        self.network = Network()
        self.run_ = Run(self.network, self.database, doors)
        self.grants = Grants(self.network, self.folder, {"work": WORK}, self.run_.now, lambda _: self.posts)
        self.logins.grants = self.grants
        self.wait(self.run_.load())

    @property
    def logins(self) -> Any:
        """What is tested."""
        return self.run_.logins

    def wait(self, work: Any) -> Any:
        """The result of a coroutine that waits for nothing."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def sign_in(self, access: str) -> None:
        """A person signs in, in another process."""
        other = Grants(self.network, self.folder, {"work": WORK}, self.run_.now, lambda _: self.posts)
        self.wait(other.adopt("work", Granted(access, f"refresh-of-{access}", 3600)))

    def later(self, by: timedelta) -> None:
        """Time passes."""
        self.database.advance(seconds=by.total_seconds())
        self.network.advance(by.total_seconds())

    def token(self, door: Door = Door.IMAP) -> BearerToken:
        """The credential for a login now."""
        credential = self.wait(self.logins.credential(door))
        assert isinstance(credential, BearerToken)
        return credential

    def log_in(self, credential: BearerToken, error: Exception | None = None, door: Door = Door.IMAP) -> Any:
        """One login that ends so; what came of it."""

        async def attempt() -> str:
            if error is not None:
                raise error
            return "in"

        ended: list[Any] = []
        Deferred.fromCoroutine(self.logins.log_in(door, credential, attempt)).addBoth(ended.append)
        return getattr(ended[0], "value", ended[0])

    def test_a_refused_token_is_renewed_once(self) -> None:
        """Refused before its end, renewed, refused again: that is as often as a password is tried."""
        self.assertEqual(self.log_in(self.token()), "in")
        self.later(OLD)
        held = self.log_in(self.token(), REFUSED)
        assert isinstance(held, Held)
        assert held.until is not None
        self.assertLessEqual(held.until - self.run_.now(), ANOTHER_TOKEN)
        self.later(ANOTHER_TOKEN)
        self.posts.grants("a1", "r1")
        again = self.token()
        self.assertEqual((again.token, len(self.posts.asked)), ("a1", 1))
        last = self.log_in(again, REFUSED)
        self.assertIsNone(last.until)
        self.assertIn("`mailgateway auth work`", self.logins.remarks[0])
        for days in (0, 30):
            self.later(timedelta(days=days))
            self.posts.grants("a2")
            for door in Door:
                self.failureResultOf(Deferred.fromCoroutine(self.logins.credential(door)), Held)

    def test_a_young_token_is_not_renewed(self) -> None:
        """Another one would be refused as well: it counts like a password, and nobody asks the provider."""
        held = self.log_in(self.token(), REFUSED)
        self.assertGreater(held.until - self.run_.now(), timedelta(minutes=9))
        self.assertEqual(self.posts.asked, [])
        self.restart()
        self.later(timedelta(minutes=10))
        self.assertIsNone(self.log_in(self.token(), REFUSED).until)
        self.restart()
        outcome = Deferred.fromCoroutine(self.logins.credential(Door.SMTP))
        self.failureResultOf(outcome, Held)

    def test_many_connections_with_one_old_token(self) -> None:
        """Both doors and five folders are refused at once: it counts once, and one other is asked for."""
        for door in Door:
            self.assertEqual(self.log_in(self.token(door), door=door), "in")
        self.later(OLD)
        tokens = [(door, self.token(door)) for door in (*[Door.IMAP] * 5, Door.SMTP, Door.SMTP)]
        for door, token in tokens:
            held = self.log_in(token, REFUSED, door)
            self.assertIsNotNone(held.until, "it waits for an operator")
        self.later(ANOTHER_TOKEN)
        self.posts.grants("a1", "r1")
        for door in Door:
            self.assertEqual(self.log_in(self.token(door), door=door), "in")
        self.assertEqual(len(self.posts.asked), 1)
        self.assertEqual((self.run_.imap.login.refusals, self.run_.smtp.login.refusals), (0, 0))

    def test_a_server_that_says_no_without_a_reason(self) -> None:
        """Another token is the first thing to try; after that it has the benefit of the doubt."""
        self.assertEqual(self.log_in(self.token()), "in")
        self.later(OLD)
        held = self.log_in(self.token(), SILENT)
        self.assertIsNotNone(held.until)
        self.later(ANOTHER_TOKEN)
        self.posts.grants("a1", "r1")
        doubted = self.log_in(self.token(), SILENT)
        self.assertIsInstance(doubted, LoginUnavailable)
        self.assertEqual((self.run_.imap.login.refusals, len(self.posts.asked)), (0, 1))

    def test_trouble_at_the_provider_counts_nothing(self) -> None:
        """The mail server is not asked, and nobody is held back afterwards."""
        self.assertEqual(self.log_in(self.token()), "in")
        self.later(timedelta(hours=2))
        self.posts.says(503, "server_error")
        for _ in range(3):
            self.failureResultOf(Deferred.fromCoroutine(self.logins.credential(Door.IMAP)), TokenUnavailable)
        self.assertEqual((len(self.posts.asked), self.run_.imap.login.refusals), (1, 0))
        self.later(timedelta(seconds=31))
        self.posts.grants("a1")
        self.assertEqual(self.log_in(self.token()), "in")

    def test_only_a_person_can_help(self) -> None:
        """It is said with the command, and a new sign-in is noticed once."""
        self.assertEqual((self.log_in(self.token()), self.logins.remarks), ("in", ()))
        self.later(timedelta(hours=2))
        self.posts.says(400, "invalid_grant")
        for door in Door:
            failure = self.failureResultOf(Deferred.fromCoroutine(self.logins.credential(door)), Held)
            held: Any = failure.value
            self.assertIsNone(held.until)
            self.assertIn("`mailgateway auth work`", held.refusal.text)
        self.assertIn("`mailgateway auth work`", self.logins.remarks[0])
        self.assertFalse(self.logins.somebody_signed_in())
        self.sign_in("b0")
        self.assertEqual(self.token(Door.SMTP).token, "b0")  # the other door has noticed by itself
        self.assertTrue(self.logins.somebody_signed_in())
        self.assertFalse(self.logins.somebody_signed_in())
        self.assertEqual((self.log_in(self.token()), self.logins.remarks), ("in", ()))

    def test_refused_for_good_until_somebody_signs_in(self) -> None:
        """After two refusals a new sign-in begins anew, as a changed password does."""
        self.log_in(self.token(), REFUSED)
        self.later(timedelta(minutes=10))
        self.assertIsNone(self.log_in(self.token(), REFUSED).until)
        self.assertFalse(self.logins.somebody_signed_in())
        self.sign_in("b0")
        self.assertTrue(self.logins.somebody_signed_in())
        self.assertEqual(self.log_in(self.token()), "in")

    def test_a_renewed_token_is_the_same_credential(self) -> None:
        """What has logged in stays proven, whatever token it is by now."""
        self.assertEqual(self.log_in(self.token()), "in")
        known = self.run_.imap.login
        self.later(timedelta(hours=1))
        self.posts.grants("a1")
        self.assertEqual((self.log_in(self.token()), self.run_.imap.login), ("in", known))
        self.assertNotIn("a1'", repr(self.logins) + repr(self.token()))

    def test_a_session_is_made_anew_before_its_token_ends(self) -> None:
        """Two to five minutes before; at half of what was left when it was opened late."""

        def left(opened_after: int, now_after: int, chance: float) -> float | None:
            self.sign_in("c0")
            self.later(timedelta(seconds=opened_after))
            token = BearerToken("agent", "h", 993, "c0", *self.times("c0"))
            no: Any = None  # only the time is asked
            line = ImapLine(self.database, self.logins, "INBOX", no, no, no, no, no, token, chance=chance)
            self.later(timedelta(seconds=now_after))
            seconds = line.seconds_left
            return None if seconds is None else round(seconds, -1)

        self.assertEqual(left(0, 0, 0.0), 3600 - 120)
        self.assertEqual(left(0, 0, 1.0), 3600 - 300)
        self.assertEqual(left(0, 3400, 1.0), 0)
        self.assertEqual(left(3200, 0, 1.0), 200)

    def times(self, access: str) -> tuple[Any, Any]:
        """When a token on disk ends, and when it began."""
        grant: Any = self.grants.standing("work")
        self.assertEqual(grant.access_token, access)
        return grant.expires_at, grant.issued_at
