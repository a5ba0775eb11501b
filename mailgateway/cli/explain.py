"""``explain``: how the gateway would treat mail files."""

import json
import sys
from pathlib import Path

import click

from mailgateway.cli.report import shared
from mailgateway.cli.service import found_settings


@click.command("explain")
@click.argument("mails", nargs=-1, required=True, metavar="MAIL...", type=click.Path())
@click.option(
    "--context",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="JSON: what a running gateway would know of itself and of the mail that is answered.",
)
@shared
def explain_command(
    mails: tuple[str, ...],
    context: Path | None,
    config: str | None,
    *,
    as_json: bool,  # noqa: ARG001 - the answer is JSON in any case
) -> None:
    """Say how the gateway would treat these mails.

    MAIL is a file in the form of RFC 5322; `-` is standard input. Needs no service; the answer is one JSON
    object in one line for each file. What cannot be read is of the kind "malformed".
    """
    # Imported here: the reading of mail costs a start that the other verbs need not pay.
    from mailgateway.operator.explain import explain_files, read_context  # noqa: PLC0415

    settings = found_settings(config)
    known = read_context(context) if context is not None else None
    for line in explain_files(mails, settings, known, sys.stdin.buffer):
        click.echo(json.dumps(line))
