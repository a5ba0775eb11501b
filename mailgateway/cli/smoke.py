"""``smoke``: send a mail to the account itself, and wait until it is there."""

import os
from typing import TYPE_CHECKING

import click

from mailgateway.cli.progress import conclude, progress
from mailgateway.cli.report import shared
from mailgateway.settings import load

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime

    from mailgateway.operator.findings import Tell
    from mailgateway.operator.smoked import Smoked
    from mailgateway.settings import Account, Settings

AROUND = 300.0
"""Seconds for the logins and the sending of one account, at most."""


@click.command("smoke")
@click.option("--account", "tag", default="", help="Only this account; otherwise all that are watched.")
@click.option("--to", default="", help="Another address that leads to the mailbox, an alias.")
@click.option("--plus", is_flag=True, help="Send a second mail, to the plus-address.")
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    default=120.0,
    show_default=True,
    help="How long to wait for the mail.",
)
@click.option("--force", is_flag=True, help="Log in although the service has stopped trying.")
@shared
def smoke_command(
    config: str | None, *, as_json: bool, tag: str, to: str, plus: bool, seconds: float, force: bool
) -> None:
    """Send a mail to the account itself, and wait until it is there.

    It says how long both halves took, where the mail lies, whether the server gave it another Message-ID,
    and who vouches for mail there. Nothing is deleted: the mail stays in the mailbox, and may be deleted.
    """
    # Imported here: the mail dialogues and the reactor are paid for by this verb alone.
    from mailgateway.operator.running import run  # noqa: PLC0415

    settings = load(config, os.environ)
    accounts = [each for each in settings.watched if tag in {"", str(each.tag)}]
    if not accounts:
        raise click.UsageError(f"there is no watched account {tag}" if tag else "no account is watched")
    if to and len(accounts) > 1:
        raise click.UsageError("--to needs --account, since there are several accounts")
    if to.count("@") != 1:
        if to:
            raise click.UsageError("--to must be an address")
        to = ""
    with progress(as_json=as_json) as tell:
        done = run(
            lambda reactor: _each(
                reactor, settings, accounts, tell, to=to, plus=plus, again=force, seconds=seconds
            ),
            seconds=len(accounts) * (seconds + AROUND),
        )
    findings = [finding for each in done for finding in each.findings]
    more = {"config": str(settings.source), "accounts": [each.as_dict() for each in done]}
    conclude(findings, as_json=as_json, more=more, end="Mail goes out and comes back.")


async def _each(
    reactor: "IReactorTime",
    settings: "Settings",
    accounts: "list[Account]",
    tell: "Tell",
    *,
    to: str,
    plus: bool,
    again: bool,
    seconds: float,
) -> "list[Smoked]":
    """One account after the other."""
    from mailgateway.operator.smoke import smoke  # noqa: PLC0415

    return [
        await smoke(reactor, settings, each, tell, to=to, plus=plus, again=again, seconds=seconds)
        for each in accounts
    ]
