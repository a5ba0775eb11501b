"""The unit files of systemd, as they fit this installation.

The texts are those of ``data/systemd``; what changes is where the programs are, which settings they read, and
which file the credential is.  Nothing is run here.
"""

import sys
from importlib.resources import files
from pathlib import Path

from attrs import frozen

from mailgateway.errors import ConfigError, Problem
from mailgateway.settings.file import SYSTEM_FILE

USER_UNIT = "mailgateway.service"
SYSTEM_UNIT = "mailgateway-system.service"
SOCKET_UNIT = "mailgateway.socket"
SYSTEM_FOLDER = Path("/etc/systemd/system")
_USER_PROGRAMS = "%h/.local/share/mailgateway/venv/bin"
_SYSTEM_PROGRAMS = "/opt/mailgateway/venv/bin"
_HIDDEN = (Path("/home"), Path("/root"), Path("/run/user"))
"""What ``ProtectHome=`` takes away from the system unit."""


@frozen
class Unit:
    """A unit file that is to be written."""

    path: Path
    text: str


def programs() -> Path:
    """The folder with ``twistd`` and ``mailgateway`` of the environment that runs us."""
    folder = Path(sys.executable).parent
    if not (folder / "twistd").exists():
        message = (
            f"there is no twistd in {folder}; install mailgateway into an environment of its own (venv, pipx)"
        )
        raise ConfigError([Problem("--systemd", message)])
    return folder


def visible_to_the_system(folder: Path) -> None:
    """``ConfigError`` for programs in a home, which the system unit cannot see."""
    if any(folder.is_relative_to(each) for each in _HIDDEN):
        message = (
            f"the system unit cannot see {folder}; install mailgateway below /opt and run setup from there"
        )
        raise ConfigError([Problem("--systemd", message)])


def user_units(folder: Path, config: Path | None, home: Path) -> tuple[Unit, ...]:
    """The unit of the person; ``config`` where the settings are not in their usual place."""
    flags = f" --config {_word(str(config))}" if config is not None else ""
    text = _text(USER_UNIT).replace(_USER_PROGRAMS, _word(str(folder)))
    text = text.replace("--nodaemon mailgateway\n", f"--nodaemon mailgateway{flags}\n")
    text = text.replace("mailgateway reload\n", f"mailgateway reload{flags}\n")
    return (Unit(home / ".config" / "systemd" / "user" / USER_UNIT, text),)


def system_units(
    folder: Path, config: Path, secret: Path | None, place: Path = SYSTEM_FOLDER
) -> tuple[Unit, ...]:
    """The units of the machine; ``secret`` is the file of the credential, where there is one."""
    text = _text(SYSTEM_UNIT).replace(_SYSTEM_PROGRAMS, _word(str(folder)))
    text = text.replace(f"--config {SYSTEM_FILE}", f"--config {_word(str(config))}")
    lines = [
        line if not line.startswith("LoadCredential=") else f"LoadCredential=mail:{_escaped(str(secret))}"
        for line in text.splitlines()
        if secret is not None or not line.startswith("LoadCredential=")
    ]
    return (
        Unit(place / SYSTEM_UNIT, "\n".join(lines) + "\n"),
        Unit(place / SOCKET_UNIT, _text(SOCKET_UNIT)),
    )


def _text(name: str) -> str:
    """A unit without the remarks at its head, which tell how to install it by hand."""
    whole = files("mailgateway").joinpath("data", "systemd", name).read_text("utf-8")
    return "# Written by `mailgateway setup`.\n\n" + whole[whole.index("[Unit]") :]


def _escaped(text: str) -> str:
    """A text in which systemd sees no specifier (systemd.unit(5))."""
    return text.replace("%", "%%")


def _word(text: str) -> str:
    """A path as one word of a command line (systemd.service(5))."""
    if any(char in text for char in "\"'\\ \t;$"):
        message = f"{text}: a folder of such a name cannot stand in a unit"
        raise ConfigError([Problem("--systemd", message)])
    return _escaped(text)
