"""Markdown as plain text: the Markdown itself, which was made to be read as it stands.

Lines of code, tables and quotations are not touched, other long lines are wrapped; an image is named, since
nobody sees it there.
"""

import re
import textwrap
from collections.abc import Iterator

from mailgateway.mail.agent_text import clean_lines

WIDTH = 72

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_AS_IT_IS = re.compile(r"(?: {4}|\t|\s*[|>]|\s*(?:[-*_=] ?){3,}\s*$)")
_ITEM = re.compile(r"(\s*(?:[-*+]|\d{1,9}[.)])\s+|\s*)")
_IMAGE = re.compile(r"!\[([^\[\]\n]{0,500})\]\(attachment:[^()\s<>]{1,200}(?:[ \t]+\"[^\"\n]{0,200}\")?\)")


def plain_text(markdown: str) -> str:
    """The plain text of a Markdown text: LF at line ends, no control characters, prose wrapped."""
    return "\n".join(_lines(clean_lines(markdown)))


def wrapped(line: str, indent: str = "") -> str:
    """One line as lines of at most `WIDTH` columns, as far as its words allow; ``indent`` from the second."""
    if len(line) <= WIDTH:
        return line
    lines = textwrap.wrap(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def _lines(text: str) -> Iterator[str]:
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is not None:
            if not fence:
                fence = found[1]
            elif found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            yield line
        elif fence:
            yield line
        else:
            yield from _prose(_IMAGE.sub(_named, line) if "](attachment:" in line else line)


def _prose(line: str) -> Iterator[str]:
    if len(line) <= WIDTH or len(line) > 4000 or _AS_IT_IS.match(line):
        yield line
        return
    item = _ITEM.match(line)
    yield from wrapped(line, " " * len(item[1]) if item is not None else "").split("\n")


def _named(found: re.Match[str]) -> str:
    return f"[image: {found[1]}]" if found[1].strip() else "[image]"
