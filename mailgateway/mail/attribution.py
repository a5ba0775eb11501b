"""What introduces a quotation: attributions (``On …, X wrote:``) and header blocks.

The gateway knows itself, and asks that first: a short block that holds its address or name and ends as an
attribution does, in whatever language, introduces a quotation.  Verbs and dates of many languages come
second, and only above a quotation that is known to be one.
"""

import re
from collections.abc import Callable
from itertools import product

from mailgateway.mail.page import DATED, QUOTED, RULE, Page
from mailgateway.mail.phrases import FROM_LABELS, ORIGINAL_MESSAGE, WROTE

LONGEST = 400
"""Characters of a line that may belong to an attribution."""

_LABEL = re.compile(r"[\s>*_|]{0,6}[^\s:\uff1a\d][^:\uff1a<>@\d]{0,30}?[ *_\xa0]{0,3}[:\uff1a]")
_DAY = re.compile(r"\b(?:19|20)\d\d\b|\d\u5e74|\d+[/.-]\d+[/.-]\d+")
_ADDRESS = re.compile(r"[<(\[][^<>\s]{1,64}@[^<>\s]{1,255}[>)\]]")


def cut_attributions(page: Page) -> None:
    """A block of few lines that names us and ends like ``…:``, above a quotation, our text or the end.

    Below a quotation without marks nothing is told apart any more: all of it goes, but see `quotation`.
    """
    for last in range(len(page)):
        start = _attribution(page, last)
        if start is None:
            continue
        end = last + 1
        page.take(start, end)
        below = page.next_filled(end)
        if below < len(page) and page.is_quoted(below):
            page.introduced = below if page.introduced is None else min(page.introduced, below)
        else:
            page.take(end, len(page), quote=True)
            return


def _attribution(page: Page, last: int) -> int | None:
    """The first line of the attribution that ends with this line, or None.

    Upwards from its end, only as far as is needed for our name and then for a date or time.
    """
    if (
        not page.is_free(last)
        or len(page.lines[last]) > LONGEST
        or not page.closes(last)
        or page.is_sent(last)
    ):
        return None
    start = _upwards(page, last, page.names_us)
    if start is None:
        return None
    dated = _upwards(page, last, lambda block: page.names_us(block) and DATED.search(block) is not None)
    start = _whole(page, start if dated is None else dated, last)
    block = " ".join(page.lines[start : last + 1])
    return start if _introduces(page, last + 1, block) else None


def _upwards(page: Page, last: int, holds: Callable[[str], bool]) -> int | None:
    """The nearest line at or above from which on the block holds what is asked; few lines only."""
    block = ""
    filled = 0
    gap = False
    for at in range(last, max(-1, last - 7), -1):
        line = page.lines[at]
        if page.is_blank(at):
            gap = filled > 0
            continue
        if not page.is_free(at) or len(line) > LONGEST:
            return None
        if at < last and (page.is_sent(at) or page.ends_with_colon(at)):
            return None
        if gap and page.names_us(block) and not page.names_us(line):
            return None  # what names us is whole: a date above a gap is somebody else's
        gap = False
        block = f"{line} {block}"
        filled += 1
        if holds(block):
            return at
        if filled >= 5:
            return None
    return None


def _whole(page: Page, start: int, last: int) -> int:
    """Take in the line above where it is plainly the other half: an open ``<``, our name, a missing day."""
    above = start - 1
    if above < 0 or page.is_blank(above) or not page.is_free(above):
        return start
    line = page.flat[above]
    folded = line.casefold().rstrip("\"'<( ")
    ours = len(line) < 80 and any(folded.endswith(mark) for mark in page.marks)
    lacks_day = _DAY.search(" ".join(page.lines[start : last + 1])) is None
    day = lacks_day and len(line) < 60 and _DAY.search(line) is not None and line[-1] not in ".!?:;"
    return above if ours or day or line.endswith("<") else start


def _introduces(page: Page, at: int, block: str) -> bool:
    below = page.next_filled(at)
    if below >= len(page):
        return WROTE.search(block[-60:]) is not None or DATED.search(block) is not None
    if page.is_quoted(below) or page.is_sent(below):
        return True
    return WROTE.search(block[-60:]) is not None and DATED.search(block) is not None


