"""The routes of questions, as methods of the client."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from mailgateway.client.answers import Question, QuestionLine
from mailgateway.client.paths import query, within
from mailgateway.contract import LONGEST_WAIT


class QuestionCalls:
    """What a session, or a person, does with questions; a part of ``Client``."""

    timeout: float

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, seconds: float | None = None
    ) -> dict[str, Any]:
        """Send one request; the answer as JSON."""
        raise NotImplementedError

    def ask_question(self, session: str, instance: str, **fields: Any) -> dict[str, Any]:
        """Ask a question, without mail (``prompt``, ``ambiguity``, ``options``, ...); its handle.

        With ``requestId`` it may be repeated after any failure.
        """
        return self._call("POST", "/questions", {"sessionId": session, "instanceId": instance, **fields})

    def ask_questions(
        self, session: str, instance: str, items: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Ask several questions, up to the first that is refused."""
        body = {"sessionId": session, "instanceId": instance, "items": [dict(each) for each in items]}
        return self._call("POST", "/questions/batch", body)

    def questions(
        self,
        session: str | None = None,
        *,
        scope: str | None = None,
        status: str | None = None,
        read: bool | None = None,
    ) -> Iterator[QuestionLine]:
        """Every question that fits, page by page."""
        cursor: str | None = None
        filters = {"scope": scope, "status": status, "read": None if read is None else str(read).lower()}
        while True:
            asked = query(session=session, **filters, limit="100", cursor=cursor)
            answer = self._call("GET", f"/questions{asked}")
            yield from cast("list[QuestionLine]", answer["questions"])
            cursor = answer.get("nextCursor")
            if cursor is None:
                return

    def question(self, question: str, session: str | None = None, *, scope: str | None = None) -> Question:
        """One question as a whole; looking does not read its answer."""
        path = within("questions", question)
        return cast("Question", self._call("GET", f"{path}{query(session=session, scope=scope)}"))

    def question_history(
        self, question: str, session: str | None = None, *, scope: str | None = None
    ) -> list[dict[str, Any]]:
        """What was done to a question, oldest first."""
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            asked = query(session=session, scope=scope, limit="100", cursor=cursor)
            answer = self._call("GET", f"{within('questions', question, 'history')}{asked}")
            found += answer["history"]
            cursor = answer.get("nextCursor")
            if cursor is None:
                return found

    def change_question(
        self, act: str, question: str, session: str, instance: str, revisions: tuple[int, int], **fields: Any
    ) -> dict[str, Any]:
        """Do something with an own question (``revise``, ``cancel``) as it was seen in these revisions."""
        seen = {
            "sessionId": session,
            "instanceId": instance,
            "expectedRevision": revisions[0],
            "expectedOwnerRevision": revisions[1],
        }
        return self._call("POST", within("questions", question, act), seen | fields)

    def ending(self, question: str, session: str | None = None, *, recover: bool = False) -> dict[str, Any]:
        """How a question ended, if it has; the session reads it by that, a person only looks."""
        asked = query(session=session, recover="true" if recover else None)
        return self._call("GET", f"{within('questions', question, 'answer')}{asked}")

    def answer_question(
        self, question: str, revision: int, values: Sequence[str], note: str | None = None
    ) -> dict[str, Any]:
        """Answer a question as it was seen in this revision (with ``person.key``)."""
        body: dict[str, Any] = {"expectedRevision": revision, "selectedValues": [*values]}
        if note:
            body["note"] = note
        return self._call("POST", within("questions", question, "answer"), body)

    def cancel_question(self, question: str, revision: int, note: str | None = None) -> dict[str, Any]:
        """End a question without an answer, as a person."""
        body: dict[str, Any] = {"expectedRevision": revision, **({"note": note} if note else {})}
        return self._call("POST", within("questions", question, "cancel"), body)

    def wait_for_question(self, session: str, instance: str, seconds: float) -> dict[str, Any]:
        """Wait until a question of the session has ended, a minute at most: what has ended the wait."""
        wait = min(max(seconds, 0.0), LONGEST_WAIT)
        body = {"sessionId": session, "instanceId": instance}
        return self._call("POST", f"/wait{query(wait=f'{wait:g}')}", body, seconds=self.timeout + wait)

    def log(self, machine: str | None = None, after: int = 0) -> dict[str, Any]:
        """A page of a machine's log of decisions after a number (with ``person.key``)."""
        return self._call("GET", f"/log{query(machine=machine, after=str(after))}")
