"""``wait``, ``inbox`` and ``ack``: what a session receives, from a shell."""

import os
import sys
from datetime import UTC, datetime

import click

from mailgateway.cli.report import Exit, fail, say, shared, table, when
from mailgateway.cli.service import client_of, instance_of, session_of, session_option, settings_of
from mailgateway.cli.waiting import next_delivery
from mailgateway.client import ApiRefused, Client


@click.command("wait")
@click.option(
    "--wait",
    "--timeout",
    "seconds",
    type=click.FloatRange(0, 604_800),
    default=3600,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait.",
)
@click.option("--no-ack", is_flag=True, help="Leave the message claimed, for `mailgateway ack`.")
@click.option("--questions", "for_questions", is_flag=True, help="Wait for the end of a question instead.")
@session_option
@shared
def wait_command(
    seconds: float,
    session: str | None,
    config: str | None,
    *,
    no_ack: bool,
    for_questions: bool,
    as_json: bool,
) -> None:
    """Wait for the next message to the session, and take it.

    Prints the message, then takes it over for good: whoever reads this output has it. With --questions it
    says which question of the session has ended, and the session counts as blocked meanwhile.
    """
    name = session_of(session)
    instance = instance_of(name)
    with client_of(settings_of(config)) as client:
        if for_questions:
            _wait_for_questions(client, name, instance, seconds, as_json=as_json)
            return
        client.ping(name, instance)  # a service that is not there is told at once, not waited for
        delivery = next_delivery(client, name, instance, wanted=lambda _: True, seconds=seconds)
        if delivery is None:
            fail(Exit.FAILED, "nothing_came", f"Nothing came within {seconds:g} s.", as_json=as_json)
        text = delivery.get("rendered") or delivery["body"]
        say({"delivery": delivery, "acked": not no_ack}, text, as_json=as_json)
        sys.stdout.flush()  # said before it is acked: a reader that is gone must not lose the message
        if not no_ack:
            client.ack(delivery["id"], instance)


@click.command("inbox")
@session_option
@shared
def inbox_command(session: str | None, config: str | None, *, as_json: bool) -> None:
    """List what waits for the session.

    Looking takes nothing: `mailgateway wait` does.
    """
    name = session_of(session)
    with client_of(settings_of(config)) as client:
        deliveries = client.pending(name)
    now = datetime.now(UTC)
    rows = [
        (
            delivery["id"],
            delivery["state"],
            when(delivery["receivedAt"], now),
            delivery.get("fromName") or delivery["from"],
            _first_line(delivery["body"]),
        )
        for delivery in deliveries
    ]
    lines = table(("ID", "STATE", "RECEIVED", "FROM", "TEXT"), rows)
    say({"deliveries": deliveries}, lines or "Nothing waits.", as_json=as_json)


@click.command("ack")
@click.argument("delivery", metavar="ID")
@session_option
@shared
def ack_command(delivery: str, session: str | None, config: str | None, *, as_json: bool) -> None:
    """Take a message over, for good.

    ID is a delivery's id, or enough of its beginning. Claims it first where that has not happened.
    """
    instance = instance_of(session or os.environ.get("MAILGATEWAY_SESSION"))
    with client_of(settings_of(config)) as client:
        try:
            client.claim(delivery, instance)
        except ApiRefused as refused:
            if refused.code != "acked":
                raise
        client.ack(delivery, instance)
    say({"id": delivery, "acked": True}, f"Taken over: {delivery}", as_json=as_json)


def _wait_for_questions(
    client: Client, session: str, instance: str, seconds: float, *, as_json: bool
) -> None:
    from mailgateway.cli.questions import wait_for_questions  # noqa: PLC0415 - the usual wait needs none of it

    client.ping(session, instance)  # a service that is not there is told at once, not waited for
    woken = wait_for_questions(client, session, instance, seconds=seconds)
    match woken["type"]:
        case "timeout":
            fail(Exit.FAILED, "nothing_came", f"Nothing came within {seconds:g} s.", as_json=as_json)
        case "no_actionable_questions":
            fail(
                Exit.FAILED, "no_actionable_questions", "No question of the session is open.", as_json=as_json
            )
        case "answer":
            words = f"Question {woken['questionId']} was answered."
        case _:
            words = f"Question {woken['questionId']} has ended without an answer."
    say(woken, [words, f"Read it: mailgateway questions {woken['questionId']} --answer"], as_json=as_json)


def _first_line(text: str, width: int = 50) -> str:
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= width else f"{line[: width - 1]}…"
