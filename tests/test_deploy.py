"""The unit files, the Makefile and the checks before a change: what they name exists."""

import configparser
import os
import re
import subprocess
from pathlib import Path

from attrs import fields
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.settings.rules import SECTIONS
from tests.fakes.dovecot import require

TOP = Path(__file__).parent.parent
UNITS = TOP / "deploy" / "systemd"


class _Unit(configparser.RawConfigParser):
    """A unit file: names keep their case; what is said twice is joined, as systemd does."""

    def optionxform(self, optionstr: str) -> str:
        return optionstr


def unit(name: str) -> configparser.RawConfigParser:
    """Read a unit file."""
    parser = _Unit(delimiters=("=",), comment_prefixes=("#",), strict=False, interpolation=None)
    parser.read_string((UNITS / name).read_text(encoding="utf-8"))
    return parser


class UnitTests(SynchronousTestCase):
    """Each unit says what the service counts on."""

    def test_both_services_speak_to_the_service_manager(self) -> None:
        """Ready when bound, a watchdog, no restart on wrong settings, more time to stop than we take."""
        for name in ("mailgateway.service", "mailgateway-system.service"):
            service = unit(name)["Service"]
            self.assertEqual(service["Type"], "notify")
            self.assertEqual(service["NotifyAccess"], "main")
            self.assertGreaterEqual(int(service["WatchdogSec"]), 10)
            self.assertEqual(service["RestartPreventExitStatus"], "2")
            self.assertGreater(int(service["TimeoutStopSec"]), 10)
            self.assertIn("twistd --pidfile= --nodaemon mailgateway", service["ExecStart"])

    def test_the_user_unit_keeps_state_where_the_command_looks(self) -> None:
        """With ``StateDirectory=`` an old user manager would put it elsewhere than the command looks."""
        self.assertNotIn("StateDirectory", unit("mailgateway.service")["Service"])

    def test_the_system_unit_is_closed(self) -> None:
        """What a mail program does not need is taken away; what it needs is left."""
        service = unit("mailgateway-system.service")["Service"]
        closed = (
            "NoNewPrivileges PrivateDevices PrivateTmp ProtectControlGroups ProtectHome ProtectKernelModules "
            "ProtectKernelTunables RestrictNamespaces RestrictSUIDSGID"
        )
        self.assertEqual([name for name in closed.split() if service[name] != "yes"], [])
        self.assertNotIn("MemoryDenyWriteExecute", service, "callbacks of OpenSSL's binding need such memory")
        self.assertEqual(service["ProtectSystem"], "strict")
        self.assertEqual(service["CapabilityBoundingSet"], "")
        self.assertEqual(set(service["RestrictAddressFamilies"].split()), {"AF_INET", "AF_INET6", "AF_UNIX"})
        self.assertEqual(service["StateDirectoryMode"], "0700")
        self.assertRegex(service["LoadCredential"], r"^mail:/")

    def test_systemd_rates_the_system_unit(self) -> None:
        """2.0 or better; what that means in practice is tried in ``tests/acceptance/test_confined.py``."""
        command = [require("systemd-analyze", "systemd"), "security", "--offline=true", "--no-pager"]
        command.append(str(UNITS / "mailgateway-system.service"))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert found is not None, done.stdout[-500:] + done.stderr
        self.assertLessEqual(float(found[1]), 2.0)

    def test_the_group_reaches_the_socket(self) -> None:
        """A client must be able to write to the socket and to pass its directory; others neither."""
        service, socket = unit("mailgateway-system.service")["Service"], unit("mailgateway.socket")["Socket"]
        self.assertEqual(socket["SocketMode"], "0660")
        self.assertEqual(socket["SocketGroup"], service["Group"])
        self.assertEqual({socket["DirectoryMode"], service["RuntimeDirectoryMode"]}, {"0755"})
        self.assertEqual(service["RuntimeDirectoryPreserve"], "yes")
        self.assertEqual(socket["ListenStream"], f"/run/{service['RuntimeDirectory']}/api.sock")
        self.assertTrue((UNITS / socket["Service"]).is_file())

    def test_settings_that_the_units_name_exist(self) -> None:
        """``section.key`` in a unit's comments is a setting."""
        for path in UNITS.iterdir():
            for section, key in re.findall(r"\b(daemon|security|people)\.([a-z_]+)", path.read_text()):
                self.assertIn(key, [field.name for field in fields(SECTIONS[section])], path.name)

    def test_the_operations_guide_names_each_unit(self) -> None:
        """Nobody finds a file that no guide names."""
        text = (TOP / "docs" / "operations.md").read_text(encoding="utf-8")
        self.assertEqual([path.name for path in UNITS.iterdir() if f"`{path.name}`" not in text], [])


class CheckTests(SynchronousTestCase):
    """``make`` and the checks before a change."""

    def test_the_targets(self) -> None:
        """``make`` alone lists the targets of the guide."""
        environ = {**os.environ, "MAKEFLAGS": ""}
        done = subprocess.run(
            ["make", "-C", str(TOP)], capture_output=True, text=True, check=True, env=environ
        )
        for target in ("demo", "test", "check", "bench"):
            self.assertIn(f"make {target} ", done.stdout)

    def test_the_check_is_a_sound_script(self) -> None:
        """It can be run, and bash can read it."""
        script = TOP / ".ci" / "run"
        self.assertTrue(os.access(script, os.X_OK))
        subprocess.run(["bash", "-n", str(script)], check=True)
