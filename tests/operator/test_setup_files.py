"""The files that ``setup`` leaves: settings as text, written whole; units of this installation."""

import os
import stat
import subprocess
import tempfile
import tomllib
from pathlib import Path
from shutil import rmtree

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import ConfigError
from mailgateway.operator.installing import Installation
from mailgateway.operator.plan import OAuthPlan, Plan, SecretPlan, secret_file, text_of
from mailgateway.operator.servers import server_of
from mailgateway.operator.settings_file import (
    FOR_ALL,
    FOR_THE_GROUP,
    OWNER_ONLY,
    Secret,
    place_for,
    put,
    write_settings,
)
from mailgateway.operator.units import SYSTEM_UNIT, system_units, user_units, visible_to_the_system
from mailgateway.providers import Endpoints, Server
from mailgateway.settings import parse
from tests.fakes.dovecot import require

PLAN = Plan(
    address="agent@example.org",
    imap=Server("imap.example.org", 993),
    smtp=Server("smtp.example.org", 465),
    secret=SecretPlan("password_command", "pass show mail"),
    allowed=("robin@example.org",),
)
ENDPOINTS = Endpoints(
    device_url="https://example.org/device", token_url="https://example.org/token", scopes=("a", "b")
)
LINE = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)


class TextTests(SynchronousTestCase):
    """The settings as text."""

    def test_only_what_differs_is_said(self) -> None:
        """No default is repeated, and the file parses to what was planned."""
        text = text_of(PLAN, "2026-12-01")
        for word in ("port", "tls", "username", "notify", "security", "from_name", "sent_folder"):
            self.assertNotIn(f"{word} =", text)
        settings = parse(tomllib.loads(text), {"HOME": "/home/robin"})
        self.assertEqual(settings.sending.imap.port, 993)
        self.assertEqual(settings.people.notify, "robin@example.org")

    def test_all_that_can_differ(self) -> None:
        """Each part of a plan is read back."""
        plan = evolve(
            PLAN,
            account="work",
            imap=Server("imap.example.org", 1143, True, "%EMAILLOCALPART%"),
            smtp=Server("smtp.example.org", 587, True),
            secret=SecretPlan("oauth", "work"),
            oauth=OAuthPlan("work", "id", ENDPOINTS),
            notify="kim@example.org",
            allowed=("robin@example.org", "kim@example.org"),
            authserv_ids=("mx.example.org",),
            results_below_received=True,
            sent_folder="Sent Messages",
            plus_address=True,
            from_name='Agents "R" \\ Us',
            for_system=True,
        )
        settings = parse(tomllib.loads(text_of(plan, "2026-12-01")), {"HOME": "/home/robin"})
        account = settings.sending
        self.assertEqual((account.imap.port, account.imap.username), (1143, "agent"))
        self.assertEqual(account.smtp.username, "agent@example.org")
        self.assertEqual(account.from_name, plan.from_name)
        self.assertEqual(settings.oauth["work"].scopes, ("a", "b"))
        self.assertEqual(str(settings.daemon.socket), "/run/mailgateway/api.sock")

    @given(LINE, LINE)
    def test_any_text_is_quoted(self, name: str, command: str) -> None:
        """Quotes, backslashes and what else a person types come back as they were."""
        plan = evolve(PLAN, from_name=name, account=command, secret=SecretPlan("password_command", command))
        told = tomllib.loads(text_of(plan, "2026-12-01"))["accounts"][command]
        self.assertEqual((told["from_name"], told["imap"]["password_command"]), (name, command))

    def test_servers_as_they_are_typed(self) -> None:
        """The port tells how, unless a word does."""
        for text, door, tls, server in (
            ("imap.example.org", "imap", "", Server("imap.example.org", 993)),
            ("imap.example.org", "imap", "starttls", Server("imap.example.org", 143, True)),
            ("smtp.example.org:587", "smtp", "", Server("smtp.example.org", 587, True)),
            ("smtp.example.org:587", "smtp", "implicit", Server("smtp.example.org", 587)),
            ("[::1]:1143", "imap", "starttls", Server("::1", 1143, True)),
        ):
            self.assertEqual(server_of(text, "imap" if door == "imap" else "smtp", tls), server)
        for text in ("", "https://x", "a:b", "a:0", "a b", "a:70000"):
            self.assertRaises(ValueError, server_of, text, "imap")


