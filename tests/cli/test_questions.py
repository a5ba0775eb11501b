"""The verbs of questions: what a person sees, says and ends, what a session waits for, and the log."""

import json
from typing import Any

from mailgateway.cli.questions import wait_for_questions
from mailgateway.client import ApiRefused, ServiceUnreachable
from mailgateway.domain.decision_log import Act, LogEntry
from mailgateway.ids import MachineId, QuestionId
from mailgateway.secrets import PERSON_KEY
from mailgateway.shapes import rfc3339
from tests.cli.verbs import VerbCase
from tests.client.stand_in import KEY, Request
from tests.http.case import AT

Q1, Q2 = "q-" + "1" * 24, "q-" + "2" * 24
WHOLE: dict[str, Any] = {
    "questionId": Q1,
    "revision": 3,
    "ownerRevision": 1,
    "status": "pending",
    "owner": "build",
    "creator": "build",
    "kind": "question",
    "subject": "Which database?",
    "prompt": "Which database?",
    "ambiguity": "How many hosts write?",
    "options": [
        {"value": "sqlite", "label": "SQLite", "description": "One file.", "impact": "", "preview": ""},
        {"value": "postgres", "label": "PostgreSQL", "description": "", "impact": "", "preview": ""},
    ],
    "mode": "single",
    "urgency": "high",
    "createdAt": "2026-11-30T12:00:00Z",
    "source": {"path": "", "leaf": ""},
}
ANSWERED = {"answerId": "n-1", "questionId": Q1, "openDescendants": []}


class PersonCase(VerbCase):
    """A person at a terminal, and one question that waits."""

    def setUp(self) -> None:
        super().setUp()
        key = self.folder / "state" / PERSON_KEY
        key.write_text("ab" * 32 + "\n")
        key.chmod(0o600)
        self.waiting: list[dict[str, Any]] = [WHOLE]
        self.service.answers["GET /questions"] = self._list
        self.service.answers[f"GET /questions/{Q1}"] = (200, WHOLE)
        self.service.answers[f"POST /questions/{Q1}/answer"] = (200, ANSWERED)
        self.service.answers[f"POST /questions/{Q1}/cancel"] = (200, {**WHOLE, "status": "cancelled"})

    def _list(self, request: Request) -> tuple[int, Any]:
        """Two pages, as long as there is more than one question."""
        if len(self.waiting) > 1 and "cursor=" not in request.path:
            return 200, {"questions": self.waiting[:1], "nextCursor": "more"}
        return 200, {"questions": self.waiting[1:] or self.waiting}

    def failed(self, code: str, *words: str) -> str:
        """The verb fails with this code; what it says."""
        result = self.run_verb(*words)
        self.assertEqual(result.exit_code, 1, result.output)
        self.assertIn(f"({code})", result.stderr)
        return str(result.stderr)


class QuestionsTests(PersonCase):
    """Looking."""

    def test_a_list_is_every_page(self) -> None:
        """With who asks, how urgent it is, and the first words."""
        self.waiting.append({**WHOLE, "questionId": Q2, "subject": "Which \x1b[2Jport?"})
        result = self.run_verb("questions")
        self.assertEqual(result.exit_code, 0, result.output)
        for word in (Q1, Q2, "high", "build", "Which database?", "Which [2Jport?"):
            self.assertIn(word, result.output)
        self.assertIn("scope=global", self.service.requests[-1].path)
        found = json.loads(self.run_verb("questions", "--json").stdout)["questions"]
        self.assertEqual([each["questionId"] for each in found], [Q1, Q2])
        self.waiting[:] = []
        self.assertIn("Nothing waits.", self.run_verb("questions").output)

    def test_one_question_is_shown_whole(self) -> None:
        """By the beginning of its id; with its options by number and value."""
        result = self.run_verb("questions", "q-11")
        for word in (
            "Which database?",
            "How many hosts write?",
            "1. SQLite (sqlite)",
            "One file.",
            "2. Post",
        ):
            self.assertIn(word, result.output)

    def test_a_session_sees_its_own_and_reads(self) -> None:
        """Reading is noted, so it is asked for by name."""
        self.service.answers[f"GET /questions/{Q1}/answer"] = (
            200,
            {"type": "answer", "questionId": Q1, "answerId": "n-1", "answer": ["sqlite"], "note": "Simple."},
        )
        self.assertIn("Which", self.run_verb("questions", "--session", "s").output)
        self.assertIn("session=s", self.service.requests[-1].path)
        self.assertNotIn("scope", self.service.requests[-1].path)
        result = self.run_verb("questions", Q1, "--answer", "--session", "s")
        self.assertEqual(result.output, "Answer: sqlite\nNote: Simple.\n")
        self.assertEqual(self.service.requests[-1].headers["authorization"], f"Bearer {KEY}")


