"""Markdown to the two bodies of a mail: plain text for every program, HTML for those that show it.

Plain text is the Markdown itself, which was made to be read as it stands; lines of code blocks are not
touched, other long lines are wrapped.  Raw HTML in the Markdown is shown as text, never passed on.  The
libraries are loaded at the first mail and not when the service starts.
"""

import re
import textwrap
from collections.abc import Callable, Iterator
from functools import lru_cache

HTML_LIMIT = 50_000
"""Characters of Markdown; a longer text is sent as plain text alone, since rendering would hold up others."""

WIDTH = 72

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_AS_IT_IS = re.compile(r"(?: {4}|\t|\s*[|>]|\s*(?:[-*_=] ?){3,}\s*$)")
_ITEM = re.compile(r"(\s*(?:[-*+]|\d{1,9}[.)])\s+|\s*)")


def plain_text(markdown: str) -> str:
    """The plain text of a Markdown text: LF at line ends, no control characters, prose wrapped."""
    return "\n".join(_wrapped(clean_lines(markdown)))


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


def clean_lines(text: str) -> str:
    """LF alone at line ends; other control characters and lone surrogates replaced."""
    text = _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.encode("utf-8", "replace").decode("utf-8")


def _wrapped(text: str) -> Iterator[str]:
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is not None:
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            yield line
        elif fence or len(line) <= WIDTH or len(line) > 4000 or _AS_IT_IS.match(line):
            yield line
        else:
            item = _ITEM.match(line)
            indent = " " * len(item[1]) if item is not None else ""
            yield from textwrap.wrap(
                line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )


def html_body(markdown: str) -> str | None:
    """The HTML of a Markdown text, without a page around it; None when it is too long to render."""
    if len(markdown) > HTML_LIMIT:
        return None
    return _renderer()(clean_lines(markdown))


@lru_cache(maxsize=1)
def _renderer() -> Callable[[str], str]:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - not at the start of the service

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.disable("image")

    def render(text: str) -> str:
        return str(parser.render(text))

    return render


def inlined(page: str) -> str:
    """The page with its style sheet written into the elements, as mail programs need it; fetches nothing."""
    import css_inline  # noqa: PLC0415 - not at the start of the service

    return css_inline.CSSInliner(
        load_remote_stylesheets=False, keep_style_tags=False, keep_at_rules=True
    ).inline(page)


STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 16px; background: #f7f7f5; color: #1c1d20; line-height: 1.5; font-size: 16px;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
.card { max-width: 640px; margin: 0 auto; padding: 16px; background: #ffffff; border: 1px solid #e3e2dd;
  border-radius: 8px; }
.who, .foot { color: #5d6068; font-size: 14px; margin: 0 0 12px; }
.foot { margin: 16px 0 0; padding-top: 12px; border-top: 1px solid #e3e2dd; }
h1 { font-size: 20px; line-height: 1.3; margin: 0 0 12px; }
a { color: #2458c6; }
.option { margin: 8px 0; padding: 12px; border: 1px solid #e3e2dd; border-radius: 8px; min-height: 20px; }
.option a { text-decoration: none; }
.recommended { color: #5d6068; }
pre { overflow-x: auto; padding: 12px; background: #f7f7f5; border: 1px solid #e3e2dd; border-radius: 8px; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 14px; }
blockquote { margin: 0 0 12px; padding-left: 12px; border-left: 3px solid #e3e2dd; color: #5d6068; }
table { border-collapse: collapse; } td, th { border: 1px solid #e3e2dd; padding: 4px 8px; text-align: left; }
@media (prefers-color-scheme: dark) {
  body { background: #16171a !important; color: #e9eaec !important; }
  .card { background: #1f2125 !important; border-color: #33363c !important; }
  .who, .foot, .recommended, blockquote { color: #a3a7b0 !important; }
  .option, .foot, pre, td, th { border-color: #33363c !important; }
  pre { background: #16171a !important; }
  a { color: #8ab0ff !important; }
}
"""
"""The one look of mails, light and dark."""
