"""A session's Markdown as HTML, of which nothing runs, loads, or looks like a part of our own page.

Raw HTML is shown as text.  Links lead to web pages only and say to which, where their words do not.  Images
of the mail's own files are shown; others are links.  Headings are smaller than ours.  What is long is folded:
programs that know ``<details>`` hide it behind a line, the others show it.  The library is loaded at the
first mail and not when the service starts.
"""

import html
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import field, frozen

from mailgateway.mail.agent_text import clean_lines, one_line, safe_html
from mailgateway.mail.highlight import Palette
from mailgateway.mail.letter import Letter
from mailgateway.mail.letter_words import REST

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.token import Token

HTML_LIMIT = 50_000
"""Characters of Markdown; a longer text is sent as plain text alone, since rendering would hold up others."""

COLUMNS = 42
"""Characters of prose on a line of a phone, roughly."""

FOLD_AFTER = 12
"""Lines on a phone that are shown of what stands below the options; a message of its own shows twice that."""

MOST_CELLS = 10_000
"""Cells of all tables of a text.  Rows need not be written out in full (GFM, section 4.10), so that a few
bytes ask for many cells; a table that is over it, and those behind it, are shown as they were written."""

_ATTACHED = "attachment:"
_NOT_PROSE = re.compile(r" {0,3}(?:[`~|>#<]|[-*+] |\d{1,9}[.)] |(?:[-*_=] ?){3})| {4}|\t")


@frozen
class Shown:
    """What the text of one mail may show: the ``cid`` of each image by its attachment id, colours, tags."""

    images: Mapping[str, str] = field(factory=dict)
    palette: Palette = field(factory=Palette)
    tags: frozenset[str] = frozenset()
    links: MutableMapping[str, Any] = field(factory=dict)
    """Where links lead that are defined elsewhere in the text (CommonMark, section 4.7)."""


def lead_and_rest(letter: Letter) -> tuple[str, str]:
    """The words that stand above a letter's options, and those that stand below them.

    A short text stays together above.  Of a long one, the first paragraph goes above; all of it goes below
    where the letter says by itself what is unclear.
    """
    text = _without_repeated(letter.text, letter.heading)
    if not letter.options or not text:
        return text, ""
    if letter.ambiguity:
        return "", text
    if len(text) <= FOLD_AFTER * COLUMNS and _lines(text) <= FOLD_AFTER:
        return text, ""
    first, _, rest = text.partition("\n\n")
    if _NOT_PROSE.match(first) or len(first) > FOLD_AFTER * COLUMNS or first.rstrip().endswith(":"):
        return "", text
    return first, rest.strip("\n")


def _without_repeated(text: str, question: str) -> str:
    """The text without a first paragraph that only says the question again."""
    first, _, rest = text.strip("\n").partition("\n\n")
    same = one_line(first).strip("#*_ ") == question
    return rest.strip("\n") if same else text.strip("\n")


