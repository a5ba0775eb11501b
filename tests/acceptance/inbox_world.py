"""A service with people's pages and a real browser in front of it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client import Base, Client
from tests.acceptance.harness import Gateway
from tests.daemons.world import settings_of
from tests.mail.browser import browser

PATIENCE = 30_000.0
"""Milliseconds that a page may take for anything."""

PHONE = {"width": 360, "height": 640}
DESK = {"width": 1100, "height": 800}

OPTIONS = [
    {"value": "sqlite", "label": "SQLite", "description": "One file.", "impact": "Only one host writes."},
    {"value": "postgres", "label": "PostgreSQL", "description": "A server.", "impact": "Somebody runs it."},
]


@contextmanager
def window(opened: Any, base: str, link: str | None, **how: Any) -> Iterator[Any]:
    """A browser of its own, logged in by a link; an error of its scripts fails the test."""
    context = opened.new_context(base_url=base, **{"viewport": DESK, **how})
    context.set_default_timeout(PATIENCE)
    try:
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on(
            "console",
            lambda message: errors.append(message.text) if "Content Security" in message.text else None,
        )
        if link is not None:
            page.goto(link)
            if how.get("java_script_enabled", True) is False:
                page.get_by_label("Link or code").fill(link)
            page.get_by_role("button", name="Log in").click()
            page.wait_for_url("**/inbox")
        yield page
        assert not errors, errors
    finally:
        context.close()


class Inbox:
    """What both kinds of tests do with the service."""

    gateway: Gateway

    @property
    def base(self) -> str:
        """Where the pages are."""
        return f"http://127.0.0.1:{self.gateway.port}"

    def person_client(self) -> Client:
        """The person at this machine."""
        state = self.gateway.state_dir
        place = Base(host="127.0.0.1", port=self.gateway.port)
        return Client(place, state / "person.key", 20, proof_path=state / "secret.key")

    def link(self) -> str:
        """A fresh login link."""
        with self.person_client() as client:
            return client.login_link()["url"]

    def ask_question(self, prompt: str = "Which database?", **fields: Any) -> dict[str, Any]:
        """A session asks."""
        self.gateway.client.ping("s", "i", title="Migration", project="api", branch="main", state="working")
        asked = {"prompt": prompt, "ambiguity": "How many hosts will write?", "options": OPTIONS, **fields}
        return self.gateway.client.ask_question("s", "i", **asked)

    def read_answer(self, handle: dict[str, Any]) -> dict[str, Any]:
        """How the question ended, for its session."""
        return self.gateway.client.ending(handle["questionId"], "s")


class InboxTestCase(Inbox, SynchronousTestCase):
    """A service without a mailbox, and a browser."""

    def setUp(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.gateway = Gateway(folder, settings_of(folder))
        self.addCleanup(self.gateway.close)
        self.addCleanup(self.gateway.client.close)
        self.gateway.start()
        opening = browser()
        self.opened = opening.__enter__()
        self.addCleanup(opening.__exit__, None, None, None)

    @contextmanager
    def window(self, **how: Any) -> Iterator[Any]:
        """A window of the person's, logged in."""
        with window(self.opened, self.base, self.link(), **how) as page:
            yield page
