"""``notify`` and ``ask`` with files: what is uploaded, what the mail says, and what is never sent."""

import json
import os
from pathlib import Path
from typing import Any

from tests.cli.verbs import SENT, VerbCase
from tests.client.stand_in import Request


class FileTests(VerbCase):
    """A session in a project."""

    def setUp(self) -> None:
        super().setUp()
        self.uploads: list[Request] = []
        self.service.answers["POST /attachments"] = self.upload
        self.service.answers["POST /send"] = (200, SENT)
        self.project = self.folder / "project"
        (self.project / "docs").mkdir(parents=True)
        (self.project / ".git").mkdir()
        (self.project / "docs/plot.png").write_bytes(b"PNG")
        (self.project / "log ü.txt").write_bytes(b"words")
        (self.folder / "outside.txt").write_text("x")
        self.addCleanup(os.chdir, Path.cwd())
        os.chdir(self.project / "docs")

    def upload(self, request: Request) -> tuple[int, Any]:
        """Take one."""
        self.uploads.append(request)
        return 200, {"attachmentId": f"a-{len(self.uploads)}"}

    def test_notify(self) -> None:
        """Images are shown, files attached, and the answer says what went along."""
        text = "![p](docs/plot.png) and [the log](<../log ü.txt>)"
        result = self.run_verb("notify", "--session", "s", "--json", text)
        self.assertEqual(result.exit_code, 0, result.output)
        (sent,) = self.called("/send")
        self.assertEqual(sent["text"], "![p](attachment:a-1) and [the log](<../log ü.txt>)")
        self.assertEqual(sent["attachments"], ["a-1", "a-2"])
        self.assertEqual([each.body for each in self.uploads], [b"PNG", b"words"])
        self.assertEqual(
            [each.headers["x-filename"] for each in self.uploads], ["plot.png", "log%20%C3%BC.txt"]
        )
        self.assertEqual(
            [each["path"] for each in json.loads(result.stdout)["attached"]], ["docs/plot.png", "log ü.txt"]
        )

    def test_ask_with_files_that_stay(self) -> None:
        """The question is asked all the same; the person reads what is missing, and so does the session."""
        result = self.run_verb(
            "ask",
            "--session",
            "s",
            "--no-wait",
            "--attach",
            "../../outside.txt",
            "--attach",
            "../log ü.txt",
            "Well?",
        )
        self.assertEqual(result.exit_code, 0, result.output)
        (sent,) = self.called("/send")
        self.assertEqual(
            sent["text"], "Well?\n\nNot attached:\n\n- `../../outside.txt`: it lies outside of the project.\n"
        )
        self.assertEqual(sent["attachments"], ["a-1"])
        self.assertIn("Not attached: ../../outside.txt: it lies outside of the project.\n", result.stderr)

    def test_another_project(self) -> None:
        """``--project`` says where files may come from."""
        words = ("notify", "--session", "s", "--project", str(self.folder), "--attach", "outside.txt", "x")
        self.assertEqual(self.run_verb(*words).exit_code, 0)
        self.assertEqual([each.body for each in self.uploads], [b"x"])
        self.assertEqual(self.run_verb("notify", "--session", "s", "--project", "/no/such", "x").exit_code, 2)

    def test_the_text_alone(self) -> None:
        """``--no-files`` leaves what the text shows where it is; what is named goes along."""
        text = "![p](docs/plot.png)"
        self.run_verb("notify", "--session", "s", "--no-files", text)
        self.run_verb(
            "notify", "--session", "s", "--no-files", "--attach", "plot.png", "--attach", "no", text
        )
        alone, named = self.called("/send")
        self.assertEqual(alone["text"], text)
        self.assertNotIn("attachments", alone)
        self.assertEqual(named["attachments"], ["a-1"])
        self.assertTrue(named["text"].startswith(f"{text}\n\nNot attached:\n\n- `no`"), named["text"])
