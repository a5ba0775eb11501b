"""``ensure`` and ``restart``: what they decide, what they ask of the service, and what they leave alone."""

import hashlib
import hmac
import json
import os
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.life import Found, Nothing, Reload, Replace, Start, found_of, step_of
from mailgateway.cli.main import command
from mailgateway.cli.starting import IDLE_EXIT, LARGEST_LOG, environment_of, open_log
from mailgateway.cli.turns import Turn, turn
from mailgateway.client.service_lock import holder_of, service_is_gone
from mailgateway.daemons.instance_lock import InstanceLock, take_lock
from mailgateway.errors import ConfigError
from tests.cli.verbs import SETTINGS
from tests.client.stand_in import HEALTH, KEY, Request, StandIn

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class StepTests(SynchronousTestCase):
    """What is to be done, of what was found."""

    def test_every_case(self) -> None:
        """Nobody: start. Another version: replace in any case. Older than the file: reload. Else nothing."""
        other = Found("9.0", 2, NOON)
        for found, changed_at, step in (
            (None, NOON, Start()),
            (Found("0.1", 1, NOON), NOON - SECOND, Nothing()),
            (Found("0.1", 1, NOON), NOON, Nothing()),
            (Found("0.1", 1, NOON), NOON + SECOND, Reload()),
            (Found("0.1", 1, None), NOON, Reload()),
            (other, NOON - SECOND, Replace(other)),
            (other, NOON + SECOND, Replace(other)),
        ):
            self.assertEqual(step_of(found, changed_at), step, (found, changed_at))

    def test_the_health_of_a_stranger(self) -> None:
        """What another version tells may have any shape: it is then simply another version."""
        health: Any = {"configLoadedAt": 5, "apiVersion": "two"}
        self.assertEqual(found_of(health), Found("", 0, None))
        health = {"configLoadedAt": "2026-11-30T12:00:00.000000Z", "apiVersion": 1, "version": "0.1"}
        self.assertEqual(found_of(health), Found("0.1", 1, NOON))


class FolderTestCase(SynchronousTestCase):
    """A test with a folder."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp())
        self.addCleanup(rmtree, self.folder)


class StartingTests(FolderTestCase):
    """The environment and the log of a service that is started."""

    def environment(self, text: str, **environ: str) -> dict[str, str]:
        """Return the environment for settings of this text."""
        source = self.folder / "settings.toml"
        source.write_text(text)
        return environment_of(source, environ)

    def test_it_ends_when_nobody_needs_it(self) -> None:
        """After 120 seconds, unless the settings (0 too: stay) or the environment want something else."""
        self.assertEqual(self.environment("[daemon]\nport = 4177\n")[IDLE_EXIT], "120")
        self.assertEqual(self.environment("")[IDLE_EXIT], "120")
        self.assertNotIn(IDLE_EXIT, self.environment("[daemon]\nidle_exit_seconds = 0\n"))
        self.assertEqual(self.environment("", **{IDLE_EXIT: "7"})[IDLE_EXIT], "7")

    def test_what_was_meant_for_the_caller_is_not_passed_on(self) -> None:
        """A service manager's sockets and the caller's session are the caller's; the rest is kept."""
        kept = self.environment("", NOTIFY_SOCKET="/x", LISTEN_FDS="1", MAILGATEWAY_SESSION="s", PATH="/bin")
        self.assertEqual(sorted(kept), [IDLE_EXIT, "PATH"])

    def test_the_log_is_private_and_bounded(self) -> None:
        """0600 even when it was not; what is there is kept; a large one is put aside, once."""
        path = self.folder / "service.log"
        path.write_bytes(b"old\n")
        path.chmod(0o644)
        for expected in (b"old\nnew\n", b"new\n"):
            handle = open_log(path)
            os.write(handle, b"new\n")
            os.close(handle)
            self.assertEqual(path.read_bytes(), expected)
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            path.write_bytes(b"x" * (LARGEST_LOG + 1))
        self.assertEqual(
            sorted(each.name for each in self.folder.iterdir()), ["service.log", "service.log.1"]
        )

    def test_the_log_is_no_link(self) -> None:
        """A link in its place is not followed."""
        (self.folder / "service.log").symlink_to(self.folder / "elsewhere")
        self.assertRaises(ConfigError, open_log, self.folder / "service.log")
        self.assertFalse((self.folder / "elsewhere").exists())


