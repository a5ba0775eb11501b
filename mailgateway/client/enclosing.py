"""The files that a mail speaks of, sent along with it.

An image that the text shows is uploaded and shown in the mail; a file that it links to, or that is named
beside it, is attached.  A file that may not or cannot go along never keeps the mail from leaving: a sentence
at its end says what is missing, and why.
"""

from collections.abc import Iterable
from typing import Protocol

from attrs import define, field, frozen

from mailgateway.client.failures import ApiRefused
from mailgateway.client.links import Place, places_of, replaced
from mailgateway.client.project import LeftOut, Project, ProjectFile
from mailgateway.contract import FILES_OF_A_MAIL, MOST_FILES

IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""What mail programs show; another image is attached."""

NOT_NOW = frozenset({"too_large", "upload_quota", "registry_full", "store_unavailable", "too_many_waiting"})
"""Refusals of one file that are none of the mail."""


class Uploads(Protocol):
    """Where files are uploaded to: a ``Client``."""

    def upload(self, filename: str, data: bytes, session: str) -> str:
        """Upload a file; its id."""


@frozen
class Attached:
    """A file that goes along; ``path`` is the one below the project."""

    id: str
    path: str
    size: int


@frozen
class Enclosed:
    """A text whose files are uploaded, the files, and those that stay."""

    text: str = field(repr=False)
    attached: tuple[Attached, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """What to send as ``attachments``."""
        return tuple(each.id for each in self.attached)


def enclose(
    uploads: Uploads,
    session: str,
    text: str,
    project: Project,
    named: Iterable[str] = (),
    *,
    linked: bool = True,
) -> Enclosed:
    """Upload what the text shows and links to, and the files that are ``named`` beside it.

    ``text`` is Markdown.  What is not a local file, and a link to a file that is not there, stays as it is;
    so does everything when not ``linked``.
    """
    parcel = _Parcel(uploads, session, project)
    destinations: dict[Place, str] = {}
    for place in places_of(text) if linked else ():
        found = parcel.put(place.names, must_be=place.is_image)
        if found is not None and place.is_image and found.path.lower().endswith(IMAGES):
            destinations[place] = f"attachment:{found.id}"
    for path in named:
        parcel.put((path,), must_be=True)
    text = replaced(text, destinations)
    if parcel.left_out:
        lines = [f"- {_code(each.path)}: {each.reason}." for each in parcel.left_out.values()]
        text = "\n".join([text.rstrip("\n"), "", "Not attached:", "", *lines, ""])
    return Enclosed(text, tuple(parcel.attached.values()), tuple(parcel.left_out.values()))


@define(eq=False)
class _Parcel:
    """What goes along so far, each file once."""

    uploads: Uploads
    session: str
    project: Project
    attached: dict[str, Attached] = field(factory=dict)
    left_out: dict[str, LeftOut] = field(factory=dict)
    _room: int = FILES_OF_A_MAIL

    def put(self, names: Iterable[str], *, must_be: bool) -> Attached | None:
        """Put the first of these that is a file; ``must_be``: where there is none, this is said."""
        names = tuple(names)
        for name in names:
            if name in self.left_out:
                return None
            read = self.project.read(name, FILES_OF_A_MAIL)
            match read:
                case None:
                    continue
                case LeftOut():
                    self.left_out[name] = read
                    return None
                case ProjectFile():
                    return self.attached.get(read.path) or self._upload(name, read)
        if must_be:
            self.left_out[names[0]] = LeftOut(names[0], "there is no such file")
        return None

    def _upload(self, name: str, read: ProjectFile) -> Attached | None:
        if len(self.attached) >= MOST_FILES:
            reason = f"a mail takes {MOST_FILES} files"
        elif len(read.data) > self._room:
            reason = f"the files of a mail may have {FILES_OF_A_MAIL / 1e6:.3g} MB together"
        else:
            try:
                uploaded = self.uploads.upload(read.name, read.data, self.session)
            except ApiRefused as refused:
                if refused.code not in NOT_NOW:
                    raise
                reason = f"it cannot be uploaded now ({refused.code})"
            else:
                self._room -= len(read.data)
                self.attached[read.path] = Attached(uploaded, read.path, len(read.data))
                return self.attached[read.path]
        self.left_out[name] = LeftOut(name, reason)
        return None


def _code(path: str) -> str:
    """A path as Markdown shows it as it stands."""
    line = " ".join(path.replace("`", "'").split())
    return f"`{line[:200]}`"
