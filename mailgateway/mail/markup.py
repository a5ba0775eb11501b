"""The words of an HTML mail as text, and apart from them what its program marked as quoted or as a signature.

Hidden text is dropped: it would be a way to say something to an agent that the person does not see.  A plain
``<blockquote>`` is formatting and stays.

The tokenizer is our own: that of the standard library takes quadratic time over unclosed tags (a minute and
more for 100 kB), and this one runs where others wait.  Each of its searches ends at the next ``<`` or is made
once.
"""

import html
import re
import string
from collections.abc import Mapping

from attrs import Factory, define

from mailgateway.mail.charset import storable

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
)
_LIST = frozenset({"ol", "ul"})
_DROPPED = frozenset({"script", "style", "title", "textarea", "template", "noscript", "object", "svg"})
_HIDDEN = re.compile(
    r"display:none|visibility:hidden|font-size:0(?![.\d]*[1-9])|mso-hide:all|max-height:0(?:px)?(?:;|$)"
)

_QUOTE_CLASS = re.compile(
    r"gmail_attr|yahoo_quoted|protonmail_quote|moz-cite-prefix|moz-forward-container"
    r"|ms-outlook-mobile-reference-message|zmail_extra|tutanota_quote|superhuman-quote|sh-quoted|skiff_quote"
)
_SIGNATURE_CLASS = re.compile(
    r"gmail_signature|moz-signature|protonmail_signature_block|ms-outlook-mobile-signature"
    r"|composer_signature|sh-signature"
)
_TAIL_ID = re.compile(
    r"(?:x_)*(?:divrplyfwdmsg|appendonsend|isreplycontent|mail-editor-reference-message-container)"
)
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)([^<>\"']*+(?:(?:\"[^\"<>]*+\"|'[^'<>]*+')[^<>\"']*+)*+)>")
_SLOPPY_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)([^<>]*+)>")
_DECLARATION = re.compile(r"<[!?][^<>]*+>")
_ATTRIBUTE = re.compile(
    r"(?<![\w:.-])([A-Za-z_][\w:.-]*+)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]++))"
)
_RAW = frozenset({"script", "style", "title", "textarea"})
_BORDER = re.compile(r"border-top:solid#(?:e1e1e1|b5c4df)")


@define
class Rendered:
    """``text`` is what was typed, as far as the markup tells; ``quoted`` what the markup sets apart."""

    text: str
    quoted: str


def text_of_html(page: str) -> Rendered:
    """Split and render one HTML part."""
    reader = _Reader()
    reader.feed(page[:HTML_LIMIT])
    return Rendered(_tidy("".join(reader.typed)), _tidy("".join(reader.quoted)))


_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_GIANT = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9A-Fa-f]{8,});?")


def _unescaped(text: str) -> str:
    """Character references resolved; the standard library raises on a number of thousands of digits."""
    return html.unescape(_GIANT.sub("\ufffd", text))


