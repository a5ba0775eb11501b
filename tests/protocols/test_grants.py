"""Access tokens of a grant: who asks, what is on disk, and what a provider's troubles do to it."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from attrs import evolve
from twisted.internet import reactor as global_reactor
from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.task import Clock
from twisted.internet.utils import getProcessOutputAndValue
from twisted.trial.unittest import SynchronousTestCase, TestCase

from mailgateway.errors import ConfigError, TokenUnavailable, Unreachable
from mailgateway.protocols.grant_file import Grant, GrantFile, binding_of
from mailgateway.protocols.grants import AccessToken, Grants, SignInNeeded, Verdict
from mailgateway.settings import OAuth
from mailgateway.wire.oauth_answer import Answer, Granted
from tests.fakes.identity_provider import IdentityProvider, registration
from tests.fakes.posts import Posts

reactor: Any = global_reactor
START = datetime(2026, 12, 1, 12, tzinfo=UTC)
WORK = OAuth(
    client_id="me",
    token_url="https://login.example/token",
    device_url="https://login.example/device",
    scopes=("mail", "offline_access"),
)


class GrantsCase(SynchronousTestCase):
    """Grants by a clock, with a provider in memory."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.clock, self.posts = Clock(), Posts()
        self.grants = self.another()
        self.posts.grants("unused")
        self.posts.answers.clear()
        self.adopt(Granted("a0", "r0", 3600))

    def another(self, written: OAuth = WORK) -> Grants:
        """The grants of another process, or with other settings."""
        return Grants(self.clock, self.folder, {"work": written}, self.now, lambda _: self.posts)

    def now(self) -> datetime:
        """The time by the clock."""
        return START + timedelta(seconds=self.clock.seconds())

    def adopt(self, granted: Granted) -> None:
        """A person signs in."""
        self.successResultOf(Deferred.fromCoroutine(self.grants.adopt("work", granted)))

    def token(self, grants: Grants | None = None) -> str:
        """The token for a login now."""
        outcome = self.successResultOf(Deferred.fromCoroutine((grants or self.grants).token("work")))
        assert isinstance(outcome, AccessToken), outcome
        self.assertNotIn(f"'{outcome.text}'", repr(outcome))
        return outcome.text

    def trouble(self) -> TokenUnavailable:
        """What stands in the way of a token."""
        error = self.failureResultOf(
            Deferred.fromCoroutine(self.grants.token("work")), TokenUnavailable
        ).value
        assert isinstance(error, TokenUnavailable)
        return error

    def sign_in(self, grants: Grants | None = None) -> str:
        """Why a person has to sign in."""
        outcome = self.successResultOf(Deferred.fromCoroutine((grants or self.grants).token("work")))
        assert isinstance(outcome, SignInNeeded), outcome
        return outcome.why

    @property
    def written(self) -> Grant:
        """What is on disk."""
        grant = GrantFile.of(self.folder, "work").read()
        assert grant is not None
        return grant


