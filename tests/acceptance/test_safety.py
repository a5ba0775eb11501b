"""Crashes, clean stops and safe connections, on real servers."""

import sys

from mailgateway.client import ApiRefused
from tests.acceptance.harness import AGENT, PASSWORD, WorldTestCase
from tests.fakes.dovecot import token_for
from tests.fakes.smtp_sink import SmtpSink


class CrashTests(WorldTestCase):
    """The service is killed where it hurts."""

    def test_killed_between_persist_and_ack(self) -> None:
        """A reply that was filed, and one that was claimed, are there after the restart, each once."""
        filed, claimed = self.ask("Filed?"), self.ask("Claimed?")
        first = self.deliver_reply(filed, "filed")
        second = self.deliver_reply(claimed, "claimed")
        before = {self.poll(filed)["id"], self.poll(claimed)["id"]}
        self.gateway.client.claim(self.poll(claimed)["id"], claimed.instance)
        self.gateway.kill()
        self.start_watching()
        after = {each["id"] for each in self.gateway.client.pending()}
        self.assertEqual(after, before)
        self.assertFalse(self.seen(first) or self.seen(second))
        self.take(filed, self.poll(filed))
        self.take(claimed, self.gateway.client.pending(claimed.session)[0])
        self.wait_seen(first)
        self.wait_seen(second)
        self.assertEqual(self.gateway.client.pending(), [])

    def test_killed_between_ack_and_flag(self) -> None:
        """An ack without the mail server succeeds; the flag is set after a crash, and nothing comes again."""
        asked = self.ask()
        message_id = self.deliver_reply(asked, "acked without a server")
        delivery = self.poll(asked)
        self.gateway.client.claim(delivery["id"], asked.instance)
        self.dovecot.stop()
        self.gateway.client.ack(delivery["id"], asked.instance)
        self.gateway.kill()
        self.dovecot.start()
        self.assertFalse(self.seen(message_id))
        self.start_watching()
        self.wait_seen(message_id)
        self.assert_nothing_pending(asked)

    def test_delivered_while_the_service_was_down(self) -> None:
        """The cursor survives: what came in between is found, and nothing older comes again."""
        old, new = self.ask("Old?"), self.ask("New?")
        self.deliver_reply(old, "before")
        self.take(old, self.poll(old))
        self.gateway.kill()
        self.deliver_reply(new, "in between")
        self.start_watching()
        self.assertEqual(self.words(self.poll(new)), "in between")
        self.assert_nothing_pending(old)


class StopTests(WorldTestCase):
    """A clean end."""

    def test_clean_stop(self) -> None:
        """With a poll waiting the service stops in time, says LOGOUT, exits 0 and leaves no traceback."""
        asked = self.ask()
        waiting = self.polling(asked)
        self.dovecot.wait_idle(AGENT)
        self.assertEqual(self.gateway.stop(), 0)
        self.assertIn("LOGOUT", self.dovecot.commands(AGENT)[-1])
        self.assertNotIn("Traceback", self.gateway.log())
        waiting.exception(20)  # it ended, by an empty answer or a lost connection
        self.start_watching()
        self.deliver_reply(asked, "after the restart")
        self.assertEqual(self.words(self.poll(asked)), "after the restart")


class TlsTests(WorldTestCase):
    """Both connections with TLS, verified against the test's own authority."""

    imap_tls = "implicit"
    smtp_tls = "implicit"

    def test_implicit_tls(self) -> None:
        """The round trip works, and the sink saw a login over TLS."""
        asked = self.ask()
        self.assertEqual((asked.received.encrypted, asked.received.login), (True, AGENT))
        self.deliver_reply(asked, "over TLS")
        self.take(asked, self.poll(asked))
        self.assertIn("TLS", self.dovecot.log().partition("Login: ")[2])


class StarttlsTests(WorldTestCase):
    """Both connections with STARTTLS."""

    imap_tls = "starttls"
    smtp_tls = "starttls"

    def test_starttls(self) -> None:
        """The round trip works, and nobody logged in without TLS."""
        asked = self.ask()
        self.assertEqual((asked.received.encrypted, asked.received.login), (True, AGENT))
        self.deliver_reply(asked, "over STARTTLS")
        self.take(asked, self.poll(asked))


class TokenTests(WorldTestCase):
    """OAuth: a command prints an access token, and both servers check it by themselves."""

    imap_tls = "implicit"
    smtp_tls = "implicit"

    def setUp(self) -> None:
        self.token = token_for(AGENT)
        super().setUp()

    def make_sink(self) -> SmtpSink:
        """Take the token instead of a password."""
        return SmtpSink(tokens={AGENT: self.token}, tls="implicit", authority=self.authority)

    def secret(self) -> dict[str, object]:
        """Let a small program print the token."""
        program = self.folder / "print_token.py"
        program.write_text(f"print({self.token!r})\n", encoding="utf-8")
        return {"token_command": f"{sys.executable} {program}"}

    def test_token_login(self) -> None:
        """The round trip works by token on both servers, and the token stands in no log."""
        asked = self.ask()
        self.assertIn(asked.received.mechanism, {"XOAUTH2", "OAUTHBEARER"})
        self.deliver_reply(asked, "by token")
        self.take(asked, self.poll(asked))
        self.assertRegex(
            self.dovecot.log(), r"Login: user=<agent@example\.org>, method=(XOAUTH2|OAUTHBEARER)"
        )
        self.assertNotIn(self.token, self.gateway.log())


