"""The stage of the verbs' tests: a command, its settings, and a stand-in of the service."""

import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from click.testing import CliRunner, Result
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.main import command
from tests.client.stand_in import KEY, StandIn

SETTINGS = """
[daemon]
port = {port}
state_dir = "{state}"
[accounts.main]
address = "agent@example.org"
watch = ["INBOX"]
[accounts.main.imap]
host = "imap.example.org"
password_file = "/nobody/but/the/service/reads/this"
[accounts.main.smtp]
host = "smtp.example.org"
[people]
allowed = ["robin@example.org"]
"""

SENT = {
    "messageId": "<mg.f913c9.r.m@example.org>",
    "route": "f913c9",
    "subject": "[mg:f913c9] Which?",
    "outboxId": "o-1",
    "questionId": "q-1",
    "state": "sent",
}


def delivery(identifier: str = "m-" + "1" * 24, **fields: Any) -> dict[str, Any]:
    """A delivery as ``/pending`` gives it."""
    return {
        "id": identifier,
        "sessionId": "shell",
        "kind": "user",
        "subject": "Re: Which?",
        "body": "two, please\n",
        "rendered": "Robin answers: two, please",
        "from": "robin@example.org",
        "fromName": "Robin",
        "receivedAt": "2026-11-30T12:00:00Z",
        "state": "new",
        "inReplyTo": SENT["messageId"],
        **fields,
    }


class VerbCase(SynchronousTestCase):
    """Verbs against a stand-in of the service."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp())
        self.addCleanup(rmtree, self.folder)
        self.service = StandIn()
        self.service.start()
        self.addCleanup(self.service.stop)
        self.service.answers["POST /ping"] = (200, {"mode": "on", "pending": 0})
        state = self.folder / "state"
        state.mkdir(0o700)
        key = state / "secret.key"
        key.write_text(f"{KEY}\n")
        key.chmod(0o600)
        self.config = self.folder / "mailgateway.toml"
        self.config.write_text(SETTINGS.format(port=self.service.base.port, state=state))

    def run_verb(self, *words: str, stdin: str | None = None, **environ: str) -> Result:
        """Run a verb in this process, with an environment of its own."""
        own: dict[str, str | None] = dict.fromkeys(os.environ)
        own |= {"HOME": str(self.folder), "MAILGATEWAY_CONFIG": str(self.config), **environ}
        result = CliRunner().invoke(command, list(words), input=stdin, env=own)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def called(self, path: str) -> list[Any]:
        """Return the bodies of the requests for a path."""
        return [request.body for request in self.service.requests if request.path == path]
