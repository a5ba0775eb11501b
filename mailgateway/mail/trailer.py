"""What stands under the words and is nobody's answer: signatures, footers of phones and lists, legal notices.

Only at the end of the words, and only in a known form: a line in the middle is never one.
"""

import re
from collections.abc import Sequence
from itertools import islice

from mailgateway.mail.page import RULE, Page
from mailgateway.mail.phrases import (
    DEVICES,
    FOOTERS,
    GET_OUTLOOK,
    LIST_FOOTERS,
    NOTICES,
    PRODUCTS,
    REACTIONS,
    SENT_WITH,
)

_SHORT_RULE = re.compile(r"-{2,4}\s*$")
_DELIMITERS = frozenset({"-- ", "--", "--\xa0"})
_TAGS = re.compile(r"(?:\s*<[^<>\s][^<>]{0,500}>)+\s*$")
"""Links after a footer, and the markup that some programs leave there."""
_TARGET = re.compile(r"\s*<https?://[^<>\s]{1,500}>", re.IGNORECASE)
_SENTENCE = re.compile(r"[,;:?!\uff0c\uff1b\uff1a\uff1f]|\. ")


def cut_signature(page: Page) -> None:
    """``-- `` and at most eight short lines up to a quotation or the end (RFC 3676, section 4.3)."""
    ends = _next_cuts(page)
    for at, line in enumerate(page.lines):
        if not page.is_free(at) or line not in _DELIMITERS:
            continue
        end = ends[at]
        filled = (page.lines[each] for each in range(at + 1, end) if page.lines[each].strip())
        below = list(islice(filled, 9))
        code = any(each.startswith("--") and each not in _DELIMITERS for each in below)
        if len(below) <= 8 and not code and all(len(each) <= 100 for each in below):
            page.take(at, end)


def _next_cuts(page: Page) -> list[int]:
    """For each line the next one that is cut, or the number of lines."""
    ends = [len(page)] * len(page)
    for at in range(len(page) - 2, -1, -1):
        ends[at] = at + 1 if page.cut[at + 1] else ends[at + 1]
    return ends


def cut_notices(page: Page) -> None:
    """A lawyer's paragraph at the very end, known by how it begins and what it speaks of."""
    for _ in range(3):
        kept = _kept(page)
        if not kept:
            return
        start = kept[-1]
        while start > 0 and page.is_free(start - 1) and not page.is_blank(start - 1):
            start -= 1
        block = " ".join(page.flat[start : kept[-1] + 1])
        if start == kept[0] or len(block) < 100 or NOTICES.match(block[:3000]) is None:
            return
        page.take(start, kept[-1] + 1)


def cut_footers(page: Page) -> None:
    """What a phone, a list or a scanner writes under the words, from the last line upwards."""
    for _ in range(4):
        kept = _kept(page)
        if not kept or page.fenced[kept[-1]]:
            return
        last = kept[-1]
        start = next((at for at in reversed(kept[-8:]) if not _TAGS.fullmatch(page.lines[at])), None)
        if start is not None and _is_footer(page, start):
            while start > 0 and page.is_free(start - 1) and _TAGS.fullmatch(page.lines[start - 1]):
                start -= 1
            page.take(start, last + 1)
            continue
        start = _list_footer(page, kept)
        if start is None:
            return
        page.take(start, len(page))


def _kept(page: Page) -> list[int]:
    return [at for at in range(len(page)) if not page.cut[at] and not page.is_blank(at)]


def _is_footer(page: Page, at: int) -> bool:
    """Whether a line is a footer, as programs write it; what people say too needs a gap above."""
    line = _TARGET.sub("", _TAGS.sub("", page.flat[at][:1000])).strip()
    if len(line) > 160 or page.fenced[at]:
        return False
    if REACTIONS.fullmatch(line) or GET_OUTLOOK.fullmatch(line) or FOOTERS.fullmatch(line):
        return True
    if len(line) > 90 or _SENTENCE.search(line) or not SENT_WITH.match(line) or _goes_on(page, at):
        return False
    apart = at == 0 or page.is_blank(at - 1) or page.cut[at - 1]
    return PRODUCTS.search(line) is not None or (apart and DEVICES.search(line) is not None)


def _goes_on(page: Page, at: int) -> bool:
    """Whether the line is the end of a sentence that began on the line above."""
    above = page.flat[at - 1] if at else ""
    return bool(above) and above[-1].isalnum() and page.flat[at].endswith(".")


def _list_footer(page: Page, kept: Sequence[int]) -> int | None:
    """Where the footer of a list or scanner begins: a rule, then few lines with its words."""
    for at in reversed(kept[-8:]):
        if page.fenced[at]:
            return None
        short = _SHORT_RULE.match(page.lines[at]) is not None
        if short or RULE.match(page.lines[at]):
            block = " ".join(page.lines[each] for each in kept if each >= at)[:3000]
            return at if LIST_FOOTERS.search(block) and (not short or len(block) < 600) else None
    return None