class RenewalTests(GrantsCase):
    """When another token is asked for, and what becomes of it."""

    def test_when(self) -> None:
        """With a tenth of its life left, five minutes at least, half of a short life at most."""
        for lifetime, still_good, due in (
            (3600, 3239, 3241),
            (7200, 6479, 6481),
            (1800, 1499, 1501),
            (60, 29, 31),
        ):
            self.adopt(Granted("a0", "r0", lifetime))
            begin = self.clock.seconds()
            self.clock.advance(still_good)
            self.assertEqual(self.token(), "a0")
            self.clock.advance(begin + due - self.clock.seconds())
            self.posts.grants("a1")
            self.assertEqual(self.token(), "a1", lifetime)

    def test_the_refresh_token_is_replaced_or_kept(self) -> None:
        """One that rotates is replaced before the access token is used; one that does not is kept."""
        self.clock.advance(3500)
        self.posts.grants("a1", "r1")
        self.assertEqual((self.token(), self.written.refresh_token), ("a1", "r1"))
        self.clock.advance(3500)
        self.posts.grants("a2")
        self.assertEqual((self.token(), self.written.refresh_token), ("a2", "r1"))
        self.assertIn("refresh_token=r0", self.posts.asked[0])
        self.assertIn("refresh_token=r1", self.posts.asked[1])
        self.assertIn("scope=mail+offline_access", self.posts.asked[1])

    def test_one_asks_for_all(self) -> None:
        """Both doors and all folders want a token at once: one question."""
        self.clock.advance(3500)
        self.posts.slow = True
        self.posts.grants("a1", "r1")
        wanted = [Deferred.fromCoroutine(self.grants.token("work")) for _ in range(8)]
        self.assertEqual(len(self.posts.asked), 1)
        wanted[0].cancel()
        self.failureResultOf(wanted[0], CancelledError)
        self.posts.waiting[0].callback(None)
        outcomes = [self.successResultOf(each) for each in wanted[1:]]
        self.assertEqual({outcome.text for outcome in outcomes if isinstance(outcome, AccessToken)}, {"a1"})
        self.assertEqual(len(self.posts.asked), 1)

    def test_who_stops_waiting_loses_nothing(self) -> None:
        """The answer may hold the only refresh token that is good: it is written, though nobody waits."""
        self.clock.advance(3500)
        self.posts.slow = True
        self.posts.grants("a1", "r1")
        waiting = Deferred.fromCoroutine(self.grants.token("work"))
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        settled = Deferred.fromCoroutine(self.grants.settled())
        self.assertNoResult(settled)
        self.posts.waiting[0].callback(None)
        self.successResultOf(settled)
        self.assertEqual((self.written.access_token, self.written.refresh_token), ("a1", "r1"))

    def test_two_processes(self) -> None:
        """While one renews, another waits, and takes what it got."""
        self.clock.advance(3500)
        other = self.another()
        self.posts.slow = True
        self.posts.grants("a1", "r1")
        mine = Deferred.fromCoroutine(self.grants.token("work"))
        theirs = Deferred.fromCoroutine(other.token("work"))
        self.assertNoResult(theirs)
        self.posts.waiting[0].callback(None)
        self.successResultOf(mine)
        self.clock.advance(0.2)
        outcome = self.successResultOf(theirs)
        assert isinstance(outcome, AccessToken)
        self.assertEqual((outcome.text, len(self.posts.asked)), ("a1", 1))

    def test_a_process_that_hangs(self) -> None:
        """The lock is waited for a minute, and then said to be taken."""
        self.clock.advance(3500)
        lock = self.successResultOf(
            Deferred.fromCoroutine(GrantFile.of(self.folder, "work").lock(self.clock))
        )
        waiting = Deferred.fromCoroutine(self.grants.token("work"))
        self.clock.pump([1.0] * 62)
        self.assertIn("another process", str(self.failureResultOf(waiting, TokenUnavailable).value))
        lock.release()
        self.posts.grants("a1")
        self.assertEqual(self.token(), "a1")

    def test_a_clock_that_is_set(self) -> None:
        """An end is not believed that another clock has told; a clock that leaps ahead only renews early."""
        self.adopt(Granted("a0", "r0", 3600))
        file = GrantFile.of(self.folder, "work")
        hours = timedelta(hours=5)
        file.write(evolve(self.written, issued_at=self.now() + hours, expires_at=self.now() + 2 * hours))
        self.posts.grants("a1")
        self.assertEqual(self.token(), "a1")
        self.assertEqual(self.written.expires_at, self.now() + timedelta(hours=1))


