"""The lines of an HTML mail, and of each whether its program marked it as quoted or as a signature.

Hidden text is dropped: it would be a way to say something to an agent that the person does not see.  A plain
``<blockquote>`` may be formatting: it is only said that a line stands in one.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import assert_never

from attrs import Factory, define, field, frozen

from mailgateway.mail.charset import storable
from mailgateway.mail.html_tokens import End, Start, tokens_of
from mailgateway.mail.page import Line

HTML_LIMIT = 512 * 1024
"""Characters of HTML that are read."""

_VOID = frozenset(
    {"br", "hr", "img", "input", "meta", "link", "col", "area", "base", "wbr", "source", "embed"}
)
_BLOCK = frozenset(
    {
        "p",
        "div",
        "ul",
        "ol",
        "table",
        "tr",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "pre",
        "blockquote",
        "section",
    }
    | {"article", "header", "footer", "address", "center", "dl", "dt", "dd", "form", "hr"}
    | {"details", "summary"}
)
_LIST = frozenset({"ol", "ul"})
_DROPPED = frozenset({"script", "style", "title", "textarea", "template", "noscript", "object", "svg"})
_HIDDEN = re.compile(
    r"display:none|visibility:hidden|font-size:0(?![.\d]*[1-9])|mso-hide:all|max-height:0(?:px)?(?:;|$)"
    r"|opacity:0(?![.\d]*[1-9])|(?<![\w-])color:transparent|text-indent:-\d{3}|left:-\d{3}|top:-\d{3}"
)

_QUOTE_CLASS = re.compile(
    r"yahoo_quoted|protonmail_quote|moz-forward-container"
    r"|ms-outlook-mobile-reference-message|zmail_extra|tutanota_quote|superhuman-quote|sh-quoted|skiff_quote"
)
_ASIDE_CLASS = re.compile(
    r"gmail_attr|moz-cite-prefix|gmail_signature|moz-signature|protonmail_signature_block|ms-outlook-mobile-signature"
    r"|composer_signature|sh-signature"
)
_TAIL_ID = re.compile(
    r"(?:x_)*(?:divrplyfwdmsg|appendonsend|isreplycontent|mail-editor-reference-message-container)"
)
_LINK = re.compile(r"https?://[^\s<>]{1,500}", re.IGNORECASE)
_BORDER = re.compile(r"border-top:solid#(?:e1e1e1|b5c4df)")


@frozen
class Rendered:
    """The lines of a page, without blank ones at its ends."""

    lines: tuple[Line, ...] = field(repr=False)

    @property
    def text(self) -> str:
        """What was typed, as far as the markup alone tells."""
        return "\n".join(line.text for line in self.lines if not line.apart).strip("\n")


def lines_of_html(page: str) -> Rendered:
    """Render one HTML part, at most `HTML_LIMIT` of it."""
    reader = _Reader()
    reader.read(page[:HTML_LIMIT])
    return Rendered(_tidy(reader.pieces))


@frozen
class Place:
    """Where a piece of text stands: see `Line`."""

    apart: bool
    boxed: bool


def _tidy(pieces: Iterable[tuple[str, Place]]) -> tuple[Line, ...]:
    """The pieces as lines: blanks at the ends stripped, never two blank lines after one another."""
    lines: list[Line] = []
    for place, group in groupby(pieces, key=lambda piece: piece[1]):
        text = storable("".join(piece for piece, _ in group)).replace("\xa0", " ")
        for line in text.removesuffix("\n").split("\n"):
            bare = line.rstrip()
            if bare or (lines and (lines[-1].text or lines[-1].apart != place.apart)):
                lines.append(Line(bare, place.apart, place.boxed))
    while lines and not lines[-1].text:
        lines.pop()
    return tuple(lines)


@define
class _Open:
    """One open element, and what it does to the text within."""

    tag: str
    hidden: bool = False
    quote: bool = False
    aside: bool = False
    box: bool = False
    preformatted: bool = False
    numbered: int = 0
    link: str = ""
    since: int = 0
    """How many pieces there were when the link began."""

    @property
    def is_place(self) -> bool:
        """Whether text within stands elsewhere than text around."""
        return self.quote or self.aside or self.box


@define
class _State:
    stack: list[_Open] = Factory(list)
    lists: list[_Open] = Factory(list)
    hidden: int = 0
    quote: int = 0
    aside: int = 0
    box: int = 0
    preformatted: int = 0
    tail: bool = False
    deep: int = 0

    @property
    def place(self) -> Place:
        """Where text stands now."""
        quote = bool(self.quote or self.tail)
        return Place(quote or self.aside > 0, quote or (self.box > 0 and not self.aside))


class _Reader:
    """Collects text while it counts which kinds of element are open."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, Place]] = []
        self._state = _State()

    def read(self, page: str) -> None:
        """Read a whole page."""
        for token in tokens_of(page):
            match token:
                case str():
                    self._data(token)
                case Start():
                    self._start(token.tag, token.attributes)
                case End():
                    self._end(token.tag)
                case _:
                    assert_never(token)

    def _write(self, text: str) -> None:
        self.pieces.append((text, self._state.place))

    def _start(self, tag: str, given: Mapping[str, str]) -> None:
        """Open an element."""
        state = self._state
        if tag in {"p", "li", "td", "th", "tr"}:
            self._close_same(tag)
        style = "".join(given.get("style", "").lower().split())
        classes = f"{given.get('class', '')} {given.get('id', '')}".lower()
        if (
            _TAIL_ID.fullmatch(given.get("id", "").lower())
            or _BORDER.search(style)
            or _is_foxmail(tag, given)
        ):
            self._break()
            state.tail = True
        if tag in _VOID:
            self._void(tag, given)
            return
        opened = _Open(tag)
        opened.hidden = tag in _DROPPED or "hidden" in given or _HIDDEN.search(style) is not None
        opened.box = tag == "blockquote"
        opened.aside = _ASIDE_CLASS.search(classes) is not None
        opened.quote = bool(
            _QUOTE_CLASS.search(classes)
            or (tag == "blockquote" and (given.get("type", "").lower() == "cite" or "gmail_quote" in classes))
        )
        opened.preformatted = tag == "pre"
        if tag == "a" and _LINK.fullmatch(given.get("href", "")):
            opened.link, opened.since = given["href"], len(self.pieces)
        if tag in _BLOCK or opened.is_place:
            self._break()
        elif tag == "li":
            self._item()
        elif tag in {"td", "th"} and not state.hidden and self.pieces and self.pieces[-1][0][-1:] != "\n":
            self._write(" ")
        if len(state.stack) >= 500:
            state.deep += 1
            return
        state.stack.append(opened)
        if tag in _LIST:
            state.lists.append(opened)
        state.hidden += opened.hidden
        state.quote += opened.quote
        state.aside += opened.aside
        state.box += opened.box
        state.preformatted += opened.preformatted

    def _end(self, tag: str) -> None:
        """Close an element, and whatever was left open inside it."""
        state = self._state
        if state.deep:
            state.deep -= 1
            return
        if tag not in _VOID and any(each.tag == tag for each in reversed(state.stack[-60:])):
            while state.stack:
                closed = state.stack.pop()
                if closed.tag in _BLOCK or closed.tag == "li" or closed.is_place:
                    self._break()
                if closed.link:
                    self._target(closed)
                if closed.tag in _LIST:
                    state.lists.pop()
                state.hidden -= closed.hidden
                state.quote -= closed.quote
                state.aside -= closed.aside
                state.box -= closed.box
                state.preformatted -= closed.preformatted
                if closed.tag == tag:
                    break
        if tag == "p":
            self._break()

    def _target(self, closed: _Open) -> None:
        """Where a link leads, unless its words say so themselves, or nobody sees it."""
        if self._state.hidden or self._state.place.apart:
            return
        words = (
            "".join(piece for piece, _ in self.pieces[closed.since : closed.since + 20]).strip().casefold()
        )
        bare = words.rpartition("://")[2].rstrip("/")
        if words and bare not in closed.link.casefold():
            self._write(f" <{closed.link}>")

    def _data(self, data: str) -> None:
        """Take text as it is seen: white space collapsed outside of ``<pre>``."""
        if self._state.hidden:
            return
        if self._state.preformatted:
            self._write(data)
            return
        text = re.sub(r"[ \t\r\n\f]+", " ", data)
        if not self.pieces or self.pieces[-1][0].endswith(("\n", " ")):
            text = text.lstrip(" ")
        if text:
            self._write(text)

    def _void(self, tag: str, given: Mapping[str, str]) -> None:
        if self._state.hidden:
            return
        if tag == "br":
            self._write("\n")
        elif tag == "hr":
            self._break()
        elif tag == "img" and given.get("alt") and "emoji" in given.get("class", ""):
            self._write(given["alt"])

    def _item(self) -> None:
        parent = self._state.lists[-1] if self._state.lists else None
        self._break()
        if self._state.hidden:
            return
        if parent is not None and parent.tag == "ol":
            parent.numbered += 1
            self._write(f"{parent.numbered}. ")
        else:
            self._write("- ")

    def _close_same(self, tag: str) -> None:
        """An element that its next sibling ends (``<p>`` without ``</p>``)."""
        if self._state.stack and self._state.stack[-1].tag == tag:
            self._end(tag)

    def _break(self) -> None:
        if self.pieces and not self.pieces[-1][0].endswith("\n"):
            self.pieces.append(("\n", self.pieces[-1][1]))


def _is_foxmail(tag: str, given: Mapping[str, str]) -> bool:
    """The short rule in the colour of its mail, under which Foxmail puts signature and quotation."""
    return tag == "hr" and given.get("color", "").lower() == "#b5c4df" and "210px" in given.get("style", "")
