"""The service behind the restrictions of the system unit, which the kernel is asked for without systemd."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SkipTest

import mailgateway
from tests.acceptance.harness import WorldTestCase
from tests.acceptance.tables import OnPostgres, TablesTestCase
from tests.fakes.dovecot import require

TOP = Path(mailgateway.__file__).parent.parent
UNIT = TOP / "deploy/systemd/mailgateway-system.service"
CONFINE = TOP / "tests/fakes/confine.py"


class ConfinedTests(WorldTestCase):
    """A world whose service can do no more than the unit lets it."""

    imap_tls = "implicit"
    smtp_tls = "starttls"

    def setUp(self) -> None:
        if os.geteuid() != 0:
            raise SkipTest("only root can make the namespaces")
        require("systemd-analyze", "systemd")
        super().setUp()

    def secret(self) -> dict[str, object]:
        """Lay the password, and the trust anchor, where the confined service can read them."""
        settings = super().secret()
        inside = self.folder / "gateway"
        inside.mkdir(exist_ok=True)
        moved = shutil.move(str(settings["password_file"]), inside / "password")
        return {"password_file": str(moved)}

    def make_settings(self) -> dict[str, dict[str, object]]:
        """Use a socket of the service's own group, as the unit's comment says."""
        settings = super().make_settings()
        inside = self.folder / "gateway"
        anchor = shutil.copy(self.authority.anchor, inside / "anchor.pem")
        settings["accounts.main.imap"] = {**settings["accounts.main.imap"], "ca_file": str(anchor)}
        group = subprocess.run(["id", "-gn"], capture_output=True, text=True, check=True).stdout.strip()
        daemon = {"socket": str(inside / "api.sock"), "socket_group": group}
        return {**settings, "daemon": {**settings.get("daemon", {}), **daemon}}

    def start_watching(self) -> None:
        """Start it confined."""
        self.gateway.wrapper = (
            sys.executable,
            str(CONFINE),
            str(UNIT),
            str(self.gateway.folder),
            str(TOP),
            "--",
        )
        super().start_watching()

    def status(self) -> dict[str, str]:
        """What the kernel tells of the process."""
        lines = Path(f"/proc/{self.gateway.pid}/status").read_text().splitlines()
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def test_a_round_trip(self) -> None:
        """A question with a file goes out over TLS, the answer comes in, and what is closed is closed."""
        status = self.status()
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
            self.assertEqual(int(status[name], 16), 0, name)
        mounts = Path(f"/proc/{self.gateway.pid}/mountinfo").read_text().splitlines()
        options = {line.split()[4]: line.split()[5].split(",")[0] for line in mounts}
        closed = {"/": "ro", str(TOP): "ro", "/dev": "ro", "/tmp": "rw", str(self.gateway.folder): "rw"}
        self.assertEqual({place: options[place] for place in closed}, closed)
        asked = self.ask()
        message_id = self.deliver_reply(asked, "Yes.")
        delivery = self.poll(asked)
        self.assertEqual(self.words(delivery), "Yes.")
        self.take(asked, delivery)
        self.wait_seen(message_id)
        upload = self.gateway.client.upload("a.txt", b"x" * 200_000, asked.session)
        self.gateway.client.send("notification", asked.session, "With a file", "text", attachments=(upload,))
        self.assertNotIn("Traceback", self.gateway.log())
        self.assertEqual(self.gateway.stop(), 0)


class ConfinedOnPostgresTests(OnPostgres, ConfinedTests, TablesTestCase):
    """The same with psycopg, whose libraries must be loaded."""
