"""People's pages: the queue, one card and its answer, and the pages around them."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

from mailgateway.domain.people import MOST_LOGINS
from mailgateway.flows.inbox import HISTORY, QUEUE
from tests.http.case import ENVELOPE, MAIL, file
from tests.http.inbox_case import Browser, InboxCase, words_of
from tests.http.question_case import OPTIONS
from tests.http.rig import Answer, request


class PagesCase(InboxCase):
    """With the words for what people do."""

    def card(self, handle: dict[str, Any]) -> str:
        """The address of a card."""
        return f"/inbox/questions/{handle['questionId']}"

    def answered(self, handle: dict[str, Any], *values: str, **fields: str) -> Answer:
        """Answer on the page, as it was when the handle was made."""
        sent = {"revision": str(handle["revision"]), "act": "answer", **fields}
        return self.browser.send(self.card(handle), *(("choice", value) for value in values), *sent.items())

    def decide(self, subject: str, text: str, *options: str) -> dict[str, Any]:
        """The session asks by mail; it waits for the mail server's first word, and we do not."""
        body = {"kind": "decision", "sessionId": "s", "subject": subject, "text": text, "options": options}
        self.rig.connect().feed(request("POST", "/send", body))
        found = self.good("GET", "/questions?session=s&status=pending")["questions"]
        handle: dict[str, Any] = next(each for each in found if each["subject"] == subject)
        return handle

    def order(self) -> list[str]:
        """The questions of the queue, from the top."""
        page = self.browser.get("/inbox").body.decode()
        return re.findall(r'<li id="row-(q-[0-9a-f]+)"', page)


class QueueTests(PagesCase):
    """What waits, and in which order."""

    def test_nothing(self) -> None:
        """Said as of when, and no false tick."""
        self.assertIn("Nothing needs you.", self.browser.text("/inbox"))

    def test_urgency_then_age_and_families_together(self) -> None:
        """A family stands where its most urgent member does, children below their parents."""
        old = self.create(prompt="Old?")
        parent = self.create(prompt="Parent?", urgency="low")
        urgent = self.create(prompt="Urgent?", urgency="high")
        child = self.create(prompt="Child?", urgency="high", parentQuestionId=parent["questionId"])
        lazy = self.create(prompt="Lazy?", urgency="low")
        expected = [each["questionId"] for each in (urgent, parent, child, old, lazy)]
        self.assertEqual(self.order(), expected)
        self.assertIn("Part of the question above", self.browser.text("/inbox"))

    def test_the_page_is_bounded(self) -> None:
        """What is not shown is counted."""
        for number in range(QUEUE + 3):
            self.create(prompt=f"Number {number}?")
        self.assertEqual(len(self.order()), QUEUE)
        self.assertIn("3 more wait behind these", self.browser.text("/inbox"))

    def test_decisions_and_questions_alike(self) -> None:
        """What went out by mail is here, too, and says who asks from where."""
        self.ping("s", "i", title="Migration", project="api", branch="main", state="working")
        sent = self.decide("Keep it?", "Two use it.", "Yes", "No")
        self.create(prompt="Which one?")
        words = self.browser.text("/inbox")
        self.assertIn("Keep it?", words)
        self.assertIn("Which one?", words)
        self.assertIn("Migration · api · main · bench", words)
        card = self.browser.text(f"/inbox/questions/{sent['questionId']}")
        for word in ("Working", "Keep it?", "Two use it.", "Yes", "No"):
            self.assertIn(word, card)

    def test_a_row_alone(self) -> None:
        """What a script puts in place of the old one says how it ended."""
        handle = self.create()
        self.answer(handle, "sqlite")
        row = self.browser.get(f"/inbox/rows/{handle['questionId']}").body.decode()
        self.assertIn("Answered", row)
        self.assertIn("in the terminal", row)
        self.assertEqual(self.browser.get("/inbox/rows/q-none").status, 404)


