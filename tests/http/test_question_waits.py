"""Sessions that wait for their questions, and what the stream of events tells of it."""

import re
from typing import Any

from mailgateway.domain.question import QuestionEvent
from mailgateway.flows.resolve import end
from mailgateway.ids import QuestionId
from mailgateway.store import questions
from mailgateway.store.database import Tx
from tests.http.question_case import QuestionCase
from tests.http.rig import BOUND, PERSON, Client, done, request

WHO = {"sessionId": "s", "instanceId": "i"}


class WaitTests(QuestionCase):
    """``POST /wait``."""

    def wait(self, seconds: float = 60, session: str = "s", instance: str = "i") -> Client:
        """Begin to wait."""
        client = self.rig.connect()
        body = {"sessionId": session, "instanceId": instance}
        client.feed(request("POST", f"/wait?wait={seconds:g}", body))
        return client

    def woken(self, client: Client) -> Any:
        """What has ended a wait; it must have ended."""
        answer = client.answer()
        assert answer is not None, "it waits"
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_an_answer_ends_a_wait(self) -> None:
        """At once, with the id alone; and again at once until it was read."""
        handle = self.create()
        client = self.wait()
        self.assertIsNone(client.answer())
        self.answer(handle, "sqlite")
        expected = {"type": "answer", "questionId": handle["questionId"]}
        self.assertEqual(self.woken(client), expected)
        self.assertEqual(self.woken(self.wait()), expected)
        self.read(handle)
        self.assertEqual(self.woken(self.wait()), {"type": "no_actionable_questions"})

    def test_other_endings_end_it_too(self) -> None:
        """A person's cancel, an expiry; not what the session has done itself."""
        handle, other, own = self.create(), self.create(), self.create()
        client = self.wait()
        self.changed("cancel", own)
        self.assertIsNone(client.answer())
        path = f"/questions/{handle['questionId']}/cancel"
        self.good("POST", path, {"expectedRevision": 1}, key=PERSON)
        self.assertEqual(self.woken(client), {"type": "lifecycle", "questionId": handle["questionId"]})
        self.read(handle)

        def expire(tx: Tx) -> Any:
            found = questions.find(tx, QuestionId(other["questionId"]))
            assert found is not None
            return end(tx, found, QuestionEvent.EXPIRE)[1]

        client = self.wait()
        self.rig.bell.ring(*self.rig.database.now(expire))
        self.assertEqual(self.woken(client), {"type": "lifecycle", "questionId": other["questionId"]})

    def test_nothing_comes_in_time(self) -> None:
        """A wait has its end, and none at all is possible."""
        self.create()
        client = self.wait(5)
        self.rig.clock.advance(4.9)
        self.assertIsNone(client.answer())
        self.rig.clock.advance(0.2)
        self.assertEqual(self.woken(client), {"type": "timeout"})
        self.assertEqual(self.woken(self.wait(0)), {"type": "timeout"})

    def test_what_stands_above_comes_before_what_is_older(self) -> None:
        """Ancestor, descendant, then the oldest; other families in the order of their ends."""
        root = self.create()
        child = self.create(parentQuestionId=root["questionId"])
        other = self.create()
        grandchild = self.create(parentQuestionId=child["questionId"])
        for handle in (grandchild, other, root):
            self.answer(handle, "sqlite")
            self.rig.database.advance(seconds=1)
        order = []
        for _ in range(3):
            ended = self.woken(self.wait())["questionId"]
            order.append(ended)
            self.read({"questionId": ended})
        self.assertEqual(order, [each["questionId"] for each in (root, grandchild, other)])

    def test_one_wait_at_a_time(self) -> None:
        """The second is refused; the first goes on; another session waits beside it."""
        handle = self.create()
        self.create(sessionId="t", instanceId="j")
        first, theirs = self.wait(), self.wait(session="t", instance="j")
        self.refused(self.ask("POST", "/wait?wait=5", WHO), 409, "wait_already_active")
        self.answer(handle, "sqlite")
        self.assertEqual(self.woken(first)["type"], "answer")
        self.assertIsNone(theirs.answer())
        self.assertEqual(self.woken(self.wait())["type"], "answer")

    def test_a_client_that_goes_ends_its_wait_and_nothing_else(self) -> None:
        """The question stays open, and another wait may begin at once."""
        handle = self.create()
        self.wait().hang_up()
        client = self.wait()
        self.assertIsNone(client.answer())
        self.assertEqual(self.read(handle).json["type"], "pending")
        self.answer(handle, "sqlite")
        self.assertEqual(self.woken(client)["type"], "answer")
        self.assertEqual(self.rig.bell.tickets, ())

    def test_a_service_that_stops_lets_it_go(self) -> None:
        """Without a word of an end that did not happen."""
        self.create()
        client = self.wait()
        done(_closing(self.rig.doors))
        self.assertEqual(self.woken(client), {"type": "timeout"})

    def test_foreign_waits_are_refused(self) -> None:
        """By instance and by key; the session is not blocked by that."""
        self.create()
        self.refused(self.ask("POST", "/wait", {**WHO, "instanceId": "j"}), 403, "not_yours")
        self.refused(self.ask("POST", "/wait", WHO, key=BOUND), 403, "not_yours")
        self.assertIsNone(self.wait().answer())

    def test_decisions_are_not_waited_for_here(self) -> None:
        """Their answers are deliveries."""
        client = self.rig.connect()
        mail = {"kind": "decision", "sessionId": "s", "subject": "DB", "text": "Which?"}
        client.feed(request("POST", "/send", mail))
        self.assertEqual(self.woken(self.wait()), {"type": "no_actionable_questions"})


