"""What a mail's parts hold, decoded: its own text, plain and HTML, and safe names for the files with it.

All of it is a stranger's input until the mail was judged, and of any size: of texts no more is decoded than
is read later, and names of files are made safe to show and to write.
"""

import re

from attrs import field, frozen

from mailgateway.mail.charset import decode_text
from mailgateway.mail.decode import decode_transfer, normal_lines, visible
from mailgateway.mail.mime import Leaf, Walked

TEXT_LIMIT = 512 * 1024
"""Characters of a mail's plain text that are decoded, and as many of its HTML; readers look at no more."""


@frozen
class Texts:
    """The text parts of one type in order, and whether there is more than that."""

    texts: tuple[str, ...] = field(repr=False)
    clipped: bool


def texts_of(tree: Walked, content_type: str) -> Texts:
    """The mail's own text parts of a type, decoded, `TEXT_LIMIT` characters together."""
    texts: list[str] = []
    room = TEXT_LIMIT
    clipped = False
    for leaf in tree.leaves:
        if leaf.content_type != content_type or not leaf.is_text:
            continue
        text, cut = _part_text(leaf, room)
        texts.append(text)
        room -= len(text)
        clipped = clipped or cut
    return Texts(tuple(texts), clipped)


def _part_text(leaf: Leaf, room: int) -> tuple[str, bool]:
    """The decoded text of a text part, flowed lines (RFC 3676) joined, and whether it was cut off.

    No character takes more than 4 bytes of its charset (one with escapes is cut off earlier), and no byte
    more than 3 of a transfer encoding and its line breaks.
    """
    data = decode_transfer(leaf.head(16 * room), leaf.encoding)
    cut = leaf.size > 16 * room or len(data) > 4 * room
    text = normal_lines(decode_text(data[: 4 * room], leaf.parameters.get("charset", ""), cut=cut))
    cut, text = cut or len(text) > room, text[:room]
    if leaf.content_type == "text/plain" and leaf.parameters.get("format", "").lower() == "flowed":
        text = _unflowed(text, delete_space=leaf.parameters.get("delsp", "").lower() == "yes")
    return text, cut


_QUOTED = re.compile(r"(>*+) ?(.*)", re.DOTALL)


def _unflowed(text: str, *, delete_space: bool) -> str:
    """Join the lines that format=flowed has broken; a quote mark starts its own paragraph."""
    paragraphs: list[list[str]] = []
    open_depth = -1
    for line in text.split("\n"):
        found = _QUOTED.fullmatch(line)
        marks, rest = (found[1], found[2]) if found is not None else ("", line)
        flowing = rest.endswith(" ") and rest != "-- "
        words = rest[:-1] if flowing and delete_space else rest
        if open_depth == len(marks):
            paragraphs[-1].append(words)
        else:
            paragraphs.append([f"{marks} {words}" if marks else words])
        open_depth = len(marks) if flowing else -1
    joined = ("".join(pieces) for pieces in paragraphs)
    return "\n".join(line if line == "-- " else line.rstrip(" ") for line in joined)


_UNSAFE = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\/]+')


def safe_filename(name: str, number: int) -> str:
    """A file name without path, control, direction and reserved characters, at most 120 characters."""
    last = re.split(r"[\\/]", name)[-1]
    clean = _UNSAFE.sub("_", visible(last)).strip(" .")
    if not clean:
        return f"attachment-{number}"
    stem, dot, extension = clean.rpartition(".")
    if len(clean) > 120 and dot and len(extension) <= 10:
        return f"{stem[: 119 - len(extension)]}.{extension}"
    return clean[:120]
