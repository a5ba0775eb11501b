"""Words of a session, made fit to stand in a mail of ours: nothing of it can pass for the gateway's own.

A person answers by tapping a ``mailto:`` link, and knows our lines in plain text by the tag in front of them.
So a session's words hold neither: its tags are taken out, and so are its ``mailto:`` links, as links, in
angle brackets or raw (programs make links of all of them).  The words around them stay.
"""

import re

from mailgateway.mail.tag import without_tags

LINK_TAKEN_OUT = "(mail link taken out)"
"""Stands where a raw ``mailto:`` link stood."""

MOST_LAYERS = 8
"""So often it is looked whether what was taken out has left another one behind."""

_BUILDING = re.compile(r"[\[\]:]")
"""What a tag and a mail link cannot do without."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_DIRECTION = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of what follows, on the same line."""

_LINK = re.compile(
    r"\[([^\[\]\n]{0,500})\]\([ \t]{0,3}<?mailto:[^()\s<>]*(?:\([^()\s<>]{0,500}\)[^()\s<>]*){0,5}>?"
    r"(?:[ \t]{1,3}(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'))?[ \t]{0,3}\)",
    re.IGNORECASE,
)
_RAW = re.compile(r"<?\bmailto:[^\s<>\"'`]+>?", re.IGNORECASE)

_IN_HTML = re.compile(r"\bmailto:[^\s<>\"'`]+", re.IGNORECASE)


def clean_lines(text: str) -> str:
    """LF alone at line ends; other control characters and lone surrogates replaced."""
    text = _CONTROL.sub(" ", text.replace("\r\n", "\n").replace("\r", "\n"))
    return text.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str) -> str:
    """The text on one line: every run of blanks and control characters is one blank."""
    return " ".join(clean_lines(text).split())


def safe_line(text: str, tags: frozenset[str]) -> str:
    """A session's words on one line, without the tags of these names and without mail links."""
    return one_line(_without_both(_DIRECTION.sub("", clean_lines(text)), tags))


def safe_markdown(text: str, tags: frozenset[str]) -> str:
    """A session's Markdown, lines kept, without the tags of these names and without mail links."""
    return _without_both(clean_lines(text), tags)


def safe_html(page: str, tags: frozenset[str]) -> str:
    """The same for what was rendered of it, where entities and escapes have become letters."""
    return _IN_HTML.sub(LINK_TAKEN_OUT, without_tags(page, tags))


def _without_both(text: str, tags: frozenset[str]) -> str:
    """Without tags and mail links, and without those that come together once others are taken out."""
    for _ in range(MOST_LAYERS):
        left = without_tags(_without_mail_links(text), tags)
        if left == text:
            return left
        text = left
    return _BUILDING.sub("", text)  # nobody writes so but to have something left over


def _without_mail_links(text: str) -> str:
    if "mailto:" not in text.lower():
        return text
    return _RAW.sub(LINK_TAKEN_OUT, _LINK.sub(r"\1", text))