async def _closing(doors: Any) -> None:
    doors.close()


class EventTests(QuestionCase):
    """What a subscriber hears: ids only."""

    def setUp(self) -> None:
        super().setUp()
        self.stream = self.rig.connect()
        self.stream.feed(request("GET", "/events?session=s"))

    def heard(self) -> list[tuple[str, str]]:
        """Kinds and ids since the last look."""
        text = self.stream.text().decode()
        self.stream.taken += len(text)
        self.assertNotIn("database", text)
        self.assertNotIn("sqlite", text)
        return re.findall(r'event: (\w+)\ndata: {"id": "([^"]*)", "sessionId": "s"}\n', text)

    def test_every_change_is_told(self) -> None:
        """Asked, revised, answered with its notice, read; once each, and a repeated request not at all."""
        handle = self.create(requestId="r")
        name = handle["questionId"]
        self.assertEqual(self.heard(), [("question", name)])
        self.create(requestId="r")
        self.answer(handle, "mysql")
        self.answer(handle, "sqlite", expectedRevision=9)
        self.assertEqual(self.heard(), [])
        text = {"prompt": "New?", "ambiguity": "x", "options": [{"value": "sqlite", "label": "SQLite"}]}
        handle = self.changed("revise", handle, **text)
        self.assertEqual(self.heard(), [("question", name)])
        self.answer(handle, "sqlite")
        (delivery,) = self.good("GET", "/pending?session=s")["deliveries"]
        self.assertEqual(self.heard(), [("question", name), ("delivery", delivery["id"])])
        self.read(handle)
        self.read(handle)
        self.assertEqual(self.heard(), [("question", name)])

    def test_both_owners_hear_of_a_transfer(self) -> None:
        """The old one, that it is not theirs any more."""
        other = self.rig.connect()
        other.feed(request("GET", "/events?session=t"))
        handle = self.create()
        self.heard()
        self.changed("transfer", handle, expectedOwner="s", owner="t")
        self.assertEqual(self.heard(), [("question", handle["questionId"])])
        self.assertIn(handle["questionId"].encode(), other.text())

    def test_a_session_that_waits_is_blocked(self) -> None:
        """It is told when that begins and when it ends, and only then."""
        handle = self.create()
        self.heard()
        client = self.rig.connect()
        client.feed(request("POST", "/wait?wait=60", WHO))
        self.assertEqual(self.heard(), [("session", "s")])
        self.assertIn("s", self.rig.doors.questions.waits)
        self.refused(self.ask("POST", "/wait?wait=5", WHO), 409, "wait_already_active")
        self.assertEqual(self.heard(), [])
        self.answer(handle, "sqlite")
        self.assertEqual([each for each in self.heard() if each[0] == "session"], [("session", "s")])
        self.assertNotIn("s", self.rig.doors.questions.waits)
