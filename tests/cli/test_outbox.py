"""``outbox``: what is asked of the service, and what is shown."""

import json
from typing import Any

from tests.cli.verbs import VerbCase

MAIL: dict[str, Any] = {
    "id": "o-" + "1" * 24,
    "kind": "notification",
    "sessionId": "shell",
    "subject": "[mg:f913c9] The build\x1b]0;evil\x07 is green",
    "messageId": "<mg.f913c9.r.m@example.org>",
    "createdAt": "2026-11-30T12:00:00Z",
    "state": "queued",
    "attempts": 2,
    "lastError": "451 later",
    "recipients": [{"address": "robin@example.org", "state": "waiting"}],
    "nextAttemptAt": "2026-11-30T12:30:00Z",
}


class OutboxTests(VerbCase):
    """One mail that waits."""

    def asked(self) -> list[str]:
        """What was asked of the service beside its health."""
        return [f"{each.method} {each.path}" for each in self.service.requests if "/health" not in each.path]

    def test_list(self) -> None:
        """Those that wait, unless another state is wanted; heads over several; no control characters."""
        self.service.answers["GET /outbox"] = (
            200,
            {"mails": [MAIL, {**MAIL, "heldUntil": "x"}], "nextCursor": "1"},
        )
        result = self.run_verb("outbox")
        lines = result.output.splitlines()
        self.assertTrue(lines[0].startswith("ID"), result.output)
        self.assertIn("held back", lines[2])
        self.assertNotIn("\x1b", result.output)
        self.assertIn("There are more", lines[-1])
        for words in (("--state", "failed"), ("--state", "all", "--limit", "5")):
            self.run_verb("outbox", *words)
        self.assertEqual(
            self.asked(),
            ["GET /outbox?state=open&limit=50", "GET /outbox?state=failed&limit=50", "GET /outbox?limit=5"],
        )
        self.service.answers["GET /outbox"] = (200, {"mails": []})
        self.assertEqual(self.run_verb("outbox").output, "No mail waits to be sent.\n")
        self.assertEqual(json.loads(self.run_verb("outbox", "--json").stdout), {"mails": []})
        self.assertEqual(self.run_verb("outbox", "--state", "lost").exit_code, 2)

    def test_one(self) -> None:
        """Shown with all that is known, tried, dropped."""
        path = f"/outbox/{MAIL['id']}"
        self.service.answers |= {
            f"GET {path}": (200, MAIL),
            f"POST {path}/retry": (200, MAIL),
            f"POST {path}/drop": (200, MAIL),
        }
        shown = self.run_verb("outbox", "show", MAIL["id"])
        for words in ("The build", "queued", "451 later", "robin@example.org", "2026-11-30 12:30 UTC"):
            self.assertIn(words, shown.output)
        self.assertEqual(self.run_verb("outbox", "retry", MAIL["id"], "--unclear").exit_code, 0)
        self.assertEqual(self.run_verb("outbox", "retry", MAIL["id"]).exit_code, 0)
        self.assertEqual(self.called(f"{path}/retry"), [{"unclear": True}, {}])
        self.assertIn("Dropped", self.run_verb("outbox", "drop", MAIL["id"]).output)

    def test_refusals(self) -> None:
        """Status 1, with the code."""
        path = f"/outbox/{MAIL['id']}/drop"
        self.service.answers[f"POST {path}"] = (409, {"error": "being_sent", "message": "Look again."})
        result = self.run_verb("outbox", "drop", MAIL["id"])
        self.assertEqual((result.exit_code, result.stderr), (1, "Look again. (being_sent)\n"))