class AnswerTests(PersonCase):
    """Saying."""

    def said(self, *words: str) -> list[str]:
        """The values that an answer in these words selects."""
        result = self.run_verb("answer", *words)
        self.assertEqual(result.exit_code, 0, result.output)
        body = self.called(f"/questions/{Q1}/answer")[-1]
        self.assertEqual(body["expectedRevision"], 3)
        values: list[str] = body["selectedValues"]
        return values

    def test_values_labels_numbers_and_letters(self) -> None:
        """As in a mail; with the person's key, and the revision that was shown."""
        for word in ("sqlite", "SQLite", "1", "a"):
            self.assertEqual(self.said(word), ["sqlite"], word)
        self.assertEqual(self.said("q-1111", "2", "--note", "Two hosts."), ["postgres"])
        self.assertEqual(self.called(f"/questions/{Q1}/answer")[-1]["note"], "Two hosts.")
        self.assertEqual(self.said("other", "--note", "Neither."), ["other"])
        self.assertEqual(self.service.requests[-1].headers["authorization"], f"Bearer {'ab' * 32}")

    def test_what_is_no_option_is_not_sent(self) -> None:
        """The options are shown again."""
        for words in (("3",), ("mysql",), ("sqlite", "postgres")):
            self.assertIn("1. SQLite", self.failed("invalid_selection", "answer", *words))
        self.assertEqual(self.called(f"/questions/{Q1}/answer"), [])

    def test_several_values_where_the_question_takes_several(self) -> None:
        """Each as it likes."""
        self.service.answers[f"GET /questions/{Q1}"] = (200, {**WHOLE, "mode": "multi"})
        self.assertEqual(self.said("1", "2"), ["sqlite", "postgres"])
        self.assertEqual(self.said("postgres", "sqlite"), ["postgres", "sqlite"])

    def test_words_where_there_are_no_options(self) -> None:
        """A decision that was asked without any."""
        self.service.answers[f"GET /questions/{Q1}"] = (200, {**WHOLE, "kind": "decision", "options": []})
        self.assertEqual(self.said("call", "it", "Hazel"), [])
        self.assertEqual(self.called(f"/questions/{Q1}/answer")[-1]["note"], "call it Hazel")

    def test_the_id_may_be_left_out_for_one_question_alone(self) -> None:
        """Of several, the ids are named; of none, that is said."""
        self.waiting.append({**WHOLE, "questionId": "q-1" + "2" * 23})
        for words in (("answer", "1"), ("cancel",), ("answer", "q-1", "1")):
            self.assertIn(Q1, self.failed("ambiguous_id", *words))
        self.waiting[:] = []
        self.failed("unknown", "answer", "1")
        self.failed("unknown", "cancel", "q-1")

    def test_the_loser_is_told(self) -> None:
        """In the words of the service, with what a program needs."""
        lost = {
            "error": "already_resolved",
            "message": "Kim was first.",
            "by": "kim",
            "door": "web",
            "at": "x",
        }
        self.service.answers[f"POST /questions/{Q1}/answer"] = (409, lost)
        self.assertIn("Kim was first.", self.failed("already_resolved", "answer", "1"))
        result = self.run_verb("answer", "1", "--json")
        self.assertEqual(json.loads(result.stdout)["door"], "web")

    def test_cancel(self) -> None:
        """With a word why."""
        result = self.run_verb("cancel", "--note", "Not now.")
        self.assertEqual((result.exit_code, result.output), (0, "Cancelled: Which database?\n"))
        expected = [{"expectedRevision": 3, "note": "Not now."}]
        self.assertEqual(self.called(f"/questions/{Q1}/cancel"), expected)

    def test_nothing_to_say_is_a_usage_error(self) -> None:
        """An id alone answers nothing."""
        self.assertEqual(self.run_verb("answer", Q1).exit_code, 2)
        self.assertEqual(self.run_verb("answer").exit_code, 2)


class WaitTests(VerbCase):
    """``wait --questions``."""

    def test_what_has_ended_is_named(self) -> None:
        """And how to read it; nothing is taken."""
        self.service.answers["POST /wait"] = (200, {"type": "answer", "questionId": Q1})
        result = self.run_verb("wait", "--questions", "--session", "s")
        self.assertEqual(result.exit_code, 0, result.output)
        self.assertIn(f"mailgateway questions {Q1} --answer", result.output)
        answer = self.run_verb("wait", "--questions", "--session", "s", "--json").stdout
        self.assertEqual(json.loads(answer), {"type": "answer", "questionId": Q1})

    def test_nothing_open_and_nothing_in_time_are_told_apart(self) -> None:
        """Both with status 1."""
        for kind, code in (
            ("no_actionable_questions", "no_actionable_questions"),
            ("timeout", "nothing_came"),
        ):
            self.service.answers["POST /wait"] = (200, {"type": kind})
            result = self.run_verb("wait", "--questions", "--session", "s", "--wait", "0")
            self.assertEqual(result.exit_code, 1)
            self.assertIn(f"({code})", result.stderr)

    def test_the_service_may_be_away_for_a_while(self) -> None:
        """A restart, and a wait that the service has not given up yet, are waited through; not for ever."""

        class Away:
            """A client whose service comes back at the sixth call."""

            calls = 0
            for_good = False

            def ping(self, _session: str, _instance: str) -> None:
                """Say that the session lives."""

            def wait_for_question(self, _session: str, _instance: str, seconds: float) -> dict[str, Any]:
                """Fail in every way that passes."""
                self.calls += 1
                clock[0] += 1
                if self.for_good or self.calls < 3:
                    raise ServiceUnreachable("away")
                if self.calls < 5:
                    raise ApiRefused("wait_already_active", "it waits", 409, {})
                clock[0] += seconds
                return {"type": "timeout"} if self.calls < 7 else {"type": "answer", "questionId": Q1}

        clock = [0.0]

        def wait(client: Any, seconds: float) -> dict[str, Any]:
            return wait_for_questions(
                client,
                "s",
                "i",
                seconds=seconds,
                clock=lambda: clock[0],
                sleep=lambda pause: clock.__setitem__(0, clock[0] + pause),
            )

        self.assertEqual(wait(Away(), 3600)["questionId"], Q1)
        self.assertEqual(wait(Away(), 20), {"type": "timeout"})
        gone = Away()
        gone.for_good = True
        self.assertRaises(ServiceUnreachable, wait, gone, 3600)


