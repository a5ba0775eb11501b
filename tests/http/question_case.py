"""What the tests of questions share: sessions that ask, and people who answer."""

from typing import Any

from tests.http.case import RouteCase
from tests.http.rig import PERSON, Answer

OPTIONS = [
    {"value": "sqlite", "label": "SQLite", "description": "One file.", "impact": "One writer."},
    {"value": "postgres", "label": "PostgreSQL"},
]
ASK = {
    "sessionId": "s",
    "instanceId": "i",
    "prompt": "Which database?",
    "ambiguity": "How many hosts will write?",
    "options": OPTIONS,
}


class QuestionCase(RouteCase):
    """A service with two sessions, ``s`` run by ``i`` and ``t`` run by ``j``."""

    def setUp(self) -> None:
        super().setUp()
        self.ping("s", "i")
        self.ping("t", "j")

    def ping(self, session: str, instance: str, **facts: Any) -> None:
        """A session says that it lives."""
        self.good("POST", "/ping", {"sessionId": session, "instanceId": instance, **facts})

    def good(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        """Ask for what must be given; the JSON of the answer."""
        answer = self.ask(method, path, body, **how)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def create(self, **fields: Any) -> dict[str, Any]:
        """Ask a question; its handle."""
        handle: dict[str, Any] = self.good("POST", "/questions", {**ASK, **fields})
        return handle

    def change(self, act: str, handle: dict[str, Any], **fields: Any) -> Answer:
        """Ask for a change of the question as it was seen."""
        seen = {
            "sessionId": "s",
            "instanceId": "i",
            "expectedRevision": handle["revision"],
            "expectedOwnerRevision": handle["ownerRevision"],
        }
        body = {name: value for name, value in {**seen, **fields}.items() if value is not None}
        return self.ask("POST", f"/questions/{handle['questionId']}/{act}", body)

    def changed(self, act: str, handle: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """Change the question; its new handle."""
        answer = self.change(act, handle, **fields)
        self.assertEqual(answer.status, 200, answer.body)
        made: dict[str, Any] = answer.json
        return made

    def answer(self, handle: dict[str, Any], *values: str, key: str = PERSON, **fields: Any) -> Answer:
        """A person answers the question as it was seen."""
        body = {"expectedRevision": handle["revision"], "selectedValues": list(values), **fields}
        return self.ask("POST", f"/questions/{handle['questionId']}/answer", body, key=key)

    def read(self, handle: dict[str, Any], session: str = "s", **how: str) -> Answer:
        """A session reads how the question ended."""
        more = "".join(f"&{name}={value}" for name, value in how.items())
        return self.ask("GET", f"/questions/{handle['questionId']}/answer?session={session}{more}")

    def ids(self, query: str, **how: Any) -> list[str]:
        """The questions of a list."""
        return [each["questionId"] for each in self.good("GET", f"/questions?{query}", **how)["questions"]]
