"""Which lines of a reply are typed, and which are quotation, signature and footer.

The gateway knows itself and what it sent, and asks that first: what introduces a quotation is in
`attribution`; a ``>`` line or an unmarked line is quoted when it is a line of the text that was sent.  Lists
of words come second (`trailer`).  In doubt a line is kept: a kept footer is an annoyance, a lost line is a
wrong instruction.
"""

import re
from bisect import bisect_left

from mailgateway.mail.attribution import cut_attributions, cut_foreign_attributions, cut_header_block
from mailgateway.mail.page import QUOTED, Page
from mailgateway.mail.trailer import cut_footers, cut_notices, cut_signature

_PROMPT = re.compile(r"\s{0,3}>>>(?: |$)")


def cut_all(page: Page) -> None:
    """Apply all rules in their order."""
    cut_attributions(page)
    cut_header_block(page)
    _keep_inserted(page)
    _cut_quotes(page)
    _cut_sent_tail(page)
    cut_foreign_attributions(page)
    cut_signature(page)
    cut_notices(page)
    cut_footers(page)


def _cut_quotes(page: Page) -> None:
    """Runs of ``>`` lines: those under an attribution, at the end, or with a line that we sent."""
    at = 0
    words_above = False
    while at < len(page):
        if page.fenced[at] or not page.is_quoted(at):
            words_above = words_above or (not page.cut[at] and not page.is_blank(at))
            at += 1
            continue
        end = at
        while end < len(page) and page.is_quoted(end) and not page.fenced[end]:
            end += 1
        run = range(at, end)
        known = any(page.is_within_sent(each) for each in run)
        below = page.introduced is not None and at >= page.introduced and not _is_prompt(page, at, end)
        if known or below or any(page.cut[each] for each in run):
            page.take(at, end, quote=True)
            end = _rewrapped(page, end)
        elif not page.sent.lines and words_above and page.next_filled(end) >= len(page):
            page.take(at, end, quote=True)
        else:
            words_above = True
        at = end


def _is_prompt(page: Page, start: int, end: int) -> bool:
    """Whether a run of its own is an interpreter's session and no quotation of a third depth."""
    if start in (0, page.introduced) or not page.is_blank(start - 1):
        return False
    return all(_PROMPT.match(page.lines[at]) for at in range(start, end))


def _rewrapped(page: Page, at: int) -> int:
    """Remainders of wrapped quoted lines that have lost their mark: our text, amid the quotation."""
    end = at
    while (
        end < len(page)
        and not page.is_blank(end)
        and not QUOTED.match(page.lines[end])
        and _ends_sent_line(page, page.flat[end])
    ):
        page.take(end, end + 1, quote=True)
        end += 1
    return end


def _ends_sent_line(page: Page, flat: str) -> bool:
    """Whether some line that we sent ends so; a search in order, since both texts may be long."""
    ends = page.sent.ends
    at = bisect_left(ends, flat[::-1])
    return at < len(ends) and ends[at].startswith(flat[::-1])


def _cut_sent_tail(page: Page) -> None:
    """Our text below the reply without any mark, from where two lines in a row are ours.

    Two options that somebody copied are an answer: there must be more of our lines.
    """
    if len(page.sent.lines) < 2:
        return
    free = [at for at in range(len(page)) if page.is_free(at) and not page.is_blank(at) and page.is_sent(at)]
    if len(free) < min(3, len(page.sent.lines)):
        return
    for at in free:
        below = page.next_filled(at + 1)
        if below < len(page) and page.is_sent(below) and len(page.flat[at]) > 12:
            page.take(at, len(page), quote=True)
            _keep_inserted(page)
            return


def _keep_inserted(page: Page) -> None:
    """Answers that were typed between the unmarked lines of our text, where all of it is there.

    Where a line of ours is missing or was rewritten by the program, one cannot tell its words from typed
    ones, and nothing is given back.
    """
    start = next((at for at in range(len(page)) if page.quote[at] and not page.given[at].apart), None)
    if start is None or QUOTED.match(page.lines[start]) or len(page.sent.lines) < 2:
        return
    region = [at for at in range(start, len(page)) if not page.is_blank(at)]
    ours = [at for at in region if page.is_sent(at)]
    found = {page.flat[at] for at in ours}
    if not any(form <= found for form in page.sent.forms if form):
        return
    for at in region:
        if ours[0] < at < ours[-1] and not page.is_sent(at) and not page.given[at].apart:
            page.cut[at] = page.quote[at] = False
