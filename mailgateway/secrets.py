"""Where secrets come from, and the files of the state directory that hold our own.

A secret's *source* is a value and may be shown; the secret itself never stands in a settings value, a
message or a repr.  Sources that run a program (``PasswordCommand``, ``TokenCommand``) or ask a provider
(``OAuthGrant``) are only described here: whoever owns a reactor runs or asks them, with a deadline.

Files of our own are made first-writer-wins: many processes may start at once, and all of them must end up
with the same key.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from mailgateway.errors import ConfigError, Problem
from mailgateway.ids import MachineId

SHORTEST_KEY = 32
LARGEST_SECRET = 64 * 1024

SESSION_KEY = "secret.key"
PERSON_KEY = "person.key"
"""The file in the state directory with the key of sessions, which the service proves itself with, too."""

NOT_OURS = 0o027
"""What the state directory permits nobody: its group to write, and others to do anything."""


@frozen
class PasswordFile:
    """A file that holds the password, readable by us alone."""

    path: Path


@frozen
class PasswordEnv:
    """An environment variable that holds the password."""

    name: str


@frozen
class Credential:
    """A credential of the service manager: a file of that name in ``$CREDENTIALS_DIRECTORY``."""

    name: str


@frozen
class PasswordCommand:
    """A program that prints the password; its text is given to ``/bin/sh -c``."""

    command: str


@frozen
class TokenCommand:
    """A program that prints an OAuth access token; run for every connection."""

    command: str


@frozen
class OAuthGrant:
    """Access tokens that are asked for with what a person has granted: ``mailgateway auth NAME``."""

    name: str
    """Of the registration in ``[oauth.NAME]``."""


PasswordSource = PasswordFile | PasswordEnv | Credential
"""What ``read_password`` reads at once."""

SecretSource = PasswordSource | PasswordCommand | TokenCommand | OAuthGrant


def read_password(source: PasswordSource, environ: Mapping[str, str], path: str = "") -> str:
    """The password itself, without the one newline that ends it.

    ``path`` is the dotted path of the setting, for the message of the ``ConfigError`` that says what to do
    when the secret cannot be read, is empty, or is open to everybody.
    """
    match source:
        case PasswordFile(path=file):
            text = _private_text(file, f"{path}.password_file", private=True)
        case Credential(name=name):
            folder = environ.get("CREDENTIALS_DIRECTORY")
            if not folder:
                raise _problem(
                    f"{path}.credential",
                    "works only under a service manager that sets CREDENTIALS_DIRECTORY; "
                    "use LoadCredential= in the unit, or `password_file`",
                )
            # The service manager's own directory guards the file, whatever its mode.
            text = _private_text(Path(folder, name), f"{path}.credential", private=False)
        case PasswordEnv(name=name):
            if name not in environ:
                raise _problem(f"{path}.password_env", "names an environment variable that is not set")
            text = environ[name]
    password = text.removesuffix("\n").removesuffix("\r")
    if not password:
        raise _problem(path, "the password is empty; write it there, on one line")
    return password


PRIVATE_KEY_BOUND = 2_000_000
"""Octets in which a private key is looked for."""

_PRIVATE_KEY = re.compile(
    rb"(?:-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
    rb"|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----)"
    rb"(?=[\x00-\xff]{0,400}?[A-Za-z0-9+/]{40})"
    rb"|PuTTY-User-Key-File-\d: [a-z]|AGE-SECRET-KEY-1[A-Z0-9]{20}"
)
"""A first line alone is what people write about keys; with what looks like the key behind it, it is one."""


def holds_private_key(data: bytes) -> bool:
    """Whether a text or a file holds the beginning of a private key: of PEM, OpenSSH, OpenPGP, PuTTY or age.

    The first ``PRIVATE_KEY_BOUND`` octets are looked at.
    """
    return _PRIVATE_KEY.search(data, 0, PRIVATE_KEY_BOUND) is not None


def read_client_secret(file: Path, path: str) -> str:
    """The secret of a registration at a provider; ``path`` is the setting, for the ``ConfigError``."""
    secret = _private_text(file, path, private=True).strip()
    if not secret:
        raise _problem(path, f"{file} is empty; write the client secret there, on one line")
    return secret


def check_private(file: Path, path: str) -> list[Problem]:
    """What keeps a file from being used as a secret: missing, unreadable, open to everybody; or nothing."""
    try:
        _private_text(file, path, private=True)
    except ConfigError as error:
        return list(error.problems)
    return []


def prepare_state_dir(path: Path) -> None:
    """Make the state directory with mode 0700; one that exists loses what ``NOT_OURS`` names.

    Whoever may write a directory may replace the keys in it; reading may stay with the group, for backups.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & NOT_OURS:
            path.chmod(mode & ~NOT_OURS)
    except OSError as error:
        raise _problem("daemon.state_dir", f"{path} cannot be made or used: {error.strerror}") from None


def session_key(state_dir: Path) -> str:
    """The text of ``secret.key``, made when missing: what sessions prove themselves with."""
    return _own_key(state_dir / SESSION_KEY)


def person_key(state_dir: Path) -> str:
    """The text of ``person.key``, made when missing: what a person at this machine proves to be."""
    return _own_key(state_dir / PERSON_KEY)


def machine_id(state_dir: Path) -> MachineId:
    """This machine's id, made when missing: 32 hex digits, the same for as long as the state is kept."""
    path = state_dir / "machine-id"
    _write_first(path, os.urandom(16).hex())
    return MachineId(_private_text(path, str(path), private=False).strip())


def read_key(path: Path, *, own: bool = False) -> str:
    """The text of a key file: stripped, at least 32 printable characters; or ``ConfigError``.

    Others may never read it; its group may, unless it is one of our ``own`` in the state directory.
    """
    key = _private_text(path, str(path), private=True, group=own).strip()
    if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
        raise _problem(
            str(path),
            f"must hold at least {SHORTEST_KEY} printable characters; "
            "remove it and start again to get a new one",
        )
    return key


def _own_key(path: Path) -> str:
    _write_first(path, os.urandom(32).hex())
    return read_key(path, own=True)


def _write_first(path: Path, text: str) -> None:
    """Write the file if nobody has; whoever loses the race reads what the winner wrote, and all of it.

    The text is written beside and linked into place, so that a file of that name is never half written, not
    even after a crash.
    """
    if path.exists():
        return
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, f"{text}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    except OSError as error:
        raise _problem(str(path), f"cannot be written: {error.strerror}") from None


def _private_text(file: Path, path: str, *, private: bool, group: bool = False) -> str:
    """The text of a small file; a ``private`` one must not be open to others (``group``: to its group)."""
    try:
        with file.open("rb") as stream:
            mode = stat.S_IMODE(os.fstat(stream.fileno()).st_mode)
            data = stream.read(LARGEST_SECRET + 1)
    except OSError as error:
        raise _problem(path, f"{file} cannot be read: {error.strerror}") from None
    if private and mode & (0o077 if group else 0o007):
        whom = "others" if mode & 0o007 else "its group"
        raise _problem(path, f"{file} is open to {whom}; run `chmod 600 {file}`")
    if len(data) > LARGEST_SECRET:
        raise _problem(path, f"{file} is too large to be a secret")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _problem(path, f"{file} is not UTF-8 text") from None


def _problem(path: str, message: str) -> ConfigError:
    return ConfigError([Problem(path, message)])
