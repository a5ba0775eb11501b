"""``login``: a way into the web inbox for a person, from the terminal to the phone."""

import io
from datetime import UTC, datetime

import click

from mailgateway.cli.report import say, shared, when
from mailgateway.cli.service import client_of, person_client_of, settings_of


@click.command("login")
@click.option("--no-qr", "plain", is_flag=True, help="Print the link alone.")
@shared
def login_command(config: str | None, *, plain: bool, as_json: bool) -> None:
    """Make a link that logs a person in to the web inbox.

    The link works once, for ten minutes; open it, or point a phone at the QR code. Needs `person.key`; with
    `person_door = "web"` there is no such key, and the link is mailed to the person instead.
    """
    settings = settings_of(config)
    with person_client_of(settings) or client_of(settings) as client:
        made = client.login_link()
    until = when(made["expiresAt"], datetime.now(UTC))
    url = made.get("url")
    if url is None:
        say(made, [f"A link was mailed to {made.get('mailedTo')}; it ends {until}."], as_json=as_json)
        return
    lines = [url, f"It logs one device in, and ends {until}."]
    if not plain:
        lines = [*_code(url), *lines]
    say(made, lines, as_json=as_json)


def _code(url: str) -> list[str]:
    """A QR code, two rows of it in one line (ISO/IEC 18004)."""
    import segno  # noqa: PLC0415 - only this verb pays for it

    drawn = io.StringIO()
    segno.make(url, error="m", micro=False).terminal(out=drawn, compact=True, border=2)
    return drawn.getvalue().rstrip("\n").split("\n")
