"""``outbox``: the mails on their way, and what may be done about one of them."""

from datetime import UTC, datetime

import click

from mailgateway.cli.report import facts, say, shared, table, when
from mailgateway.cli.service import client_of, settings_of
from mailgateway.client.answers import Outbox

STATES = ("open", "queued", "sending", "unclear", "failed", "sent", "cancelled", "carried", "all")
MOST = 200
SUBJECT_WIDTH = 50


@click.group("outbox", invoke_without_command=True)
@click.option(
    "--state",
    type=click.Choice(STATES),
    default="open",
    show_default=True,
    help="Which mails; open are those that wait for something.",
)
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="How many.")
@click.pass_context
@shared
def outbox_command(
    context: click.Context, state: str, limit: int, config: str | None, *, as_json: bool
) -> None:
    """List the mails that wait to be sent; try or drop one."""
    if context.invoked_subcommand is not None:
        return
    with client_of(settings_of(config)) as client:
        page = client.outbox_list(None if state == "all" else state, limit=limit)
    now = datetime.now(UTC)
    rows = [
        (mail["id"], _state(mail), when(mail["createdAt"], now).partition(" (")[0], _cut(mail["subject"]))
        for mail in page["mails"]
    ]
    lines = table(("ID", "STATE", "SUBMITTED", "SUBJECT"), rows)
    if page.get("nextCursor"):
        lines.append(f"There are more; --limit shows up to {MOST}.")
    say(page, lines or "No mail waits to be sent.", as_json=as_json)


@outbox_command.command("show")
@click.argument("mail", metavar="ID")
@shared
def show_command(mail: str, config: str | None, *, as_json: bool) -> None:
    """Say how far a mail has come."""
    with client_of(settings_of(config)) as client:
        found = client.outbox(mail)
    say(found, _lines(found), as_json=as_json)


@outbox_command.command("retry")
@click.argument("mail", metavar="ID")
@click.option("--unclear", is_flag=True, help="Also when it may have arrived: the person may get it twice.")
@shared
def retry_command(mail: str, config: str | None, *, unclear: bool, as_json: bool) -> None:
    """Try a mail now that waits or has failed."""
    with client_of(settings_of(config)) as client:
        found = client.retry(mail, unclear=unclear)
    say(found, f"It is tried now: {found['subject']}", as_json=as_json)


@outbox_command.command("drop")
@click.argument("mail", metavar="ID")
@shared
def drop_command(mail: str, config: str | None, *, as_json: bool) -> None:
    """Try a mail no more; a question in it is over."""
    with client_of(settings_of(config)) as client:
        found = client.drop(mail)
    say(found, f"Dropped: {found['subject']}", as_json=as_json)


def _state(mail: Outbox) -> str:
    return "held back" if mail.get("heldUntil") else mail["state"]


def _cut(subject: str) -> str:
    line = " ".join(subject.split())
    return line if len(line) <= SUBJECT_WIDTH else f"{line[: SUBJECT_WIDTH - 1]}…"


def _lines(mail: Outbox) -> list[str]:
    now = datetime.now(UTC)
    pairs = [
        ("Subject", mail["subject"]),
        ("Kind", mail["kind"]),
        ("Session", mail["sessionId"]),
        ("State", _state(mail)),
        ("Attempts", str(mail["attempts"])),
        ("Submitted", when(mail["createdAt"], now)),
        ("Held until", when(mail.get("heldUntil"), now) if mail.get("heldUntil") else ""),
        ("Next attempt", when(mail.get("nextAttemptAt"), now) if mail.get("nextAttemptAt") else ""),
        ("Left within", mail.get("carriedBy") or ""),
        ("Last error", mail["lastError"]),
        *((f"To {one['address']}", one["state"]) for one in mail["recipients"]),
    ]
    return facts([(name, value) for name, value in pairs if value])
