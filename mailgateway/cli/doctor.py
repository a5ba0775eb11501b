"""``doctor``: test every part, and say what to do."""

import os
from pathlib import Path

import click

from mailgateway.cli.progress import conclude, progress
from mailgateway.cli.report import shared
from mailgateway.settings import load

SECONDS = 900.0


@click.command("doctor")
@click.option("--offline", is_flag=True, help="Ask nobody outside this machine.")
@click.option("--mail/--no-mail", default=True, help="Send a mail from each account to itself.")
@click.option("--force", is_flag=True, help="Log in although the service has stopped trying.")
@shared
def doctor_command(config: str | None, *, as_json: bool, offline: bool, mail: bool, force: bool) -> None:
    """Test every part, and say what to do.

    Files, disk, clock, the service, both servers of each account, folders, DNS of your domain, and the public
    address; and a mail from each account to itself, unless --no-mail. Nothing else is changed or sent. It
    works with and without the running service.
    """
    # Imported here: the mail dialogues and the reactor are paid for by this verb alone.
    from mailgateway.operator.doctor import Doctor  # noqa: PLC0415
    from mailgateway.operator.running import run  # noqa: PLC0415

    settings = load(config, os.environ)
    home = Path(os.environ.get("HOME") or "/")
    with progress(as_json=as_json) as tell:
        findings = run(
            lambda reactor: Doctor(
                reactor, settings, tell, home, offline=offline, mail=mail, again=force
            ).run(),
            seconds=SECONDS,
        )
    conclude(findings, as_json=as_json, more={"config": str(settings.source)})
