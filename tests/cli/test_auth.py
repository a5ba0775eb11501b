"""``mailgateway auth`` as it is typed, against a provider in a process of its own."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.demo.service import settings_text
from tests.fakes.identity_provider import ProviderProgram, registration

TOP = Path(__file__).parent.parent.parent
PROGRAM = "from mailgateway.cli.main import main; main()"


class AuthTests(SynchronousTestCase):
    """Without a terminal: every choice has a flag."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.provider = ProviderProgram(self.folder)
        self.addCleanup(self.provider.stop)
        self.provider.start()
        self.path = self.folder / "config.toml"
        self.write("work")

    def write(self, *names: str, **changes: Any) -> None:
        """Write settings with these registrations."""
        table = registration(self.provider.base, **changes)
        server = {"host": "127.0.0.1", "tls": "none"}
        text = settings_text(
            {
                "daemon": {"state_dir": str(self.folder / "state")},
                "accounts.main": {"address": "agent@example.org", "watch": ["INBOX"]},
                "accounts.main.imap": {**server, "oauth": names[0]},
                "accounts.main.smtp": server,
                "people": {"allowed": ["robin@example.org"]},
                **{f"oauth.{name}": table for name in names},
            }
        )
        self.path.write_text(text, encoding="utf-8")

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        """Begin a verb."""
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "auth", *words, "--config", str(self.path)],
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "PYTHONPATH": str(TOP)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def verb(self, *words: str) -> tuple[int, str, str]:
        """Run a verb; status, output, complaints."""
        process = self.begin(*words)
        out, err = process.communicate("", timeout=60)
        return process.returncode, out, err

    def url_in(self, process: "subprocess.Popen[str]") -> str:
        """The address that a person is told to open."""
        assert process.stderr is not None
        while line := process.stderr.readline():
            if line.strip().startswith("http"):
                return line.strip()
        raise AssertionError("no address was shown")

    def test_device(self) -> None:
        """The code is told on standard error; the answer holds no token, and the status neither."""
        status, out, err = self.verb("--json")
        self.assertEqual(status, 0, err)
        answer = json.loads(out)
        self.assertEqual((answer["name"], answer["signedIn"], answer["lasting"]), ("work", True, True))
        self.assertIn("WDJB-MJHT", err)
        self.assertIn("Type it now", err)
        status, shown, _ = self.verb("--status", "--json")
        (grant,) = json.loads(shown)["grants"]
        self.assertEqual((status, grant["usable"], grant["lasting"]), (0, True, True))
        told = self.provider.control()
        for token in (*told["tokens"], *told["refresh"]):
            self.assertNotIn(token, out + err + shown)
        self.assertIn("work  signed in ", self.verb("--status")[1])

    def test_paste(self) -> None:
        """The final address is read from standard input."""
        process = self.begin("--flow", "paste", "--json")
        url = self.url_in(process)
        with urllib.request.build_opener(_Stop).open(url, timeout=20) as answer:
            back = answer.headers["location"]
        out, err = process.communicate(f"what?\n{back}\n", timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertTrue(json.loads(out)["lasting"])
        self.assertIn("must begin with http://127.0.0.1:", err)

    def test_browser(self) -> None:
        """A browser on this machine comes back by itself."""
        process = self.begin("--flow", "browser")
        with urllib.request.urlopen(self.url_in(process), timeout=20) as page:  # noqa: S310 - ours
            self.assertIn("You can close this window", page.read().decode())
        out, err = process.communicate("", timeout=60)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("Signed in: work.", out)

    def test_forget_and_who_is_not_there(self) -> None:
        """Status 1 while somebody has to sign in; forgetting removes the file and says what it does not."""
        status, out, _ = self.verb("--status")
        self.assertEqual(status, 1)
        self.assertIn("`mailgateway auth work`", out)
        self.assertEqual(self.verb()[0], 0)
        self.assertEqual(self.verb("--forget")[0], 2)
        status, out, _ = self.verb("work", "--forget")
        self.assertEqual(status, 0)
        self.assertIn("At the provider", out)
        self.assertFalse((self.folder / "state" / "oauth" / "work.json").exists())

    def test_one_file_of_several_that_is_damaged(self) -> None:
        """The others are told all the same."""
        self.write("work", "home")
        self.assertEqual(self.verb("work")[0], 0)
        (self.folder / "state" / "oauth" / "home.json").write_text("{")
        status, out, _ = self.verb("--status", "--json")
        told = {each["name"]: each for each in json.loads(out)["grants"]}
        self.assertEqual((status, told["work"]["usable"], told["home"]["usable"]), (1, True, False))
        self.assertIn("damaged", told["home"]["why"])

    def test_which(self) -> None:
        """With several tables one has to be named; a wrong name names the right ones."""
        self.write("work", "home")
        for words in ((), ("wrok",)):
            status, _, err = self.verb(*words)
            self.assertEqual(status, 2)
            self.assertIn("work, home", err)
        status, out, _ = self.verb("wrok", "--json")
        told = json.loads(out)
        self.assertEqual((status, told["error"]), (2, "usage"))
        self.assertIn("work, home", told["message"])

    def test_failures_are_sentences(self) -> None:
        """A wrong client, a provider that is not there, a flow that the table does not have."""
        self.write("work", client_id="stranger")
        status, _, err = self.verb()
        self.assertEqual(status, 1)
        self.assertIn("invalid_client", err)
        self.write("work", device_url="http://127.0.0.1:1/device")
        status, _, err = self.verb()
        self.assertEqual((status, "Traceback" in err), (1, False))
        self.write("work", device_url="")
        status, _, err = self.verb("--flow", "device")
        self.assertEqual(status, 2)
        self.assertIn("oauth.work.device_url", err)

    def test_interrupted(self) -> None:
        """Ctrl-C while a person is waited for: it ends, and nothing is written."""
        self.provider.control(typed=False)
        process = self.begin()
        assert process.stderr is not None
        while "Type it now" not in process.stderr.readline():
            pass
        process.terminate()
        begin = time.monotonic()
        process.communicate(timeout=20)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertNotEqual(process.returncode, 0)
        self.assertFalse((self.folder / "state" / "oauth" / "work.json").exists())


class _Stop(urllib.request.HTTPRedirectHandler):
    """Follow nothing, and raise nothing."""

    def http_error_302(self, req: Any, fp: Any, code: Any, msg: Any, headers: Any) -> Any:  # noqa: ARG002
        """Take the redirect as the answer."""
        return fp
