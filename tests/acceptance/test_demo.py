"""The demo as a newcomer runs it."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import mailgateway


class DemoTests(SynchronousTestCase):
    """One run in a process of its own, with an empty home."""

    def run_demo(self, options: str) -> "subprocess.CompletedProcess[str]":
        """Run the demo; afterwards neither its temporary folder nor its home holds anything."""
        with tempfile.TemporaryDirectory(prefix="mailgateway-test-") as folder:
            home, temporary = Path(folder) / "home", Path(folder) / "tmp"
            home.mkdir()
            temporary.mkdir()
            environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
            environment |= {"HOME": str(home), "TMPDIR": str(temporary)}
            environment["PYTHONPATH"] = str(Path(mailgateway.__file__).parent.parent)
            program = f"import sys; from mailgateway.demo.main import main; sys.exit(main({options}))"
            done = subprocess.run(
                [sys.executable, "-c", program],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            self.assertEqual([*home.rglob("*"), *temporary.rglob("*")], [])
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout + done.stderr)
        return done

    def test_the_story(self) -> None:
        """It ends well and tells of the question, the reply, the claim, the ack and the flag."""
        story = self.run_demo("").stdout
        for word in ("asks a question", "reply", "claims", "acks", "\\Seen", "Done"):
            self.assertIn(word, story)
        self.assertNotIn("Traceback", story)

    def test_for_programs(self) -> None:
        """Each line is one JSON object, and the last says that it ended well."""
        lines = [json.loads(line) for line in self.run_demo("json=True").stdout.splitlines()]
        self.assertTrue(lines[-1]["done"])
        self.assertEqual(
            [line["seconds"] for line in lines[:-1]], sorted(line["seconds"] for line in lines[:-1])
        )
