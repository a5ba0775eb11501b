"""The composition root: how it begins, yields, reloads and ends."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from mailgateway import secrets
from mailgateway.daemons.instance_lock import Holder, InstanceLock, take_lock
from mailgateway.daemons.listening import Listening
from mailgateway.demo.service import settings_text
from mailgateway.errors import StoreUnavailable
from mailgateway.flows.ports import Reloaded
from mailgateway.http.keys import read_keys
from mailgateway.ids import AttachmentId, SessionId
from mailgateway.service.gateway import CLOSE_SECONDS, STOP_SECONDS, Gateway
from mailgateway.service.start import identity_of
from mailgateway.settings import load
from mailgateway.store import uploads
from tests.daemons.small_imap import Habits
from tests.daemons.world import IMAP_PORT, Network, settings_of
from tests.fakes.database import ImmediateDatabase


@define(eq=False)
class ClosingDatabase(ImmediateDatabase):
    """A database in memory that can be closed, or is at work for ever."""

    trouble: str = ""
    closed: list[str] = field(factory=list)
    at_work: bool = False

    def close(self) -> "Deferred[None]":  # type: ignore[override]  # the running service's waits for its threads
        """Close."""
        self.closed.append("closed")
        return Deferred() if self.at_work else succeed(None)


class Stubborn(Service):
    """A part that does not let go."""

    def stopService(self) -> "Deferred[None]":
        """Never end."""
        Service.stopService(self)
        return Deferred()


class Broken(Service):
    """A part that fails in its end."""

    def stopService(self) -> None:
        """Fail."""
        Service.stopService(self)
        raise ZeroDivisionError


class GatewayTestCase(SynchronousTestCase):
    """The service on a reactor and a database in memory, with a server that it watches."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        self.source = self.folder / "mailgateway.toml"
        self.network = Network()
        self.habits = Habits()
        self.network.servers[IMAP_PORT] = self.habits.server
        self.database = ClosingDatabase()
        self.addCleanup(self.database.engine.dispose)
        self.write()
        self.addCleanup(self.end)
        self.gateway = self.make()

    def make(self) -> Gateway:
        """The service of a new process, not yet begun."""
        settings = load(self.source, os.environ)
        secrets.prepare_state_dir(settings.daemon.state_dir)
        lock = take_lock(settings.daemon.state_dir, 4177)
        assert isinstance(lock, InstanceLock)
        database: Any = self.database
        return Gateway(
            self.network,
            settings,
            read_keys(settings),
            identity_of(settings),
            database,
            Listening(()),
            lock,
            datetime.now(UTC),
        )

    def write(self, **sections: Mapping[str, object]) -> None:
        """Write the settings file."""
        daemon = {"state_dir": str(self.folder / "state")}
        sections = {"daemon": daemon, **sections}
        self.source.write_text(settings_text(settings_of(self.folder, **sections)), encoding="utf-8")

    def start(self) -> None:
        """Begin."""
        self.gateway.startService()
        self.network.settle()

    def end(self) -> None:
        """Stop, whatever goes on."""
        if not self.gateway.running:
            self.gateway.lock.release()
        else:
            stopping = self.gateway.stopService()
            self.network.settle()
            self.network.advance(STOP_SECONDS)
            self.network.advance(CLOSE_SECONDS)
            self.successResultOf(stopping)

    def reload(self) -> Reloaded:
        """Read the settings again."""
        reloading = Deferred.fromCoroutine(self.gateway.reload())
        self.network.settle()
        return self.successResultOf(reloading)

    def states(self) -> list[str]:
        """How the accounts are."""
        return [status.state for status in self.gateway.accounts()]

    def holder(self) -> InstanceLock | Holder:
        """Whoever has the lock of the state directory; nobody else when it is ours to take."""
        return take_lock(self.folder / "state", 4177)


