"""Colours for code: spans with a few classes, made by Pygments for languages that are named.

Pygments is loaded at the first block that names a language of the list below.  No language is guessed, but
for diffs, which are known by their first line.  What is long, or has long lines, stays plain: a mail is
composed while others wait, and programs that cut long mails would cut this one.
"""

import html
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import groupby
from typing import Any

from attrs import define

BLOCK_LIMIT = 6_000
"""Characters of one block; a longer one stays plain."""

MAIL_LIMIT = 12_000
"""Characters of all blocks of one mail that are coloured."""

LINE_LIMIT = 400

_KNOWN = frozenset(
    {
        "bash",
        "c",
        "console",
        "cpp",
        "csharp",
        "css",
        "diff",
        "docker",
        "elixir",
        "go",
        "haskell",
        "html",
        "http",
        "ini",
        "java",
        "javascript",
        "json",
        "jsx",
        "kotlin",
    }
    | {
        "lua",
        "make",
        "nix",
        "perl",
        "php",
        "pycon",
        "python",
        "r",
        "ruby",
        "rust",
        "scala",
        "scss",
        "sql",
        "swift",
        "toml",
        "tsx",
        "typescript",
        "xml",
        "yaml",
    }
)
_ALIASES = {
    "c#": "csharp",
    "c++": "cpp",
    "cfg": "ini",
    "conf": "ini",
    "cs": "csharp",
    "dockerfile": "docker",
    "golang": "go",
    "js": "javascript",
    "jsonc": "json",
    "kt": "kotlin",
    "makefile": "make",
    "patch": "diff",
    "pgsql": "sql",
    "py": "python",
    "python3": "python",
    "rb": "ruby",
    "rs": "rust",
    "sh": "bash",
    "shell": "bash",
    "shell-session": "console",
    "sqlite": "sql",
    "ts": "typescript",
    "yml": "yaml",
    "zsh": "bash",
}
"""Other names that people give to languages, and what Pygments calls them."""

_CLASSES = (
    ("Token.Comment", "kc"),
    ("Token.Keyword", "kk"),
    ("Token.Operator.Word", "kk"),
    ("Token.Literal.String", "ks"),
    ("Token.Literal.Number", "kn"),
    ("Token.Name.Function", "kf"),
    ("Token.Name.Class", "kf"),
    ("Token.Name.Decorator", "kf"),
    ("Token.Name.Tag", "kf"),
    ("Token.Name.Builtin", "kf"),
    ("Token.Name.Attribute", "kn"),
    ("Token.Generic.Deleted", "kd"),
    ("Token.Generic.Inserted", "ki"),
    ("Token.Generic.Heading", "kc"),
    ("Token.Generic.Subheading", "kc"),
    ("Token.Generic.Prompt", "kc"),
    ("Token.Generic.Output", ""),
)


@define
class Palette:
    """Colours the blocks of one mail, as long as there is room."""

    room: int = MAIL_LIMIT

    def code(self, code: str, language: str) -> str:
        """The HTML of a block's lines; plain when the language is not known or the block is too long."""
        name = _ALIASES.get(language.lower(), language.lower()) or ("diff" if _is_diff(code) else "")
        if name not in _KNOWN or len(code) > min(BLOCK_LIMIT, self.room):
            return html.escape(code)
        if any(len(line) > LINE_LIMIT for line in code.split("\n")):
            return html.escape(code)
        self.room -= len(code)
        return _spans(_lexer(name)(code))


def _is_diff(code: str) -> bool:
    return code.startswith(("diff --git ", "--- a/", "@@ -"))


@lru_cache(maxsize=16)
def _lexer(name: str) -> Callable[[str], Iterable[tuple[Any, str]]]:
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415 - not before there is code to colour

    lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False)

    def tokens(code: str) -> Iterable[tuple[Any, str]]:
        found: Iterable[tuple[Any, str]] = lexer.get_tokens(code)
        return found

    return tokens


def _spans(tokens: Iterable[tuple[Any, str]]) -> str:
    pieces = []
    for name, group in groupby(tokens, key=lambda token: _class_of(token[0])):
        text = html.escape("".join(piece for _, piece in group))
        pieces.append(f'<span class="{name}">{text}</span>' if name and text.strip() else text)
    return "".join(pieces)


@lru_cache(maxsize=512)
def _class_of(kind: object) -> str:
    name = f"{kind!r}."
    return next((css for begin, css in _CLASSES if name.startswith(f"{begin}.")), "")
