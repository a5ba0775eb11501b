"""What surrounds the service on this machine: its files, its disk, its lock, its clock, the service manager.

Each function looks at one thing and tells it into a record.  Nothing is changed, and no secret is read.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mailgateway.client import ApiRefused, ServiceUnreachable, WrongService
from mailgateway.client.of_settings import base_of_settings
from mailgateway.client.service_lock import holder_of, service_is_gone
from mailgateway.contract import API_VERSION
from mailgateway.errors import ConfigError
from mailgateway.operator.findings import Record, State
from mailgateway.operator.service import health_of
from mailgateway.secrets import NOT_OURS, PERSON_KEY, SESSION_KEY
from mailgateway.settings import Authentication, Settings

MEGABYTE: Final = 1_000_000
TOO_LITTLE: Final = 100 * MEGABYTE
"""With less room than this a mail with attachments may not fit."""
LITTLE: Final = 1000 * MEGABYTE
COMMAND_SECONDS: Final = 5.0
SYSTEMD: Final = Path("/run/systemd/system")
"""Where it is, systemd runs this machine (sd_booted(3))."""


def look_at_files(settings: Settings, record: Record) -> None:
    """Who may read and write the settings and the state."""
    source = settings.source
    if source is not None:
        mode = stat.S_IMODE(source.stat().st_mode)
        if mode & 0o022:
            what = f"others may write {source} (mode {mode:04o}), and so decide who is heard"
            record.fail("settings file", what, f"Run: chmod go-w {source}")
    folder = settings.daemon.state_dir
    try:
        facts = folder.stat()
    except FileNotFoundError:
        record.note("state directory", f"{folder} is not there yet: the service makes it at its first start")
        return
    except OSError as error:
        record.fail(
            "state directory", f"{folder} cannot be looked at: {error.strerror}", "Run it as its user."
        )
        return
    mode = stat.S_IMODE(facts.st_mode)
    if not stat.S_ISDIR(facts.st_mode):
        record.fail("state directory", f"{folder} is no directory", "Name another one as `daemon.state_dir`.")
    elif facts.st_uid not in {os.geteuid(), 0} or not os.access(folder, os.W_OK):
        what = f"{folder} belongs to the user with number {facts.st_uid}, and not to you"
        record.warn("state directory", what, "Run this as the user of the service, to see what it sees.")
    elif mode & NOT_OURS:
        what = f"{folder} is open to others (mode {mode:04o}), who might replace the keys in it"
        record.warn("state directory", what, f"Run: chmod 700 {folder} (the service does so at its start)")
    else:
        record.ok("state directory", f"{folder} is yours alone")
    for name in (SESSION_KEY, PERSON_KEY):
        key = folder / name
        try:
            mode = stat.S_IMODE(key.stat().st_mode)
        except OSError:
            continue
        if mode & 0o077:
            what = f"{key} is open to others (mode {mode:04o})"
            record.fail(
                "state directory", what, "Remove it and restart: a key that others read is theirs, too."
            )


def look_at_disk(settings: Settings, record: Record) -> None:
    """How much room there is for the database."""
    folder = settings.daemon.state_dir
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        record.fail(
            "disk", f"the disk of {folder} cannot be looked at: {error.strerror}", "Look at its mounts."
        )
        return
    what = f"{free / MEGABYTE:,.0f} MB are free at {folder}"
    advice = "Make room: mail is taken over only when it could be written down."
    if free < TOO_LITTLE:
        record.fail("disk", what, advice)
    elif free < LITTLE:
        record.warn("disk", what, advice)
    else:
        record.ok("disk", what)


def look_at_service(settings: Settings, record: Record) -> bool:
    """Whether the service runs, holds the lock, and is of this version; whether it answers."""
    folder = settings.daemon.state_dir
    base = base_of_settings(settings)
    holder = holder_of(folder)
    try:
        record.begin("service", f"asking {base}")
        health = health_of(settings)
    except WrongService:
        what = f"whoever answers at {base} is not the service of {folder}"
        advice = "Another program has the port: stop it, or change `daemon.port`. No key was sent there."
        record.fail("service", what, advice)
        return False
    except (ServiceUnreachable, ConfigError) as error:
        if not service_is_gone(folder):
            who = f"process {holder}" if holder else "a process"
            what = f"{who} holds {folder}, and there is no answer at {base}: {_reason(error)}"
            advice = "It hangs, or has other settings than these. Run: mailgateway restart"
            record.fail("service", what, advice)
        elif isinstance(error, ServiceUnreachable) or not (folder / SESSION_KEY).exists():
            record.note("service", "it does not run", "Start it: mailgateway ensure")
        else:
            record.add(
                "service", State.SKIPPED, f"it cannot be asked: {_reason(error)}", "Run it as its user."
            )
        return False
    except ApiRefused as error:
        record.fail("service", f"it refuses to tell how it is: {error}", "Run: mailgateway restart")
        return False
    version, api = str(health.get("version", "")), health.get("apiVersion")
    what = f"version {version} answers at {base}, process {holder or 'unknown'} holds the lock"
    if api == API_VERSION:
        record.ok("service", what)
    else:
        what = f"{what}; it speaks version {api} of the API, and this program version {API_VERSION}"
        record.fail("service", what, "Run: mailgateway restart")
    if health.get("status") == "store_unavailable":
        record.fail("service", "it cannot use its database now", "Look at the disk and at its log.")
    if health.get("mode") == "off":
        record.note("service", "it is switched off: replies are kept", "Switch it on: mailgateway on")
    return True


def look_at_people(settings: Settings, record: Record) -> None:
    """Whether those who are heard, written to and obeyed fit each other."""
    people = settings.people
    allowed = {each.lower() for each in people.allowed}
    ours = {account.address.lower() for account in settings.watched}
    wrong = False
    for name, addresses in (("may_approve", people.may_approve), ("may_command", people.may_command)):
        deaf = [each for each in addresses if each.lower() not in allowed]
        if deaf:
            wrong = True
            what = f"{', '.join(deaf)} stands in people.{name}, and is not heard"
            record.warn("people", what, "Name it in people.allowed, too, or take it out.")
    if settings.security.authentication is Authentication.REQUIRED and allowed & ours:
        wrong = True
        what = f"people.allowed names {', '.join(sorted(allowed & ours))}, the agents' own mailbox"
        advice = 'Name your own address; or, for one mailbox, set security.authentication = "single-mailbox".'
        record.warn("people", what, advice)
    if not wrong:
        number = len(people.allowed)
        heard = f"{number} address is" if number == 1 else f"{number} addresses are"
        record.ok("people", f"{heard} heard, and {people.notify} is written to")


def look_at_clock(record: Record) -> None:
    """Whether the clock of this machine is set by the network, as far as systemd knows."""
    told = _told(["timedatectl", "show", "--property=NTPSynchronized", "--value"]) if SYSTEMD.exists() else ""
    if told == "yes":
        record.ok("clock", "the clock of this machine is set by the network")
    elif told == "no":
        what = "the clock of this machine is not set by the network"
        record.warn(
            "clock", what, "Run: timedatectl set-ntp true. Times of mails and signatures depend on it."
        )
    else:
        record.note("clock", "it is unknown whether the clock of this machine is right")


def look_at_manager(record: Record, home: Path) -> None:
    """Whether a unit of the user's goes on when nobody is logged in."""
    unit = home / ".config/systemd/user/mailgateway.service"
    if not (SYSTEMD.exists() and unit.exists()):
        return
    told = _told(["loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value"])
    if told == "yes":
        record.ok("service manager", "the service goes on when you are not logged in")
    else:
        what = "the service ends when you log out"
        record.warn("service manager", what, "Run: loginctl enable-linger")


def _told(command: Sequence[str]) -> str:
    """What a command of the system prints; ``""`` when it cannot."""
    path = shutil.which(command[0])
    if path is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            [path, *command[1:]], capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _reason(error: Exception) -> str:
    return str(error).rstrip(".")