def chain(number: int) -> list[dict[str, Any]]:
    """So many entries of a log, as the service gives them."""
    lines = []
    digest = ""
    for each in range(1, number + 1):
        entry = LogEntry(
            machine_id=MachineId("m"),
            number=each,
            question_id=QuestionId(Q1),
            act=Act.REVISED,
            revision=each,
            owner_revision=1,
            by="build",
            door="session",
            at=AT,
            details={"content": "c0ffee"},
        ).chained(digest)
        digest = entry.digest
        lines.append(
            {
                "machineId": "m",
                "number": each,
                "questionId": Q1,
                "act": "revised",
                "revision": each,
                "ownerRevision": 1,
                "by": "build",
                "door": "session",
                "at": rfc3339(AT),
                "details": {"content": "c0ffee"},
                "digest": digest,
            }
        )
    return lines


class LogTests(VerbCase):
    """``log``."""

    def setUp(self) -> None:
        super().setUp()
        self.lines = chain(7)
        self.last = 7
        self.service.answers["GET /log"] = self._page

    def _page(self, request: Request) -> tuple[int, Any]:
        after = int(request.path.partition("after=")[2])
        page = [each for each in self.lines if each["number"] > after][:3]
        return 200, {"machines": [{"machineId": "m", "number": self.last}], "entries": page}

    def verified(self, *words: str) -> Any:
        """What ``log verify`` says."""
        return json.loads(self.run_verb("log", "verify", "--json", *words).stdout)

    def test_a_chain_that_holds(self) -> None:
        """Its end is printed, to be noted."""
        result = self.run_verb("log", "verify")
        self.assertEqual(result.exit_code, 0, result.output)
        noted = f"m:7:{self.lines[-1]['digest']}"
        self.assertIn(noted, result.output)
        self.assertNotIn("error", self.verified("--noted", noted))
        self.assertEqual(self.run_verb("log", "verify", "--noted", "nonsense").exit_code, 2)

    def test_whatever_is_touched_is_found(self) -> None:
        """A field, a line taken out, two exchanged, the end cut off, a whole new chain."""
        noted = f"m:7:{self.lines[-1]['digest']}"
        for name, value in (
            ("by", "mallory"),
            ("door", "mail"),
            ("act", "answered"),
            ("revision", 9),
            ("ownerRevision", 9),
            ("questionId", Q2),
            ("at", "2026-01-02T03:04:05.678901Z"),
            ("details", {}),
            ("digest", "0" * 64),
        ):
            self.lines = chain(7)
            self.lines[3][name] = value
            broken = self.verified()
            self.assertEqual((broken["error"], broken["machines"][0]["broken"]["number"]), ("log_broken", 4))
        self.lines = chain(7)
        del self.lines[3]
        self.assertEqual(self.verified()["machines"][0]["broken"]["number"], 4)
        self.lines = chain(5)
        self.assertEqual(self.verified()["error"], "log_broken")
        self.last = 5
        self.assertNotIn("error", self.verified())
        self.assertEqual(self.verified("--noted", noted)["error"], "log_broken")
        self.lines, self.last = chain(8), 8
        self.assertNotIn("error", self.verified("--noted", noted))
        self.assertEqual(self.verified("--noted", f"m:7:{'0' * 64}")["error"], "log_broken")
        self.assertEqual(self.verified("--noted", f"gone:7:{'0' * 64}")["error"], "log_broken")

    def test_show(self) -> None:
        """One line for each entry, all pages."""
        result = self.run_verb("log", "show")
        self.assertEqual(len(result.output.splitlines()), 8)
        self.assertIn("revised", result.output)
        self.assertEqual(len(json.loads(self.run_verb("log", "show", "--json").stdout)["entries"]), 7)
