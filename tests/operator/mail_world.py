"""The stage of the operator's tests: settings of one account, with scripted servers on loopback ports."""

import tomllib
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.trial.unittest import TestCase

from mailgateway.operator.findings import Finding, State
from mailgateway.settings import Settings, parse
from tests.daemons.small_imap import Habits
from tests.fakes.smtp_script import Script

reactor: Any = global_reactor

PASSWORD = "correct horse"
ADDRESS = "agent@example.org"

SETTINGS = """
[daemon]
port = {port}
state_dir = "{folder}/state"
{daemon}
[accounts.main]
address = "agent@example.org"
watch = ["INBOX"]
[accounts.main.imap]
host = "{host}"
port = {imap}
tls = "none"
password_file = "{folder}/password"
[accounts.main.smtp]
host = "127.0.0.1"
port = {smtp}
tls = "none"
[people]
allowed = ["robin@example.org"]
[security]
trusted_authserv_ids = ["mx.example.org"]
"""


class Counted(WrappingFactory):
    """Knows which of its connections are still there."""

    noisy = False

    def __init__(self, factory: Factory) -> None:
        super().__init__(factory)
        self.empty: Deferred[None] | None = None

    def unregisterProtocol(self, p: ProtocolWrapper) -> None:
        """One is gone."""
        super().unregisterProtocol(p)
        if self.empty is not None and not self.protocols:
            waiting, self.empty = self.empty, None
            waiting.callback(None)

    def gone(self) -> "Deferred[None]":
        """Fires when there is none any more."""
        waiting: Deferred[None] = Deferred()
        if self.protocols:
            self.empty = waiting
        else:
            waiting.callback(None)
        return waiting


class WorldCase(TestCase):
    """An account whose servers do what a test says; nothing runs by itself."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        self.password = self.folder / "password"
        self.password.write_text(f"{PASSWORD}\n")
        self.password.chmod(0o600)
        self.imap = Habits()
        self.smtp = Script(users={ADDRESS: PASSWORD})
        self.ports = [self.listen(Factory.forProtocol(self.imap.server)), self.listen(self.smtp.factory())]
        self.told: list[Finding] = []

    def listen(self, factory: Factory, tls: Any = None) -> int:
        """Serve on a free port of this machine until the test ends."""
        counted = Counted(factory)
        if tls is None:
            port = reactor.listenTCP(0, counted, interface="127.0.0.1")
        else:
            port = reactor.listenSSL(0, counted, tls, interface="127.0.0.1")
        self.addCleanup(counted.gone)
        self.addCleanup(port.stopListening)
        number: int = port.getHost().port
        return number

    def settings(self, *changes: tuple[str, str], **values: Any) -> Settings:
        """The settings, with words of their text changed."""
        known = {"port": 1, "folder": self.folder, "daemon": "", "host": "127.0.0.1"}
        known |= {"imap": self.ports[0], "smtp": self.ports[1]}
        text = SETTINGS.format(**{**known, **values})
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        return parse(tomllib.loads(text), {"HOME": str(self.folder)}, host_name="laptop")

    def only(self, step: str) -> Finding:
        """The one finding of a step."""
        found = [each for each in self.told if each.step == step and each.state is not State.UNDERWAY]
        self.assertEqual(len(found), 1, f"{step}: {self.told}")
        return found[0]

    def failures(self) -> list[str]:
        """The steps that failed."""
        return [each.step for each in self.told if each.state is State.FAILED]

    def said(self) -> str:
        """All that was told, as one text."""
        return "\n".join(f"{each.step}: {each.what} {each.advice}" for each in self.told)
