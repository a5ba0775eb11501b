r"""Which folder of an account holds what was sent, and which the mail that was taken for junk.

The server says so by an attribute (``\Sent``, RFC 6154; older ones in XLIST); where it says nothing, the name
does, by a table of usual names.  Names are compared as people read them; what is sent back to the server is
always the raw name that it gave, since servers write names in ways that no encoder reproduces.
"""

from collections.abc import Iterable, Sequence
from unicodedata import normalize

from attrs import frozen

SENT = b"\\sent"
JUNK = b"\\junk"
_JUNK_TOO = b"\\spam"
"""XLIST calls it so."""

_CLOSED = frozenset({b"\\noselect", b"\\nonexistent"})

_SHARED = frozenset(
    {
        *("shared", "shared folders", "#shared", "other users", "#users", "users", "user", "#user"),
        *("public", "public folders", "#public"),
    }
)
"""Roots below which servers show what others have shared (RFC 2342), without case.

Somebody else at the same server may share a folder called *Sent*; what lies there proves nothing about us.
"""


@frozen
class Folder:
    """One folder of a list."""

    raw: bytes
    """The name as the server gave it: what is sent back."""
    name: str
    """The name as people read it."""
    delimiter: str | None
    """What parts the levels of a name; ``None``: names are flat."""
    attributes: frozenset[bytes]
    """In lower case."""

    @property
    def levels(self) -> tuple[str, ...]:
        """The name in its parts, without case."""
        name = normalize("NFC", self.name).casefold()
        return tuple(name.split(self.delimiter)) if self.delimiter else (name,)


def find_sent(folders: Iterable[Folder], wanted: str, names: Sequence[str]) -> bytes | None:
    """The folder that holds what was sent: the one that is ``wanted`` (a setting), else what the server says.

    ``names`` are usual names, in their order.  ``None`` when there is none; a wanted folder that is not
    listed is not replaced by another one.  It may be wanted by its name or by the raw bytes of its name.
    """
    known = [folder for folder in folders if not _CLOSED & folder.attributes]
    if wanted:
        return next(
            (
                folder.raw
                for folder in known
                if wanted in (folder.name, folder.raw.decode("utf-8", "replace"))
            ),
            None,
        )
    return _find(known, {SENT}, names)


def find_junk(folders: Iterable[Folder], names: Sequence[str]) -> bytes | None:
    """The folder that holds what was taken for junk; ``None`` when there is none."""
    return _find([folder for folder in folders if not _CLOSED & folder.attributes], {JUNK, _JUNK_TOO}, names)


def _find(known: Sequence[Folder], attributes: set[bytes], names: Sequence[str]) -> bytes | None:
    folders = [each for each in known if len(each.levels) == 1 or each.levels[0] not in _SHARED]
    marked = [folder for folder in folders if attributes & folder.attributes]
    if marked:
        return min(marked, key=lambda folder: (len(folder.levels), folder.raw)).raw
    ranks = {normalize("NFC", name).casefold(): rank for rank, name in enumerate(names)}
    called = [folder for folder in folders if folder.levels[-1] in ranks and _is_near(folder)]
    if not called:
        return None
    return min(called, key=lambda folder: (ranks[folder.levels[-1]], len(folder.levels), folder.raw)).raw


def _is_near(folder: Folder) -> bool:
    """At the top, or right below the inbox or a provider's own root: an archive's *Sent* is another one."""
    *above, _ = folder.levels
    return not above or (len(above) == 1 and (above[0] == "inbox" or above[0].startswith("[")))