def _lines(text: str) -> int:
    return sum(1 + len(line) // COLUMNS for line in text.split("\n"))


def html_body(markdown: str, shown: Shown, fold_after: int | None = None) -> str:
    """The HTML of a Markdown text of at most `HTML_LIMIT` characters, without a page around it.

    With ``fold_after``, what lies behind so many lines is folded, where that is worth it.
    """
    parser = _parser()
    env: MutableMapping[str, Any] = {"shown": shown, "references": shown.links}
    blocks = list(_blocks(_prepared(parser.parse(clean_lines(markdown), env))))
    at = len(blocks) if fold_after is None else _fold_at(blocks, fold_after)
    head, rest = _rendered(parser, blocks[:at], env), _rendered(parser, blocks[at:], env)
    if rest:
        lines = sum(_weight(block) for block in blocks[at:])
        head += f"<details><summary>{REST} ({lines} lines)</summary><div>{rest}</div></details>"
    return safe_html(head, shown.tags)


def learn_links(markdown: str, shown: Shown) -> None:
    """Learn where links lead that this part of the text defines, for the other parts of it."""
    _parser().parse(clean_lines(markdown), {"shown": shown, "references": shown.links})


def _rendered(
    parser: "MarkdownIt", blocks: Sequence[Sequence["Token"]], env: MutableMapping[str, Any]
) -> str:
    tokens = [token for block in blocks for token in block]
    return str(parser.renderer.render(tokens, parser.options, env))


def _blocks(tokens: Sequence["Token"]) -> Iterator[list["Token"]]:
    """The tokens of each top-level block."""
    block: list[Token] = []
    depth = 0
    for token in tokens:
        block.append(token)
        depth += token.nesting
        if depth == 0:
            yield block
            block = []
    if block:
        yield block


def _weight(block: Sequence["Token"]) -> int:
    """Lines that a block takes on a phone, roughly."""
    lines = 0
    for token in block:
        if token.type in {"fence", "code_block"}:
            lines += token.content.count("\n") + 1
        elif token.type == "inline":
            lines += 1 + len(token.content) // COLUMNS + token.content.count("\n")
    return max(1, lines)


def _fold_at(blocks: Sequence[Sequence["Token"]], limit: int) -> int:
    """The first block that is folded; something is always shown, unless it is one long block of code."""
    used = 0
    total = sum(_weight(block) for block in blocks)
    for at, block in enumerate(blocks):
        weight = _weight(block)
        if used + weight > limit and total - used > 4:
            code = block[0].type in {"fence", "code_block"}
            return at if at or code else min(1, len(blocks))
        used += weight
    return len(blocks)


# --------------------------------------------------------------------------- what is shown of a token


def _prepared(tokens: list["Token"]) -> list["Token"]:
    """Headings made small, and links that say where they lead."""
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = "h3" if token.tag in {"h1", "h2"} else "h4"
        if token.children:
            token.children = list(_with_hosts(token.children))
    return tokens


def _with_hosts(tokens: Sequence["Token"]) -> Iterator["Token"]:
    """After each link whose words do not say it, the host to which it leads; one to nowhere is no link."""
    from markdown_it.token import Token  # noqa: PLC0415 - see the module's docstring

    host = words = ""
    inside = False
    for token in tokens:
        if token.type == "link_open":
            inside, words = True, ""
            host = _host(str(token.attrGet("href") or ""))
        elif token.type == "image":
            token.meta["linked"] = inside
        else:
            words += token.content
        if token.type in {"link_open", "link_close"} and not host:
            token.tag = "span"
            token.attrs = {}
        yield token
        if token.type == "link_close":
            inside = False
            if host and not _says(words, host):
                note = Token("html_inline", "", 0)
                note.content = f' <span class="host">({html.escape(host)})</span>'
                yield note


def _says(words: str, host: str) -> bool:
    """Whether the words name the host, and not only one that ends or begins like it."""
    whole = rf"(?<![\w.-]){re.escape(host)}(?![\w-]|\.\w)"
    return re.search(whole, words, re.IGNORECASE) is not None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _is_web(url: str) -> bool:
    return url.strip().lower().startswith(("https://", "http://", _ATTACHED))


def _image(tokens: Sequence["Token"], at: int, options: Any, env: Any) -> str:
    """A file of this mail is shown in place, an image of somebody else is a link: fetching it would tell."""
    del options
    token = tokens[at]
    source = str(token.attrGet("src") or "")
    alt = one_line("".join(child.content for child in token.children or ())) or "image"
    shown: Shown = env["shown"]
    if source.lower().startswith(_ATTACHED):
        cid = shown.images.get(source[len(_ATTACHED) :])
        if cid is None:
            return f'<span class="host">[image: {html.escape(alt)}]</span>'
        return f'<img src="cid:{html.escape(cid)}" alt="{html.escape(alt)}">'
    host = _host(source)
    if not host or token.meta.get("linked"):
        return f'<span class="host">[image: {html.escape(alt)}]</span>'
    link = f'<a href="{html.escape(source)}">{html.escape(alt)}</a>'
    return f'{link} <span class="host">({html.escape(host)})</span>'


def _code(tokens: Sequence["Token"], at: int, options: Any, env: Any) -> str:
    del options
    token = tokens[at]
    shown: Shown = env["shown"]
    language = (token.info.split() or [""])[0]
    return f"<pre><code>{shown.palette.code(token.content, language)}</code></pre>\n"


def _table(state: "StateBlock", start: int, end: int, silent: bool) -> bool:
    """A table, while the text has cells left for it."""
    from markdown_it.rules_block import table  # noqa: PLC0415 - see the module's docstring

    left: int = state.env.get("cells", MOST_CELLS)
    if left <= 0 or not table(state, start, end, True):
        return False
    columns = state.src.count("|", state.bMarks[start], state.eMarks[start]) + 1
    row = start + 2
    while left > 0 and row < end and not state.isEmpty(row):
        left -= columns
        row += 1
    if left <= 0:
        state.env["cells"] = 0
        return False
    if silent:
        return True
    state.env["cells"] = left
    return bool(table(state, start, end, False))


@lru_cache(maxsize=1)
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - see the module's docstring

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.validateLink = _is_web  # type: ignore[method-assign]  # the library's own way to say it
    renderer = parser.renderer
    for name, rule in {
        "image": _image,
        "fence": _code,
        "code_block": _code,
        "table_open": lambda *_: '<div class="wide"><table>',
        "table_close": lambda *_: "</table></div>",
    }.items():
        renderer.rules[name] = rule  # type: ignore[attr-defined]
    return parser
