"""The files that a mail brings, and which of them are worth keeping.

Kept are files that an agent can use, at most `KEPT_LIMIT`, each under a safe name of its own.  What is not
kept is named with the reason, never dropped without a word: what is over the bound, programs, and the images
that a mail's look is made of (in a signature or a quotation, or too small to show anything).  A
``winmail.dat`` is unpacked; an enclosed mail stays one file.  Nothing is opened, expanded or run.
"""

import re
import struct
from collections.abc import Iterable, Sequence
from enum import StrEnum, unique

from attrs import evolve, field, frozen

from mailgateway.mail.decode import Malformed, body_after, decode_header, decode_transfer, parse_fields
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.mime import Leaf, Walked, first
from mailgateway.mail.own import Own
from mailgateway.mail.parts import safe_filename
from mailgateway.mail.reply import typed_in_html
from mailgateway.mail.tnef import files_of_tnef

KEPT_LIMIT = 30
"""Files of one mail that are kept."""

NAMED_LIMIT = 100
"""Files of one mail that are named at most, kept or not."""

TINY = 32 * 32
"""Pixels of an image that shows nothing: spacers, counters, the signs of social networks."""

HEADER_LIMIT = 64 * 1024
"""Bytes of an enclosed mail that are looked at for its subject."""


@unique
class Reason(StrEnum):
    """Why a file is not kept."""

    TOO_MANY = "too-many"
    PROGRAM = "program"
    DECORATION = "decoration"
    SESSION_FULL = "session-full"
    """The session has as many files that wait for it as may wait; the mail is in the mailbox still."""


@frozen
class Part:
    """One file, decoded; ``filename`` is safe to show and to write (no path, no control characters).

    With a ``left_out`` it is only named, and ``data`` is what it would have been.
    """

    filename: str
    content_type: str
    data: bytes = field(repr=False)
    left_out: Reason | None = None
    content_id: str = ""


def attachments_of(inbound: Inbound, own: Own, sent_text: str | None) -> tuple[Part, ...]:
    """What a person's mail brings: what is kept, and what is named with the reason why not.

    ``sent_text`` is the plain text of the mail that is answered, where it is known: it tells quotations.
    """
    files = files_of(inbound.tree)
    hidden = _not_shown(files, inbound, own, sent_text)
    found: list[Part] = []
    kept = 0
    for part in files:
        reason = _reason(part, hidden)
        if reason is None and kept == KEPT_LIMIT:
            reason = Reason.TOO_MANY
        kept += reason is None
        found.append(evolve(part, left_out=reason))
    if len(found) > NAMED_LIMIT:  # what is kept is among the first, or there is nothing more to keep
        found = sorted(found, key=lambda part: part.left_out is not None)[:NAMED_LIMIT]
    return tuple(found)


def files_of(tree: Walked) -> tuple[Part, ...]:
    """Every file in the parts of a mail; parts that are machinery of the mail are none."""
    found: list[Part] = []
    for leaf in tree.leaves:
        if _is_file(leaf):
            found += _files_in(leaf, len(found) + 1)
    return tuple(_with_own_names(found))


_MACHINERY = frozenset(
    {
        "application/pgp-signature",
        "application/pkcs7-signature",
        "application/x-pkcs7-signature",
        "application/pgp-encrypted",
        "message/delivery-status",
        "message/disposition-notification",
    }
)
_TNEF = frozenset({"application/ms-tnef", "application/vnd.ms-tnef"})


def _is_file(leaf: Leaf) -> bool:
    if leaf.is_text or leaf.content_type in _MACHINERY:
        return False
    return bool(leaf.filename or leaf.disposition == "attachment") or not leaf.content_type.startswith(
        "text/"
    )


def _files_in(leaf: Leaf, number: int) -> list[Part]:
    """The file of a part, or those that are packed in it."""
    data = decode_transfer(leaf.body, leaf.encoding)
    if leaf.content_type in _TNEF or leaf.filename.lower() == "winmail.dat":
        packed = files_of_tnef(data)
        if packed is not None:
            return [
                Part(
                    safe_filename(each.filename, number + at),
                    each.content_type or "application/octet-stream",
                    each.data,
                )
                for at, each in enumerate(packed)
            ]
    name = leaf.filename
    if leaf.content_type == "message/rfc822":
        name = _mail_name(name, data)
    return [Part(safe_filename(name, number), leaf.content_type, data, content_id=leaf.content_id)]


