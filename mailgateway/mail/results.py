"""Reading Authentication-Results (RFC 8601) with a real tokenizer.

Comments nest, quoted strings may hold brackets and semicolons, and a property belongs to its own clause: a
reader that searches for ``dmarc=pass`` lets in whoever can write these letters into a comment or a MAIL FROM.
What does not fit the grammar is malformed as a whole; the caller refuses then.
"""

import re
from collections.abc import Iterator, Mapping

from attrs import frozen

from mailgateway.mail.decode import Malformed

VALUE_LIMIT = 8 * 1024
"""Bytes of one field; a longer one is malformed."""

_KEYWORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:/[0-9]+)?", re.ASCII)
_RESULT = re.compile(r"[A-Za-z]+", re.ASCII)
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]+", re.ASCII)


@frozen
class Clause:
    """One method's result with its properties (names in lower case); a property may be given twice."""

    method: str
    result: str
    properties: Mapping[str, tuple[str, ...]]


@frozen
class Results:
    """One field: who says it, and the clauses."""

    authserv_id: str
    clauses: tuple[Clause, ...]


@frozen
class _Word:
    """A run of characters without blanks; ``bare`` is the length before the first quoted string."""

    text: str
    bare: int


def parse_results(value: bytes, *, anonymous: bool = False) -> Results | Malformed:
    """Parse one unfolded field value; ``anonymous`` is the dialect that leaves the id out (Microsoft)."""
    if len(value) > VALUE_LIMIT:
        return Malformed("the results are too long")
    if not value.isascii():
        return Malformed("the results are not plain ASCII")
    clauses: list[list[_Word]] = [[]]
    for token in _tokens(value.decode("ascii")):
        match token:
            case _Word():
                clauses[-1].append(token)
            case ";":
                clauses.append([])
            case _:
                return Malformed(token)
    head, *rest = clauses
    if anonymous:
        head, rest = [_Word("", 0)], clauses
    if not head or len(head) > 2 or "=" in head[0].text:
        return Malformed("the results do not begin with one id")
    if len(head) == 2 and not head[1].text.isdecimal():
        return Malformed("the version of the results is no number")
    parsed = []
    for words in rest:
        if not words or (len(words) == 1 and words[0].text.lower() == "none"):
            continue
        clause = _clause(words)
        if clause is None:
            return Malformed("a clause of the results does not fit the grammar")
        parsed.append(clause)
    return Results(head[0].text.lower(), tuple(parsed))


def _clause(words: list[_Word]) -> Clause | None:
    method, result = _assignment(words[0])
    if _KEYWORD.fullmatch(method) is None or _RESULT.fullmatch(result) is None:
        return None
    properties: dict[str, list[str]] = {}
    for word in words[1:]:
        name, value = _assignment(word)
        if _PROPERTY.fullmatch(name) is None:
            return None
        properties.setdefault(name.lower(), []).append(value)
    told = {name: tuple(values) for name, values in properties.items()}
    return Clause(method.partition("/")[0].lower(), result.lower(), told)


def _assignment(word: _Word) -> tuple[str, str]:
    """Split at the first ``=``, which must stand before any quoted string; else two empty texts."""
    at = word.text.find("=", 0, word.bare)
    return (word.text[:at], word.text[at + 1 :]) if at > 0 else ("", "")


def _tokens(text: str) -> Iterator[_Word | str]:
    """Words and ``;``; any other string is the reason why the text is malformed."""
    at, end = 0, len(text)
    word: list[str] = []
    bare = -1
    while at < end:
        char = text[at]
        if char == '"':
            if bare < 0:
                bare = len("".join(word))
            closed, content = _quoted(text, at)
            if closed < 0:
                yield "a quoted string does not end"
                return
            word.append(content or "\0")
            at = closed
            continue
        if char in "(; \t":
            if word:
                joined = "".join(word).replace("\0", "")
                yield _Word(joined, bare if bare >= 0 else len(joined))
                word, bare = [], -1
            if char == "(":
                at = _comment_end(text, at)
                if at < 0:
                    yield "a comment does not end"
                    return
                continue
            if char == ";":
                yield ";"
        elif char == ")" or char < " " or char == "\x7f":
            yield "a character that cannot stand there"
            return
        else:
            word.append(char)
        at += 1
    if word:
        joined = "".join(word).replace("\0", "")
        yield _Word(joined, bare if bare >= 0 else len(joined))


def _quoted(text: str, at: int) -> tuple[int, str]:
    """The index behind the quoted string that begins at ``at``, and its content; -1 when it does not end."""
    content: list[str] = []
    at += 1
    while at < len(text):
        char = text[at]
        if char == '"':
            return at + 1, "".join(content)
        if char == "\\":
            at += 1
            if at >= len(text):
                break
            char = text[at]
        content.append(char)
        at += 1
    return -1, ""


def _comment_end(text: str, at: int) -> int:
    """The index behind the comment that begins at ``at``; -1 when it does not end."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return -1
