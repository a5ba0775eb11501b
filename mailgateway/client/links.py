"""The places of a Markdown text that name a local file: where they stand, and what they name.

A text is not taken apart by guesses.  Whatever may be a destination is found by its form, all of them are
replaced by words that occur nowhere else, and Markdown's own parser tells which of these it sees as the
destination of an image or a link.  What stands in code, behind a backslash or in a comment is none of them,
and is never touched.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from attrs import frozen

if TYPE_CHECKING:
    from markdown_it.token import Token

LONGEST_TEXT = 200_000
"""Characters; in a longer text no files are looked for, since it is no letter any more."""

MOST_PLACES = 200
"""So many places are looked at; a mail has room for far fewer files."""

_BEGINNING = re.compile(r"\](?:\([ \t]*(?:\r?\n[ \t]*)?|:[ \t]*(?:\r?\n[ \t]*)?)")
_POINTED = re.compile(r"<((?:\\[^\n]|[^<>\\\n])*)>")
_BARE = re.compile(r"(?:\\[!-/:-@\[-`{-~]|[^\s\x00-\x1f\x7f])+")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@frozen
class Place:
    """One destination in a text, from ``start`` up to ``end``; ``names`` are the paths it may mean."""

    start: int
    end: int
    names: tuple[str, ...]
    is_image: bool


def places_of(text: str) -> tuple[Place, ...]:
    """Every destination of an image or a link that names a local file, in their order."""
    if len(text) > LONGEST_TEXT:
        return ()
    found = []
    for start, end, written in _candidates(text):
        names = names_of(written)
        if names:
            found.append(Place(start, end, names, is_image=False))
        if len(found) == MOST_PLACES:
            break
    if not found:
        return ()
    word = next(each for number in count() if (each := f"attachment:place{number}x") not in text)
    marked = replaced(text, {place: f"{word}{number}x" for number, place in enumerate(found)})
    seen = dict(_seen(marked))
    return tuple(
        Place(place.start, place.end, place.names, is_image="image" in seen[f"{word}{number}x"])
        for number, place in enumerate(found)
        if f"{word}{number}x" in seen
    )


def replaced(text: str, destinations: Mapping[Place, str]) -> str:
    """The text with other destinations in some places."""
    pieces, done = [], 0
    for place in sorted(destinations, key=lambda place: place.start):
        pieces += [text[done : place.start], destinations[place]]
        done = place.end
    return "".join((*pieces, text[done:]))


def names_of(written: str) -> tuple[str, ...]:
    """The paths that a destination may mean, the likelier first; none for what is no local file.

    As it stands, and as a URL: without what follows ``#`` or ``?``, and with ``%20`` read as a blank.
    """
    from markdown_it.common.utils import unescapeAll  # noqa: PLC0415 - few mails name a file

    path = unescapeAll(written)
    if path[:7].lower() == "file://" or path[:6].lower() == "file:/":
        try:
            parts = urlsplit(path)
        except ValueError:
            return ()
        return (unquote(parts.path),) if parts.netloc in {"", "localhost"} else ()
    if not path or path.startswith(("#", "//", "?")) or _SCHEME.match(path):
        return ()
    plain = unquote(re.split(r"[?#]", path, maxsplit=1)[0])
    return tuple(dict.fromkeys(each for each in (path, plain) if each))


def _candidates(text: str) -> Iterator[tuple[int, int, str]]:
    """Where a destination may stand, and what it says there."""
    after = 0
    for beginning in _BEGINNING.finditer(text):
        at = beginning.end()
        if at < after or at >= len(text):
            continue
        pointed = _POINTED.match(text, at)
        end, written = (pointed.end(), pointed[1]) if pointed else _bare(text, at)
        # a backtick may open code that reaches beyond, and a bar ends a cell: taking them out of the text
        # would change what the parser sees elsewhere
        if written and "`" not in written and "|" not in written:
            after = end
            yield at, end, written


def _bare(text: str, at: int) -> tuple[int, str]:
    """A destination without angle brackets: no blanks, and parentheses in pairs (CommonMark 6.3)."""
    found = _BARE.match(text, at)
    if found is None or text[at] == "<":
        return at, ""
    depth, index = 0, at
    while index < found.end():
        char = text[index]
        if char == "\\":
            index += 1
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth < 0:
                break
        index += 1
    end = min(index, found.end())
    return (end, text[at:end]) if depth <= 0 else (at, "")


def _seen(text: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Each destination that the parser sees in the text, and the types of the tokens that have it."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - few mails name a file

    kinds: dict[str, set[str]] = {}
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    for kind, destination in _destinations(parser.parse(text)):
        kinds.setdefault(destination, set()).add(kind)
    yield from ((destination, frozenset(kind)) for destination, kind in kinds.items())


def _destinations(tokens: "Iterable[Token]") -> Iterator[tuple[str, str]]:
    for token in tokens:
        if token.type == "image":
            yield "image", str(token.attrGet("src"))
        elif token.type == "link_open":
            yield "link", str(token.attrGet("href"))
        yield from _destinations(token.children or ())
