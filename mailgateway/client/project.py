"""The files of a session's project, read so that nothing outside of it can be had.

A text may have been written by an agent that has read a stranger's words, so a path in it is no wish of the
user's.  What is read lies, links resolved, below the project's directory, is a regular file, is not hidden
and has no name by which secrets go.  It is opened once, directory by directory from the project down, and no
link is followed on that way: what is checked is what is read, whoever moves files meanwhile.

A second name of the same file (a hard link) cannot be told from the first one; whoever may make one inside
the project may also copy the file there.
"""

import os
import re
import stat
from pathlib import Path

from attrs import field, frozen

from mailgateway.secrets import holds_private_key

_SECRET_NAME = re.compile(
    r"(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|_netrc|htpasswd|shadow)(?!.*\.pub$).*"
    r"|.*\.(?:pem|key|p8|p12|pfx|pkcs12|jks|jceks|keystore|kdb|kdbx|ppk|gpg|pgp|ovpn|env|agekey|tfstate)"
    r"|(?:credentials?|secrets?|passwords?|passwd|tokens?|service[-_]account)(?:\.[a-z0-9]+)?"
)
"""Names, in lower case, of files that hold secrets and hardly anything else."""


@frozen
class ProjectFile:
    """A file that may leave; ``path`` is its own, below the project, links resolved."""

    path: str
    name: str
    data: bytes = field(repr=False)


@frozen
class LeftOut:
    """A file that stays, and why, in words that end a sentence."""

    path: str
    reason: str


@frozen
class Project:
    """The directory whose files may leave, and the one from which its paths count."""

    root: Path
    base: Path

    @classmethod
    def around(cls, base: Path, root: Path | None = None) -> "Project":
        """The project ``root``; else the work tree of git around ``base``, else ``base`` alone."""
        base = Path(os.path.realpath(base))
        found = Path(os.path.realpath(root)) if root is not None else _work_tree(base)
        return cls(found or base, base)

    def read(self, path: str, limit: int) -> ProjectFile | LeftOut | None:
        """One file of at most ``limit`` octets; ``None`` when there is no such file.

        A path counts from where the session is, else from the project's directory.
        """
        found = [real for start in dict.fromkeys((self.base, self.root)) if (real := _real(start, path))]
        if not found:
            return None
        if self.root == Path(self.root.anchor):
            return LeftOut(path, "no project is known here")
        inside = next((each for each in found if each.is_relative_to(self.root)), None)
        if inside is None:
            return LeftOut(path, "it lies outside of the project")
        return self._read(path, inside.relative_to(self.root).parts, limit)

    def _read(self, path: str, parts: tuple[str, ...], limit: int) -> ProjectFile | LeftOut | None:
        if not parts:
            return None  # the project itself
        if any(part.startswith(".") for part in parts):
            return LeftOut(path, "hidden files do not leave")
        if _SECRET_NAME.fullmatch(parts[-1].lower()):
            return LeftOut(path, "files of this name hold secrets")
        try:
            data = bytes_of(self.root, parts, limit)
        except OSError:
            return LeftOut(path, "it cannot be read")
        if data is None:
            return LeftOut(path, "it is no regular file")
        if len(data) > limit:
            return LeftOut(path, f"it has more than {limit / 1e6:.3g} MB")
        if not data:
            return LeftOut(path, "it is empty")
        if holds_private_key(data):
            return LeftOut(path, "it holds a private key")
        return ProjectFile(os.path.join(*parts), parts[-1], data)  # noqa: PTH118 - as text


def _real(start: Path, path: str) -> Path | None:
    """Where the path leads in the end, if there is something."""
    try:
        return Path(os.path.realpath(start / path, strict=True))
    except (OSError, ValueError):  # not there, a ring of links, or no path at all
        return None


def _work_tree(base: Path) -> Path | None:
    """The nearest directory, upwards, that git knows; in a linked work tree ``.git`` is a file."""
    return next((each for each in (base, *base.parents) if os.path.lexists(each / ".git")), None)


def bytes_of(root: Path, parts: tuple[str, ...], limit: int) -> bytes | None:
    """What a file below ``root`` holds, reached without following a link; ``OSError`` where that cannot be.

    One octet more than ``limit`` where it holds more; ``None`` when it is no regular file.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(root, flags | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, flags | os.O_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = inner
        found = os.stat(parts[-1], dir_fd=handle, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode):
            return None  # not even opened: that alone has an effect on some
        file = os.open(parts[-1], flags | os.O_NONBLOCK, dir_fd=handle)
        os.close(handle)
        handle = file
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return None
        data = bytearray()
        while len(data) <= limit and (chunk := os.read(file, limit + 1 - len(data))):
            data += chunk
        return bytes(data)
    finally:
        os.close(handle)