class FileTests(SynchronousTestCase):
    """Writing."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.path = self.folder / "new" / "config.toml"
        self.environ = {"HOME": str(self.folder)}

    def names(self) -> list[str]:
        """What lies beside the settings."""
        return sorted(path.name for path in self.path.parent.iterdir())

    def test_a_failure_leaves_everything_as_it_was(self) -> None:
        """Neither half a file nor the secret, and the old settings stay."""
        good = text_of(PLAN, "2026-12-01")
        write_settings(self.path, good, None, self.environ)
        secret = Secret(self.path.with_name("main.password"), "hidden")
        self.assertRaises(ConfigError, write_settings, self.path, "[people]\n", secret, self.environ)
        self.assertEqual((self.path.read_text(), self.names()), (good, ["config.toml"]))
        self.assertNotIn("hidden", repr(secret))

    def test_a_secret_that_is_replaced(self) -> None:
        """The old one is kept beside; a failure, also the last, puts it back; the same one is kept once."""
        good, file = text_of(PLAN, "2026-12-01"), self.path.with_name("main.password")
        write_settings(self.path, good, Secret(file, "one"), self.environ)
        self.assertEqual(self.names(), ["config.toml", "main.password"])
        lacking = good.replace('password_command = "pass show mail"', 'password_file = "not-there"')
        self.assertNotEqual(lacking, good)
        self.assertRaises(ConfigError, write_settings, self.path, lacking, Secret(file, "two"), self.environ)
        self.assertEqual((file.read_text(), self.path.read_text()), ("one\n", good))
        self.assertEqual(self.names(), ["config.toml", "main.password"])
        same = write_settings(self.path, good, Secret(file, "one"), self.environ)
        self.assertIsNone(same.old_secret)
        written = write_settings(self.path, good, Secret(file, "two"), self.environ)
        assert written.old_secret is not None
        self.assertEqual((written.old_secret.read_text(), file.read_text()), ("one\n", "two\n"))
        self.assertEqual(stat.S_IMODE(written.old_secret.stat().st_mode), OWNER_ONLY)

    def test_bytes_that_are_no_text(self) -> None:
        """A sentence, and nothing is left behind."""
        text = text_of(evolve(PLAN, from_name="\udcff"), "2026-12-01")
        self.assertRaises(ConfigError, write_settings, self.path, text, None, self.environ)
        self.assertEqual(self.names(), [])

    def test_two_settings_in_one_folder(self) -> None:
        """Neither takes the password of the other."""
        files = {secret_file(Path("/c", name), "main") for name in ("config.toml", "a.toml", "a.conf")}
        self.assertEqual(len(files), 3)
        self.assertEqual(secret_file(Path("/c/config.toml"), "main"), Path("/c/main.password"))

    def test_modes_and_the_old_file(self) -> None:
        """0600 whatever the umask, 0700 for the folder; the old file is kept with its mode."""
        for count in (1, 2):
            mode = OWNER_ONLY if count == 1 else FOR_ALL
            written = write_settings(self.path, text_of(PLAN, f"{count}"), None, self.environ, mode=mode)
            self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), mode)
            self.assertEqual(written.backup is not None, count == 2)
        self.assertEqual(stat.S_IMODE(self.path.parent.stat().st_mode), 0o700)
        self.assertEqual(len(self.names()), 2)

    def test_folders_are_for_whom_the_files_are(self) -> None:
        """A tight umask of root's keeps no service out of its settings, a loose one lets nobody in."""
        for umask in (0o077, 0o002, 0):
            before = os.umask(umask)
            try:
                top = self.folder / f"{umask}"
                write_settings(top / "a/b/c.toml", text_of(PLAN, ""), None, self.environ, mode=FOR_ALL)
                put(top / "k/agents.key", "x", FOR_THE_GROUP)
                write_settings(top / "o/p/c.toml", text_of(PLAN, ""), None, self.environ)
            finally:
                os.umask(before)
            modes = {
                name: stat.S_IMODE((top / name).stat().st_mode) for name in ("a", "a/b", "k", "o", "o/p")
            }
            self.assertEqual(modes, {"a": 0o755, "a/b": 0o755, "k": 0o755, "o": 0o700, "o/p": 0o700})

    def test_places(self) -> None:
        """As given, as set, the machine's, the user's."""
        home = {"HOME": "/home/robin"}
        for named, environ, system, place in (
            ("/x/y.toml", home, False, "/x/y.toml"),
            (None, {**home, "MAILGATEWAY_CONFIG": "/z.toml"}, True, "/z.toml"),
            (None, home, True, "/etc/mailgateway/config.toml"),
            (None, {**home, "XDG_CONFIG_HOME": "/c"}, False, "/c/mailgateway/config.toml"),
            (None, home, False, "/home/robin/.config/mailgateway/config.toml"),
        ):
            self.assertEqual(str(place_for(named, environ, system=system)), place)
        self.assertRaises(ConfigError, place_for, None, {}, system=False)


