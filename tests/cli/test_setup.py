"""``setup`` as a person and a script meet it: in a terminal, and by flags alone, against real servers."""

import json
import os
import pty
import re
import select
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from shutil import rmtree
from typing import Any

import click
from attrs import define, field
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from mailgateway.cli.main import command
from mailgateway.secrets import PasswordFile
from mailgateway.settings import Authentication, Tls, load
from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot, require
from tests.fakes.smtp_sink import SmtpSink, free_port
from tests.test_docs import DOCS, typed

PASSWORD = "correct horse"
SECONDS = 60
PROGRAM = "from mailgateway.cli.main import main; main()"


@define(eq=False)
class Terminal:
    """A command in a terminal of its own, and what a person reads and types there."""

    arguments: list[str]
    environment: dict[str, str]
    read: str = ""
    _descriptor: int = field(default=-1, init=False)
    _pid: int = field(default=0, init=False)

    def start(self) -> "Terminal":
        """Start it."""
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:  # pragma: no cover - the child
            os.execve(sys.executable, [sys.executable, "-c", PROGRAM, *self.arguments], self.environment)  # noqa: S606
        return self

    def wait_for(self, words: str) -> None:
        """Read until the words stand there."""
        end = time.monotonic() + SECONDS
        while words not in self.read:
            assert self._more(end), f"not there: {words}\n{self.read}"

    def type(self, words: str, line: str) -> None:
        """Wait for the words of a question, and answer."""
        self.wait_for(words)
        self.read = self.read[self.read.index(words) + len(words) :]
        os.write(self._descriptor, f"{line}\n".encode())

    def end(self) -> int:
        """Read all the rest; the exit status."""
        end = time.monotonic() + SECONDS
        while self._more(end):
            pass
        os.close(self._descriptor)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _more(self, end: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, end - time.monotonic()))
        try:
            data = os.read(self._descriptor, 4096) if ready else b""
        except OSError:  # the other side has closed
            data = b""
        self.read += data.decode("utf-8", "replace")
        return bool(data)


