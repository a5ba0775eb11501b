"""The service as it is started: wrong settings, a second one, a foreign port, a kill."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client import ServiceUnreachable
from mailgateway.errors import ConfigError
from mailgateway.service.start import RUNS_ALREADY
from tests.acceptance.harness import Gateway as Process
from tests.daemons.world import settings_of
from tests.fakes.dovecot import eventually

EXIT_SECONDS = 30


class ProcessTests(SynchronousTestCase):
    """The real thing, as child processes of ``twistd``."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)

    def process(self, port: int | None = None, **sections: Mapping[str, object]) -> Process:
        """A service in the folder, not started; nothing of it is left in the end."""
        process = Process(self.folder, settings_of(self.folder, **sections))
        if port is not None:
            process.port = port
            process.client = process.another_client()
        self.addCleanup(process.client.close)
        self.addCleanup(process.kill)
        return process

    def ending(self, process: Process) -> tuple[int, str]:
        """The exit status of a service that ends by itself, and what it wrote."""
        before = len(process.log())
        child = process.launch()
        try:
            status = child.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it runs on:\n{process.log()[before:]}") from None
        return status, process.log()[before:]

    def test_wrong_settings(self) -> None:
        """Exit 2, every problem at once on lines of their own, and nothing is made on the disk."""
        status, wrote = self.ending(
            self.process(device={"nmae": "x"}, notify={"budget_per_minute": 0}, people={"allowed": []})
        )
        self.assertEqual(status, 2)
        for path in ("device.nmae", "notify.budget_per_minute", "people.allowed"):
            self.assertEqual(
                len([line for line in wrote.splitlines() if line.startswith(f"mailgateway: {path}")]),
                1,
                wrote,
            )
        self.assertNotIn("Traceback", wrote)
        self.assertFalse((self.folder / "state").exists())

    def test_a_second_one_yields(self) -> None:
        """Exit 0 with one line when our own healthy service runs already, and it goes on undisturbed."""
        first = self.process().start()
        status, wrote = self.ending(self.process(first.port))
        said = [line for line in wrote.splitlines() if "#" not in line]  # the first one logs there, too
        self.assertEqual((status, said), (0, [f"mailgateway: {RUNS_ALREADY}"]))
        first.client.prove()
        other_port = self.process()
        status, wrote = self.ending(other_port)
        self.assertEqual(status, 1)
        self.assertIn(str(first.port), wrote)
        self.assertEqual(first.stop(), 0)

    def test_many_at_once(self) -> None:
        """One wins, the others leave quietly, and all of them mean the same service."""
        first = self.process()
        others = [self.process(first.port) for _ in range(2)]
        children = [process.launch() for process in (first, *others)]
        winner = self.process(first.port)

        def healthy() -> bool:
            try:
                winner.client.prove()
            except (ServiceUnreachable, ConfigError):
                return False
            return True

        eventually("one of them is healthy", healthy, EXIT_SECONDS)
        ended = [child for child in children if self.ended(child)]
        self.assertEqual(sorted(child.returncode for child in ended), [0, 0])

    def ended(self, child: "subprocess.Popen[bytes]") -> bool:
        """Whether a child ends within a few seconds."""
        try:
            child.wait(4)
        except subprocess.TimeoutExpired:
            return False
        return True

    def test_a_port_of_a_foreign_program(self) -> None:
        """Exit 1 with one sentence that says what to do, before anything else is done."""
        with socket.create_server(("127.0.0.1", 0)) as foreign:
            status, wrote = self.ending(self.process(foreign.getsockname()[1]))
        self.assertEqual(status, 1)
        self.assertEqual(len(wrote.splitlines()), 1, wrote)
        self.assertIn("daemon.port", wrote)
        self.assertFalse(list((self.folder / "state").glob("*.sqlite3")))

    def test_killed_and_started_again(self) -> None:
        """Nothing has to be cleared away by hand."""
        first = self.process().start()
        first.kill()
        again = self.process(first.port).start()
        self.assertEqual(again.stop(), 0)
        self.assertFalse((self.folder / "twistd.pid").exists())


class LightStartTests(SynchronousTestCase):
    """A start does not pay, in time or memory, for what it may never need."""

    def test_what_a_start_does_not_import(self) -> None:
        """Each of these costs megabytes, or a tenth of a second, and has its place inside a function."""
        program = "import sys, mailgateway.service; print(*sys.modules, sep='\\n')"
        done = subprocess.run(
            [sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True, timeout=60
        )
        loaded = set(done.stdout.split())
        self.assertIn("mailgateway.service.gateway", loaded)
        self.assertEqual(loaded & HEAVY, set())


HEAVY = frozenset(
    {
        *(
            "alembic",
            "psycopg",
            "sqlalchemy.orm",
            "sqlalchemy.dialects.postgresql",
            "sqlalchemy.dialects.mysql",
        ),
        *(
            "click",
            "klein",
            "werkzeug",
            "prometheus_client",
            "markdown_it",
            "css_inline",
            "pygments",
            "graphviz",
            "treq",
            "oauthlib",
            "mailgateway.protocols.oauth",
            "unittest",
        ),
        *(
            "automat._visualize",
            "twisted.web.client",
            "twisted.conch",
            "twisted.words",
            "twisted.trial",
        ),
        *("mailgateway.client", "mailgateway.cli", "mailgateway.demo", "mailgateway.operator", "html.parser"),
    }
)
"""Modules that a start leaves alone."""