class BeginTests(GatewayTestCase):
    """The start of the accounts."""

    def test_a_database_that_is_away_for_a_moment(self) -> None:
        """An account begins when it knows what earlier runs have learned, and not without."""
        self.database.failures = [StoreUnavailable("busy")]
        self.start()
        self.assertEqual(self.network.dialled, [])
        self.network.advance(2)
        self.network.settle()
        self.assertEqual(self.states(), ["watching"])

    def test_a_restart_removes_uploads_that_no_row_names(self) -> None:
        """Half files of a crash must not take room for ever."""
        folder = self.folder / "state" / "uploads"
        folder.mkdir(mode=0o700)
        for name in ("half", "whole"):
            (folder / name).write_bytes(b"x")
        row = uploads.Upload(
            AttachmentId("a-1"), SessionId("s"), "a", 1, str(folder / "whole"), datetime.now(UTC)
        )
        self.database.now(lambda tx: uploads.add(tx, row))
        self.start()
        self.assertEqual([path.name for path in folder.iterdir()], ["whole"])

    def test_a_restart_honours_the_pauses_of_all_folders(self) -> None:
        """Each folder has a connection of its own, and each has been asked for patience."""
        self.end()
        self.write(**{"accounts.main": {"address": "agent@example.org", "watch": ["INBOX", "Agents"]}})
        self.habits.greeting = b"* BYE too many connections from your IP address"
        for _ in range(3):
            self.gateway = self.make()
            self.start()
            self.end()
        self.assertEqual(self.network.dialled, [IMAP_PORT, IMAP_PORT])


class SecretTests(GatewayTestCase):
    """What must not leave by mail."""

    def test_keys_and_passwords_are_known_to_who_sends(self) -> None:
        """Those in force, also after a reload."""
        self.start()

        def kind(text: str) -> str:
            return self.gateway.sending().guard.secret_in(text)

        self.assertEqual(kind(f"x {self.gateway.keys.session} y"), "the session key")
        self.assertEqual(kind(str(self.gateway.keys.person)), "the person's key")
        (self.folder / "password").write_text("quite another one\n", encoding="utf-8")
        self.assertEqual(kind("quite another one"), "")
        self.reload()
        self.assertEqual(kind("quite another one"), "a password of the account main")


class EndTests(GatewayTestCase):
    """The stop."""

    def test_a_clean_one(self) -> None:
        """The server is told goodbye, the database closed, the lock given back, and no timer left."""
        self.start()
        self.assertEqual(self.states(), ["watching"])
        stopping = self.gateway.stopService()
        self.network.settle()
        self.successResultOf(stopping)
        self.assertEqual(self.habits.verbs[-1], "LOGOUT")
        self.assertEqual(self.database.closed, ["closed"])
        lock = self.holder()
        assert isinstance(lock, InstanceLock)
        lock.release()
        self.assertEqual(self.network.getDelayedCalls(), [])

    def test_a_part_that_hangs(self) -> None:
        """The others end, and at the deadline the database and the lock are let go all the same."""
        self.start()
        Stubborn().setServiceParent(self.gateway)
        stopping = self.gateway.stopService()
        self.network.settle()
        self.network.advance(STOP_SECONDS - 0.1)
        self.assertNoResult(stopping)
        self.assertEqual(self.database.closed, [])
        self.network.advance(0.2)
        self.successResultOf(stopping)
        self.assertEqual(self.database.closed, ["closed"])
        lock = self.holder()
        assert isinstance(lock, InstanceLock)
        lock.release()

    def test_a_part_that_fails(self) -> None:
        """Its failure is logged and holds up nobody."""
        self.start()
        Broken().setServiceParent(self.gateway)
        stopping = self.gateway.stopService()
        self.network.settle()
        self.successResultOf(stopping)
        self.assertEqual(len(self.flushLoggedErrors()), 1)
        self.assertEqual(self.database.closed, ["closed"])

    def test_a_database_that_is_at_work(self) -> None:
        """The end does not wait for ever."""
        self.database.at_work = True
        self.start()
        stopping = self.gateway.stopService()
        self.network.settle()
        self.assertNoResult(stopping)
        self.network.advance(CLOSE_SECONDS)
        self.successResultOf(stopping)