class TroubleTests(GrantsCase):
    """What goes wrong at the provider."""

    def test_what_passes_ends_nothing(self) -> None:
        """A failing provider is left alone, longer each time; the refresh token stays."""
        self.clock.advance(3700)
        waits: list[float] = []
        for number, lay in enumerate(
            (
                lambda: self.posts.says(503, "server_error"),
                lambda: self.posts.answers.append(Answer(200, "<html>portal</html>")),
                lambda: self.posts.answers.append(Unreachable("no route")),
                lambda: self.posts.says(400, "temporarily_unavailable"),
                lambda: self.posts.says(429, "slow_down", "2000"),
            )
        ):
            lay()
            error = self.trouble()
            waits.append(error.retry_after or 0)
            self.trouble()
            self.assertEqual(len(self.posts.asked), number + 1, "it was not left alone")
            self.clock.advance(waits[-1] + 1)
        self.assertEqual(waits, [30, 60, 120, 240, 2000])
        self.assertEqual(self.written.refresh_token, "r0")
        self.posts.grants("a1")
        self.assertEqual(self.token(), "a1")

    def test_a_token_that_is_still_good_is_used_on(self) -> None:
        """The provider is down ten minutes before the end: mail goes on until then."""
        self.clock.advance(3300)
        self.posts.says(503, "server_error")
        self.assertEqual([self.token(), self.token()], ["a0", "a0"])
        self.assertEqual(len(self.posts.asked), 1)
        self.clock.advance(280)
        self.posts.says(503, "server_error")
        self.trouble()

    def test_what_only_a_person_can_mend(self) -> None:
        """The provider is asked no more, not even by the next process, until somebody signs in."""
        self.clock.advance(3700)
        self.posts.says(400, "invalid_grant")
        why = self.sign_in()
        self.assertIn("`mailgateway auth work`", why)
        self.assertIn("invalid_grant", why)
        self.assertEqual([self.sign_in(), self.sign_in(self.another())], [why, why])
        self.assertEqual(len(self.posts.asked), 1)
        self.adopt(Granted("b0", "s0", 3600))
        self.assertEqual((self.token(), self.token(self.another())), ("b0", "b0"))

    def test_a_wrong_registration(self) -> None:
        """The settings are to be mended; the grant stays, and the provider is left alone."""
        self.clock.advance(3700)
        self.posts.answers.append(
            Answer(401, json.dumps({"error": "invalid_client", "error_description": "AADSTS7000222: x"}))
        )
        error = self.trouble()
        self.assertIn("expired", str(error))
        self.assertEqual(error.retry_after, 300)
        self.trouble()
        self.assertEqual((len(self.posts.asked), self.written.refresh_token), (1, "r0"))

    def test_settings_that_have_changed(self) -> None:
        """Another client, address or list of scopes: the person is asked anew; their order is nothing."""
        for changes in (
            {"client_id": "you"},
            {"token_url": "https://other.example/t"},
            {"scopes": ("mail",)},
        ):
            self.assertIn("has changed", self.sign_in(self.another(evolve(WORK, **changes))))
        self.assertEqual(self.token(self.another(evolve(WORK, scopes=WORK.scopes[::-1]))), "a0")

    def test_nobody_signed_in(self) -> None:
        """The sentence says with which command."""
        self.successResultOf(Deferred.fromCoroutine(self.grants.forget("work")))
        self.assertIn("`mailgateway auth work`", self.sign_in())
        self.assertFalse(self.successResultOf(Deferred.fromCoroutine(self.grants.forget("work"))))

    def test_no_refresh_token(self) -> None:
        """It is used until it ends, and then a person is asked."""
        self.adopt(Granted("a0", "", 3600))
        self.clock.advance(3590)
        self.assertEqual(self.token(), "a0")
        self.clock.advance(20)
        self.assertIn("no refresh token", self.sign_in())

    def test_a_refused_token(self) -> None:
        """An old one is renewed, once; one of five minutes is not; what was replaced says nothing."""
        self.assertIs(self.grants.refused("work", "a0"), Verdict.YOUNG)
        self.clock.advance(301)
        self.assertIs(self.grants.refused("work", "a0"), Verdict.RENEW)
        self.assertIs(self.grants.refused("work", "a0"), Verdict.OLD)
        self.posts.says(503, "server_error")
        self.trouble()  # a token that was refused is no stopgap
        self.clock.advance(31)
        self.posts.grants("a1", "r1")
        self.assertEqual(self.token(), "a1")
        self.assertIs(self.grants.refused("work", "a0"), Verdict.OLD)
        self.assertIs(self.grants.refused("work", "a1"), Verdict.YOUNG)

    def test_no_secret_is_shown(self) -> None:
        """Neither by a repr nor by an error."""
        self.clock.advance(3700)
        self.posts.says(400, "invalid_grant")
        shown = repr(self.grants) + repr(self.written) + self.sign_in()
        for secret in ("a0'", "r0'"):
            self.assertNotIn(secret, shown)


