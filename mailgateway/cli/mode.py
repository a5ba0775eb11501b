"""``on``, ``off`` and ``reload``."""

from typing import Literal

import click

from mailgateway.cli.report import Exit, fail, say, shared
from mailgateway.cli.service import client_of, settings_of


def _switch(mode: Literal["on", "off"], config: str | None, *, as_json: bool) -> None:
    with client_of(settings_of(config)) as client:
        current = client.set_mode(mode)
    words = {
        "on": "On: sessions may write, and replies are handed out.",
        "off": "Off: replies are kept, and nothing is mailed until `mailgateway on`.",
    }
    say({"mode": current}, words[current], as_json=as_json)


@click.command("on")
@shared
def on_command(config: str | None, *, as_json: bool) -> None:
    """Switch the gateway on for this machine."""
    _switch("on", config, as_json=as_json)


@click.command("off")
@shared
def off_command(config: str | None, *, as_json: bool) -> None:
    """Switch the gateway off for this machine.

    Mail is still read and kept; it is handed out when the gateway is on again.
    """
    _switch("off", config, as_json=as_json)


@click.command("reload")
@shared
def reload_command(config: str | None, *, as_json: bool) -> None:
    """Let the service read its settings again.

    When they are wrong the old ones stay.
    """
    with client_of(settings_of(config)) as client:
        answer = client.reload()
    warning = answer.get("warning")
    if warning:
        fail(Exit.FAILED, "invalid_settings", f"The old settings stay: {warning}", as_json=as_json)
    say(answer, "The new settings hold.", as_json=as_json)