class CardTests(PagesCase):
    """One question, and its answer."""

    def test_all_that_is_to_be_known(self) -> None:
        """In the order of a glance: who, what, what is unclear, what follows from what, the rest."""
        self.ping("s", "i", title="Migration", project="api")
        handle = self.create(
            prompt="Which database?\n\nWe have **one** host.\n\n```python\nx = 1\n```\n<b>raw</b>",
            options=[
                {**OPTIONS[0], "preview": "a  b"},
                {"value": "b", "label": "PostgreSQL"},
            ],
            expiresAt="2099-01-01T00:00:00Z",
        )
        page = self.browser.get(self.card(handle)).body.decode()
        words = words_of(self.browser.last)
        places = [
            words.index(each)
            for each in (
                "Migration",
                "Which database?",
                "How many hosts will write?",
                "SQLite",
                "One file.",
                "If chosen: One writer.",
                "Preview a b",
                "PostgreSQL",
                "None of these",
                "Note",
                "Can be answered until",
                "We have one host.",
                "<b>raw</b>",
            )
        ]
        self.assertEqual(places, sorted(places))
        self.assertIn('<span class="kn">1</span>', page)
        self.assertEqual(words.count("Which database?"), 1)

    def test_one_tap_and_a_button(self) -> None:
        """The answer goes by the one way of all doors, and its session reads it."""
        handle = self.create()
        answer = self.answered(handle, "sqlite", note="Small is fine.")
        self.assertEqual((answer.status, answer.headers["location"]), (303, self.card(handle)))
        words = self.browser.text(self.card(handle))
        self.assertIn(
            "Answered by robin@example.org in the web inbox , just now SQLite Small is fine.", words
        )
        self.assertIn("Not yet read by the session.", words)
        read = self.read(handle).json
        self.assertEqual((read["answer"], read["note"]), (["sqlite"], "Small is fine."))
        self.assertIn("Read by the session just now", self.browser.text(self.card(handle)))
        history = self.good("GET", f"/questions/{handle['questionId']}/history?session=s")
        self.assertEqual(history["history"][-1]["door"], "web")

    def test_sent_twice(self) -> None:
        """A second tap is no loser: it shows the same end, and changes nothing."""
        handle = self.create()
        self.assertEqual(self.answered(handle, "sqlite").status, 303)
        self.assertEqual(self.answered(handle, "sqlite").status, 303)
        self.assertEqual(self.answered(handle, "postgres").status, 409)

    def test_the_loser_sees_who_won(self) -> None:
        """By whom, by which door, when; the note is not lost."""
        handle = self.create()
        self.answer(handle, "postgres")
        answer = self.answered(handle, "sqlite", note="my long note")
        self.assertEqual(answer.status, 409)
        words = words_of(answer)
        lost = "Your note was not sent: my long note"
        for word in ("answered before yours came", "in the terminal", "just now", "PostgreSQL", lost):
            self.assertIn(word, words)
        self.assertEqual(self.read(handle).json["answer"], ["postgres"])

    def test_a_changed_question(self) -> None:
        """The new text is shown, the note is kept, nothing is answered; the next try works."""
        handle = self.create()
        text = {"prompt": "Which database now?", "ambiguity": "x", "options": OPTIONS}
        changed = self.changed("revise", handle, **text)
        answer = self.answered(handle, "sqlite", note="keep me")
        self.assertEqual(answer.status, 409)
        words = words_of(answer)
        for word in ("Which database now?", "has changed meanwhile", "keep me"):
            self.assertIn(word, words)
        self.assertNotIn(" checked", answer.body.decode())
        self.assertEqual(self.answered(changed, "sqlite").status, 303)

    def test_other_options(self) -> None:
        """What was chosen is not offered any more: that has changed, and is no mistake of the person's."""
        handle = self.create()
        self.changed("revise", handle, prompt="And now?", ambiguity="x", options=[OPTIONS[1]])
        for values in (("sqlite",), ()):
            answer = self.answered(handle, *values, note="keep me")
            self.assertEqual(answer.status, 409)
            self.assertIn("has changed meanwhile", words_of(answer))

    def test_no_answer_is_told_kindly(self) -> None:
        """Nothing chosen, too much, something that is not offered: said what to do, the words are kept."""
        handle = self.create()
        for values, note, word in (
            ((), "", "Choose one of the options"),
            (("other",), "", "Say in the note"),
            (("sqlite", "postgres"), "kept", "only one"),
            (("mysql",), "kept", "none of the options"),
        ):
            answer = self.answered(handle, *values, note=note)
            self.assertEqual(answer.status, 400, values)
            self.assertIn(word, words_of(answer))
            self.assertIn(note, words_of(answer))
        self.assertEqual(self.answered(handle, "sqlite", note="x" * 10_001).status, 400)
        self.assertEqual(self.answered(handle, "sqlite", revision="no number").status, 400)
        self.assertEqual(self.answered(handle, "sqlite", act="").status, 400)
        self.assertIn(b'id="card"', self.browser.last.body)
        self.assertEqual(self.answered(handle, "sqlite", revision="9" * 30).status, 400)
        self.assertEqual(self.read(handle).json["type"], "pending")

    def test_own_words(self) -> None:
        """A note without a choice is an answer, to a question and to a decision."""
        handle = self.create()
        self.assertEqual(self.answered(handle, note="Ask Kim.").status, 303)
        read = self.read(handle).json
        self.assertEqual((read["answer"], read["note"]), (["other"], "Ask Kim."))
        decision = self.decide("Name?", "?")
        self.assertEqual(self.answered(decision).status, 400)
        self.assertEqual(self.answered(decision, note="mailgateway").status, 303)
        delivered = self.good("GET", "/pending?session=s&kind=user")["deliveries"]
        self.assertEqual([each["body"] for each in delivered], ["mailgateway"])

    def test_several_options(self) -> None:
        """Where the question takes several."""
        handle = self.create(mode="multi")
        self.assertIn('type="checkbox"', self.browser.get(self.card(handle)).body.decode())
        self.assertEqual(self.answered(handle, "postgres", "sqlite").status, 303)
        self.assertEqual(set(self.read(handle).json["answer"]), {"sqlite", "postgres"})

    def test_an_end_without_an_answer(self) -> None:
        """The session hears of it, with the note."""
        handle = self.create()
        self.assertEqual(self.answered(handle, act="cancel", note="Not now.").status, 303)
        self.assertEqual(self.read(handle).json["status"], "cancelled")
        self.assertIn("Cancelled", self.browser.text(self.card(handle)))
        self.assertEqual(self.answered(handle, "sqlite").status, 409)

    def test_what_is_over_takes_no_answer(self) -> None:
        """A time that has passed, and what never was."""
        handle = self.create(expiresAt="2098-01-01T00:00:00Z")
        self.rig.database.offset = timedelta(days=365 * 80)
        browser = self.logged_in()
        answer = browser.send(self.card(handle), ("revision", "1"), ("choice", "sqlite"), ("act", "answer"))
        self.assertEqual(answer.status, 409)
        self.assertIn("Expired", words_of(answer))
        self.assertEqual(browser.get("/inbox/questions/q-none").status, 404)


