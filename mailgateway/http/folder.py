"""The folder of uploads: files that come, and files that wait for their mails, within bounds.

Whoever has a key may fill a disk by it, so room is promised before a byte is taken: a length that is
announced counts at once, one that is not counts while it comes, and what is left over counts until it is
gone.  Files are named by us and readable by us alone.  The folder is ours and this process's alone; the
sweeper deletes files in it behind our back, so before anybody is refused the folder is looked at again.

Which file belongs to whom is in the database and not known here.
"""

import errno
import os
import time
from collections.abc import Callable, Container
from pathlib import Path
from typing import IO

from attrs import define, field

from mailgateway.errors import Refusal
from mailgateway.http.keys import Bearer
from mailgateway.http.places import Places

MOST_OCTETS = 500_000_000
MOST_FILES = 2_000
LEAST_FREE = 200_000_000
"""So many octets of the file system are left to others, our database first of all."""

LOOK_SECONDS = 5.0
"""The folder is looked at again at most so often."""

ORPHAN_SECONDS = 7_200.0
"""A file of this age is nobody's: uploads are forgotten after an hour."""


def free_octets(path: Path) -> int:
    """Count what the file system of the path has left for us."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize


@define(eq=False)
class Upload:
    """One file that comes; in the end it is kept or discarded, once."""

    path: Path
    stream: IO[bytes]
    _folder: "UploadFolder"
    _bearer: Bearer
    _octets: int = field(default=0, init=False)

    def write(self, data: bytes) -> None:
        """Store a piece; ``Refusal`` over the quota, ``OSError`` when the disk is full."""
        self._octets += len(data)
        self._folder.promise(self.path.name, self._octets)
        self.stream.write(data)

    def keep(self) -> Path:
        """All has come: the file stays until somebody removes it; ``OSError`` when the disk is full."""
        try:
            self.stream.flush()
        except OSError:
            self.discard()
            raise
        self._folder.kept(self.path.name, self._bearer, self._octets)
        return self.path

    def discard(self) -> None:
        """Nobody wants it: the file goes, and with it what was promised."""
        self._folder.gone(self.path.name, self._bearer)
        self.path.unlink(missing_ok=True)
        try:
            self.stream.close()
        except OSError:
            return  # what it could not write is not wanted any more


@define(eq=False)
class UploadFolder:
    """Files of at most ``most`` octets together, those included that are still to come."""

    path: Path
    _mint: Callable[[int], bytes] = field(repr=False)
    _seconds: Callable[[], float]
    most: int = MOST_OCTETS
    most_files: int = MOST_FILES
    least_free: int = LEAST_FREE
    free: Callable[[Path], int] = free_octets
    coming: Places = field(factory=lambda: Places(most=16, own=12, other=4))
    """How many may come at a time: room that is promised to one key is missing to the others."""
    _promised: dict[str, int] = field(factory=dict, init=False)
    """Files that come, with the octets that they may have."""
    _kept: dict[str, int] = field(factory=dict, init=False)
    """Files that are there, as far as we know."""
    _looked_at: float | None = field(default=None, init=False)

    def begin(self, bearer: Bearer, announced: int | None) -> Upload:
        """Open a file for a body that comes.

        ``Refusal("upload_quota")`` for too many files or octets, ``OSError`` when the disk is full.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._looked_at is None:
            self._look()
        if self._count() >= self.most_files and not (self._look() and self._count() < self.most_files):
            raise _quota(f"{self.most_files} files wait for their mails", 60)
        if not self.coming.take(bearer):
            raise _quota("as many files as may come at a time do so, of this key or in all", 5)
        path = self.path / self._mint(12).hex()
        try:
            self.promise(path.name, announced or 0)
            stream = path.open("xb+")
            path.chmod(0o600)
        except BaseException:
            self.gone(path.name, bearer)
            raise
        return Upload(path, stream, self, bearer)

    def promise(self, name: str, octets: int) -> None:
        """Count ``octets`` in all for a file that comes, unless that is too much; raises as ``begin``."""
        if self.free(self.path) < self.least_free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        more = octets - self._promised.get(name, 0)
        if more > 0 and self._octets() + more > self.most:
            self._look()
            if self._octets() + more > self.most:
                raise _quota(f"the files that wait for their mails have {self.most} bytes together", 60)
        self._promised[name] = max(octets, self._promised.get(name, 0))

    def kept(self, name: str, bearer: Bearer, octets: int) -> None:
        """Count a file as it is: it has come."""
        self.gone(name, bearer)
        self._kept[name] = octets

    def gone(self, name: str, bearer: Bearer) -> None:
        """Count a file that came no longer."""
        self._promised.pop(name, None)
        self.coming.give_back(bearer)

    def remove(self, path: Path) -> None:
        """Remove a file that was kept."""
        self._kept.pop(path.name, None)
        path.unlink(missing_ok=True)

    def read(self, path: str) -> bytes:
        """Read a file by the path in its row; only files of ours have one."""
        return (self.path / Path(path).name).read_bytes()

    def names(self) -> frozenset[str]:
        """Which files are there and complete."""
        if not self.path.is_dir():
            return frozenset()
        self._looked_at = None
        self._look()
        return frozenset(self._kept)

    def remove_all_but(self, names: frozenset[str], wanted: Container[str]) -> None:
        """Remove those of the files that nobody wants."""
        for name in names:
            if name not in wanted:
                self.remove(self.path / name)

    def _octets(self) -> int:
        return sum(self._kept.values()) + sum(self._promised.values())

    def _count(self) -> int:
        return len(self._kept) + len(self._promised)

    def _look(self) -> bool:
        """See which files are there, and remove those that are too old to be anybody's; not too often."""
        now = self._seconds()
        if self._looked_at is not None and now - self._looked_at < LOOK_SECONDS:
            return False
        self._looked_at = now
        self._kept.clear()
        for path in self.path.iterdir():
            if path.name in self._promised:
                continue
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            if time.time() - found.st_mtime > ORPHAN_SECONDS:
                path.unlink(missing_ok=True)
            else:
                self._kept[path.name] = found.st_size
        return True


def _quota(sentence: str, seconds: int) -> Refusal:
    return Refusal(
        "upload_quota",
        f"{sentence}; uploads are forgotten after an hour, so try again later",
        {"retryAfter": seconds},
    )