class UnitTests(SynchronousTestCase):
    """Unit files."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)

    def test_the_unit_of_a_person(self) -> None:
        """The programs and the settings of this installation, and no other path."""
        [unit] = user_units(Path("/opt/a%b/bin"), Path("/srv/config.toml"), Path("/home/robin"))
        self.assertEqual(unit.path, Path("/home/robin/.config/systemd/user/mailgateway.service"))
        start = "ExecStart=/opt/a%%b/bin/twistd --pidfile= --nodaemon mailgateway --config /srv/config.toml\n"
        self.assertIn(start, unit.text)
        self.assertIn("ExecReload=/opt/a%%b/bin/mailgateway reload --config /srv/config.toml\n", unit.text)
        self.assertNotIn("%h", unit.text)
        [usual] = user_units(Path("/opt/b/bin"), None, Path("/home/robin"))
        self.assertNotIn("--config", usual.text)
        self.assertRaises(ConfigError, user_units, Path("/opt/a b/bin"), None, Path("/home/robin"))

    def test_the_units_of_the_machine(self) -> None:
        """The credential is the secret's file; without one there is no such line."""
        config = Path("/etc/mailgateway/config.toml")
        service, socket = system_units(Path("/opt/m/bin"), config, Path("/etc/mailgateway/x"), self.folder)
        self.assertIn("LoadCredential=mail:/etc/mailgateway/x\n", service.text)
        self.assertIn(
            f"ExecStart=/opt/m/bin/twistd --pidfile= --nodaemon mailgateway --config {config}\n", service.text
        )
        self.assertIn("SocketMode=0660", socket.text)
        self.assertNotIn(
            "LoadCredential", system_units(Path("/opt/m/bin"), config, None, self.folder)[0].text
        )
        self.assertRaises(ConfigError, visible_to_the_system, Path("/home/robin/venv/bin"))

    def test_systemd_can_read_them(self) -> None:
        """As ``systemd-analyze verify`` says; of programs that are not there it complains otherwise."""
        verify = [require("systemd-analyze", "systemd"), "verify", "--man=no"]
        programs = Path("/usr/bin")
        units = system_units(programs, Path("/etc/mailgateway/config.toml"), None, self.folder)
        for unit in units:
            unit.path.write_text(unit.text)
        done = subprocess.run(
            [*verify, str(self.folder / SYSTEM_UNIT)], capture_output=True, text=True, check=False
        )
        told = [line for line in done.stderr.splitlines() if "mailgateway" in line and "twistd" not in line]
        self.assertEqual([line for line in told if "Unknown" in line or "Invalid" in line], [], done.stderr)

    def test_an_installation_of_the_machine(self) -> None:
        """The key of the group's agents is made once; the commands are told in their order, none is run."""
        key = self.folder / "agents.key"
        installation = Installation("system", False, {}, self.folder, key)
        installation.prepare()
        first = key.read_text()
        installation.prepare()
        self.assertEqual((key.read_text(), stat.S_IMODE(key.stat().st_mode)), (first, 0o640))
        self.assertGreaterEqual(len(first.strip()), 32)
        self.assertIsNone(installation.install(Path("/x"), None, start=True))