class DiskTests(GrantsCase):
    """The file."""

    def test_modes(self) -> None:
        """For us alone, whatever the umask is."""
        before = os.umask(0)
        try:
            self.adopt(Granted("a0", "r0", 3600))
        finally:
            os.umask(before)
        folder = self.folder / "oauth"
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        for path in folder.iterdir():
            self.assertEqual(path.stat().st_mode & 0o777, 0o600, path)

    def test_a_damaged_file(self) -> None:
        """It says what to do and quotes nothing; the provider is not asked."""
        path = self.folder / "oauth" / "work.json"
        for text in ("", "{", "[]", '{"version": 2}', path.read_text().replace('"r0"', "7"), "\xff"):
            path.write_text(text, "latin-1")
            error = self.trouble()
            self.assertIn("`mailgateway auth work`", str(error))
            self.assertNotIn("a0", str(error))
        self.assertEqual(self.posts.asked, [])

    def test_a_disk_that_is_full(self) -> None:
        """What came is not lost: it is written later, and nobody asks with the old one again."""
        self.clock.advance(3500)
        self.posts.grants("a1", "r1")
        path = self.folder / "oauth" / "work.json"
        kept = path.read_text()
        path.unlink()
        path.mkdir()  # nothing can be moved onto it
        (path / "x").touch()
        full = GrantFile.of(self.folder, "work")
        self.assertRaises(ConfigError, full.read)
        rmtree(path)
        path.write_text(kept)
        write = GrantFile.write

        def refuse(*_: object) -> None:
            raise ConfigError([])

        self.patch(GrantFile, "write", refuse)
        self.trouble()
        self.patch(GrantFile, "write", write)
        self.assertEqual((self.token(), self.written.refresh_token), ("a1", "r1"))
        self.assertEqual(len(self.posts.asked), 1)

    def test_a_disk_that_is_full_while_the_clock_is_set_back(self) -> None:
        """What came last counts, not what has the later time: its refresh token may be the only good one."""
        hour = timedelta(hours=1)
        GrantFile.of(self.folder, "work").write(
            evolve(self.written, issued_at=self.now() + hour, expires_at=self.now() + 2 * hour)
        )
        self.posts.grants("a1", "r1")
        write = GrantFile.write

        def refuse(*_: object) -> None:
            raise ConfigError([])

        self.patch(GrantFile, "write", refuse)
        self.trouble()
        self.trouble()
        self.patch(GrantFile, "write", write)
        self.assertEqual((self.token(), self.written.refresh_token), ("a1", "r1"))
        self.assertEqual(len(self.posts.asked), 1)

    def test_what_could_not_be_written_yields_to_a_new_sign_in(self) -> None:
        """Somebody has signed in meanwhile, in another process: that counts."""
        self.clock.advance(3500)
        self.posts.grants("a1", "r1")
        write = GrantFile.write

        def refuse(*_: object) -> None:
            raise ConfigError([])

        self.patch(GrantFile, "write", refuse)
        self.trouble()
        self.patch(GrantFile, "write", write)
        self.successResultOf(Deferred.fromCoroutine(self.another().adopt("work", Granted("b0", "s0", 3600))))
        self.assertEqual((self.token(), self.written.refresh_token), ("b0", "s0"))

    def test_killed_at_any_point(self) -> None:
        """Before and after each call of the system the file is the old one or the new one, and never less."""
        states = set()
        for step in range(12):
            target = Path(mkdtemp(dir=self.folder))
            GrantFile.of(target, "work").write(self.written)
            done = subprocess.run(
                [sys.executable, "-c", KILLED, str(target), str(step)],
                cwd=Path(__file__).parent.parent.parent,
                check=False,
                timeout=60,
            )
            found = GrantFile.of(target, "work").read()
            assert found is not None
            states.add((done.returncode != 0, found.refresh_token))
            if done.returncode == 0:
                break
        self.assertEqual(states, {(True, "r0"), (True, "r1"), (False, "r1")})


