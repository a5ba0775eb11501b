"""What the tests of people's pages share: a browser that keeps one cookie and fills in forms."""

import re
from collections.abc import Sequence
from html import unescape
from urllib.parse import urlencode

from attrs import define, field

from tests.http.question_case import QuestionCase
from tests.http.rig import PERSON, PORT, Answer, Rig, request

FORM = "application/x-www-form-urlencoded"
PUBLIC = "https://gate.example.org"


def code_of(url: str) -> str:
    """The code in a login link."""
    return url.rpartition("#")[2]


@define(eq=False)
class Browser:
    """One browser: its cookie, where it comes from, and how it names the service."""

    rig: Rig
    host: str = f"127.0.0.1:{PORT}"
    peer: str = "127.0.0.1"
    agent: str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140 Safari/537.36"
    cookie: str = ""
    last: Answer = field(init=False)

    def get(self, path: str, **headers: str) -> Answer:
        """Look at a page."""
        return self._ask("GET", path, b"", headers)

    def post(self, path: str, fields: Sequence[tuple[str, str]], **headers: str) -> Answer:
        """Send a form."""
        return self._ask("POST", path, urlencode(fields).encode(), {"Content-Type": FORM, **headers})

    def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        fields = {"Host": self.host, "User-Agent": self.agent, **named}
        if self.cookie:
            fields.setdefault("Cookie", self.cookie)
        client = self.rig.connect(peer=self.peer)
        client.feed(request(method, path, body, key=None, headers=fields))
        answer = client.answer()
        assert answer is not None, f"no answer to {method} {path}: {client.text()!r}"
        client.hang_up()
        if (given := answer.headers.get("set-cookie")) is not None:
            self.cookie = given.split(";")[0]
        self.last = answer
        return answer

    def token(self) -> str:
        """What the forms of this login carry."""
        found = re.search(r'name="token" value="([0-9a-f]{64})"', self.get("/inbox/settings").body.decode())
        assert found is not None, self.last.body
        return found[1]

    def send(self, path: str, *fields: tuple[str, str]) -> Answer:
        """Send a form of one of our pages."""
        return self.post(path, [("token", self.token()), *fields])

    def enter(self, code: str, **fields: str) -> Answer:
        """Log in with a code."""
        return self.post("/login", [("code", code), *fields.items()])

    def text(self, path: str) -> str:
        """The words of a page, without its tags."""
        answer = self.get(path)
        assert answer.status == 200, answer
        return words_of(answer)


def words_of(answer: Answer) -> str:
    """What stands on a page, without its tags; blanks collapsed."""
    main = answer.body.decode().partition("<main")[2].partition("</main>")[0]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", main.partition(">")[2])).split())


class InboxCase(QuestionCase):
    """A service with two sessions, and a person who is logged in."""

    def setUp(self) -> None:
        super().setUp()
        self.browser = self.logged_in()

    def link(self) -> str:
        """A fresh login link."""
        return str(self.good("POST", "/logins", key=PERSON)["url"])

    def logged_in(self, **how: str) -> Browser:
        """Another browser of the person."""
        browser = Browser(self.rig, **how)
        self.assertEqual(browser.enter(code_of(self.link())).status, 303)
        return browser
