"""``check`` and ``doctor`` as a person and a script meet them, against Dovecot and a submission server."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import rmtree
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client import Client
from mailgateway.client.of_settings import base_of_settings
from mailgateway.client.service_lock import service_is_gone
from mailgateway.operator.running import run
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.imap import ImapConnection
from mailgateway.settings import Tls, load
from tests.cli.test_setup import PROGRAM, SECONDS, Terminal
from tests.cli.verbs import VerbCase
from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot, eventually
from tests.fakes.smtp_sink import SmtpSink, free_port

PASSWORD = "correct horse"
ADDRESS = "agent@example.org"
SETTINGS = """
[daemon]
port = {port}
state_dir = "{folder}/state"
[accounts.main]
address = "agent@agents.internal"
watch = ["INBOX"]
[accounts.main.imap]
host = "localhost"
port = {imap}
tls = "starttls"
ca_file = "{anchor}"
username = "agent@example.org"
password_file = "{folder}/password"
[accounts.main.smtp]
host = "localhost"
port = {smtp}
tls = "{smtp_tls}"
ca_file = "{anchor}"
[people]
allowed = ["robin@example.org"]
[security]
trusted_authserv_ids = ["mx.example.org"]
"""


class ServersCase(SynchronousTestCase):
    """An account at two real servers, and verbs that run in processes of their own."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        self.authority = Authority.make(self.folder / "ca")
        self.dovecot = Dovecot(self.folder / "dovecot", {ADDRESS: PASSWORD}, self.authority).start()
        self.addCleanup(self.dovecot.stop, hard=True)
        self.sink = SmtpSink({ADDRESS: PASSWORD}, tls="starttls", authority=self.authority).start()
        self.addCleanup(self.sink.stop)
        self.config = self.folder / "config.toml"
        self.write()
        self.set_password(PASSWORD)
        self.environment = {
            **{key: text for key, text in os.environ.items() if not key.startswith(("MAILGATEWAY_", "XDG_"))},
            "HOME": str(self.folder),
            "TERM": "dumb",
            "COLUMNS": "100",
        }

    def write(self, **values: Any) -> None:
        """Write the settings."""
        known = {"port": free_port(), "folder": self.folder, "imap": self.dovecot.imap_port}
        known |= {"smtp": self.sink.port, "smtp_tls": "starttls", "anchor": self.authority.anchor}
        self.config.write_text(SETTINGS.format(**{**known, **values}))

    def set_password(self, text: str) -> None:
        """Change what we log in with."""
        file = self.folder / "password"
        file.write_text(f"{text}\n")
        file.chmod(0o600)

    def run_it(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a verb without a terminal."""
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *words, "--config", str(self.config)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=self.environment,
            check=False,
        )

    def answer(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Run a verb for JSON."""
        done = self.run_it(*words, "--json")
        self.assertEqual(done.stderr, "")
        self.assertNotIn(PASSWORD, done.stdout)
        return done.returncode, json.loads(done.stdout)


class CheckTests(ServersCase):
    """With STARTTLS at both servers."""

    def test_well_then_wrong(self) -> None:
        """Status 0 and every step; with a wrong password status 1, and one refusal at one server."""
        status, told = self.answer("check")
        self.assertEqual((status, told["ok"], told["config"]), (0, True, str(self.config)), told)
        states = {each["step"]: each["state"] for each in told["findings"]}
        self.assertEqual(set(states.values()), {"ok"})
        self.assertLess({"main imap certificate", "main imap login", "main smtp login"}, set(states))
        self.assertEqual(self.sink.mails, [])
        self.set_password("wrong horse")
        done = self.run_it("check")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^failed   main imap login: the server refused the login")
        self.assertRegex(done.stdout, r"(?m)^skipped  main smtp login: ")
        self.assertNotIn("wrong horse", done.stdout + done.stderr)
        self.assertEqual((self.dovecot.refusals(), self.sink.logins_refused), (1, 0))

    def test_wrong_settings(self) -> None:
        """Status 2, every mistake at once, and nobody is dialled."""
        self.write(smtp_tls="maybe")
        (self.folder / "password").chmod(0o644)
        text = self.config.read_text().replace('watch = ["INBOX"]', "watch = 3")
        self.config.write_text(text)
        status, told = self.answer("check")
        self.assertEqual((status, told["error"]), (2, "invalid_settings"))
        self.assertEqual(
            {each["path"] for each in told["problems"]}, {"accounts.main.watch", "accounts.main.smtp.tls"}
        )
        self.write()
        status, told = self.answer("check")
        self.assertEqual(status, 2)
        self.assertIn("chmod 600", told["message"])
        self.assertEqual(self.dovecot.logins(), 0)

    def test_in_a_terminal(self) -> None:
        """Lines fit the screen, what is waited for leaves no trace of control characters in the result."""
        arguments = ["check", "--config", str(self.config)]
        terminal = Terminal(arguments, self.environment).start()
        terminal.wait_for("main smtp login")
        self.assertEqual(terminal.end(), 0, terminal.read)
        self.assertIn("Nothing was sent.", terminal.read)
        self.assertNotIn(PASSWORD, terminal.read)

    def test_a_person_who_has_waited_enough(self) -> None:
        """What is waited for is shown; Ctrl-C ends it at once, with status 1 and the cursor back."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            self.write(imap=silent.getsockname()[1])
            environment = {**self.environment, "TERM": "xterm"}
            terminal = Terminal(["check", "--config", str(self.config)], environment).start()
            terminal.type("connecting to localhost", "\x03")
            self.assertEqual(terminal.end(), 1, terminal.read)
        self.assertIn("Aborted!", terminal.read)
        self.assertGreater(terminal.read.rfind("\x1b[?25h"), terminal.read.rfind("\x1b[?25l"))

    def test_a_second_run_in_one_process(self) -> None:
        """STARTTLS goes through whoever was the global reactor before: it is our own meanwhile."""
        peer = Peer("localhost", self.dovecot.imap_port, Tls.STARTTLS, self.authority.anchor.read_bytes())

        async def work(reactor: Any) -> bool:
            connection = await ImapConnection.connect(reactor, peer)
            known = connection.supports("IDLE")
            await connection.logout()
            return known

        before = sys.modules.get("twisted.internet.reactor")
        for _ in range(2):
            self.assertTrue(run(work, seconds=20))
        self.assertIs(sys.modules.get("twisted.internet.reactor"), before)


class DoctorTests(ServersCase):
    """Every part, with and without the network."""

    def test_without_a_service(self) -> None:
        """All parts are told; a service that does not run is no failure; nothing is sent by --no-mail."""
        status, told = self.answer("doctor", "--no-mail")
        findings = {each["step"]: each for each in told["findings"]}
        failed = [each for each in told["findings"] if each["state"] == "failed"]
        self.assertEqual((status, failed), (0, []), told)
        parts = {
            "state directory",
            "disk",
            "people",
            "clock",
            "service",
            "main imap login",
            "main smtp login",
        }
        self.assertLess(parts | {"main imap folders", "main dns"}, set(findings))
        self.assertIn("mailgateway ensure", findings["service"]["advice"])
        self.assertEqual(self.sink.mails, [])

    def test_with_a_mail(self) -> None:
        """It comes back, and who vouches for it is known; no line of it is told."""
        results = b"Authentication-Results: mx.example.org; dkim=pass header.d=agents.internal\r\n"
        self.sink.on_mail = lambda: self.dovecot.deliver(ADDRESS, results + self.sink.mails[-1].raw)
        self.dovecot.deliver(ADDRESS, b"Subject: old\r\nMessage-ID: <old@example.org>\r\n\r\nkeep this\r\n")
        status, told = self.answer("doctor")
        states = {each["step"]: each["state"] for each in told["findings"]}
        self.assertEqual(status, 0, told)
        for step in ("main sending", "main arrival", "main message-id", "main imap clock"):
            self.assertEqual(states[step], "ok", told)
        self.assertEqual(states["main authentication-results"], "ok", told)
        self.assertEqual(len(self.sink.mails), 1)
        self.assertNotIn("keep this", json.dumps(told))

    def test_no_mail_where_a_login_is_refused(self) -> None:
        """The wrong password is shown once in all."""
        self.set_password("wrong horse")
        status, told = self.answer("doctor")
        [mail] = [each for each in told["findings"] if each["step"] == "main mail"]
        self.assertEqual((status, mail["state"]), (1, "skipped"), told)
        self.assertEqual((self.dovecot.refusals(), self.sink.logins_refused), (1, 0))

    def test_offline(self) -> None:
        """Nobody outside is asked; what is wrong on this machine is said with the command that mends it."""
        state = self.folder / "state"
        state.mkdir(0o700)
        (state / "secret.key").write_text("5f" * 32)
        (state / "secret.key").chmod(0o644)
        self.config.chmod(0o666)
        done = self.run_it("doctor", "--offline")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(f"chmod go-w {self.config}", done.stdout)
        self.assertIn("secret.key is open to others", done.stdout)
        self.assertNotIn("5f5f", done.stdout)
        self.assertEqual(self.dovecot.logins(), 0)

    def test_with_the_service(self) -> None:
        """Its version and who holds the lock."""
        self.assertEqual(self.run_it("ensure").returncode, 0)
        self.addCleanup(self.stop)
        status, told = self.answer("doctor", "--no-mail")
        [service] = [each for each in told["findings"] if each["step"] == "service"]
        self.assertEqual((status, service["state"]), (0, "ok"), told)
        self.assertRegex(service["what"], r"version \S+ answers at .*, process [0-9]+ holds the lock")

    def stop(self) -> None:
        """Let the service end."""
        settings = load(self.config, self.environment)
        Client(base_of_settings(settings), self.folder / "state/secret.key").shutdown()
        eventually("the service ends", lambda: service_is_gone(self.folder / "state"))


class PrimeTests(VerbCase):
    """The verb for ``POST /prime``."""

    def test_it_says_what_was_done(self) -> None:
        """How many folders, and what happens to those that were used; the answer as it is for programs."""
        self.service.answers["POST /prime"] = (200, {"moved": 2})
        done = self.run_verb("prime")
        self.assertEqual(done.exit_code, 0, done.output)
        self.assertRegex(done.output, "^2 folders watched from now on")
        self.assertEqual(json.loads(self.run_verb("prime", "--json").output), {"moved": 2})