class SetupTests(SynchronousTestCase):
    """Each way through it."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        self.authority = Authority.make(self.folder / "ca")
        self.home = self.folder / "home"
        self.home.mkdir()
        self.config = self.home / ".config/mailgateway/config.toml"
        self.environment = {
            **{
                name: text
                for name, text in os.environ.items()
                if not name.startswith(("MAILGATEWAY_", "XDG_"))
            },
            "HOME": str(self.home),
            "TERM": "dumb",
        }

    def servers(self, password: str = PASSWORD) -> list[str]:
        """Start both servers; the flags that name them."""
        dovecot = Dovecot(self.folder / "dovecot", {"agent@example.org": password}, self.authority).start()
        self.addCleanup(dovecot.stop, hard=True)
        sink = SmtpSink({"agent@example.org": password}, tls="implicit", authority=self.authority).start()
        self.addCleanup(sink.stop)
        self.dovecot = dovecot
        return [
            *("--imap", f"localhost:{dovecot.imaps_port}", "--smtp", f"localhost:{sink.port}"),
            *("--ca-file", str(self.authority.anchor)),
        ]

    def run_it(self, *flags: str, given: str = "") -> "subprocess.CompletedProcess[str]":
        """Run it without a terminal."""
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, "setup", *flags],
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=self.environment,
            check=False,
        )

    def answer(self, *flags: str, given: str = "") -> tuple[int, dict[str, Any]]:
        """Run it for JSON."""
        done = self.run_it(*flags, "--json", given=given)
        self.assertEqual(done.stderr, "")
        return done.returncode, json.loads(done.stdout)

    def mode(self, path: Path) -> int:
        """Who may read a file."""
        return stat.S_IMODE(path.stat().st_mode)

    # By flags

    def test_by_flags_alone(self) -> None:
        """Settings that are 0600, hold no secret, log in, and are what the service starts with."""
        flags = self.servers()
        status, told = self.answer(
            "agent@example.org",
            *flags,
            "--password-stdin",
            "--allow",
            "robin@example.org",
            given=f"{PASSWORD}\n",
        )
        self.assertEqual((status, told["ok"], told["written"]), (0, True, True), told)
        self.assertEqual({each["state"] for each in told["findings"]} & {"failed"}, set())
        self.assertGreater(self.dovecot.logins(), 0)
        settings = load(None, self.environment)
        self.assertEqual(settings.people.allowed, ("robin@example.org",))
        secret = settings.sending.imap.secret
        assert isinstance(secret, PasswordFile)
        self.assertEqual(secret.path.read_text(), f"{PASSWORD}\n")
        self.assertEqual([self.mode(path) for path in (self.config, secret.path)], [0o600, 0o600])
        self.assertNotIn(PASSWORD, json.dumps(told) + self.config.read_text())
        self.assertEqual(
            sorted(path.name for path in self.config.parent.iterdir()), ["config.toml", "main.password"]
        )

    def test_what_is_there_stays(self) -> None:
        """Without --force nothing is asked or done; with it the old file is kept."""
        flags = ["agent@example.org", *self.servers(), "--no-check", "--allow", "robin@example.org"]
        flags += ["--password-stdin"]
        self.assertEqual(self.run_it(*flags, given=PASSWORD).returncode, 0)
        before = self.config.read_text()
        done = self.run_it(*flags, given=PASSWORD)
        self.assertEqual(done.returncode, 1)
        self.assertIn("--force", done.stderr)
        self.assertEqual(self.config.read_text(), before)
        status, told = self.answer(*flags, "--force", "--from-name", "Agents", given=PASSWORD)
        self.assertEqual(status, 0, told)
        self.assertEqual(Path(told["backup"]).read_text(), before)
        self.assertEqual(self.mode(Path(told["backup"])), 0o600)
        self.assertIn('from_name = "Agents"', self.config.read_text())

    def test_passwords_that_are_none(self) -> None:
        """Bytes that are no text, a line without an end, nothing at all: a sentence, and nothing written."""
        flags = ["agent@example.org", "--imap", "imap.example.org", "--smtp", "smtp.example.org"]
        flags += ["--no-check", "--allow", "robin@example.org", "--password-stdin", "--json"]
        plain = [
            sys.executable,
            "-c",
            f"import mailgateway.operator.servers as s; s.Servers._try = lambda *_: None; {PROGRAM}",
            "setup",
            *flags,
        ]
        for given in (b"a\xffb\n", b"x" * 10_000, b"", None):
            done = subprocess.run(
                ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *plain] if given is None else plain,
                input=given,
                capture_output=True,
                timeout=SECONDS,
                env=self.environment,
                check=False,
            )
            self.assertEqual((done.returncode, done.stderr), (1, b""))
            self.assertEqual(json.loads(done.stdout)["error"], "no_password")
        self.assertFalse(self.config.exists())

    def test_a_dry_run_judges_as_the_service_would(self) -> None:
        """What could not be started is not shown as if it could."""
        flags = ["agent@example.org", "--imap", "imap.example.org", "--smtp", "smtp.example.org", "--dry-run"]
        flags += ["--allow", "robin@example.org"]
        oauth = ["--oauth-client-id", "x", "--oauth-token-url"]
        for wrong, place in (
            ([*oauth, "http://evil.example/"], "oauth.main.token_url"),
            ([*oauth, "https://p.example/t"], "oauth.main.authorize_url"),
            (["--password-env", "A", "--watch", ""], "accounts.main.watch"),
        ):
            status, told = self.answer(*flags, *wrong)
            self.assertEqual((status, told["error"]), (2, "invalid_settings"), told)
            self.assertIn(place, told["message"])
        done = self.run_it(*flags, "--password-file", "/srv/mail.password")
        self.assertIn('password_file = "/srv/mail.password"   # chmod 600', done.stdout)

    def test_without_a_home(self) -> None:
        """A named file needs none; without either it is said before anything is asked."""
        del self.environment["HOME"]
        self.environment["XDG_STATE_HOME"] = str(self.folder / "state")
        flags = ["agent@example.org", "--imap", "imap.example.org", "--smtp", "smtp.example.org"]
        flags += ["--dry-run", "--allow", "robin@example.org", "--password-env", "A"]
        status, told = self.answer(*flags, "--config", str(self.folder / "own.toml"))
        self.assertEqual((status, told.get("ok")), (0, True), told)
        status, told = self.answer(*flags)
        self.assertEqual((status, told["error"]), (2, "invalid_settings"), told)

    def test_what_nobody_answers_is_named(self) -> None:
        """Status 2, and the flag."""
        flags = ["agent@example.org", "--imap", "imap.example.org", "--smtp", "smtp.example.org", "--dry-run"]
        for given, flag in (
            ([], "ADDRESS"),
            (["agent@gmail.com", "--dry-run"], "--yes"),
            (flags, "--allow"),
        ):
            status, told = self.answer(*given)
            self.assertEqual((status, told["error"], told["flag"]), (2, "missing_answer", flag), told)
        self.assertEqual(
            self.answer(*flags, "--password-env", "A", "--credential", "b")[1]["error"], "too_many_secrets"
        )
        two = self.answer(*flags, "--password-env", "A", "--oauth-client-id", "x")[1]
        self.assertEqual(two["error"], "too_many_secrets")
        self.assertEqual(self.answer("a@b.example", "--imap-tls", "starttls")[1]["error"], "usage")
        unit = self.answer(*flags, "--password-env", "A", "--systemd", "user")[1]
        self.assertEqual(unit["error"], "usage")
        self.assertEqual(self.answer(*flags, "--allow", "nobody")[1]["error"], "invalid_address")
        self.assertEqual(self.answer("agent", "--dry-run")[1]["error"], "invalid_address")
        self.assertEqual(self.answer("a@hey.com", "--dry-run")[1]["error"], "no_imap")
        self.assertEqual(self.answer("a@proton.me", "--yes", "--dry-run")[1]["flag"], "--ca-file")
        for wrong in (
            ["--imap", "https://x"],
            ["--ca-file", "/nowhere"],
            ["--account", "a/b"],
            ["--oauth", "../x"],
        ):
            status, told = self.answer(*flags, *wrong)
            self.assertEqual((status, told["error"]), (2, "usage"), told)
            self.assertIn(wrong[0], told["message"])
        self.assertFalse(self.config.exists())

    def test_a_dry_run_prints_the_file_alone(self) -> None:
        """It can be redirected into a file, which the service reads."""
        done = self.run_it("robin@icloud.com", "--yes", "--dry-run", "--allow", "robin@example.org")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.config.parent.mkdir(parents=True)
        self.config.write_text(done.stdout)
        account = load(None, self.environment, check_files=False).sending
        self.assertEqual((account.imap.username, account.smtp.username), ("robin", "robin@icloud.com"))
        self.assertEqual((account.smtp.port, account.smtp.tls), (587, Tls.STARTTLS))
        self.assertIn("app-specific", done.stderr)

    def test_facts_of_providers(self) -> None:
        """What is known of Gmail and QQ goes into the file."""
        people = ["--allow", "robin@example.org", "--yes", "--dry-run"]
        gmail = self.run_it("agent@gmail.com", *people).stdout
        for line in (
            'trusted_authserv_ids = ["mx.google.com"]',
            "results_below_received = true",
            "plus_address = true",
        ):
            self.assertIn(line, gmail)
        self.assertIn('sent_folder = "Sent Messages"', self.run_it("1@foxmail.com", *people).stdout)
        oauth = self.run_it("agent@outlook.com", *people, "--oauth-client-id", "mine").stdout
        self.assertRegex(oauth, r'(?s)oauth = "main".*\[oauth\.main\].*client_id = "mine".*offline_access')

    def test_one_mailbox_for_both(self) -> None:
        """By the flag, or since the address itself is allowed; the opposite is refused."""
        flags = ["agent@gmail.com", "--yes", "--dry-run"]
        for more in (["--mailbox", "single"], ["--allow", "Agent@gmail.com"]):
            done = self.run_it(*flags, *more)
            self.assertIn('authentication = "single-mailbox"', done.stdout, done.stderr)
            self.assertNotIn("trusted_authserv_ids", done.stdout)
        status, told = self.answer(*flags, "--mailbox", "own", "--allow", "agent@gmail.com")
        self.assertEqual((status, told["error"]), (1, "own_address_allowed"))

    def test_servers_that_cannot_be_used(self) -> None:
        """A closed port and a certificate for another name have their own words; nothing is written."""
        flags = self.servers()
        rest = ["--password-stdin", "--allow", "robin@example.org"]
        closed = [*flags[:3], f"localhost:{free_port()}", *flags[4:]]
        status, told = self.answer("agent@example.org", *closed, *rest, given=PASSWORD)
        self.assertEqual((status, told["error"]), (1, "no_connection"), told)
        self.assertIn("SMTP", told["message"])
        other = Authority.make(self.folder / "other")
        flags[-1] = str(other.anchor)
        status, told = self.answer("agent@example.org", *flags, *rest, given=PASSWORD)
        self.assertEqual((status, told["error"]), (1, "tls_refused"), told)
        self.assertEqual(self.dovecot.logins() + self.dovecot.refusals(), 0)
        self.assertFalse(self.config.parent.exists())

    def test_a_wrong_password(self) -> None:
        """The settings are written, the failure is said with what to do, and it is tried once only."""
        flags = ["agent@example.org", *self.servers(), "--password-stdin", "--allow", "robin@example.org"]
        done = self.run_it(*flags, given="wrong\n")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("failed", done.stdout)
        self.assertIn("mailgateway check", done.stdout)
        self.assertEqual(self.dovecot.refusals(), 1)
        self.assertNotIn("wrong", done.stdout.replace("wrongly", ""))
        self.assertTrue(self.config.exists())

    def test_the_unit_of_the_person(self) -> None:
        """It names this installation, and nothing is started."""
        flags = ["agent@example.org", *self.servers(), "--no-check", "--password-stdin", "--systemd", "user"]
        status, told = self.answer(*flags, "--allow", "robin@example.org", given=PASSWORD)
        self.assertEqual((status, told["started"]), (0, False), told)
        [unit] = map(Path, told["units"])
        self.assertEqual(unit, self.home / ".config/systemd/user/mailgateway.service")
        programs = Path(sys.executable).parent
        self.assertIn(f"ExecStart={programs}/twistd --pidfile= --nodaemon mailgateway\n", unit.read_text())
        self.assertIn("systemctl --user enable --now mailgateway", told["commands"])

    def test_what_the_page_tells_to_type(self) -> None:
        """Each command of ``docs/setup.md`` is one that the command takes, arguments and all."""
        verb = command.get_command(click.Context(command), "setup")
        assert verb is not None
        seen = [words[1:] for words in typed(DOCS / "setup.md") if words[1:2] == ["setup"]]
        for words in seen:
            context = verb.make_context("setup", list(words[1:]))
            self.assertIn("@", context.params["address"])
        self.assertGreater(len(seen), 4)

    def test_the_service_of_the_machine(self) -> None:
        """As root, on a copy of /etc: settings for all to read, the secret for root, a key for the group."""
        require("unshare", "util-linux")
        if os.getuid() != 0:
            raise SkipTest("only root can give a command another /etc")
        etc = self.folder / "etc"
        subprocess.run(["cp", "-a", "/etc", str(etc)], check=True)
        flags = ["agent@example.org", *self.servers(), "--password-stdin", "--allow", "robin@example.org"]
        inside = 'mount --bind "$0" /etc && exec "$@"'
        inner = ["unshare", "-m", "sh", "-c", inside, str(etc), sys.executable, "-c", PROGRAM, "setup"]
        done = subprocess.run(
            [*inner, *flags, "--no-check", "--systemd", "system", "--json"],
            input=PASSWORD,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=self.environment,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        told = json.loads(done.stdout)
        ours = etc / "mailgateway"
        modes = {path.name: self.mode(path) for path in ours.iterdir()}
        self.assertEqual(modes, {"config.toml": 0o644, "main.password": 0o600, "agents.key": 0o640})
        self.assertIn('credential = "mail"', (ours / "config.toml").read_text())
        unit = (etc / "systemd/system/mailgateway-system.service").read_text()
        self.assertIn("LoadCredential=mail:/etc/mailgateway/main.password\n", unit)
        self.assertTrue((etc / "systemd/system/mailgateway.socket").exists())
        self.assertIn("chgrp mailgateway /etc/mailgateway/agents.key", told["commands"])
        self.assertEqual(self.dovecot.logins(), 0)

    # In a terminal

    def test_in_a_terminal(self) -> None:
        """A newcomer answers three questions, and nothing that was typed as a password is shown."""
        flags = self.servers()
        terminal = Terminal(["setup", "agent@example.org", *flags], self.environment).start()
        terminal.type("Password for localhost", PASSWORD)
        terminal.wait_for("must prove where it comes from")
        terminal.type("Your own mail address", "robin")
        terminal.type("must be a mail address", "robin@example.org")
        status = terminal.end()
        self.assertEqual(status, 0, terminal.read)
        self.assertNotIn(PASSWORD, terminal.read)
        self.assertIn("mailgateway ensure", terminal.read)
        self.assertEqual(load(None, self.environment).people.notify, "robin@example.org")

    def test_a_mistyped_password(self) -> None:
        """It may be typed once more, and what is kept in the end is the right one."""
        flags = self.servers()
        arguments = ["setup", "agent@example.org", *flags, "--allow", "robin@example.org"]
        terminal = Terminal(arguments, self.environment).start()
        terminal.type("Password for localhost", "wrong horse")
        terminal.type("Type the password again?", "y")
        terminal.type("Password", PASSWORD)
        self.assertEqual(terminal.end(), 0, terminal.read)
        self.assertEqual((self.config.parent / "main.password").read_text(), f"{PASSWORD}\n")
        self.assertEqual(self.dovecot.refusals(), 1)

    def test_the_address_itself_in_a_terminal(self) -> None:
        """One mailbox for both is explained before, and chosen by naming it."""
        flags = self.servers()
        terminal = Terminal(["setup", *flags, "--no-check"], self.environment).start()
        terminal.type("Mail address of the agents' mailbox", "agent@example.org")
        terminal.type("Password for localhost", PASSWORD)
        terminal.wait_for("share one mailbox")
        terminal.type("Your own mail address", "agent@example.org")
        self.assertEqual(terminal.end(), 0, terminal.read)
        settings = load(None, self.environment)
        self.assertIs(settings.security.authentication, Authentication.SINGLE_MAILBOX)

    def test_no_is_an_answer(self) -> None:
        """Who does not agree to the servers is asked for no password."""
        arguments = ["setup", "agent@gmail.com", "--dry-run"]
        terminal = Terminal(arguments, self.environment).start()
        terminal.wait_for("app password")
        terminal.type("Use these servers?", "n")
        self.assertEqual(terminal.end(), 1)
        self.assertIn("Nothing was written", terminal.read)
        self.assertFalse(re.search("Password|Traceback", terminal.read))