class TurnTests(FolderTestCase):
    """One at a time."""

    def test_a_turn_is_waited_for(self) -> None:
        """A second one gets none as long as the first is held, and gets one then."""
        with turn(self.folder, 0) as first:
            self.assertIsInstance(first, Turn)
            with turn(self.folder, 0) as second:
                self.assertIsNone(second)
        with turn(self.folder, 0) as third:
            self.assertIsInstance(third, Turn)

    def test_a_replacement_waits_for_the_last(self) -> None:
        """A minute, over processes; a time in the future or a broken file keeps nobody from it."""
        with turn(self.folder, 0) as held:
            assert held is not None
            self.assertEqual(held.seconds_to_wait(1000.0), 0)
            held.note_replacement(1000.0)
        with turn(self.folder, 0) as held:
            assert held is not None
            waits = [held.seconds_to_wait(now) for now in (999.0, 1000.0, 1059.0, 1060.0)]
            self.assertEqual(waits, [0, 60, 1, 0])
        for broken in ("[]", '{"replacedAt": null}', "\xff", '{"v": 1}', "[" * 4000):
            (self.folder / "life.lock").write_text(broken)
            with turn(self.folder, 0) as held:
                assert held is not None
                self.assertEqual(held.seconds_to_wait(1000.0), 0)

    def test_the_lock_of_the_service_tells_whether_it_is_gone(self) -> None:
        """It is the lock that the service takes; looking does not take it away."""
        self.assertTrue(service_is_gone(self.folder))
        lock = take_lock(self.folder, 4177)
        assert isinstance(lock, InstanceLock)
        self.assertFalse(service_is_gone(self.folder))
        self.assertEqual(holder_of(self.folder), os.getpid())
        lock.release()
        self.assertTrue(service_is_gone(self.folder))
        self.assertEqual(holder_of(self.folder), 0)
        again = take_lock(self.folder, 4177)
        assert isinstance(again, InstanceLock)
        again.release()


