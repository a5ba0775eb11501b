"""OAuth from end to end: a provider, mail servers that ask it about tokens, and the service."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.acceptance.harness import AGENT, PASSWORD, WorldTestCase
from tests.fakes.dovecot import Dovecot, eventually
from tests.fakes.identity_provider import ProviderProgram, registration
from tests.fakes.smtp_sink import SmtpSink

TOP = Path(__file__).parent.parent.parent


class OAuthWorld(WorldTestCase):
    """Everything with tokens; they are good for as long as ``lifetime`` says."""

    lifetime = 3600
    mechanisms = "xoauth2 oauthbearer"
    signs_in = True

    def setUp(self) -> None:
        self.provider: ProviderProgram | None = None
        self.addCleanup(self.stop_provider)
        super().setUp()

    def stop_provider(self) -> None:
        """Leave no process behind."""
        if self.provider is not None:
            self.provider.stop()

    @property
    def idp(self) -> ProviderProgram:
        """The provider, which begins when it is needed first."""
        if self.provider is None:
            self.provider = ProviderProgram(self.folder).start()
            self.provider.control(lifetime=self.lifetime)
        return self.provider

    def make_sink(self) -> SmtpSink:
        """Let the SMTP server ask about tokens; and Dovecot, which has not begun yet."""
        self.dovecot = Dovecot(
            self.folder / "dovecot",
            {AGENT: PASSWORD},
            self.authority,
            introspection=f"{self.idp.base}/introspect",
            token_mechanisms=self.mechanisms,
        )
        return SmtpSink(checks=self.idp.accepts)

    def secret(self) -> dict[str, object]:
        """Name the registration."""
        return {"oauth": "work"}

    def make_settings(self) -> dict[str, dict[str, object]]:
        """Add it."""
        return {**super().make_settings(), "oauth.work": registration(self.idp.base)}

    def start_watching(self) -> None:
        """Sign in, as a person does, before the service begins to watch."""
        self.write_settings()
        if self.signs_in:
            self.sign_in()
        super().start_watching()

    def write_settings(self) -> None:
        """Write the settings without starting anything."""
        from mailgateway.demo.service import settings_text  # noqa: PLC0415

        state = self.gateway.state_dir
        daemon = {"host": "127.0.0.1", "port": self.gateway.port, "state_dir": str(state)}
        path = self.gateway.folder / "mailgateway.toml"
        path.write_text(settings_text({**self.gateway.settings, "daemon": daemon}), encoding="utf-8")

    def verb(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a verb as a person does."""
        program = "from mailgateway.cli.main import main; main()"
        config = str(self.gateway.folder / "mailgateway.toml")
        return subprocess.run(
            [sys.executable, "-c", program, *words, "--config", config],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(TOP)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def sign_in(self) -> dict[str, Any]:
        """Type the code."""
        done = self.verb("auth", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("WDJB-MJHT", done.stderr)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def told(self) -> dict[str, Any]:
        """What the provider knows."""
        return self.idp.control()

    def refreshes(self) -> int:
        """How often a refresh token came."""
        return sum(form.get("grant_type") == "refresh_token" for form in self.told()["asked"])

    def assert_no_token_is_logged(self) -> None:
        """Neither access nor refresh tokens stand in the log."""
        log, told = self.gateway.log(), self.told()
        for token in (*told["tokens"], *told["refresh"]):
            self.assertNotIn(token, log)

    def cut(self) -> None:
        """End the IMAP sessions, as a server does when a token ends."""
        for pid in self.dovecot.serving(AGENT):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)


class RoundTripTests(OAuthWorld):
    """A lasting grant, by OAUTHBEARER."""

    mechanism = "OAUTHBEARER"

    def test_round_trip(self) -> None:
        """Signed in by a verb, mail goes out and comes in, and the token is asked for once."""
        asked = self.ask()
        self.assertIn(asked.received.mechanism, {"XOAUTH2", "OAUTHBEARER"})
        self.deliver_reply(asked, "by token")
        self.take(asked, self.poll(asked))
        self.assertIn(f"method={self.mechanism}", self.dovecot.log())
        self.assertEqual((self.refreshes(), self.dovecot.refusals()), (0, 0))
        self.assertGreater(self.told()["introspected"], 1)
        shown = self.verb("auth", "--status", "--json")
        self.assertEqual(shown.returncode, 0, shown.stdout)
        self.assert_no_token_is_logged()
        for token in self.told()["tokens"]:
            self.assertNotIn(token, shown.stdout)

    def test_revoked_in_mid_session(self) -> None:
        """Every access token is worth nothing at once: both doors come back with another one."""
        path = self.gateway.state_dir / "oauth/work.json"
        facts = json.loads(path.read_text())
        facts["issuedAt"] = "2020-01-01T00:00:00+00:00"  # else it is too young to be mended by another one
        path.write_text(json.dumps(facts))
        self.idp.control(revoke_access=True)
        asked_before = self.refreshes()
        self.cut()
        self.dovecot.wait_idle(AGENT, 40)
        asked = self.ask()
        self.deliver_reply(asked, "after it was revoked")
        self.assertEqual(self.words(self.poll(asked)), "after it was revoked")
        told = self.told()
        self.assertEqual((self.refreshes() - asked_before, told["reused"]), (1, 0))
        self.assertLessEqual(self.dovecot.refusals() + self.sink.logins_refused, 2)
        self.assert_no_token_is_logged()


class XOAuth2Tests(RoundTripTests):
    """The same where the server knows XOAUTH2 only."""

    mechanism = "XOAUTH2"
    mechanisms = "xoauth2"


class ExpiryTests(OAuthWorld):
    """Tokens of a few seconds."""

    lifetime = 6

    def test_expiry_in_mid_idle(self) -> None:
        """The token ends, the session ends, mail comes meanwhile: nothing is lost, nothing is refused."""
        asked = self.ask()
        for round_ in range(2):
            time.sleep(self.lifetime)  # a real token of a real server has to end
            self.cut()
            other = self.ask(f"Round {round_}?")
            self.deliver_reply(other, f"reply {round_}")
            self.assertEqual(self.words(self.poll(other)), f"reply {round_}")
        self.deliver_reply(asked, "the first")
        self.take(asked, self.poll(asked))
        self.assertGreaterEqual(self.refreshes(), 2)
        self.assertEqual(
            (self.dovecot.refusals(), self.sink.logins_refused, self.told()["reused"]), (0, 0, 0)
        )
        self.assert_no_token_is_logged()

    def test_provider_down_at_refresh(self) -> None:
        """It is asked once, the mail server is not; mail arrives when it is back, without anybody's help."""
        asked = self.ask()
        time.sleep(self.lifetime)
        self.idp.control(troubles=[[503, {"error": "temporarily_unavailable"}, {}]])
        self.cut()
        self.deliver_reply(asked, "while it was down")
        self.wait_account("backing-off")
        self.assertEqual(self.dovecot.refusals(), 0)
        self.assertEqual(self.words(self.poll(asked, 60)), "while it was down")
        self.assertEqual((self.dovecot.refusals(), self.told()["reused"]), (0, 0))


class SignInTests(OAuthWorld):
    """A service whose person has not signed in yet, or has to do it again."""

    signs_in = False

    def start_watching(self) -> None:
        """Start the service, which cannot watch."""
        self.write_settings()
        self.gateway.start()
        self.gateway.client.set_mode("on")

    def test_taken_up_without_a_restart(self) -> None:
        """Status says which command; after it the service begins by itself; and once more."""
        self.wait_account("refused")
        (account,) = self.gateway.client.health()["accounts"]
        self.assertIn("`mailgateway auth work`", " ".join(account.get("remarks", [])))
        self.assertEqual((self.verb("auth", "--status").returncode, self.dovecot.refusals()), (1, 0))
        self.assertEqual(self.told()["asked"], [])
        self.sign_in()
        self.dovecot.wait_idle(AGENT, 40)
        asked = self.ask()
        self.idp.control(revoke_all=True)
        path = self.gateway.state_dir / "oauth/work.json"
        facts = json.loads(path.read_text())
        path.write_text(json.dumps({**facts, "expiresAt": facts["issuedAt"]}))
        self.cut()
        self.deliver_reply(asked, "while nobody was signed in")
        self.wait_account("refused")
        refreshes = self.refreshes()
        self.gateway.stop()
        self.gateway.start()
        self.wait_account("refused")
        self.assertEqual((self.refreshes(), self.dovecot.refusals()), (refreshes, 0))
        self.sign_in()
        self.dovecot.wait_idle(AGENT, 40)
        self.assertEqual(self.words(self.poll(asked)), "while nobody was signed in")
        eventually(
            "no advice any more", lambda: not self.gateway.client.health()["accounts"][0].get("remarks")
        )
        self.assert_no_token_is_logged()
        self.assertEqual(self.verb("auth", "work", "--forget").returncode, 0)
        self.assertFalse(path.exists())
