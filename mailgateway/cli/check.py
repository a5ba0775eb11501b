"""``check``: whether the settings are right and both servers let us in, without sending."""

import os

import click

from mailgateway.cli.progress import conclude, progress
from mailgateway.cli.report import shared
from mailgateway.settings import load

SECONDS = 600.0


@click.command("check")
@click.option("--force", is_flag=True, help="Log in although the service has stopped trying.")
@shared
def check_command(config: str | None, *, as_json: bool, force: bool) -> None:
    """Check the settings and log in to both servers, without sending.

    Each password is tried once. While the service says that one was refused, it is not tried at all: after
    you have changed it, use --force.
    """
    # Imported here: the mail dialogues and the reactor are paid for by this verb alone.
    from mailgateway.operator.check import check  # noqa: PLC0415
    from mailgateway.operator.running import run  # noqa: PLC0415

    settings = load(config, os.environ)
    with progress(as_json=as_json) as tell:
        findings = run(lambda reactor: check(reactor, settings, tell, again=force), seconds=SECONDS)
    more = {"config": str(settings.source)}
    conclude(findings, as_json=as_json, more=more, end="Nothing was sent.")
