"""People's pages: 10,000 questions wait, and 100 pages are open when one of them is answered.

The plain alternative to the page is the same list as JSON, by the API.  What is timed for the answer is what
a page does: it hears of the question by its live events, and reads the card anew.
"""

import http.client
import re
import threading
import time
from collections.abc import Callable
from urllib.parse import urlencode

from _replay import ReplayServer
from _world import Service, folder, median, resident_mb, row, show_help

from mailgateway.client import Base, Client

QUESTIONS = 10_000
PAGES = 100
EACH = 20
"""Pages of one login."""
LOOKS = 20
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
OPTIONS = [{"value": "a", "label": "SQLite"}, {"value": "b", "label": "PostgreSQL"}]


class Browser:
    """One connection of a person who is logged in."""

    def __init__(self, port: int, link: str) -> None:
        self.port = port
        self.headers: dict[str, str] = {}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        given, _ = self.post("/login", code=link.rpartition("#")[2])
        self.headers = {"Cookie": str(given.getheader("Set-Cookie")).split(";")[0]}

    def post(self, path: str, **fields: str) -> tuple[http.client.HTTPResponse, bytes]:
        """Send a form."""
        self.connection.request("POST", path, urlencode(fields), FORM | self.headers)
        answer = self.connection.getresponse()
        return answer, answer.read()

    def get(self, path: str) -> bytes:
        """Look at a page."""
        self.connection.request("GET", path, headers=self.headers)
        return self.connection.getresponse().read()

    def hear(self, question: str, ready: threading.Semaphore, seen: list[float]) -> None:
        """Wait for news of a question, and read its card; when it said so."""
        own = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        own.request("GET", "/inbox/events", headers=self.headers)
        answer = own.getresponse()
        ready.release()
        while question.encode() not in (answer.fp.readline() if answer.fp else b""):
            pass
        reading = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        reading.request("GET", f"/inbox/questions/{question}", headers=self.headers)
        if b"Answered" in reading.getresponse().read():
            seen.append(time.perf_counter())
        reading.close()
        own.close()


def milliseconds(look: Callable[[], object]) -> float:
    """How long a look takes, the median of some."""
    taken = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        look()
        taken.append((time.perf_counter() - began) * 1000)
    return median(taken)


def main() -> None:
    """Ask, look, answer."""
    with folder() as path:
        server = ReplayServer([], visible=0).start()
        service = Service(path, server.port)
        try:
            service.launch()
            server.idle_since(0)
            measure(service)
        finally:
            service.stop()
            server.stop()


def measure(service: Service) -> None:
    """Measure a service that runs."""
    base, state = Base(host="127.0.0.1", port=service.port), service.state_dir
    person = Client(base, state / "person.key", 20, proof_path=state / "secret.key")
    session = Client(base, state / "secret.key", 20)
    person.prove()
    before = resident_mb(service.pid)
    began = time.perf_counter()
    browsers = [Browser(service.port, person.login_link()["url"])]
    first = (time.perf_counter() - began) * 1000
    row("the first visit, pages loaded", f"{first:.0f} ms")
    row("  resident more by that", f"{resident_mb(service.pid) - before:.1f} MB")
    browsers += [Browser(service.port, person.login_link()["url"]) for _ in range(PAGES // EACH - 1)]
    session.ping("s", "i", title="Migration", project="api", branch="main")
    for begin in range(0, QUESTIONS, 50):
        items = [
            {"localRef": str(n), "prompt": f"Question {n}?", "ambiguity": "Which?", "options": OPTIONS}
            for n in range(begin, begin + 50)
        ]
        session.ask_questions("s", "i", items)
    page = milliseconds(lambda: browsers[0].get("/inbox"))
    plain = milliseconds(lambda: next(person.questions(status="pending")))
    row(
        f"the queue, {QUESTIONS:,} wait",
        f"{page:.0f} ms",
        plain=f"{plain:.0f} ms",
        ratio=page / plain,
        aims="must 500 ms",
    )
    found = re.search(rb"/inbox/questions/(q-[0-9a-f]+)", browsers[0].get("/inbox"))
    assert found is not None
    question = found[1].decode()
    row("one card", f"{milliseconds(lambda: browsers[0].get(f'/inbox/questions/{question}')):.0f} ms")
    answered(browsers, question)


def answered(browsers: list[Browser], question: str) -> None:
    """Answer a question while many pages are open."""
    token = re.search(rb'name="token" value="(\w+)"', browsers[0].get(f"/inbox/questions/{question}"))
    assert token is not None
    ready, seen = threading.Semaphore(0), list[float]()
    pages = [
        threading.Thread(target=browsers[number // EACH].hear, args=(question, ready, seen), daemon=True)
        for number in range(PAGES)
    ]
    for each in pages:
        each.start()
    for _ in pages:
        ready.acquire()
    began = time.perf_counter()
    fields = {"token": token[1].decode(), "revision": "1", "choice": "a", "act": "answer"}
    browsers[0].post(f"/inbox/questions/{question}", **fields)
    row("an answer on the page", f"{(time.perf_counter() - began) * 1000:.0f} ms")
    for each in pages:
        each.join(30)
    assert len(seen) == PAGES, f"only {len(seen)} of {PAGES} pages saw it"
    row(f"  until {PAGES} open pages show it", f"{(max(seen) - began) * 1000:.0f} ms", aims="must 1,000 ms")


if __name__ == "__main__":
    show_help(__doc__)
    main()
