"""How a verb finds the service, and who it is when it speaks for a session."""

import hashlib
import os
from pathlib import Path

import click

from mailgateway.client import Client
from mailgateway.client.of_settings import base_of_settings
from mailgateway.errors import ConfigError
from mailgateway.secrets import PERSON_KEY, SESSION_KEY
from mailgateway.settings import Settings, config_path, load


def settings_of(config: str | None) -> Settings:
    """Read the settings; what only the service may read is not looked at."""
    return load(config, os.environ, check_files=False)


def found_settings(config: str | None) -> Settings | None:
    """Read the settings if there are any; wrong ones, and named ones that are missing, are still an error."""
    try:
        config_path(config, os.environ)
    except ConfigError:
        return None
    return settings_of(config)


def client_of(settings: Settings) -> Client:
    """Make a client with the session key; with the key of ``$MAILGATEWAY_KEY_FILE`` where that is set.

    Such a key is one of ``[keys]``, for those who cannot read ``secret.key``: the service does not prove
    itself with it.
    """
    other = os.environ.get("MAILGATEWAY_KEY_FILE")
    base = base_of_settings(settings)
    if other:
        return Client(base, Path(other), prove=False)
    return Client(base, settings.daemon.state_dir / SESSION_KEY)


def person_client_of(settings: Settings) -> Client | None:
    """Make a client with the person's key; ``None`` where this user may not read it, or there is none."""
    key = settings.daemon.state_dir / PERSON_KEY
    if os.environ.get("MAILGATEWAY_KEY_FILE") or not os.access(key, os.R_OK):
        return None
    return Client(base_of_settings(settings), key, proof_path=settings.daemon.state_dir / SESSION_KEY)


def session_of(given: str | None) -> str:
    """Name the session that the verb speaks for, or end with the usage."""
    session = given or os.environ.get("MAILGATEWAY_SESSION")
    if not session:
        raise click.UsageError("Name the session: --session ID, or set MAILGATEWAY_SESSION.")
    return session


def instance_of(session: str | None) -> str:
    """Name the instance that claims for the session: the same in every shell of this user.

    One verb claims and another acks, in two processes; ``$MAILGATEWAY_INSTANCE`` is for shells that act for
    an instance that is there already.
    """
    given = os.environ.get("MAILGATEWAY_INSTANCE")
    if given:
        return given
    digest = hashlib.sha256(f"{os.getuid()}\0{session or ''}".encode()).hexdigest()
    return f"shell-{digest[:16]}"


session_option = click.option("--session", metavar="ID", help="The session; else $MAILGATEWAY_SESSION.")
