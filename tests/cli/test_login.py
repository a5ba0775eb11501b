"""``login``: the link for a person, as lines, as a code to point a phone at, and as JSON."""

import json

from mailgateway.secrets import PERSON_KEY
from tests.cli.verbs import VerbCase

URL = "https://gateway.example.org/login#aBZMJkzTj-bKBFe86E0bDUystqNQBhQncyVJ7Q"
MADE = {"expiresAt": "2026-11-30T12:10:00Z", "url": URL}


class LoginTests(VerbCase):
    """What a person sees."""

    def setUp(self) -> None:
        super().setUp()
        key = self.folder / "state" / PERSON_KEY
        key.write_text("ab" * 32 + "\n")
        key.chmod(0o600)
        self.service.answers["POST /logins"] = (200, MADE)

    def test_the_link_and_its_code(self) -> None:
        """The link stands on a line of its own, below a square that a phone can read."""
        lines = self.run_verb("login").output.splitlines()
        self.assertIn(URL, lines)
        drawn = lines[: lines.index(URL)]
        self.assertGreater(len(drawn), 15)
        self.assertEqual(len({len(line) for line in drawn}), 1)
        self.assertLessEqual(set("".join(drawn)), set(" █▀▄"))

    def test_the_link_alone(self) -> None:
        """For scripts, and for terminals in which a code cannot be read."""
        self.assertEqual(self.run_verb("login", "--no-qr").output.splitlines()[0], URL)
        self.assertEqual(json.loads(self.run_verb("login", "--json").output), MADE)

    def test_it_was_mailed(self) -> None:
        """Nothing is shown but where it went."""
        self.service.answers["POST /logins"] = (
            200,
            {"expiresAt": MADE["expiresAt"], "mailedTo": "robin@example.org"},
        )
        self.assertIn("mailed to robin@example.org", self.run_verb("login").output)

    def test_not_for_a_session(self) -> None:
        """The service's refusal is told, and the status is 1."""
        refusal = {"error": "person_required", "message": "this is for people"}
        self.service.answers["POST /logins"] = (403, refusal)
        done = self.run_verb("login")
        self.assertEqual(done.exit_code, 1)
        self.assertIn("person_required", done.output)
