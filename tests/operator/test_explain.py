"""``explain``: one line for each file, whatever is in it."""

import io
import json
import os
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.main import command
from mailgateway.operator.explain import explain_files
from mailgateway.settings import parse
from tests.test_settings import ENVIRON, tables

REPLY = (
    b"From: Robin <robin@example.org>\r\nTo: agent@example.org\r\nSubject: Re: [mg:7a7a7a] Delete?\r\n"
    b"Message-ID: <a@example.org>\r\nDate: Mon, 30 Nov 2026 12:00:00 +0000\r\n"
    b"\r\nYes, do it.\r\n\r\n> May I delete it?\r\n"
)
FIELDS = {"file", "kind", "text", "quoted", "from", "sender", "route"}


class ExplainTests(SynchronousTestCase):
    """The tool and its verb."""

    def setUp(self) -> None:
        self.folder = Path(mkdtemp())
        self.addCleanup(rmtree, self.folder)

    def write(self, name: str, data: bytes) -> str:
        """Write a file and return its name."""
        (self.folder / name).write_bytes(data)
        return str(self.folder / name)

    def run_verb(self, *words: str, stdin: bytes = b"") -> Result:
        """Run ``explain`` without any settings around."""
        own: dict[str, str | None] = dict.fromkeys(os.environ)
        own |= {"HOME": str(self.folder)}
        return CliRunner().invoke(command, ["explain", *words], input=stdin, env=own)

    def lines(self, result: Result) -> list[Any]:
        """Read the lines of a run that went well."""
        self.assertEqual(result.exit_code, 0, result.output)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_one_line_for_each_file(self) -> None:
        """Good, garbage, empty, missing, a folder: in the order given, each named, never a traceback."""
        names = [
            self.write("reply.eml", REPLY),
            self.write("noise.eml", bytes(range(256)) * 40),
            self.write("zero.eml", b""),
            str(self.folder / "missing.eml"),
            str(self.folder),
        ]
        lines = self.lines(self.run_verb(*names))
        self.assertEqual([line["file"] for line in lines], names)
        self.assertTrue(all(set(line) >= FIELDS for line in lines))
        self.assertEqual(lines[0]["kind"], "reply")
        self.assertEqual(lines[0]["text"].strip(), "Yes, do it.")
        self.assertIn("May I delete it?", lines[0]["quoted"])
        self.assertEqual([line["kind"] for line in lines[3:]], ["malformed", "malformed"])
        self.assertIn("No such file", lines[3]["message"])

    def test_standard_input(self) -> None:
        """``-`` reads the mail from there."""
        (line,) = self.lines(self.run_verb("-", stdin=REPLY))
        self.assertEqual((line["file"], line["kind"]), ("-", "reply"))

    def test_context_widens_what_is_known(self) -> None:
        """A context file tells whose address is the gateway's own; the same mail is then a loop."""
        context = self.write("context.json", b'{"own_addresses": ["robin@example.org"]}')
        mail = self.write("own.eml", REPLY)
        kinds = [line["kind"] for line in self.lines(self.run_verb("--context", context, mail))]
        self.assertEqual(kinds, ["loop"])

    def test_a_context_that_is_none(self) -> None:
        """No JSON, no object, no file: status 2 and the name of it."""
        mail = self.write("reply.eml", REPLY)
        for name in (self.write("a.json", b"{"), self.write("b.json", b"[]"), str(self.folder / "no.json")):
            result = self.run_verb("--context", name, mail)
            self.assertEqual(result.exit_code, 2)
            self.assertIn(name, result.stderr)

    def test_settings_are_used_where_there_are_some(self) -> None:
        """An allowed person with pinned results is accepted; wrong settings are told, not passed over."""
        found = parse(tables(security={"trusted_authserv_ids": ["mx.example.org"]}), ENVIRON)
        stamp = (
            b"Authentication-Results: mx.example.org; dmarc=pass header.from=example.org;\r\n"
            b" dkim=pass header.d=example.org\r\n"
        )
        stamped = self.write("stamped.eml", stamp + REPLY)
        plain = self.write("plain.eml", REPLY)
        verdicts = [
            line["sender"]["verdict"] for line in explain_files([stamped, plain], found, None, io.BytesIO())
        ]
        self.assertEqual(verdicts, ["accept", "refuse"])
        wrong = self.write("wrong.toml", b"[daemon]\nprot = 1\n")
        result = self.run_verb("--config", wrong, plain)
        self.assertEqual(result.exit_code, 2)
        self.assertIn("daemon.prot", result.stderr)

    @settings(max_examples=60)
    @given(st.binary(max_size=400) | st.binary(max_size=200).map(lambda tail: REPLY[:120] + tail))
    def test_any_bytes_give_one_line(self, data: bytes) -> None:
        """Whatever is read, the answer has all its fields and is JSON, and is no bug of ours."""
        (line,) = explain_files(["-"], None, None, io.BytesIO(data))
        self.assertTrue(set(json.loads(json.dumps(line))) >= FIELDS)
        self.assertNotIn("bug", line.get("message", ""))
