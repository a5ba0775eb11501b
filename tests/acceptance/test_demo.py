"""The demo as a newcomer runs it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import mailgateway
from mailgateway.client import Client, ServiceUnreachable, base_of


class DemoTests(SynchronousTestCase):
    """One run in a process of its own, with an empty home."""

    def setUp(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.home, self.temporary = folder / "home", folder / "tmp"
        self.home.mkdir()
        self.temporary.mkdir()

    def start_demo(self, options: str) -> "subprocess.Popen[str]":
        """Start the demo in a process of its own."""
        environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment |= {"HOME": str(self.home), "TMPDIR": str(self.temporary)}
        environment["PYTHONPATH"] = str(Path(mailgateway.__file__).parent.parent)
        program = f"import sys; from mailgateway.demo.main import main; sys.exit(main({options}))"
        demo = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.addCleanup(demo.kill)
        return demo

    def ended(self, demo: "subprocess.Popen[str]") -> str:
        """Wait for its good end; what it told, and neither its folder nor its home holds anything."""
        out, err = demo.communicate(timeout=120)
        self.assertEqual((demo.returncode, err), (0, ""), out + err)
        self.assertEqual([*self.home.rglob("*"), *self.temporary.rglob("*")], [])
        return out

    def test_the_story(self) -> None:
        """It ends well and tells of the question, the reply, the claim, the ack and the flag."""
        story = self.ended(self.start_demo(""))
        for word in ("asks a question", "reply", "claims", "acks", "\\Seen", "Done"):
            self.assertIn(word, story)
        self.assertNotIn("Traceback", story)

    def test_for_programs(self) -> None:
        """Each line is one JSON object, and the last says that it ended well."""
        lines = [json.loads(line) for line in self.ended(self.start_demo("json=True")).splitlines()]
        self.assertTrue(lines[-1]["done"])
        self.assertEqual(
            [line["seconds"] for line in lines[:-1]], sorted(line["seconds"] for line in lines[:-1])
        )

    def test_keep(self) -> None:
        """With ``keep`` it goes on, says where everything is, and ends cleanly on Ctrl-C."""
        demo = self.start_demo("keep=True")
        assert demo.stdout is not None
        told = ""
        while "log:" not in told:
            line = demo.stdout.readline()
            self.assertTrue(line, told)
            told += line
        found = re.search(r"API: +(\S+) +\(key: (\S+)\)", told)
        assert found is not None, told
        client = Client(base_of(found[1]), Path(found[2]))
        self.assertEqual(client.mode(), "on")
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does, so the service hears it as well
        self.ended(demo)
        self.assertRaises(ServiceUnreachable, client.health)
