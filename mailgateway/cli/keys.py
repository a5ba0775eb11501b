"""``token`` and ``secret``: what scripts need that cannot reach the service."""

import os

import click

from mailgateway.cli.report import say, shared
from mailgateway.cli.service import session_of, session_option, settings_of
from mailgateway.secrets import SESSION_KEY


@click.group("token")
def token_command() -> None:
    """Make a signed token for a subject."""


@token_command.command("mint")
@click.option("--hours", type=click.IntRange(1, 8_760), help="Life of the token; else route_ttl_hours.")
@session_option
@shared
def mint_command(hours: int | None, session: str | None, config: str | None, *, as_json: bool) -> None:
    """Make a token that routes a mail to the session.

    It stands in the subject of a mail that is sent without the service. It needs the session key, and routes
    only: who may answer is decided by the sender's address and its authentication.
    """
    from mailgateway.operator.token import mint_for  # noqa: PLC0415 - only this verb pays for it

    name = session_of(session)
    settings = settings_of(config)
    minted = mint_for(settings, name, hours or settings.security.route_ttl_hours)
    say(
        {"token": minted.text, "expiresAt": minted.expires_at, "sessionId": name},
        minted.text,
        as_json=as_json,
    )


@click.group("secret")
def secret_command() -> None:
    """Say where the session key is."""


@secret_command.command("path")
@shared
def path_command(config: str | None, *, as_json: bool) -> None:
    """Print the path of the session key, never the key."""
    path = settings_of(config).daemon.state_dir / SESSION_KEY
    say({"path": str(path), "exists": os.access(path, os.F_OK)}, str(path), as_json=as_json)