def cut_foreign_attributions(page: Page) -> None:
    """Attributions that do not name us (another name is shown, or only a date), above a known quotation."""
    for first in range(1, len(page)):
        if not page.quote[first] or page.quote[first - 1]:
            continue
        last = first - 1
        while last >= 0 and page.is_blank(last) and not page.cut[last]:
            last -= 1
        if last < 0 or first - last > 3 or not page.is_free(last) or not page.closes(last):
            continue
        start = _upwards(page, last, _looks_like_attribution)
        if start is not None and not any(page.is_blank(at) for at in range(start, last)):
            page.take(_whole(page, start, last), last + 1)


def _looks_like_attribution(block: str) -> bool:
    dates = DATED.findall(block)
    if not dates:
        return False
    if WROTE.search(block[-60:]) is not None or _ADDRESS.search(block) is not None:
        return True
    return len(dates) > 1 and len(block) < 60


# --------------------------------------------------------------------------- header blocks


def cut_header_block(page: Page) -> None:
    """Outlook and its like: our From, Sent, To, Subject lines, then our text without any marks."""
    labels = [at for at in range(len(page)) if _is_label(page, at)]
    for foreign, at in product((False, True), labels if len(labels) >= 3 else ()):
        found = _header_block(page, at, foreign=foreign)
        if found is None:
            continue
        start, end = found
        above = start - 1
        while above >= 0 and (page.is_blank(above) or _announces(page, above)):
            if _announces(page, above):
                start = above
            above -= 1
        page.take(start, end)
        page.take(end, len(page), quote=True)
        return


def _announces(page: Page, at: int) -> bool:
    line = page.lines[at]
    return RULE.match(line) is not None or ORIGINAL_MESSAGE.search(line[:200]) is not None


def _is_label(page: Page, at: int) -> bool:
    return 0 <= at < len(page) and page.is_free(at) and _LABEL.match(page.lines[at]) is not None


def _header_block(page: Page, named: int, *, foreign: bool) -> tuple[int, int] | None:
    """The bounds of a block of three and more ``Label: value`` lines, found by the one that names us.

    A line above that one belongs to it only as a dated label, so that no typed line is taken along.  In a
    ``foreign`` block the program shows another name for us: then it is our subject in a dated block that
    tells, or our text right below.
    """
    value = _value(page, named)
    if not (FROM_LABELS.match(value) or _ADDRESS.search(value) if foreign else page.names_us(value)):
        return None
    start = named
    while start > named - 2 and _is_label(page, start - 1) and _DAY.search(page.lines[start - 1]):
        start -= 1
    labels = named - start + 1
    end = named + 1
    while end < min(len(page), named + 14):
        if _is_label(page, end):
            labels += 1
        elif page.is_blank(end):
            if foreign or not _is_label(page, page.next_filled(end)):
                break
        elif foreign or not _continues(page, end):
            break
        end += 1
    below = page.next_filled(end)
    ours_below = below < len(page) and page.is_sent(below)
    block = " ".join(page.lines[start:end])
    dated = DATED.search(block) is not None
    if labels < 3 or not (dated or ours_below):
        return None
    return (start, end) if not foreign or ours_below or _has_subject(page, start, end) else None


def _value(page: Page, at: int) -> str:
    """A label with its value, which may stand in the next line."""
    alone = at + 1 < len(page) and page.flat[at].rstrip("* ").endswith((":", "\uff1a"))
    return " ".join(page.lines[at : at + 1 + alone])[:600]


def _has_subject(page: Page, start: int, end: int) -> bool:
    return len(page.subject) > 8 and any(
        page.flat[at].casefold().endswith(page.subject) for at in range(start, end) if not page.is_blank(at)
    )


def _continues(page: Page, at: int) -> bool:
    """Whether the line is the rest of a label's value: after an empty one, indented, or an address."""
    if not page.is_free(at):
        return False
    line = page.lines[at]
    if QUOTED.match(line) is None and line[:1] in " \t":
        return True
    return "@" in line or page.flat[at - 1].rstrip("* ").endswith((":", "\uff1a"))
