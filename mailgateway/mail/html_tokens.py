"""HTML as tags and text, whatever is wrong with it.

The tokenizer is our own: that of the standard library takes quadratic time over unclosed tags (a minute and
more for 100 kB), and this one runs where others wait.  Each of its searches ends at the next ``<`` or is made
once.
"""

import html
import re
import string
from collections.abc import Iterator, Mapping

from attrs import field, frozen

ATTRIBUTES_LIMIT = 4000
"""Characters of a tag's attributes that are read."""

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)([^<>\"']*+(?:(?:\"[^\"<>]*+\"|'[^'<>]*+')[^<>\"']*+)*+)>")
_SLOPPY_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)([^<>]*+)>")
_DECLARATION = re.compile(r"<[!?][^<>]*+>")
_ATTRIBUTE = re.compile(
    r"(?<![\w:.-])([A-Za-z_][\w:.-]*+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))"
)
_RAW = frozenset({"script", "style", "title", "textarea"})
"""Elements whose content is no markup; it is passed over with them."""

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_GIANT = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9A-Fa-f]{8,});?")


def _unescaped(text: str) -> str:
    """Character references resolved; the standard library raises on a number of thousands of digits."""
    return html.unescape(_GIANT.sub("\ufffd", text))


@frozen
class Start:
    """A tag that opens an element; names in lower case.  Of bare attributes only ``hidden`` is told."""

    tag: str
    attributes: Mapping[str, str] = field(repr=False)


@frozen
class End:
    """A tag that closes an element."""

    tag: str


Token = str | Start | End
"""Text comes with its character references resolved."""


def tokens_of(page: str) -> Iterator[Token]:
    """All tokens of a page; comments, declarations and raw elements are passed over."""
    at = 0
    missing: set[str] = set()
    lowered = page.translate(_LOWER)  # str.lower makes two characters of some, and places would differ
    while at < len(page):
        less = page.find("<", at)
        if less < 0:
            break
        if less > at:
            yield _unescaped(page[at:less])
        token, at = _markup(page, lowered, less, missing)
        if token is not None:
            yield token
    if at < len(page):
        yield _unescaped(page[at:])


def _markup(page: str, lowered: str, at: int, missing: set[str]) -> tuple[Token | None, int]:
    """What begins with this ``<``, and the index behind it.  ``missing`` are ends that are not there."""
    if page.startswith("<!--", at) and "-->" not in missing:
        end = page.find("-->", at + 4)
        if end >= 0:
            return None, end + 3
        missing.add("-->")
    found = _TAG.match(page, at) or _SLOPPY_TAG.match(page, at)
    if found is None:
        declaration = _DECLARATION.match(page, at)
        return ("<", at + 1) if declaration is None else (None, declaration.end())
    tag = found[2].lower()
    if found[1]:
        return End(tag), found.end()
    if tag in _RAW and tag not in missing:
        end = lowered.find(f"</{tag}", found.end())
        if end >= 0:
            close = page.find(">", end)
            return None, close + 1 if close >= 0 else len(page)
        missing.add(tag)
    return Start(tag, _attributes(found[3][:ATTRIBUTES_LIMIT])), found.end()


def _attributes(text: str) -> Mapping[str, str]:
    found = {
        each[1].lower(): _unescaped(each[2] or each[3] or each[4] or "") for each in _ATTRIBUTE.finditer(text)
    }
    lowered = text.lower()
    if "hidden" in lowered and "hidden" in _ATTRIBUTE.sub(" ", lowered).split():
        found["hidden"] = ""
    return found
