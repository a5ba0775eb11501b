"""``ensure`` and ``restart`` with real processes: one service, with the settings of now, and nothing lost."""

import hashlib
import hmac
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread
from typing import Any

from attrs import frozen
from twisted.trial.unittest import SynchronousTestCase

import mailgateway
from mailgateway.client import Base, Client
from mailgateway.demo.service import settings_text
from tests.acceptance.harness import AGENT, ROBIN, STOP_SECONDS, WorldTestCase
from tests.client.stand_in import HEALTH, KEY, Request, StandIn
from tests.fakes.dovecot import eventually
from tests.fakes.smtp_sink import free_port

MAILGATEWAY = (sys.executable, "-c", "from mailgateway.cli.main import main; main()")
VERB_SECONDS = 60


@frozen
class Said:
    """What a verb said, and how it ended."""

    status: int
    answer: dict[str, Any]
    errors: str


def run_verb(config: Path, *words: str) -> Said:
    """Run a verb as a person's shell does, with ``--json``."""
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    environment |= {
        "HOME": str(config.parent),
        "PYTHONPATH": str(Path(mailgateway.__file__).parent.parent),
        "MAILGATEWAY_CONFIG": str(config),
    }
    done = subprocess.run(
        [*MAILGATEWAY, *words, "--json"],
        env=environment,
        cwd=config.parent,
        capture_output=True,
        timeout=VERB_SECONDS,
        check=False,
    )
    return Said(done.returncode, json.loads(done.stdout or "{}"), done.stderr.decode())


def services_of(config: Path) -> list[int]:
    """Find the living processes of services with these settings."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue  # it has just ended
            if str(config).encode() in words and b"--config" in words and b"-n" in words:
                found.append(int(folder.name))
    return found


def stop_services_of(config: Path) -> None:
    """Leave no process behind."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in services_of(config):
            os.kill(pid, number)
        try:
            eventually("the services are gone", lambda: not services_of(config), STOP_SECONDS)
        except AssertionError:
            continue
        return


