"""The verbs: what they ask of the service, what they say, and how they end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.cli.main import VERBS, command
from tests.cli.verbs import SENT, VerbCase, delivery
from tests.client.stand_in import KEY, Request


class VerbTests(VerbCase):
    """Verbs against a stand-in of the service."""

    def test_status_for_people(self) -> None:
        """Mode, queue, scan, the account by its tag with what to do, and what the settings warn of."""
        result = self.run_verb("status")
        self.assertEqual(result.exit_code, 0, result.output)
        for words in (
            "Mode          on",
            "2 messages wait",
            "12 examined, 1 for sessions, refused: 2 automatic, 1 other-device",
            "1 reply is for other devices",
            "Account main  refused",
            "The password was refused twice.",
            "Warning: ",
        ):
            self.assertIn(words, result.output)

    def test_status_in_json_is_the_health_with_more(self) -> None:
        """Everything that ``/health`` says, the warnings, and no proof and no key."""
        result = self.run_verb("status", "--json")
        answer = json.loads(result.stdout)
        self.assertEqual((answer["mode"], answer["pending"], len(answer["warnings"])), ("on", 2, 1))
        self.assertNotIn("proof", answer)
        self.assertNotIn(KEY, result.output)

    def test_no_service_is_status_3(self) -> None:
        """Each verb that needs it says so, also in JSON, and what to do."""
        self.service.stop()
        session = ["--session", "s"]
        for words in (["status"], ["on"], ["off"], ["reload"], ["inbox", *session], ["wait", *session]):
            result = self.run_verb(*words)
            self.assertEqual(result.exit_code, 3, words)
            self.assertIn("Start mailgateway with", result.stderr)
        result = self.run_verb("status", "--json")
        self.assertEqual((result.exit_code, json.loads(result.stdout)["error"]), (3, "unreachable"))

    def test_wrong_settings_are_status_2(self) -> None:
        """All problems with their paths; in JSON as a list; a missing file is named."""
        self.config.write_text('[daemon]\nprot = 1\nhost = 5\n[people]\nallowed = ["robin@example.org"]\n')
        result = self.run_verb("status")
        self.assertEqual(result.exit_code, 2)
        for path in ("daemon.prot", "daemon.host", "accounts"):
            self.assertIn(f"  {path}: ", result.stderr)
        answer = json.loads(self.run_verb("status", "--json").stdout)
        self.assertEqual(answer["error"], "invalid_settings")
        self.assertIn("daemon.prot", [problem["path"] for problem in answer["problems"]])
        result = self.run_verb("on", "--config", str(self.folder / "nowhere.toml"))
        self.assertEqual(result.exit_code, 2)
        self.assertIn("nowhere.toml", result.stderr)

    def test_wrong_words_are_status_2(self) -> None:
        """Usage goes to standard error, with a suggestion."""
        for words in (["stats"], ["status", "--no-such"], ["on", "surplus"], ["explain"], ["notify", "x"]):
            result = self.run_verb(*words)
            self.assertEqual(result.exit_code, 2, words)
            self.assertTrue(result.stderr.strip(), words)
        self.assertIn("status", self.run_verb("stats").stderr)

    def test_mode(self) -> None:
        """``on`` and ``off`` set the mode and say what it means."""
        for mode in ("on", "off"):
            self.service.answers["POST /mode"] = (200, {"mode": mode})
            result = self.run_verb(mode)
            self.assertEqual((result.exit_code, result.output.split(":")[0].lower()), (0, mode))
        self.assertEqual(self.called("/mode"), [{"mode": "on"}, {"mode": "off"}])

    def test_a_refusal_is_status_1_with_its_code(self) -> None:
        """An ``off`` that a person set is undone by a person only: the code is said."""
        self.service.answers["POST /mode"] = (403, {"error": "person_required", "message": "Ask Robin."})
        result = self.run_verb("on")
        self.assertEqual((result.exit_code, result.stderr), (1, "Ask Robin. (person_required)\n"))
        result = self.run_verb("on", "--json")
        self.assertEqual(json.loads(result.stdout), {"error": "person_required", "message": "Ask Robin."})

    def test_reload_says_when_the_old_settings_stay(self) -> None:
        """A warning is a failure; without one the new settings hold."""
        self.service.answers["POST /reload"] = (200, {"warning": "daemon.port: is wrong"})
        result = self.run_verb("reload")
        self.assertEqual(result.exit_code, 1)
        self.assertIn("daemon.port: is wrong", result.stderr)
        self.service.answers["POST /reload"] = (200, {})
        self.assertEqual(self.run_verb("reload", "--json").exit_code, 0)

    def test_secret_path_names_the_file_and_not_the_key(self) -> None:
        """The path works in scripts; the key itself is never printed."""
        result = self.run_verb("secret", "path")
        self.assertEqual(result.output, f"{self.folder}/state/secret.key\n")

    def test_notify(self) -> None:
        """Registers the session, sends, and takes the words of the first line as the subject."""
        self.service.answers["POST /send"] = (200, SENT)
        result = self.run_verb(
            "notify",
            "-",
            stdin="\n---\n## The ![](a.png) [build](log.txt) of `x`\n\nis green",
            MAILGATEWAY_SESSION="shell",
        )
        self.assertEqual(result.exit_code, 0, result.output)
        (sent,) = self.called("/send")
        self.assertEqual((sent["kind"], sent["subject"]), ("notification", "The build of `x`"))
        self.assertEqual(self.called("/ping")[0]["sessionId"], "shell")

    def test_ask_prints_the_answer_and_acks_it(self) -> None:
        """Only the answer to this question is taken, printed whole, and acked after it was printed."""
        other = delivery("m-" + "2" * 24, inReplyTo="<else@example.org>", questionId="q-0")
        answer = delivery(questionId="q-1")
        self.service.answers |= {
            "POST /send": (200, SENT),
            "GET /pending": (200, {"deliveries": [other, answer]}),
            "POST /claim": (200, {**answer, "state": "claimed"}),
            "POST /ack": (200, {"acked": True}),
        }
        words = ("ask", "--session", "shell", "--subject", "Which?", "--option", "1", "--option", "2")
        result = self.run_verb(*words, "--recommend", "2", "One or two?")
        self.assertEqual((result.exit_code, result.stdout.strip()), (0, "two, please"), result.output)
        (sent,) = self.called("/send")
        self.assertEqual((sent["options"], sent["recommendation"]), (["1", "2"], "2"))
        (claim,), (ack,) = self.called("/claim"), self.called("/ack")
        self.assertEqual(claim, ack)
        self.assertEqual(claim["id"], answer["id"])

    def test_ask_can_leave_the_answer_unacked(self) -> None:
        """``--no-ack`` leaves it claimed by the instance that a later ``ack`` of this shell is."""
        self.service.answers |= {
            "POST /send": (200, SENT),
            "GET /pending": (200, {"deliveries": [delivery()]}),
            "POST /claim": (200, delivery()),
            "POST /ack": (200, {"acked": True}),
        }
        result = self.run_verb("ask", "--session", "shell", "--no-ack", "--json", "One or two?")
        self.assertFalse(json.loads(result.stdout)["acked"])
        self.assertEqual(self.called("/ack"), [])
        self.run_verb("ack", delivery()["id"], "--session", "shell")
        self.assertEqual(self.called("/ack"), [self.called("/claim")[0]])

    def test_ask_without_an_answer(self) -> None:
        """When the time is over the question stays open, and the status is 1."""
        self.service.answers |= {"POST /send": (200, SENT), "GET /pending": (200, {"deliveries": []})}
        result = self.run_verb("ask", "--session", "shell", "--wait", "0", "--json", "One or two?")
        answer = json.loads(result.stdout)
        self.assertEqual((result.exit_code, answer["error"], answer["sent"]), (1, "no_answer", SENT))

    def test_ask_whose_question_did_not_arrive(self) -> None:
        """A notice about it is no answer: it is said, taken over, and the status is 1."""
        notice = delivery(kind="notice", body="The mail could not be delivered.")
        self.service.answers |= {
            "POST /send": (200, SENT),
            "GET /pending": (200, {"deliveries": [notice]}),
            "POST /claim": (200, notice),
            "POST /ack": (200, {"acked": True}),
        }
        result = self.run_verb("ask", "--session", "shell", "One or two?")
        self.assertEqual(result.exit_code, 1)
        self.assertIn("The mail could not be delivered. (no_answer)", result.output)
        self.assertEqual(len(self.called("/ack")), 1)

    def test_ask_need_not_wait(self) -> None:
        """``--no-wait`` says what was sent."""
        self.service.answers["POST /send"] = (200, SENT)
        result = self.run_verb("ask", "--session", "shell", "--no-wait", "One or two?")
        self.assertEqual((result.exit_code, result.output), (0, "Asked: [mg:f913c9] Which?\n"))

    def test_wait_passes_by_what_another_has_claimed(self) -> None:
        """The first that can be claimed is taken, and what an agent reads is printed."""
        mine = delivery("m-" + "3" * 24)

        def claim(request: Request) -> tuple[int, Any]:
            if request.body["id"] == mine["id"]:
                return 200, mine
            return 409, {"error": "already_claimed", "message": "Somebody else has it."}

        self.service.answers |= {
            "GET /pending": (200, {"deliveries": [delivery(), mine]}),
            "POST /claim": claim,
            "POST /ack": (200, {"acked": True}),
        }
        result = self.run_verb("wait", "--session", "shell")
        self.assertEqual((result.exit_code, result.stdout), (0, "Robin answers: two, please\n"))
        self.assertEqual(self.called("/ack")[0]["id"], mine["id"])

    def test_inbox_lists_and_takes_nothing(self) -> None:
        """One row for each message, heads only over several, and no control characters from the mail."""
        rows = [delivery(body="\x1b]0;evil\x07hello"), delivery("m-" + "2" * 24)]
        self.service.answers["GET /pending"] = (200, {"deliveries": rows})
        lines = self.run_verb("inbox", "--session", "shell").output.splitlines()
        self.assertEqual(len(lines), 3)
        self.assertTrue(lines[0].startswith("ID"))
        self.assertNotIn("\x1b", lines[1])
        self.assertEqual(self.called("/claim"), [])
        self.service.answers["GET /pending"] = (200, {"deliveries": []})
        self.assertEqual(self.run_verb("inbox", "--session", "shell").output, "Nothing waits.\n")

    def test_ack_of_an_unknown_id(self) -> None:
        """Status 1 with the code, with or without a session."""
        self.service.answers["POST /claim"] = (404, {"error": "unknown", "message": "There is none."})
        result = self.run_verb("ack", "m-" + "0" * 24)
        self.assertEqual((result.exit_code, result.stderr), (1, "There is none. (unknown)\n"))

    def test_another_key_needs_a_safe_way(self) -> None:
        """A key of ``[keys]`` is not sent over plain HTTP, where nobody proves to be the service."""
        key = self.folder / "state" / "secret.key"
        result = self.run_verb("on", MAILGATEWAY_KEY_FILE=str(key))
        self.assertEqual(result.exit_code, 3)
        self.assertEqual(self.service.with_key, [])


class StartTests(SynchronousTestCase):
    """The command starts fast, because it imports nothing that the verb does not need."""

    def test_the_helps_of_the_list_are_those_of_the_verbs(self) -> None:
        """The list is written apart from the verbs, for speed: here they are held together."""
        context = click.Context(command)
        for name, (_, text) in VERBS.items():
            verb = command.get_command(context, name)
            assert verb is not None
            self.assertEqual(verb.get_short_help_str(100), text, name)

    def test_the_operations_guide_names_every_verb(self) -> None:
        """Each verb stands in ``docs/operations.md`` as it is typed."""
        guide = Path(__file__).parents[2] / "docs" / "operations.md"
        text = guide.read_text(encoding="utf-8")
        self.assertEqual([name for name in VERBS if f"`mailgateway {name}" not in text], [])

    def test_help_imports_no_verb(self) -> None:
        """``--help`` knows click alone; no verb but ``demo`` brings Twisted."""
        program = (
            "import sys; from mailgateway.cli.main import command\n"
            "try: command.main(['--help'])\n"
            "except SystemExit: pass\n"
            "import json; print(json.dumps(sorted(sys.modules)))"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        loaded = json.loads(done.stdout.splitlines()[-1])
        self.assertIn("Verbs:", done.stdout)
        heavy = {"twisted", "attrs", "http.client", "mailgateway.settings", "mailgateway.client"}
        self.assertEqual(heavy & set(loaded), set())

    def test_verbs_bring_no_twisted(self) -> None:
        """Status, ask and the others speak through the standard library."""
        modules = sorted({module for module, _ in VERBS.values()})
        program = "import sys\n" + "".join(f"import mailgateway.cli.{module}\n" for module in modules)
        program += "assert not {'twisted', 'sqlalchemy', 'cattrs'} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True)