class ReloadTests(GatewayTestCase):
    """Reading the settings again."""

    def test_a_broken_file_changes_nothing(self) -> None:
        """The old settings stay in force, nobody is disconnected, and the warning names the key."""
        self.start()
        before = self.gateway.settings
        for text, word in (("people = [", "TOML"), ("[people]\nallowed = []\n", "accounts")):
            self.source.write_text(text, encoding="utf-8")
            self.assertIn(word, self.reload().warning)
        self.assertIs(self.gateway.settings, before)
        self.assertEqual(len(self.network.dialled), 1)
        self.assertEqual(self.states(), ["watching"])

    def test_new_settings_are_in_force(self) -> None:
        """The accounts begin anew, with the new name and the new people."""
        self.start()
        loaded_at = self.gateway.loaded_at
        self.write(
            device={"name": "desktop"},
            people={"allowed": ["robin@example.net", "kim@example.net"]},
        )
        reloaded = self.reload()
        self.assertEqual(reloaded.warning, "")
        self.assertGreater(reloaded.loaded_at, loaded_at)
        self.assertEqual(self.gateway.identity.name, "desktop")
        self.assertEqual(len(self.gateway.settings.people.allowed), 2)
        self.assertEqual(self.habits.verbs.count("LOGOUT"), 1)
        self.assertEqual((len(self.network.dialled), self.states()), (2, ["watching"]))

    def test_what_needs_a_restart_is_refused(self) -> None:
        """A port cannot be changed under those who are connected."""
        self.start()
        self.write(daemon={"state_dir": str(self.folder / "state"), "port": 4999})
        self.assertIn("restart", self.reload().warning)
        self.assertEqual(len(self.network.dialled), 1)

    def test_a_database_that_fails_meanwhile(self) -> None:
        """The accounts begin all the same: a reload must not leave the service dead."""
        self.start()
        self.write(device={"name": "desktop"})
        reloading = Deferred.fromCoroutine(self.gateway.reload())
        self.database.failures = [StoreUnavailable("disk full")]
        self.network.settle()
        self.assertIn("disk full", self.successResultOf(reloading).warning)
        self.assertEqual(self.states(), ["watching"])

    def test_an_account_that_does_not_let_go(self) -> None:
        """A reload has a deadline, too."""
        self.habits.hangs_at = "LOGOUT"
        self.start()
        reloading = Deferred.fromCoroutine(self.gateway.reload())
        self.network.settle()
        self.network.advance(STOP_SECONDS)
        self.network.settle()
        self.assertEqual(self.successResultOf(reloading).warning, "")
        self.assertEqual(self.states(), ["watching"])

    def test_two_at_once(self) -> None:
        """One after the other: no account runs twice."""
        self.start()
        reloads = [Deferred.fromCoroutine(self.gateway.reload()) for _ in range(2)]
        self.network.settle()
        for each in reloads:
            self.assertEqual(self.successResultOf(each).warning, "")
        self.assertEqual(len(self.gateway.accounts()), 1)
        self.assertEqual(self.habits.verbs.count("LOGOUT"), self.habits.verbs.count("IDLE") - 1)

    def test_a_changed_password_is_tried(self) -> None:
        """A reload is how the operator says that it is mended."""
        self.habits.login = b"NO [AUTHENTICATIONFAILED] wrong"
        self.start()
        self.assertEqual(self.states(), ["refused"])
        self.reload()
        self.assertEqual(self.habits.verbs.count("AUTHENTICATE"), 1)
        self.habits.login = Habits().login
        (self.folder / "password").write_text("mended\n", encoding="utf-8")
        self.reload()
        self.assertEqual(self.states(), ["watching"])
