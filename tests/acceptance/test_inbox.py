"""People's pages in a real browser: by mouse, by keys, with a thumb, and without scripts."""

from pathlib import Path
from typing import Any

from tests.acceptance.inbox_world import OPTIONS, PHONE, InboxTestCase
from tests.fakes.dovecot import eventually


class AnswerTests(InboxTestCase):
    """One question, answered in every way."""

    def answered_with(self, handle: dict[str, Any], *values: str, note: str | None = None) -> None:
        """The session reads this answer."""
        read = self.read_answer(handle)
        self.assertEqual((read["type"], tuple(read["answer"]), read.get("note")), ("answer", values, note))

    def test_by_mouse(self) -> None:
        """From the queue to the card, an option, a note, a button; the page says what has happened."""
        handle = self.ask_question()
        with self.window() as page:
            page.get_by_role("link", name="Which database?").click()
            page.get_by_text("PostgreSQL").click()
            page.locator("#note").fill("With backups.")
            page.get_by_role("button", name="Answer", exact=True).click()
            page.get_by_text("Not yet read by the session.").wait_for()
            self.assertIn("in the web inbox", page.locator(".outcome").inner_text())
            self.assertEqual(page.evaluate("document.activeElement.id"), "asked")
            self.answered_with(handle, "postgres", note="With backups.")
            page.get_by_text("Read by the session").wait_for()
            page.get_by_role("link", name="All questions").click()
            page.get_by_text("Nothing needs you.").wait_for()

    def test_by_keys_alone(self) -> None:
        """Tab, arrows, blank and Enter, from the first page on; where one is, is always seen."""
        handle = self.ask_question()
        with self.window() as page:
            self.tab_to(page, "a.asked")
            page.keyboard.press("Enter")
            page.wait_for_url("**/questions/*")
            self.tab_to(page, "input[name=choice]")
            page.keyboard.press("ArrowDown")
            self.assertTrue(page.locator("#choice-2").is_checked())
            outline = page.evaluate(
                "getComputedStyle(document.activeElement.closest('.option')).outlineStyle"
            )
            self.assertEqual(outline, "solid")
            self.tab_to(page, "#note")
            page.keyboard.type("Typed.")
            self.tab_to(page, "button.main")
            page.keyboard.press("Enter")
            page.get_by_text("Not yet read by the session.").wait_for()
        self.answered_with(handle, "postgres", note="Typed.")

    def tab_to(self, page: Any, selector: str) -> None:
        """Press Tab until the focus is there."""
        for _ in range(30):
            page.keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"no way to {selector} by keys")

    def test_with_a_thumb(self) -> None:
        """At 360 pixels nothing lies outside of the screen, and all that is tapped is large enough."""
        handle = self.ask_question(prompt=f"Which database? {'x' * 200}")
        with self.window(viewport=PHONE, has_touch=True, is_mobile=True) as page:
            for path in ("/inbox", f"/inbox/questions/{handle['questionId']}", "/inbox/sessions"):
                page.goto(path)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), 360, path)
                small = page.evaluate(SMALL)
                self.assertEqual(small, [], path)
            page.goto(f"/inbox/questions/{handle['questionId']}")
            page.get_by_text("SQLite").tap()
            page.get_by_role("button", name="Answer", exact=True).tap()
            page.get_by_text("Not yet read by the session.").wait_for()
        self.answered_with(handle, "sqlite")

    def test_without_scripts(self) -> None:
        """Logging in, answering and losing work by forms alone."""
        handle, other = self.ask_question(), self.ask_question("Which cache?")
        with self.window(java_script_enabled=False) as page:
            page.get_by_role("link", name="Which database?").click()
            page.get_by_text("SQLite").click()
            page.get_by_role("button", name="Answer", exact=True).click()
            page.get_by_text("Not yet read by the session.").wait_for()
            self.answered_with(handle, "sqlite")
            page.goto(f"/inbox/questions/{other['questionId']}")
            page.get_by_text("SQLite").click()
            page.locator("#note").fill("mine")
            with self.person_client() as client:
                client.answer_question(other["questionId"], 1, ["postgres"], None)
            page.get_by_role("button", name="Answer", exact=True).click()
            page.locator("#notice", has_text="answered before yours came").wait_for()
            self.assertIn("Your note was not sent: mine", page.locator("#card").inner_text())

    def test_a_bad_line(self) -> None:
        """When the service cannot be reached the page says so, keeps the words, and tries again when told."""
        handle = self.ask_question()
        with self.window() as page:
            page.goto(f"/inbox/questions/{handle['questionId']}")
            page.get_by_text("SQLite").click()
            page.locator("#note").fill("Kept.")
            self.gateway.stop()
            page.get_by_role("button", name="Answer", exact=True).click()
            page.locator("#unreached", has_text="did not answer").wait_for()
            self.assertEqual(page.evaluate("document.activeElement.id"), "unreached")
            self.gateway.start()
            page.route("**/inbox/questions/*", lambda route: route.fulfill(status=503, body="<p>No.</p>"))
            page.get_by_role("button", name="Answer", exact=True).click()
            page.locator("#unreached", has_text="did not answer").wait_for()
            page.unroute("**/inbox/questions/*")
            page.get_by_role("button", name="Answer", exact=True).click()
            page.get_by_text("Not yet read by the session.").wait_for()
        self.answered_with(handle, "sqlite", note="Kept.")

    def test_logged_out_meanwhile(self) -> None:
        """Who answers with a login that has ended comes to the login; nothing is answered."""
        handle = self.ask_question()
        with self.window() as page:
            page.goto(f"/inbox/questions/{handle['questionId']}")
            page.get_by_text("SQLite").click()
            page.context.clear_cookies()
            page.get_by_role("button", name="Answer", exact=True).click()
            page.get_by_role("heading", name="Log in").wait_for()
        self.assertEqual(self.read_answer(handle)["type"], "pending")

    def test_no_answer_is_no_answer(self) -> None:
        """With and without scripts: what is chosen by then is not sent in place of it."""
        for scripts in (True, False):
            handle = self.ask_question()
            with self.window(java_script_enabled=scripts) as page:
                page.goto(f"/inbox/questions/{handle['questionId']}")
                page.get_by_text("SQLite").click()
                page.locator("#note").fill("Not needed.")
                page.get_by_role("button", name="Do not answer").click()
                page.locator(".outcome", has_text="Cancelled").wait_for()
            ended = self.read_answer(handle)
            self.assertEqual((ended["type"], ended["status"]), ("lifecycle", "cancelled"))

    def test_a_second_tap_does_nothing(self) -> None:
        """While one is on its way, neither button sends anything more."""
        handle = self.ask_question()
        sent: list[str] = []
        with self.window() as page:
            page.goto(f"/inbox/questions/{handle['questionId']}")
            page.on("request", lambda each: sent.append(each.url) if each.method == "POST" else None)
            page.get_by_text("SQLite").click()
            page.evaluate(
                "() => { const [one, two] = document.querySelectorAll('#answer button');"
                " one.click(); one.click(); two.click(); }"
            )
            page.get_by_text("Not yet read by the session.").wait_for()
        self.assertEqual(len(sent), 1)
        self.answered_with(handle, "sqlite")