class RenewedTokenTests(TokenTests):
    """The first token that the command prints has expired already."""

    def secret(self) -> dict[str, object]:
        """Let the program print a stale token first, and good ones from then on."""
        program = self.folder / "print_token.py"
        mark = self.folder / "printed"
        program.write_text(
            "import pathlib\n"
            f"mark = pathlib.Path({str(mark)!r})\n"
            f"print({self.token!r} if mark.exists() else {token_for(AGENT, lifetime=-60)!r})\n"
            "mark.touch()\n",
            encoding="utf-8",
        )
        return {"token_command": f"{sys.executable} {program}"}

    def start_watching(self) -> None:
        """Start the service; whether it comes to watch is the question."""
        self.gateway.start()

    def test_token_login(self) -> None:
        """A refused token is fetched anew, and the round trip works without an operator."""
        self.dovecot.wait_idle(AGENT, 10)
        super().test_token_login()
        self.assertLessEqual(self.dovecot.refusals(), 1)


class WrongCertificateTests(WorldTestCase):
    """Servers whose certificate is for another name."""

    imap_tls = "implicit"
    smtp_tls = "implicit"
    names = ("other.example",)

    def start_watching(self) -> None:
        """Start the service, which will not come to watch."""
        self.gateway.start()

    def test_no_login(self) -> None:
        """Neither server ever sees a login, the account says that it is not well, and a decision fails."""
        self.wait_account("backing-off", "refused")
        self.gateway.client.ping("s", "i")
        refused = self.assertRaises(
            ApiRefused, self.gateway.client.send, "decision", "s", "Which?", "This or that?"
        )
        self.assertEqual((refused.code, refused.status), ("smtp_failed", 502))
        self.assertEqual((self.dovecot.logins(), self.dovecot.refusals()), (0, 0))
        self.assertEqual((self.sink.mails, self.sink.logins_refused), ([], 0))


class WrongPasswordTests(WorldTestCase):
    """The server refuses the password."""

    def secret(self) -> dict[str, object]:
        """Lay a wrong password where the settings name it."""
        path = self.folder / "wrong"
        path.touch(mode=0o600)
        path.write_text("not-the-password\n", encoding="utf-8")
        return {"password_file": str(path)}

    def start_watching(self) -> None:
        """Start the service, which will not come to watch."""
        self.gateway.start()

    def test_no_hammering(self) -> None:
        """However often the service is killed and started, the password is tried twice at most."""
        for _ in range(4):
            self.wait_account("backing-off", "refused")
            self.gateway.kill()
            self.gateway.start()
        self.wait_account("backing-off", "refused")
        self.assertIn(self.dovecot.refusals() + self.sink.logins_refused, {1, 2})
        self.assertEqual(self.dovecot.logins(), 0)
        self.assertNotIn("not-the-password", self.gateway.log())


class SmtpTests(WorldTestCase):
    """Submission to an independent server."""

    def test_what_is_sent(self) -> None:
        """One question is one mail to the person, from the agent, with the tag and the marks of a machine."""
        asked = self.ask("Which one?")
        received, mail = asked.received, asked.question
        self.assertEqual(
            (received.sender, received.recipients, received.login), (AGENT, ("robin@example.net",), AGENT)
        )
        self.assertRegex(str(mail["Subject"]), r"^\[mg:[0-9a-f]{6}\] Which one\?$")
        self.assertRegex(str(mail["Message-ID"]), r"^<mg\.[0-9a-f]{6,8}\.[^.]+\.[0-9a-f]{8}@example\.org>$")
        for name in ("X-Mailgateway-Instance", "X-Mailgateway-Id", "Auto-Submitted"):
            self.assertTrue(mail[name], name)
        self.assertNotIn(PASSWORD, received.raw.decode("utf-8", "replace"))

    def test_refused_decision(self) -> None:
        """A refusal by the server fails to the caller, reserves nothing, and the next try goes through."""
        self.gateway.client.ping("s", "i")
        self.sink.answers.append("554 5.7.1 not today")
        refused = self.assertRaises(
            ApiRefused, self.gateway.client.send, "decision", "s", "Which?", "This or that?"
        )
        self.assertEqual(
            (refused.code, refused.status, refused.details["smtpCode"]), ("smtp_failed", 502, 554)
        )
        sent = self.gateway.client.send("decision", "s", "Which?", "This or that?")
        self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"])
        self.assertEqual(len(self.sink.mails), 1)