class EnsureTests(SynchronousTestCase):
    """A service that nobody has started yet; its mail server cannot be reached, which does not matter."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.config = self.folder / "mailgateway.toml"
        self.state = self.folder / "state"
        self.password = self.folder / "password"
        self.password.touch(0o600)
        self.password.write_text("secret\n")
        self.port = free_port()
        self.addCleanup(stop_services_of, self.config)
        self.write_settings()

    def write_settings(self, name: str = "bench") -> None:
        """Write the settings, with a name for the machine."""
        server: dict[str, object] = {"host": "127.0.0.1", "port": 9, "tls": "none"}
        tables: dict[str, dict[str, object]] = {
            "daemon": {"port": self.port, "state_dir": str(self.state)},
            "device": {"name": name},
            "accounts.main": {"address": AGENT, "watch": ["INBOX"]},
            "accounts.main.imap": {**server, "password_file": str(self.password)},
            "accounts.main.smtp": server,
            "people": {"allowed": [ROBIN]},
        }
        self.config.write_text(settings_text(tables))

    def client(self) -> Client:
        """Make a client of the service."""
        return Client(Base(host="127.0.0.1", port=self.port), self.state / "secret.key")

    def test_many_at_once_start_one(self) -> None:
        """Twenty hooks call it: one has started the service, all end well, and one process is left.

        It has a session of its own, a private log, and an idle exit; a newer settings file is read by the
        same process.
        """
        with ThreadPoolExecutor(20) as threads:
            ends = list(threads.map(lambda _: run_verb(self.config, "ensure"), range(20)))
        self.assertEqual([end for end in ends if end.status != 0], [])
        self.assertEqual(sorted(end.answer["done"] for end in ends), ["nothing"] * 19 + ["started"])
        (pid,) = services_of(self.config)
        self.assertEqual(os.getsid(pid), pid)
        self.assertIn(b"MAILGATEWAY_DAEMON__IDLE_EXIT_SECONDS=120", Path(f"/proc/{pid}/environ").read_bytes())
        self.assertEqual(Path(f"/proc/{pid}/fd/0").readlink(), Path(os.devnull))
        log = self.state / "service.log"
        self.assertEqual(stat.S_IMODE(log.stat().st_mode), 0o600)
        self.assertEqual(log.read_text().count("mailgateway is ready"), 1)

        before = self.client().health()["configLoadedAt"]
        self.write_settings("desk")
        self.assertEqual(run_verb(self.config, "ensure").answer["done"], "reloaded")
        self.assertGreater(self.client().health()["configLoadedAt"], before)
        self.assertEqual(run_verb(self.config, "ensure").answer["done"], "nothing")
        self.assertEqual(services_of(self.config), [pid])

    def test_one_that_was_killed_is_started_again(self) -> None:
        """No lock is left behind that somebody would have to break."""
        self.assertEqual(run_verb(self.config, "ensure").answer["done"], "started")
        (pid,) = services_of(self.config)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(run_verb(self.config, "ensure").answer["done"], "started")
        (other,) = services_of(self.config)
        self.assertNotEqual(other, pid)

    def test_who_has_the_state_is_told(self) -> None:
        """With another port in the settings the service is not found; its port and its process are named."""
        self.assertEqual(run_verb(self.config, "ensure").status, 0)
        (pid,) = services_of(self.config)
        before, self.port = self.port, free_port()
        self.write_settings()
        end = run_verb(self.config, "ensure")
        self.assertEqual((end.status, end.answer["error"]), (1, "start_failed"), end)
        self.assertIn(f"on port {before}", end.answer["message"])
        self.assertIn(f"Process {pid} ", end.answer["message"])
        self.assertEqual(services_of(self.config), [pid])

    def test_what_keeps_it_from_starting_is_told(self) -> None:
        """The service's own sentence, and its status: 2 for the settings, 1 for a port that is taken."""
        self.password.unlink()
        end = run_verb(self.config, "ensure")
        self.assertEqual((end.status, end.answer["error"]), (2, "invalid_settings"), end)
        self.assertIn(f"{self.password} cannot be read", end.answer["message"])
        self.password.touch(0o600)
        self.password.write_text("secret\n")
        stranger = StandIn(proves=False)
        stranger.start()
        self.addCleanup(stranger.stop)
        self.port = stranger.base.port
        self.write_settings()
        end = run_verb(self.config, "ensure")
        self.assertEqual((end.status, end.answer["error"]), (1, "start_failed"), end)
        self.assertIn("is used by another program", end.answer["message"])
        self.assertEqual(stranger.with_key, [])

    def test_another_version_is_replaced(self) -> None:
        """It is asked to stop, in words that it understands, and ours takes its port; once a minute."""
        self.state.mkdir(0o700)
        key = self.state / "secret.key"
        key.touch(0o600)
        key.write_text(f"{KEY}\n")
        other = StandIn()

        def health(request: Request) -> tuple[int, Any]:
            challenge = request.path.partition("challenge=")[2].encode()
            proof = hmac.new(KEY.encode(), b"mailgateway-health-1\0" + challenge, hashlib.sha256).hexdigest()
            return 200, {**HEALTH, "apiVersion": 2, "proof": proof}

        def shutdown(request: Request) -> tuple[int, Any]:
            if "mailgateway-api" in request.headers:
                return 426, {"error": "incompatible", "message": "I speak version 2."}
            Thread(target=other.stop).start()
            return 202, {}

        other.answers |= {"GET /health": health, "POST /shutdown": shutdown}
        other.start()
        self.addCleanup(other.stop)
        self.port = other.base.port
        self.write_settings()
        end = run_verb(self.config, "ensure")
        self.assertEqual(
            (end.status, end.answer.get("done"), end.answer.get("apiVersion")), (0, "replaced", 1)
        )
        self.assertEqual(len(services_of(self.config)), 1)
        self.assertIn("replacedAt", json.loads((self.state / "life.lock").read_text()))


class RestartTests(WorldTestCase):
    """A service at work."""

    def test_a_restart_loses_nothing(self) -> None:
        """A delivery that waits is there afterwards; a parked poll ends, and the next one gets its reply."""
        config = self.gateway.folder / "mailgateway.toml"
        self.addCleanup(stop_services_of, config)
        there, parked = self.ask("There already?"), self.ask("Later?")
        self.deliver_reply(there, "waits")
        before = self.poll(there)
        poll = self.polling(parked)
        (old,) = services_of(config)
        end = run_verb(config, "restart")
        self.assertEqual((end.status, end.answer.get("done")), (0, "restarted"), end)
        poll.exception(20)  # by an empty answer or a lost connection
        (new,) = [pid for pid in services_of(config) if pid != old]
        self.assertEqual(self.gateway.stop(), 0)
        self.gateway.client.close()
        self.assertEqual(services_of(config), [new])
        self.assertEqual(self.poll(there)["id"], before["id"])
        self.dovecot.wait_idle(AGENT)
        self.deliver_reply(parked, "afterwards")
        self.assertEqual(self.words(self.poll(parked)), "afterwards")