class LiveTests(PagesCase):
    """What other devices hear."""

    def listen(self, browser: Browser) -> Any:
        """Open the live events of a browser."""
        client = self.rig.connect()
        client.feed(request("GET", "/inbox/events", key=None, headers={"Cookie": browser.cookie}))
        return client

    def test_all_devices_hear_of_an_answer(self) -> None:
        """By its id alone; nobody who is not logged in hears anything."""
        listening = [self.listen(self.logged_in()) for _ in range(3)]
        stranger = self.listen(Browser(self.rig, cookie="mailgateway=" + "A" * 43))
        self.assertIn(b" 401 ", stranger.text())
        handle = self.create()
        self.answered(handle, "sqlite", note="secret words")
        for client in listening:
            told = client.text()
            self.assertIn(b"text/event-stream", told)
            self.assertGreaterEqual(told.count(b"event: question"), 2)
            self.assertIn(handle["questionId"].encode(), told)
            self.assertNotIn(b"secret words", told)
            client.hang_up()
        self.assertEqual(self.rig.doors.connections.streams, 0)

    def test_there_are_not_endlessly_many(self) -> None:
        """One login has so many, all together so many; over it the page says what is the matter."""
        clients = [self.listen(self.browser) for _ in range(26)]
        self.assertIn(b" 429 ", clients[-1].text())
        for client in clients[:-1]:
            client.hang_up()
        self.assertLess(MOST_LOGINS, 101)