def _tidy(text: str) -> str:
    text = storable(text)
    lines = [line.rstrip() for line in text.replace("\xa0", " ").split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


@define
class _Open:
    """One open element, and what it does to the text within."""

    tag: str
    hidden: bool = False
    quote: bool = False
    preformatted: bool = False
    numbered: int = 0


@define
class _State:
    stack: list[_Open] = Factory(list)
    lists: list[_Open] = Factory(list)
    hidden: int = 0
    quote: int = 0
    preformatted: int = 0
    tail: bool = False
    deep: int = 0


class _Reader:
    """Collects text while it counts which kinds of element are open."""

    def __init__(self) -> None:
        self.typed: list[str] = []
        self.quoted: list[str] = []
        self._state = _State()

    def feed(self, page: str) -> None:
        """Read a whole page."""
        at = 0
        missing: set[str] = set()
        lowered = page.translate(_LOWER)  # str.lower makes two characters of some, and places would differ
        while at < len(page):
            less = page.find("<", at)
            if less < 0:
                break
            if less > at:
                self._data(_unescaped(page[at:less]))
            at = self._markup(page, lowered, less, missing)
        if at < len(page):
            self._data(_unescaped(page[at:]))

    def _markup(self, page: str, lowered: str, at: int, missing: set[str]) -> int:
        """Take what begins with this ``<``; the index behind it.  ``missing`` are ends that are not there."""
        if page.startswith("<!--", at) and "-->" not in missing:
            end = page.find("-->", at + 4)
            if end >= 0:
                return end + 3
            missing.add("-->")
        found = _TAG.match(page, at) or _SLOPPY_TAG.match(page, at)
        if found is None:
            declaration = _DECLARATION.match(page, at)
            if declaration is not None:
                return declaration.end()
            self._data("<")
            return at + 1
        tag = found[2].lower()
        if found[1]:
            self._end(tag)
            return found.end()
        attributes = {
            each[1].lower(): _unescaped(each[2] or each[3] or each[4] or "")
            for each in _ATTRIBUTE.finditer(found[3][:4000])
        }
        if tag in _RAW and tag not in missing:
            end = lowered.find(f"</{tag}", found.end())
            if end >= 0:
                close = page.find(">", end)
                return close + 1 if close >= 0 else len(page)
            missing.add(tag)
        self._start(tag, attributes)
        return found.end()

    @property
    def _out(self) -> list[str]:
        state = self._state
        return self.quoted if state.quote or state.tail else self.typed

    def _start(self, tag: str, given: Mapping[str, str]) -> None:
        """Open an element."""
        state = self._state
        if tag in {"p", "li", "td", "th", "tr"}:
            self._close_same(tag)
        style = "".join(given.get("style", "").lower().split())
        classes = f"{given.get('class', '')} {given.get('id', '')}".lower()
        if _TAIL_ID.fullmatch(given.get("id", "").lower()) or _BORDER.search(style):
            state.tail = True
        if tag in _VOID:
            self._void(tag, given)
            return
        opened = _Open(tag)
        opened.hidden = tag in _DROPPED or _HIDDEN.search(style) is not None
        opened.quote = bool(
            _QUOTE_CLASS.search(classes)
            or _SIGNATURE_CLASS.search(classes)
            or (tag == "blockquote" and (given.get("type", "").lower() == "cite" or "gmail_quote" in classes))
        )
        opened.preformatted = tag == "pre"
        if tag in _BLOCK:
            self._break()
        elif tag == "li":
            self._item()
        elif tag in {"td", "th"} and not state.hidden:
            self._out.append(" ")
        if len(state.stack) >= 500:
            state.deep += 1
            return
        state.stack.append(opened)
        if tag in _LIST:
            state.lists.append(opened)
        state.hidden += opened.hidden
        state.quote += opened.quote
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
                if closed.tag in _BLOCK or closed.tag == "li":
                    self._break()
                if closed.tag in _LIST:
                    state.lists.pop()
                state.hidden -= closed.hidden
                state.quote -= closed.quote
                state.preformatted -= closed.preformatted
                if closed.tag == tag:
                    break
        if tag == "p":
            self._break()

    def _data(self, data: str) -> None:
        """Take text as it is seen: white space collapsed outside of ``<pre>``."""
        if self._state.hidden:
            return
        if self._state.preformatted:
            self._out.append(data)
            return
        text = re.sub(r"[ \t\r\n\f]+", " ", data)
        out = self._out
        if not out or out[-1].endswith(("\n", " ")):
            text = text.lstrip(" ")
        if text:
            out.append(text)

    def _void(self, tag: str, given: Mapping[str, str]) -> None:
        if self._state.hidden:
            return
        if tag == "br":
            self._out.append("\n")
        elif tag == "hr":
            self._break()
        elif tag == "img" and given.get("alt") and "emoji" in given.get("class", ""):
            self._out.append(given["alt"])

    def _item(self) -> None:
        parent = self._state.lists[-1] if self._state.lists else None
        self._break()
        if self._state.hidden:
            return
        if parent is not None and parent.tag == "ol":
            parent.numbered += 1
            self._out.append(f"{parent.numbered}. ")
        else:
            self._out.append("- ")

    def _close_same(self, tag: str) -> None:
        """An element that its next sibling ends (``<p>`` without ``</p>``)."""
        if self._state.stack and self._state.stack[-1].tag == tag:
            self._end(tag)

    def _break(self) -> None:
        out = self._out
        if out and not out[-1].endswith("\n"):
            out.append("\n")