def _mail_name(name: str, data: bytes) -> str:
    """An enclosed mail is a file that mail programs open, named by its subject where it has no name."""
    if not name:
        head = data[:HEADER_LIMIT]
        fields = parse_fields(head[: body_after(head, 0)[0]])
        subject = "" if isinstance(fields, Malformed) else decode_header(first(fields, "subject"))
        name = re.sub(r"[/\\]", "_", subject)[:80].strip() or "message"
    return name if name.lower().endswith(".eml") else f"{name}.eml"


def _with_own_names(parts: Iterable[Part]) -> Iterable[Part]:
    """Give each file a name that no other of the mail has, in whatever case."""
    taken: set[str] = set()
    tried: dict[str, int] = {}
    for part in parts:
        name = part.filename
        stem, dot, extension = name.rpartition(".")
        number = tried.get(name.casefold(), 1)  # a thousand files of one name must not cost a million tries
        while name.casefold() in taken:
            number += 1
            name = f"{stem} ({number}).{extension}" if dot and stem else f"{part.filename} ({number})"
        taken.add(name.casefold())
        tried[part.filename.casefold()] = number
        yield evolve(part, filename=name)


# --- what is not worth keeping ----------------------------------------------------------------------------

_PROGRAMS = frozenset(
    {
        *("exe", "com", "scr", "pif", "cpl", "dll", "sys", "msi", "msp", "msix", "hta", "chm", "lnk", "scf"),
        *("jar", "class", "apk", "app", "dmg", "pkg", "deb", "rpm", "iso", "vhd"),
    }
)
"""Files that are there to be run or installed; what is text (a script, a patch) is kept."""

_MAGIC = (b"MZ", b"\x7fELF", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe")
"""How programs of Windows, Linux, Java and macOS begin."""


def _reason(part: Part, hidden: frozenset[str]) -> Reason | None:
    extension = part.filename.rpartition(".")[2].lower()
    if extension in _PROGRAMS or part.data.startswith(_MAGIC):
        return Reason.PROGRAM
    if not part.content_type.startswith("image/"):
        return None
    if part.content_id and part.content_id in hidden:
        return Reason.DECORATION
    return Reason.DECORATION if 0 < _pixels(part.data) <= TINY else None


def _pixels(data: bytes) -> int:
    """The area of a PNG, GIF or JPEG; 0 where it is not told."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return int(width * height)
    if data[:6] in {b"GIF87a", b"GIF89a"} and len(data) >= 10:
        width, height = struct.unpack_from("<HH", data, 6)
        return int(width * height)
    return _pixels_of_jpeg(data) if data.startswith(b"\xff\xd8") else 0


def _pixels_of_jpeg(data: bytes) -> int:
    at = 2
    for _ in range(200):  # segments
        if at + 9 > len(data) or data[at] != 0xFF:
            return 0
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return int(width * height)
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + length
    return 0


_IMG = re.compile(r"<img\b[^>]{0,4000}>", re.IGNORECASE)
_CID = re.compile(r"\bsrc\s*=\s*[\"']?\s*cid:([^\"'\s>]{1,300})", re.IGNORECASE)


def _not_shown(files: Sequence[Part], inbound: Inbound, own: Own, sent_text: str | None) -> frozenset[str]:
    """The ids of images that the HTML shows, and only outside of what the person typed.

    Each image is replaced by a word, and the words that are left when quotation and signature are cut tell
    which images are the person's.
    """
    ids = {part.content_id for part in files if part.content_id and part.content_type.startswith("image/")}
    if not ids:
        return frozenset()
    numbers: dict[str, int] = {}

    def word(found: re.Match[str]) -> str:
        source = _CID.search(found[0])
        if source is None or source[1] not in ids:
            return found[0]
        return f" {_word(numbers.setdefault(source[1], len(numbers)))} "

    pages = [_IMG.sub(word, page) for page in inbound.htmls]
    if not numbers:
        return frozenset()
    typed = typed_in_html(pages, inbound, own, sent_text).text
    return frozenset(each for each, number in numbers.items() if _word(number) not in typed)


def _word(number: int) -> str:
    return f"\u2039image\u00b7{number}\u203a"
