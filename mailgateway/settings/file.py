"""Finding and reading the settings file: the one place that opens it."""

import os
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path

from mailgateway.errors import ConfigError, Problem
from mailgateway.secrets import PasswordFile, check_private
from mailgateway.settings.rules import parse
from mailgateway.settings.values import Settings

LARGEST_FILE = 4_000_000
USER_FILE = Path("mailgateway", "config.toml")
SYSTEM_FILE = Path("/etc/mailgateway/config.toml")


def config_path(given: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Path:
    """Where the settings are: as given, else ``$MAILGATEWAY_CONFIG``, else the user's, else the system's.

    A path that was given or set is not looked for elsewhere; of the last two the first that exists counts.
    ``ConfigError`` when neither does.
    """
    if given or environ.get("MAILGATEWAY_CONFIG"):
        return Path(given or environ["MAILGATEWAY_CONFIG"]).absolute()
    places = [SYSTEM_FILE]
    if home := environ.get("HOME"):
        places.insert(0, Path(home, ".config", USER_FILE))
    if folder := environ.get("XDG_CONFIG_HOME"):
        places[:-1] = [Path(folder, USER_FILE)]
    for place in places:
        if os.access(place, os.F_OK):
            return place
    looked = " and ".join(str(place) for place in places)
    message = (
        f"there are no settings; looked for {looked}; make them with `mailgateway setup ADDRESS`, or name "
        "another file with --config"
    )
    raise ConfigError([Problem("", message)])


def load(
    path: str | os.PathLike[str] | None, environ: Mapping[str, str], *, check_files: bool = True
) -> Settings:
    """Find, read and check the settings, or raise ``ConfigError`` with all that is wrong.

    ``check_files`` also looks whether the files that they name (passwords, trust anchors, keys) are there
    and closed to others: the service wants that; a client, who may not read them, does not.
    """
    source = config_path(path, environ)
    try:
        with source.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError([Problem(str(source), f"cannot be read: {error.strerror}")]) from None
    if len(data) > LARGEST_FILE:
        raise ConfigError([Problem(str(source), f"is larger than {LARGEST_FILE} bytes")])
    try:
        mapping = tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise ConfigError([Problem(str(source), "is not UTF-8 text")]) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError([Problem(str(source), f"is not TOML: {error}")]) from None
    settings = parse(mapping, environ, source=source, host_name=socket.gethostname())
    if check_files:
        problems = files_problems(settings)
        if problems:
            raise ConfigError(problems)
    return settings


def files_problems(settings: Settings) -> list[Problem]:
    """What is wrong with the files that the settings name: missing, unreadable, or open to others."""
    problems = []
    for tag, account in settings.accounts.items():
        seen = set()
        for kind, server in (("imap", account.imap), ("smtp", account.smtp)):
            path = f"accounts.{tag}.{kind}"
            match server.secret:
                case PasswordFile(path=file) if file not in seen:
                    seen.add(file)
                    problems += check_private(file, f"{path}.password_file")
            if server.ca_file is not None and server.ca_file not in seen:
                seen.add(server.ca_file)
                if not os.access(server.ca_file, os.R_OK):
                    problems.append(Problem(f"{path}.ca_file", f"{server.ca_file} cannot be read"))
    for name, registration in settings.oauth.items():
        if registration.client_secret_file is not None:
            problems += check_private(registration.client_secret_file, f"oauth.{name}.client_secret_file")
    for name, key in settings.keys.items():
        problems += check_private(key.file, f"keys.{name}.file")
    return problems
