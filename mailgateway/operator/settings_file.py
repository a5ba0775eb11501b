"""Writing the settings and the secret beside them, so that a crash leaves the old or the new, and never half.

Policy: nothing that is there is overwritten unless that was wished, and then it is kept beside, a secret as
well: old settings without their secret are worth nothing, and with a new one they would show it to the old
server.  The new file is read back, as the service would read it, before it takes the place of another.  Files
are made with their final mode and hold nothing before.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from attrs import field, frozen

from mailgateway.errors import ConfigError, Problem
from mailgateway.settings import Settings, load, parse
from mailgateway.settings.file import SYSTEM_FILE, USER_FILE

OWNER_ONLY = 0o600
FOR_THE_GROUP = 0o640
FOR_ALL = 0o644


@frozen
class Secret:
    """A secret and the file for it; its text is never shown."""

    path: Path
    text: str = field(repr=False)


@frozen
class Written:
    """What was written: the settings as they were read back, and where the old file is kept."""

    path: Path
    settings: Settings
    backup: Path | None
    old_secret: Path | None = None
    """Where the secret is kept that stood in the same file and was another one."""


def place_for(given: str | None, environ: Mapping[str, str], *, system: bool) -> Path:
    """Where new settings go: as given or set, else the machine's, else the user's file."""
    if given or environ.get("MAILGATEWAY_CONFIG"):
        return Path(given or environ["MAILGATEWAY_CONFIG"]).absolute()
    if system:
        return SYSTEM_FILE
    folder = environ.get("XDG_CONFIG_HOME")
    if not folder and not environ.get("HOME"):
        raise ConfigError(
            [Problem("", "there is no home directory to write settings to; name a file with --config")]
        )
    return Path(folder, USER_FILE) if folder else Path(environ["HOME"], ".config", USER_FILE)


def judge(text: str, path: Path, environ: Mapping[str, str]) -> None:
    """Read settings as the service will at ``path``, but for the files that they name; or ``ConfigError``."""
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError):
        raise ConfigError([Problem(str(path), "would be no TOML: a flag holds what no text may")]) from None
    parse(tables, environ, source=path)


def write_settings(
    path: Path, text: str, secret: Secret | None, environ: Mapping[str, str], *, mode: int = OWNER_ONLY
) -> Written:
    """Write the settings, and the secret before them; ``ConfigError`` leaves everything as it was.

    What was at ``path`` is kept beside it, named by the time.
    """
    try:
        _make_folder(path.parent, mode)
        draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
        try:
            _write(draft, text, mode)
            load(draft, environ, check_files=False)
            with _in_place(secret) as old_secret:
                load(draft, environ)
                backup = _kept(path)
                draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise ConfigError([Problem(str(path), f"cannot be written: {error.strerror}")]) from None
    except UnicodeEncodeError:
        raise ConfigError(
            [Problem(str(path), "cannot be written: a flag holds bytes that are no text")]
        ) from None
    return Written(path, load(path, environ), backup, old_secret)


@contextmanager
def _in_place(secret: Secret | None) -> Iterator[Path | None]:
    """Put the secret into its file for what follows; when that fails, what was there is there again.

    Gives where another secret is kept that was in that file.
    """
    if secret is None:
        yield None
        return
    kept = _kept(secret.path)
    text = f"{secret.text}\n"
    try:
        same = kept is not None and kept.read_bytes() == text.encode()
        put(secret.path, text, OWNER_ONLY)
        yield None if same else kept
    except BaseException:
        if kept is None:
            secret.path.unlink(missing_ok=True)
        else:
            kept.replace(secret.path)
            kept.unlink(missing_ok=True)  # two names of one file are left as they are by the line above
        raise
    if kept is not None and same:
        kept.unlink()


def put(path: Path, text: str, mode: int) -> None:
    """Write a file whole, in place of one that may be there."""
    _make_folder(path.parent, mode)
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        _write(draft, text, mode)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _make_folder(folder: Path, mode: int) -> None:
    """Make the folders that are missing, for whom files of this mode are; whatever the umask takes away."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
        each.chmod(0o700 if mode == OWNER_ONLY else 0o755)


def _write(path: Path, text: str, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        os.fchmod(handle, mode)  # whatever the umask takes away
        with os.fdopen(handle, "w", encoding="utf-8", closefd=False) as stream:
            stream.write(text)
        os.fsync(handle)
    finally:
        os.close(handle)


def _kept(path: Path) -> Path | None:
    """Keep what is there under another name; ``None`` when nothing is."""
    backup = path.with_name(f"{path.name}.{datetime.now(UTC):%Y%m%d-%H%M%S}")
    with suppress(FileNotFoundError):
        backup.unlink(missing_ok=True)
        os.link(path, backup)
        return backup
    return None