KILLED = """
import os, signal, sys
from pathlib import Path
from attrs import evolve
from mailgateway.protocols.grant_file import GrantFile
file = GrantFile.of(Path(sys.argv[1]), "work")
grant, left = file.read(), int(sys.argv[2])
assert grant is not None

def watched(name):
    real = getattr(os, name)
    def call(*args, **more):
        global left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return real(*args, **more)
    return call

for name in ("open", "fsync", "replace", "rename", "close"):
    setattr(os, name, watched(name))
file.write(evolve(grant, access_token="a1", refresh_token="r1"))
os._exit(0)
"""

HAMMER = """
import sys
from pathlib import Path
from typing import Any
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.task import deferLater
from mailgateway.operator.running import run
from mailgateway.protocols.grants import AccessToken, Grants
from mailgateway.settings import OAuth
from tests.fakes.identity_provider import registration

async def work(reactor: Any) -> int:
    table = registration(sys.argv[2])
    table["scopes"] = tuple(table["scopes"])
    grants = Grants(reactor, Path(sys.argv[1]), {"work": OAuth(**table)})
    good = 0
    for _ in range(6):
        wanted = [Deferred.fromCoroutine(grants.token("work")) for _ in range(5)]
        for outcome in [await each for each in wanted]:
            good += isinstance(outcome, AccessToken)
        await deferLater(reactor, 0.25)
    return good

print(run(work, seconds=60))
"""


class RealTests(TestCase):
    """Several processes, a provider that rotates and punishes, and HTTP between them."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.provider = IdentityProvider(lifetime=1, reactor=reactor, delay=0.05)
        port = reactor.listenTCP(0, self.provider.site(), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        self.base = f"http://127.0.0.1:{port.getHost().port}"
        table = registration(self.base)
        self.written = OAuth(**{**table, "scopes": tuple(table["scopes"])})

    def begun(self) -> Granted:
        """A grant of the provider's."""
        from tests.fakes.identity_provider import Family  # noqa: PLC0415

        self.provider.families.append(Family("first"))
        return Granted("none", "first", 1)

    async def test_no_refresh_token_is_used_twice(self) -> None:
        """Three processes with five askers each, tokens of a second: the provider never sees one again."""
        await Grants(reactor, self.folder, {"work": self.written}).adopt("work", self.begun())
        words = ["-c", HAMMER, str(self.folder), self.base]
        top = str(Path(__file__).parent.parent.parent)
        environ = {**os.environ, "PYTHONPATH": top}
        running = [getProcessOutputAndValue(sys.executable, words, environ, top) for _ in range(3)]
        results: Any = await DeferredList(running, fireOnOneErrback=True)
        for _, (out, err, status) in results:
            self.assertEqual((status, out.strip()), (0, b"30"), err)
        self.assertEqual((self.provider.reused, self.provider.families[0].revoked), (0, False))
        self.assertGreaterEqual(len(self.provider.asked), 2)
        self.assertLess(len(self.provider.asked), 45)

    async def test_a_provider_that_is_not_there(self) -> None:
        """Refused, a redirect, an endless answer: each has its sentence, and the grant stays."""
        grants = Grants(
            reactor, self.folder, {"work": evolve(self.written, token_url="http://127.0.0.1:1/token")}
        )
        await grants.adopt("work", self.begun())
        file = GrantFile.of(self.folder, "work")
        grant = file.read()
        assert grant is not None
        past = grant.expires_at - timedelta(hours=1)
        file.write(evolve(grant, expires_at=past))
        with self.assertRaises(TokenUnavailable):
            await grants.token("work")
        for status, answer, headers, word in (
            (302, "", {"location": f"{self.base}/token"}, "302"),
            (200, "x" * 300_000, {}, "longer than"),
        ):
            self.provider.troubles.append((status, answer, headers))
            own = Grants(reactor, self.folder, {"work": self.written})
            file.write(evolve(grant, expires_at=past, binding=binding_of(self.written)))
            with self.assertRaises(TokenUnavailable) as caught:
                await own.token("work")
            self.assertIn(word, str(caught.exception))
            self.assertEqual(len(self.provider.asked), 1, "a redirect was followed")
            self.provider.asked.clear()
