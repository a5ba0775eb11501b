"""``wait``, ``inbox`` and ``ack``: what a session receives, from a shell."""

import os
import sys
from datetime import UTC, datetime

import click

from mailgateway.cli.report import Exit, fail, say, shared, table, when
from mailgateway.cli.service import client_of, instance_of, session_of, session_option, settings_of
from mailgateway.cli.waiting import next_delivery
from mailgateway.client import ApiRefused


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
@session_option
@shared
def wait_command(
    seconds: float, session: str | None, config: str | None, *, no_ack: bool, as_json: bool
) -> None:
    """Wait for the next message to the session, and take it.

    Prints the message, then takes it over for good: whoever reads this output has it.
    """
    name = session_of(session)
    instance = instance_of(name)
    with client_of(settings_of(config)) as client:
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


def _first_line(text: str, width: int = 50) -> str:
    line = next((" ".join(line.split()) for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= width else f"{line[: width - 1]}…"