class VerbTests(FolderTestCase):
    """The verbs against a stand-in of the service; none of these cases starts a process."""

    def setUp(self) -> None:
        super().setUp()
        self.service = StandIn()
        self.service.start()
        self.addCleanup(self.service.stop)
        self.state = self.folder / "state"
        self.state.mkdir(0o700)
        self.key = self.state / "secret.key"
        self.key.write_text(f"{KEY}\n")
        self.key.chmod(0o600)
        self.config = self.folder / "mailgateway.toml"
        self.config.write_text(SETTINGS.format(port=self.service.base.port, state=self.state))
        self.written(datetime(2026, 11, 30, 10, tzinfo=UTC))  # the stand-in has read them at 11

    def written(self, at: datetime) -> None:
        """Set when the settings were written."""
        os.utime(self.config, (at.timestamp(), at.timestamp()))

    def speaks_another_version(self) -> None:
        """Let the stand-in be of another version of the API: it refuses every call that names ours."""

        def health(request: Request) -> tuple[int, Any]:
            if "mailgateway-api" in request.headers:
                return 426, {"error": "incompatible", "message": "I speak version 2."}
            challenge = request.path.partition("challenge=")[2].encode()
            proof = hmac.new(KEY.encode(), b"mailgateway-health-1\0" + challenge, hashlib.sha256)
            return 200, {**HEALTH, "apiVersion": 2, "version": "9.0", "proof": proof.hexdigest()}

        self.service.answers["GET /health"] = health

    def run_verb(self, *words: str, **environ: str) -> Result:
        """Run a verb in this process, with an environment of its own."""
        own: dict[str, str | None] = dict.fromkeys(os.environ)
        own |= {"HOME": str(self.folder), "MAILGATEWAY_CONFIG": str(self.config), **environ}
        result = CliRunner().invoke(command, list(words), env=own)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def changes(self) -> list[str]:
        """Name the requests that were no reads."""
        return [request.path for request in self.service.requests if request.method != "GET"]

    def test_a_healthy_service_is_left_alone(self) -> None:
        """One proof, no key, no lock, and status 0."""
        result = self.run_verb("ensure", "--json")
        self.assertEqual((result.exit_code, json.loads(result.stdout)["done"]), (0, "nothing"))
        self.assertEqual(len(self.service.requests), 1)
        self.assertEqual(self.service.with_key, [])
        self.assertEqual(list(self.state.iterdir()), [self.key])

    def test_newer_settings_are_read_again(self) -> None:
        """Once; when they stay the old ones, the status is 1 and says why."""
        self.written(datetime(2026, 11, 30, 11, 30, tzinfo=UTC))
        self.service.answers["POST /reload"] = (200, {"configLoadedAt": "2026-11-30T12:00:00Z"})
        result = self.run_verb("ensure", "--json")
        self.assertEqual((result.exit_code, json.loads(result.stdout)["done"]), (0, "reloaded"))
        self.assertEqual(self.changes(), ["/reload"])
        self.service.answers["POST /reload"] = (200, {"warning": "[daemon] has changed"})
        result = self.run_verb("ensure")
        self.assertEqual(result.exit_code, 1)
        self.assertIn("The old settings stay: [daemon] has changed (invalid_settings)", result.stderr)

    def test_another_version_is_replaced_once_a_minute(self) -> None:
        """When one was just replaced it is left to run, with a sentence that says why."""
        self.speaks_another_version()
        with turn(self.state, 0) as held:
            assert held is not None
            held.note_replacement(time.time() - 20)
        result = self.run_verb("ensure", "--json")
        answer = json.loads(result.stdout)
        self.assertEqual((result.exit_code, answer["error"]), (1, "replaced_recently"))
        self.assertTrue(30 < answer["retryAfter"] <= 40, answer)
        self.assertEqual(self.changes(), [])

    def test_nothing_is_stopped_that_could_not_start_again(self) -> None:
        """The password file that the settings name is not there: status 2, and the service runs on."""
        for another_version, verb in ((False, "restart"), (True, "restart"), (True, "ensure")):
            if another_version:
                self.speaks_another_version()
            result = self.run_verb(verb)
            self.assertEqual((result.exit_code, self.changes()), (2, []), verb)
            self.assertIn("password_file", result.stderr)

    def test_another_version_is_asked_to_stop_without_naming_ours(self) -> None:
        """It would refuse what names another version; here it says no by itself, and that is told."""
        self.speaks_another_version()
        password = self.folder / "password"
        password.touch(0o600)
        password.write_text("secret\n")
        text = self.config.read_text()
        self.config.write_text(text.replace("/nobody/but/the/service/reads/this", str(password)))
        self.service.answers["POST /shutdown"] = (403, {"error": "not_local", "message": "Not by a proxy."})
        result = self.run_verb("restart")
        self.assertEqual((result.exit_code, self.changes()), (1, ["/shutdown"]), result.output)
        self.assertIn("Not by a proxy. (not_local)", result.stderr)
        self.assertNotIn("mailgateway-api", self.service.requests[-1].headers)

    def test_wrong_settings_are_status_2(self) -> None:
        """Nobody is asked anything."""
        self.config.write_text("[daemon]\nprot = 1\n")
        for verb in ("ensure", "restart"):
            self.assertEqual(self.run_verb(verb).exit_code, 2)
        self.assertEqual(self.service.requests, [])

    def test_a_service_of_others_is_only_looked_at(self) -> None:
        """With a key of ``[keys]`` ``ensure`` is content, or says that it is not there; no restart."""
        self.service.stop()
        path = self.folder / "socket"
        self.service.start(path)
        text = self.config.read_text()
        self.config.write_text(text.replace("[daemon]", f'[daemon]\nsocket = "{path}"'))
        other = {"MAILGATEWAY_KEY_FILE": str(self.key)}
        self.assertEqual(self.run_verb("ensure", **other).exit_code, 0)
        self.assertEqual(self.run_verb("restart", **other).exit_code, 1)
        self.service.stop()
        self.assertEqual(self.run_verb("ensure", **other).exit_code, 3)
        self.assertEqual(self.changes(), [])
