"""Handing the service to systemd: the unit files are written, and what is left to type is told.

Policy: nothing is started, and nobody is made a user, unless ``--enable`` was said; and then by the very
commands that are told otherwise.
"""

import grp
import os
import pwd
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Final

from attrs import define, field, frozen

from mailgateway.errors import ConfigError, Problem
from mailgateway.operator import units
from mailgateway.operator.plan import SYSTEM_GROUP, SYSTEM_KEY
from mailgateway.operator.settings_file import FOR_ALL, FOR_THE_GROUP, put
from mailgateway.settings.file import USER_FILE

COMMAND_SECONDS: Final = 90.0


@frozen
class Installed:
    """The units that were written, the commands that remain, and what went wrong with the first of them."""

    units: tuple[Path, ...]
    commands: tuple[str, ...]
    started: bool = False
    trouble: str = ""


@define(eq=False)
class Installation:
    """How the service is to be run: ``kind`` is ``user``, ``system``, or empty for by hand."""

    kind: str
    enable: bool
    environ: Mapping[str, str]
    unit_folder: Path = units.SYSTEM_FOLDER
    key: Path = Path(SYSTEM_KEY)
    _programs: Path | None = field(default=None, init=False)

    def ready(self) -> None:
        """Look beforehand whether it can be done; ``ConfigError`` when it cannot."""
        if self.kind:
            self._programs = units.programs()
        if self.kind == "system":
            units.visible_to_the_system(self._programs or Path())
            if not os.access(self.unit_folder, os.W_OK):
                message = f"{self.unit_folder} cannot be written; run setup as root, or use --systemd user"
                raise ConfigError([Problem("--systemd", message)])

    def prepare(self) -> None:
        """Make what the settings of the machine's service name: the key of the group's agents."""
        if self.kind == "system" and not self.key.exists():
            put(self.key, f"{os.urandom(32).hex()}\n", FOR_THE_GROUP)

    def install(self, config: Path, secret: Path | None, *, start: bool) -> Installed | None:
        """Write the units; run the commands if that was wished and ``start`` is well."""
        if self._programs is None:
            return None
        made = self._units(self._programs, config, secret)
        try:
            for unit in made:
                put(unit.path, unit.text, FOR_ALL)
        except OSError as error:
            message = f"the unit cannot be written: {error.strerror}"
            raise ConfigError([Problem("--systemd", message)]) from None
        paths = tuple(unit.path for unit in made)
        commands = self._commands()
        told = tuple(" ".join(each) for each in commands)
        if not (self.enable and start):
            return Installed(paths, told)
        for number, command in enumerate(commands):
            if trouble := _failed(command):
                return Installed(paths, told[number:], trouble=trouble)
        return Installed(paths, (), started=True)

    def _units(self, programs: Path, config: Path, secret: Path | None) -> tuple[units.Unit, ...]:
        if self.kind == "system":
            return units.system_units(programs, config, secret, self.unit_folder)
        home = Path(self.environ.get("HOME", "~")).expanduser()
        usual = home / ".config" / USER_FILE
        return units.user_units(programs, None if config == usual else config, home)

    def _commands(self) -> list[Sequence[str]]:
        if self.kind == "user":
            return [
                ("systemctl", "--user", "daemon-reload"),
                ("systemctl", "--user", "enable", "--now", "mailgateway"),
                ("loginctl", "enable-linger"),
            ]
        commands: list[Sequence[str]] = []
        if not _known(pwd.getpwnam) or not _known(grp.getgrnam):
            shell = "/usr/sbin/nologin"
            commands.append(("useradd", "--system", "--no-create-home", "--shell", shell, SYSTEM_GROUP))
        return [
            *commands,
            ("chgrp", SYSTEM_GROUP, str(self.key)),
            ("systemctl", "daemon-reload"),
            ("systemctl", "enable", "--now", "mailgateway-system", "mailgateway.socket"),
        ]


def _known(look: Callable[[str], object]) -> bool:
    """Whether the user, or the group, is there."""
    try:
        look(SYSTEM_GROUP)
    except KeyError:
        return False
    return True


def _failed(command: Sequence[str]) -> str:
    """Run a command; a sentence when it failed."""
    program = which(command[0])
    if program is None:
        return f"{command[0]} is not there"
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            [program, *command[1:]], capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"`{' '.join(command)}` did not end within {COMMAND_SECONDS:g} s"
    if done.returncode:
        return f"`{' '.join(command)}` failed: {done.stderr.strip()[:300] or done.returncode}"
    return ""
