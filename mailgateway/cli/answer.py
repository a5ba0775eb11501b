"""``answer`` and ``cancel``: what a person says to a question, from the terminal."""

import click

from mailgateway.cli.questions import find, shown
from mailgateway.cli.report import Exit, fail, say, shared
from mailgateway.cli.service import client_of, person_client_of, settings_of
from mailgateway.client import Client
from mailgateway.client.answers import Question
from mailgateway.settings import Settings

note_option = click.option("--note", metavar="TEXT", help="What else is to be said.")


@click.command("answer")
@click.argument("words", metavar="[ID] VALUE...", nargs=-1, required=True)
@note_option
@shared
def answer_command(words: tuple[str, ...], note: str | None, config: str | None, *, as_json: bool) -> None:
    """Answer a question, if nobody was faster.

    ID is a question's id, or enough of its beginning; only where one question waits alone it may be left out.
    VALUE is an option's value, label, number or letter, or `other` with a note; several where the question
    takes several. A decision without options is answered in words. Needs `person.key`.
    """
    named, values = (words[0], words[1:]) if words[0].startswith("q-") else (None, words)
    if not values and not note:
        raise click.UsageError("Say the answer: a VALUE of `mailgateway questions ID`, or --note.")
    with _person(settings_of(config)) as client:
        found = find(client, named, None, as_json=as_json)
        selected, said = _selected(found, values, note, as_json=as_json)
        answered = client.answer_question(found["questionId"], found["revision"], selected, said)
    below = answered["openDescendants"]
    lines = [f"Answered: {found['subject']}: {', '.join(selected) or said or ''}"]
    if below:
        lines.append(f"Still open below: {', '.join(below)}")
    say(answered, lines, as_json=as_json)


@click.command("cancel")
@click.argument("question", metavar="[ID]", required=False)
@note_option
@shared
def cancel_command(question: str | None, note: str | None, config: str | None, *, as_json: bool) -> None:
    """End a question without an answer; its session is told.

    ID is a question's id, or enough of its beginning; only where one question waits alone it may be left out.
    Needs `person.key`.
    """
    with _person(settings_of(config)) as client:
        found = find(client, question, None, as_json=as_json)
        handle = client.cancel_question(found["questionId"], found["revision"], note)
    say(handle, f"Cancelled: {found['subject']}", as_json=as_json)


def _person(settings: Settings) -> Client:
    """The person's client; where this user has no such key, the service says what is needed."""
    return person_client_of(settings) or client_of(settings)


def _selected(
    found: Question, values: tuple[str, ...], note: str | None, *, as_json: bool
) -> tuple[tuple[str, ...], str | None]:
    """The values that were meant, and the note; a question without options takes words."""
    from mailgateway.operator.selection import chosen  # noqa: PLC0415 - only this verb pays for it

    if not found["options"]:
        return (), "\n\n".join(each for each in (" ".join(values), note) if each)
    if values == ("other",) and all(each["value"] != "other" for each in found["options"]):
        return values, note
    selected = chosen(values, found["options"], multi=found["mode"] == "multi")
    if not selected:
        fail(
            Exit.FAILED,
            "invalid_selection",
            "\n".join(["That is none of the options beyond doubt.", *shown(found)[2:]]),
            as_json=as_json,
        )
    return selected, note