SMALL = """() => [...document.querySelectorAll('a, button, summary, input:not([type=hidden]), textarea')]
  .filter((each) => each.checkVisibility() && !each.classList.contains('skip'))
  .map((each) => [each, (each.closest('.option') ?? each.closest('.row') ?? each).getBoundingClientRect()])
  .filter(([each, box]) => box.height < 43.5 && !each.closest('p:not(.acts)'))
  .map(([each]) => each.outerHTML)"""


class LiveTests(InboxTestCase):
    """What is shown stays true without a reload."""

    def test_news_come_by_themselves(self) -> None:
        """Every window shows a new question at its end, and an ended one in its place; nothing moves."""
        first = self.ask_question("First?")
        with self.window() as one, self.window() as two:
            for page in (one, two):
                page.locator("#link-words", has_text="Live").wait_for()
            self.ask_question("Second, urgent?", urgency="high")
            for page in (one, two):
                page.get_by_role("link", name="Second, urgent?").wait_for()
                names = page.locator("#queue a.asked").all_inner_texts()
                self.assertEqual(names, ["First?", "Second, urgent?"])
                self.assertIn("Second, urgent?", page.locator("#news").inner_text())
            with self.person_client() as client:
                client.answer_question(first["questionId"], 1, ["sqlite"], None)
            for page in (one, two):
                page.locator(f"#row-{first['questionId']}").get_by_text("Answered").wait_for()
                names = page.locator("#queue a.asked").all_inner_texts()
                self.assertEqual(names, ["First?", "Second, urgent?"])

    def test_a_note_survives_an_end(self) -> None:
        """The question ends while the person types: it says how, and the words are not lost."""
        handle = self.ask_question()
        with self.window() as page:
            page.goto(f"/inbox/questions/{handle['questionId']}")
            page.locator("#link-words", has_text="Live").wait_for()
            page.locator("#note").fill("half a thou")
            page.locator("#note").focus()
            with self.person_client() as client:
                client.cancel_question(handle["questionId"], 1, "Not needed.")
            page.get_by_text("Cancelled").first.wait_for()
            self.assertIn("Your note was not sent: half a thou", page.locator("#card").inner_text())

    def test_a_note_survives_a_change(self) -> None:
        """The question changes while the person types: the new text is there, and so are words and focus."""
        handle = self.ask_question()
        with self.window() as page:
            page.goto(f"/inbox/questions/{handle['questionId']}")
            page.locator("#link-words", has_text="Live").wait_for()
            page.get_by_text("PostgreSQL").click()
            page.locator("#note").fill("half a thou")
            text = {"prompt": "Which one now?", "ambiguity": "For 1 or 2?", "options": OPTIONS}
            self.gateway.client.change_question("revise", handle["questionId"], "s", "i", (1, 1), **text)
            page.get_by_role("heading", name="Which one now?").wait_for()
            page.keyboard.type("ght")
            self.assertEqual(page.locator("#note").input_value(), "half a thought")
            self.assertIn("Needs you", page.locator("#news").inner_text())
            page.get_by_role("button", name="Answer", exact=True).click()
            page.get_by_text("Not yet read by the session.").wait_for()
        read = self.read_answer(handle)
        self.assertEqual((read["answer"], read["note"]), (["postgres"], "half a thought"))

    def test_a_session_goes_on(self) -> None:
        """Its dot and its word change in place, and a name that is being typed stays."""
        self.ask_question()
        with self.window() as page:
            page.goto("/inbox/sessions")
            page.locator("#link-words", has_text="Live").wait_for()
            page.get_by_text("Name it").click()
            page.locator("#name-1").fill("The migr")
            page.locator(".who", has_text="Working").wait_for()
            self.gateway.client.ping("s", "i", state="blocked")
            page.locator(".who", has_text="Waits for you").wait_for()
            self.assertEqual(page.locator("#name-1").input_value(), "The migr")
            page.get_by_role("button", name="Save").click()
            page.get_by_role("heading", name="The migr").wait_for()

    def test_offline_is_said(self) -> None:
        """When the service goes the page says so, and as of when; when it is back, what was missed."""
        handle = self.ask_question()
        with self.window() as page:
            page.locator("#link-words", has_text="Live").wait_for()
            self.gateway.stop()
            page.locator("#link-words", has_text="Offline. As of").wait_for()
            self.gateway.start()
            with self.person_client() as client:
                client.answer_question(handle["questionId"], 1, ["sqlite"], None)
            page.locator(f"#row-{handle['questionId']}").get_by_text("Answered").wait_for()
            page.locator("#link-words", has_text="Live").wait_for()

    def test_no_false_word_before_the_first_one(self) -> None:
        """It says that it checks until the service has spoken; what never came about is tried again."""
        with self.window() as page:
            asked: list[Any] = []
            page.route("**/inbox/events", lambda route: asked.append(route))  # noqa: PLW0108 (it takes no builtin)
            page.goto("/inbox")
            page.locator("#link-words", has_text="Checking…").wait_for()
            eventually("the page asks for news", lambda: page.evaluate("1") and asked)
            asked[0].abort()
            page.unroute("**/inbox/events")
            page.locator("#link-words", has_text="Live").wait_for()

    def test_a_device_that_is_logged_out(self) -> None:
        """Its page goes to the login by itself."""
        self.ask_question()
        with self.window() as one, self.window() as two:
            two.locator("#link-words", has_text="Live").wait_for()
            one.goto("/inbox/settings")
            one.locator("#devices ~ ul .row").filter(has_not_text="this device").get_by_role("button").click()
            two.get_by_role("heading", name="Log in").wait_for()


class LoadingTests(InboxTestCase):
    """The service that nobody visits stays small."""

    def test_pages_are_loaded_by_the_first_visit(self) -> None:
        """And not before; the API goes on meanwhile."""

        def loaded() -> bool:
            return "markupsafe" in Path(f"/proc/{self.gateway.pid}/maps").read_text(encoding="utf-8")

        self.assertFalse(loaded())
        with self.window() as page:
            page.get_by_text("Nothing needs you.").wait_for()
        eventually("the templates are loaded", loaded)
