"""How people's pages look: no serious fault for anybody who cannot see or point well, in light and dark."""

import os
from pathlib import Path
from typing import Any

from tests.acceptance.inbox_world import OPTIONS, PHONE, InboxTestCase

AXE = Path(__file__).parent / "axe" / "axe.min.js"
SERIOUS = {"serious", "critical"}
IMAGES = os.environ.get("MAILGATEWAY_IMAGES", "")
"""A folder for pictures of the pages; without it none are made."""

TEXT = """\
Which database for the new service?

The service keeps **questions and mails**. Two hosts might write one day:

```python
engine = create_engine(settings.database_url)
with engine.begin() as connection:
    connection.execute(insert(question), rows)
```

- SQLite is in use today, and fast enough.
- See [the notes](https://example.org/notes).
"""


class LookTests(InboxTestCase):
    """Every page, looked at by axe-core (WCAG 2.2 A and AA, and good practice)."""

    def fill(self) -> dict[str, str]:
        """Let there be something on each page; the pages by their names."""
        client = self.gateway.client
        client.ping("t", "j", title="Fix flaky tests", project="web", branch="fix/flaky", state="idle")
        asked = self.ask_question(
            TEXT, urgency="high", options=[{**OPTIONS[0], "preview": "a\n  b"}, OPTIONS[1]]
        )
        ended = self.ask_question("Keep the old API during the migration?")
        self.ask_question("Rename the package too?", parentQuestionId=asked["questionId"])
        client.ask_question(
            "t",
            "j",
            prompt="Delete the old fixtures?",
            ambiguity="Nobody has used them since May.",
            options=OPTIONS,
            mode="multi",
            urgency="low",
        )
        with self.person_client() as person:
            person.answer_question(ended["questionId"], 1, ["sqlite"], "For one release.")
        client.send("notification", "t", "Tests are green", "14 fixed.")
        return {
            "queue": "/inbox",
            "card": f"/inbox/questions/{asked['questionId']}",
            "answered": f"/inbox/questions/{ended['questionId']}",
            "sessions": "/inbox/sessions",
            "mail": "/inbox/mail",
            "history": "/inbox/history?q=API",
            "settings": "/inbox/settings",
            "nothing": "/inbox/none",
            "login": "/login",
        }

    def test_no_serious_fault(self) -> None:
        """On each page, light and dark, at a desk and on a phone."""
        pages = self.fill()
        faults: list[str] = []
        for scheme in ("light", "dark"):
            with self.window(color_scheme=scheme, reduced_motion="reduce") as page:
                for name, path in pages.items():
                    page.set_viewport_size({"width": 1100, "height": 800})
                    page.goto(path)
                    faults += [f"{name} {scheme}: {fault}" for fault in self.looked_at(page)]
                    page.set_viewport_size(PHONE)
                    faults += [f"{name} {scheme} phone: {fault}" for fault in self.looked_at(page)]
                    if IMAGES:
                        page.screenshot(path=f"{IMAGES}/inbox-{name}-{scheme}.png", full_page=True)
                page.goto(pages["card"])
                page.get_by_role("button", name="Answer", exact=True).click()
                page.locator("#notice").wait_for()
                faults += [f"refused {scheme}: {fault}" for fault in self.looked_at(page)]
        self.assertEqual(faults, [])

    def looked_at(self, page: Any) -> list[str]:
        """The serious faults of what is shown now."""
        page.evaluate(AXE.read_text(encoding="utf-8"))
        found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for each in found["violations"]
            if each["impact"] in SERIOUS
            for node in each["nodes"]
        ]

    def test_landmarks_and_titles(self) -> None:
        """Each page says what it is, and has its main part, its heading, and its way around."""
        pages = self.fill()
        titles = set()
        with self.window() as page:
            for name, path in pages.items():
                page.goto(path)
                titles.add(page.title())
                self.assertEqual(page.locator("main").count(), 1, name)
                self.assertEqual(page.locator("h1").count(), 1, name)
                self.assertEqual(page.locator("[role=status]").count() >= 1, True, name)
                if name not in {"login", "nothing"}:
                    self.assertEqual(page.locator("nav[aria-label]").count(), 1, name)
        self.assertEqual(len(titles), len(pages))

    def test_it_can_be_installed(self) -> None:
        """The manifest and its icons are there, and the browser takes them."""
        with self.window() as page:
            manifest = page.evaluate("fetch('/static/manifest.webmanifest').then((got) => got.json())")
            self.assertEqual(manifest["display"], "standalone")
            for icon in manifest["icons"]:
                self.assertEqual(page.request.get(icon["src"]).headers["content-type"], icon["type"])
