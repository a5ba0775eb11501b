"""``notify`` and ``ask``: what a session says to the person, and the files that go along."""

import os
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from mailgateway.cli.report import Exit, Failed, fail, printable, say, shared
from mailgateway.cli.service import client_of, instance_of, session_of, session_option, settings_of
from mailgateway.cli.waiting import next_delivery
from mailgateway.client import Client
from mailgateway.client.answers import Delivery, Sent
from mailgateway.client.enclosing import Enclosed, enclose
from mailgateway.client.project import Project

LONGEST_SUBJECT = 60
LARGEST_TEXT = 1_000_000
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
"""A link or an image of Markdown, whose words are what a subject can show."""

subject_option = click.option("--subject", metavar="S", help="Else the first line of the text.")


def _file_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option("--no-files", is_flag=True, help="Send the text alone, whatever it links to."),
        click.option(
            "--project",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            metavar="DIR",
            help="Where files may come from; else the git work tree that we are in, else this directory.",
        ),
        click.option(
            "--attach", "named", multiple=True, metavar="FILE", help="A file to send along; may be repeated."
        ),
    ):
        function = option(function)
    return function


@click.command("notify")
@click.argument("text")
@subject_option
@_file_options
@session_option
@shared
def notify_command(
    text: str,
    subject: str | None,
    session: str | None,
    config: str | None,
    *,
    as_json: bool,
    **files: Any,
) -> None:
    """Write to the person, without waiting for a word.

    TEXT is Markdown; `-` reads it from standard input.  Images and files of the project that it shows or
    links to go along.
    """
    name = session_of(session)
    words = _words(text)
    with client_of(settings_of(config)) as client:
        _introduce(client, name)
        enclosed = _enclosed(client, name, words, **files)
        sent = client.send(
            "notification", name, subject or _subject(words), enclosed.text, attachments=enclosed.ids
        )
    _warn(enclosed)
    line = f"{'Sent' if sent['state'] == 'sent' else 'Queued'}: {sent['subject']}"
    say({**sent, **_files(enclosed)}, line, as_json=as_json)


@click.command("ask")
@click.argument("text")
@subject_option
@click.option("--option", "options", multiple=True, metavar="O", help="An answer to offer; may be repeated.")
@click.option("--recommend", metavar="R", help="The answer that you would give.")
@click.option(
    "--wait",
    "seconds",
    type=click.FloatRange(0, 604_800),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the answer.",
)
@click.option("--no-wait", is_flag=True, help="Only ask; `mailgateway wait` takes the answer.")
@click.option("--no-ack", is_flag=True, help="Leave the answer claimed, for `mailgateway ack`.")
@_file_options
@session_option
@shared
def ask_command(
    *,
    text: str,
    subject: str | None,
    options: tuple[str, ...],
    recommend: str | None,
    seconds: float,
    session: str | None,
    config: str | None,
    no_wait: bool,
    no_ack: bool,
    as_json: bool,
    **files: Any,
) -> None:
    """Ask the person, and wait for the answer.

    Prints what the person wrote, then takes it over for good: whoever reads this output has the answer.
    TEXT is Markdown; `-` reads it from standard input.  Images and files of the project that it shows or
    links to go along.
    """
    name = session_of(session)
    instance = instance_of(name)
    words = _words(text)
    with client_of(settings_of(config)) as client:
        _introduce(client, name)
        enclosed = _enclosed(client, name, words, **files)
        sent = client.send(
            "decision",
            name,
            subject or _subject(words),
            enclosed.text,
            options=options,
            recommendation=recommend,
            attachments=enclosed.ids,
        )
        _warn(enclosed)
        if no_wait:
            answer = {"sent": sent, "reply": None, "acked": False, **_files(enclosed)}
            say(answer, f"Asked: {sent['subject']}", as_json=as_json)
            return
        if sys.stderr.isatty():
            click.echo(f"Asked: {printable(sent['subject'])}. Waiting for the answer ...", err=True)
        reply = next_delivery(client, name, instance, wanted=partial(_answers, sent), seconds=seconds)
        if reply is None:
            fail(
                Exit.FAILED,
                "no_answer",
                f"No answer within {seconds:g} seconds. The question stays open; "
                f"`mailgateway wait --session {name}` waits on.",
                as_json=as_json,
                more={"sent": sent},
            )
        if reply["kind"] == "notice":  # no answer: the mail did not arrive, or its answer cannot be read
            try:
                fail(
                    Exit.FAILED,
                    "no_answer",
                    reply["body"],
                    as_json=as_json,
                    more={"sent": sent, "reply": reply, "acked": not no_ack},
                )
            except Failed:
                sys.stdout.flush()
                if not no_ack:
                    client.ack(reply["id"], instance)
                raise
        answer = {"sent": sent, "reply": reply, "acked": not no_ack, **_files(enclosed)}
        say(answer, reply["body"], as_json=as_json)
        sys.stdout.flush()  # said before it is acked: a reader that is gone must not lose the answer
        if not no_ack:
            client.ack(reply["id"], instance)


def _enclosed(
    client: Client,
    session: str,
    words: str,
    *,
    named: tuple[str, ...],
    project: Path | None,
    no_files: bool,
) -> Enclosed:
    around = Project.around(Path.cwd(), project)
    return enclose(client, session, words, around, named, linked=not no_files)


def _warn(enclosed: Enclosed) -> None:
    """Tell the session what its mail says to the person, too."""
    for each in enclosed.left_out:
        click.echo(printable(f"Not attached: {each.path}: {each.reason}."), err=True)


def _files(enclosed: Enclosed) -> dict[str, Any]:
    """What of a mail's files is worth telling, where it has any."""
    attached = [{"id": each.id, "path": each.path, "size": each.size} for each in enclosed.attached]
    left_out = [{"path": each.path, "reason": each.reason} for each in enclosed.left_out]
    return {name: value for name, value in (("attached", attached), ("leftOut", left_out)) if value}


def _introduce(client: Client, session: str) -> None:
    client.ping(session, instance_of(session), harness="shell", cwd=os.getcwd())  # noqa: PTH109 - as text


def _answers(sent: Sent, delivery: Delivery) -> bool:
    """Whether a delivery answers what was sent: by the thread, and by the question or else the route."""
    if delivery.get("inReplyTo") == sent["messageId"]:
        return True
    question = sent.get("questionId")
    if question is not None:
        return delivery.get("questionId") == question
    return delivery.get("route") == sent["route"]


def _words(text: str) -> str:
    words = sys.stdin.read(LARGEST_TEXT) if text == "-" else text
    if not words.strip():
        raise click.UsageError("The text is empty.")
    return words


def _subject(text: str) -> str:
    """Take the first line that says something, without marks of Markdown, cut to what a phone shows."""
    lines = (" ".join(_LINK.sub(r"\1", line).strip("#*_> ").split()) for line in text.splitlines())
    line = next((line for line in lines if any(map(str.isalnum, line))), " ".join(text.split()))
    return line if len(line) <= LONGEST_SUBJECT else f"{line[: LONGEST_SUBJECT - 1].rstrip()}…"
