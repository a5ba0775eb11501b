"""Two windows, a reply by mail and the terminal race for the same card: one wins, all others see who."""

from itertools import permutations
from typing import Any

from tests.acceptance.harness import ROBIN, Asked, WorldTestCase
from tests.acceptance.inbox_world import Inbox, window
from tests.fakes.dovecot import eventually
from tests.mail.browser import browser

HOW = {
    "one": "in the web inbox",
    "two": "in the web inbox",
    "mail": f"by {ROBIN} by mail",
    "terminal": "in the terminal",
}


class RaceTests(Inbox, WorldTestCase):
    """With a mailbox, a mail server and a browser."""

    def test_whoever_is_first(self) -> None:
        """In every order of three doors; nobody reloads anything."""
        with (
            browser() as opened,
            window(opened, self.base, self.link()) as one,
            window(opened, self.base, self.link()) as two,
        ):
            windows = {"one": one, "two": two}
            for others in ("mail", "terminal"):
                for order in permutations(("one", "two", others)):
                    self.race(windows, order)

    def race(self, windows: dict[str, Any], order: tuple[str, ...]) -> None:
        """One card, answered by each of these in turn."""
        subject = f"Which first? {' '.join(order)}"
        asked, question = self.decide(subject)
        for page in windows.values():
            page.goto(f"/inbox/questions/{question}")
            page.locator("#link-words", has_text="Live").wait_for()
        first, *losers = order
        late = next(each for each in losers if each in windows)
        # the last loser's page hears nothing, as on a bad line, so that it still offers the question
        windows[late].route(f"**/inbox/questions/{question}", hold)
        self.act(first, windows, asked, question)
        for name, page in windows.items():
            if name != late:
                page.locator(".outcome", has_text=HOW[first]).wait_for()
                page.locator("#news", has_text=f"Answered {HOW[first]}" if name != first else "").wait_for(
                    state="attached"
                )
        for loser in losers:
            if loser in {"mail", "terminal"}:
                self.act(loser, windows, asked, question)
        page = windows[late]
        page.get_by_text("PostgreSQL").click()
        page.locator("#note").fill("too late")
        page.get_by_role("button", name="Answer", exact=True).click()
        page.locator("#notice", has_text="answered before yours came").wait_for()
        outcome = page.locator(".outcome").inner_text()
        self.assertIn(HOW[first], outcome, order)
        self.assertIn("SQLite", outcome, order)
        self.assertIn("Your note was not sent: too late", page.locator("#card").inner_text())
        page.unroute(f"**/inbox/questions/{question}")
        delivery = self.poll(asked)
        self.assertEqual((delivery["questionId"], delivery["choice"]), (question, "SQLite"), order)

    def decide(self, subject: str) -> tuple[Asked, str]:
        """A new session asks by mail; the question as it arrived, and its id."""
        self.sessions += 1
        session, instance = f"session-{self.sessions}", f"instance-{self.sessions}"
        self.gateway.client.ping(session, instance, title="Race", state="working")
        options = ("SQLite", "PostgreSQL")
        sent = self.gateway.client.send("decision", session, subject, "Which one?", options=options)
        received = self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"])
        return Asked(session, instance, received), str(sent["questionId"])

    def act(self, who: str, windows: dict[str, Any], asked: Asked, question: str) -> None:
        """Answer, or try to."""
        if who in windows:
            windows[who].get_by_text("SQLite").click()
            windows[who].get_by_role("button", name="Answer", exact=True).click()
        elif who == "mail":
            before = len(self.fates())
            self.deliver_reply(asked, "1")
            eventually("the reply was read", lambda: len(self.fates()) > before)
        else:
            with self.person_client() as client:
                found = client.question(question)
                if found["status"] == "pending":
                    client.answer_question(question, found["revision"], ["SQLite"])


def hold(route: Any) -> None:
    """Let forms through, and nothing else."""
    if route.request.method == "POST" or "html" not in route.request.headers.get("accept", ""):
        route.continue_()
    else:
        route.abort()
