"""``questions``: what waits for an answer, and one question as a whole; and waiting for their ends."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NoReturn

import click

from mailgateway.cli.report import Exit, fail, say, shared, table, when
from mailgateway.cli.service import client_of, person_client_of, session_option, settings_of
from mailgateway.client import ApiRefused, Client, ServiceUnreachable, WrongService
from mailgateway.client.answers import Question, QuestionLine
from mailgateway.settings import Settings

PAUSE_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
"""How long the service may be away before waiting is given up."""


@click.command("questions")
@click.argument("question", metavar="[ID]", required=False)
@click.option(
    "--status",
    type=click.Choice(["pending", "answered", "cancelled", "expired", "superseded"]),
    help="Those that stand so; else those that wait, or whose end their session has not read.",
)
@click.option("--answer", "reads", is_flag=True, help="Read how the question ended, as the session.")
@session_option
@shared
def questions_command(
    question: str | None,
    status: str | None,
    session: str | None,
    config: str | None,
    *,
    reads: bool,
    as_json: bool,
) -> None:
    """List what waits for an answer, or show one question.

    ID is a question's id, or enough of its beginning. People see all questions; a session, named or in
    $MAILGATEWAY_SESSION, its own.
    """
    settings = settings_of(config)
    name = session or os.environ.get("MAILGATEWAY_SESSION")
    with viewer_of(settings, name) as client:
        if question is None:
            lines = list(client.questions(name, scope=_scope(name), status=status))
            say({"questions": lines}, _listed(lines) or "Nothing waits.", as_json=as_json)
        elif reads:
            ending = client.ending(_full_id(client, question, name, as_json=as_json), name)
            say(ending, _ended(ending), as_json=as_json)
        else:
            found = find(client, question, name, as_json=as_json)
            say(found, shown(found), as_json=as_json)


def viewer_of(settings: Settings, session: str | None) -> Client:
    """Who looks: the session, when there is one; else the person, where this user may be that."""
    return client_of(settings) if session else (person_client_of(settings) or client_of(settings))


def find(client: Client, question: str | None, session: str | None, *, as_json: bool) -> Question:
    """The question that is meant: by its id, by the beginning of one that waits, or the one that waits."""
    return client.question(
        _full_id(client, question, session, as_json=as_json), session, scope=_scope(session)
    )


def _full_id(client: Client, question: str | None, session: str | None, *, as_json: bool) -> str:
    if question is not None and len(question) == len("q-") + 24:
        return question
    waiting = [
        each["questionId"]
        for each in client.questions(session, scope=_scope(session))
        if question is not None or each["status"] == "pending"
    ]
    fitting = [each for each in waiting if question is None or each.startswith(question)]
    if len(fitting) != 1:
        _not_one(fitting, question, as_json=as_json)
    return fitting[0]


def _not_one(fitting: list[str], question: str | None, *, as_json: bool) -> NoReturn:
    if fitting:
        code, words = (
            "ambiguous_id",
            f"{len(fitting)} questions fit; include the id: {', '.join(fitting[:5])}",
        )
    elif question is None:
        code, words = "unknown", "No question waits."
    else:
        code, words = (
            "unknown",
            f"No question begins with {question}. `mailgateway questions` lists those that wait.",
        )
    fail(Exit.FAILED, code, words, as_json=as_json)


def _scope(session: str | None) -> str | None:
    return None if session else "global"


def _listed(lines: list[QuestionLine]) -> list[str]:
    now = datetime.now(UTC)
    rows = [
        (
            each["questionId"],
            each["status"] if each["status"] != "pending" else each["urgency"],
            when(each["createdAt"], now),
            each["owner"],
            each["subject"],
        )
        for each in lines
    ]
    return table(("ID", "STATUS", "ASKED", "SESSION", "QUESTION"), rows)


def shown(found: Question) -> list[str]:
    """One question, for a person at a terminal."""
    asked = when(found["createdAt"], datetime.now(UTC))
    lines = [
        f"{found['questionId']}  {found['status']}, asked by {found['owner']}, {asked}",
        "",
        found["prompt"],
    ]
    if found["ambiguity"]:
        lines += ["", f"To be resolved: {found['ambiguity']}"]
    lines += ["", "Several may be chosen:"] if found["mode"] == "multi" else [""]
    for number, option in enumerate(found["options"], start=1):
        value = "" if option["value"] == option["label"] else f" ({option['value']})"
        lines.append(f"  {number}. {option['label']}{value}")
        told = (option["description"], option["impact"] and f"If chosen: {option['impact']}")
        lines += [f"     {words}" for words in told if words]
    if found.get("answer") is not None or found.get("note"):
        lines += ["", *_answer(found.get("answer"), found.get("note"))]
    return lines


def _answer(values: list[str] | None, note: str | None) -> list[str]:
    lines = [f"Answer: {', '.join(values)}"] if values else []
    return [*lines, *([f"Note: {note}"] if note else [])]


def _ended(ending: dict[str, Any]) -> list[str]:
    match ending["type"]:
        case "pending":
            return ["Nobody has answered yet."]
        case "answer":
            below = ending.get("openDescendants") or []
            more = [f"Still open below: {', '.join(below)}"] if below else []
            return [*_answer(ending["answer"], ending.get("note")), *more]
        case _:
            return [f"The question is {ending['status']}.", *_answer(None, ending.get("note"))]


def wait_for_questions(
    client: Client,
    session: str,
    instance: str,
    *,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Any]:
    """Wait until a question of the session has ended, through restarts of the service; what ended the wait.

    Pings meanwhile, so that the session counts as live.
    """
    deadline = clock() + seconds
    heard = clock()
    while True:
        left = deadline - clock()
        try:
            client.ping(session, instance)
            woken = client.wait_for_question(session, instance, max(0.0, min(left, 50.0)))
            heard = clock()
            if woken["type"] != "timeout" or left <= 0:
                return woken
        except WrongService:
            raise
        except ServiceUnreachable:
            if clock() - heard > PATIENCE_SECONDS:
                raise
        except ApiRefused as refused:  # the end of a wait that was broken off is seen a moment later
            if refused.code != "wait_already_active" or clock() - heard > PATIENCE_SECONDS:
                raise
        left = deadline - clock()
        if left <= 0:
            return {"type": "timeout"}
        sleep(min(PAUSE_SECONDS, left))