class AroundTests(PagesCase):
    """Sessions, history, mails, settings."""

    def test_sessions_have_states_and_names(self) -> None:
        """By a word beside the dot; a name of the person's stands everywhere, and can be taken back."""
        self.ping("s", "i", title="Own title", state="working", harness="pi")
        self.assertIn("Working · Own title", self.browser.text("/inbox/sessions"))
        self.assertEqual(
            self.browser.send("/inbox/sessions", ("session", "s"), ("name", "  My\nname ")).status, 303
        )
        self.create()
        self.assertIn("My name", self.browser.text("/inbox"))
        self.browser.send("/inbox/sessions", ("session", "s"), ("name", ""))
        self.assertIn("Own title", self.browser.text("/inbox"))
        self.assertEqual(self.browser.send("/inbox/sessions", ("session", "none"), ("name", "x")).status, 404)
        long = self.browser.send("/inbox/sessions", ("session", "s"), ("name", "x" * 101))
        self.assertEqual(long.status, 400)

    def test_a_session_that_waits(self) -> None:
        """Is shown as one that waits for the person."""
        self.create()
        client = self.rig.connect()
        client.feed(request("POST", "/wait?wait=30", {"sessionId": "s", "instanceId": "i"}))
        self.assertIn("Waits for you", self.browser.text("/inbox/sessions"))
        client.hang_up()

    def test_history_and_its_search(self) -> None:
        """By words of the question, the answer, the session; page by page."""
        for number in range(HISTORY + 2):
            self.answered(self.create(prompt=f"Number {number}?"), "sqlite", note=f"because {number}")
        words = self.browser.text("/inbox/history")
        self.assertIn(f"Number {HISTORY + 1}?", words)
        self.assertNotIn("Number 0?", words)
        page = self.browser.get("/inbox/history").body.decode()
        older = re.search(r'href="(/inbox/history\?status=answered[^"]*cursor=[^"]+)"', page)
        assert older is not None
        self.assertIn("Number 0?", self.browser.text(unescape(older[1])))
        self.assertIn("Number 7?", self.browser.text("/inbox/history?q=because+7"))
        self.assertIn("Nothing holds all these words", self.browser.text("/inbox/history?q=nowhere"))
        self.assertIn("Nothing has ended so", self.browser.text("/inbox/history?status=expired"))
        self.assertEqual(self.browser.get("/inbox/history?status=x").status, 400)
        self.assertEqual(self.browser.get("/inbox/history?cursor=x").status, 400)

    def test_mails(self) -> None:
        """What waits for a session, with its files, and what a session has written."""
        file(self.rig)
        self.good("POST", "/send", {**MAIL, "subject": "Built"})
        words = self.browser.text("/inbox/mail")
        for word in ("(1)", ENVELOPE.subject, "from Robin", "Built", "queued"):
            self.assertIn(word, words)

    def test_a_persons_off(self) -> None:
        """Only a person undoes it; the queue says so."""
        self.assertEqual(self.browser.send("/inbox/mode", ("mode", "off")).status, 303)
        self.assertIn("is off", self.browser.text("/inbox/settings"))
        self.assertIn("The gateway is off", self.browser.text("/inbox"))
        self.refused(self.ask("POST", "/mode", {"mode": "on"}), 403, "person_required")
        self.assertEqual(self.browser.send("/inbox/mode", ("mode", "maybe")).status, 400)
        self.assertEqual(self.browser.send("/inbox/mode", ("mode", "on")).status, 303)
        self.assertEqual(self.ask("GET", "/mode").json["mode"], "on")
