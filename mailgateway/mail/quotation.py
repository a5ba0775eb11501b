"""Which lines of a reply are typed, and which are quotation, signature and footer.

The gateway knows itself and what it sent, and asks that first: a short block that holds its address or name
and ends as an attribution does, in whatever language, introduces a quotation; a ``>`` line or an unmarked
line is quoted when it is a line of the text that was sent.  Lists of words come second.  In doubt a line is
kept: a kept footer is an annoyance, a lost line is a wrong instruction.

Every rule looks at each line once and at few lines around it, so that the time is linear in the text.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import islice

from attrs import Factory, define

from mailgateway.mail.own import Own
from mailgateway.mail.phrases import FOOTERS, LIST_FOOTERS, ORIGINAL_MESSAGE, WROTE

LINE_LIMIT = 4000
"""Characters of a line that the rules look at."""

_SPACE = re.compile(r"[\s\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+")
_MARKS = re.compile(r"[\s>|\uff1e]+")
_QUOTED = re.compile(r"\s{0,3}(?:>|\uff1e)")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_LABEL = re.compile(r"[\s>*_|]{0,6}[^\s:\uff1a][^:\uff1a<>@]{0,30}?[ *_\xa0]{0,3}[:\uff1a]")
_DATED = re.compile(r"\d[:.h\uff1a]\d\d|\b(?:19|20)\d\d\b|\d\u5e74|\d+[/.-]\d+[/.-]\d+")
_RULE = re.compile(r"[\s>]{0,6}[_\u2500=*-]{5,}\s*$")
_ENDS = re.compile(r"(?:[:\uff1a]|-{2,})[\s*_>]*$")


def _flat(line: str) -> str:
    """The line as it is compared: without quote marks and invisible characters, blanks collapsed."""
    return _SPACE.sub(
        " ", _MARKS.sub(" ", line[:LINE_LIMIT], count=1) if line[:1] in " \t>|\uff1e" else line[:LINE_LIMIT]
    ).strip()


def _marks_of(own: Own) -> tuple[str, ...]:
    """What tells that a block speaks of us: our addresses and names, folded."""
    return tuple(mark.casefold() for mark in (*own.addresses, *own.names) if len(mark) > 2)


def _sent_lines(sent_text: str | None) -> frozenset[str]:
    return frozenset(flat for line in (sent_text or "").split("\n") if (flat := _flat(line)))


@define
class Page:
    """The lines of one text and which of them are cut; each rule looks at what the earlier ones left."""

    lines: list[str]
    marks: tuple[str, ...]
    sent: frozenset[str]
    cut: list[bool] = Factory(lambda self: [False] * len(self.lines), takes_self=True)
    fenced: list[bool] = Factory(lambda self: [False] * len(self.lines), takes_self=True)
    flat: list[str] = Factory(lambda self: [_flat(line) for line in self.lines], takes_self=True)
    closing: dict[int, bool] = Factory(dict)
    introduced: int | None = None
    """The first line of the first quotation below an attribution."""
    sent_ends: list[str] = Factory(lambda self: sorted(line[::-1] for line in self.sent), takes_self=True)
    """The lines that we sent, each from its end, in order."""

    @classmethod
    def of(cls, lines: list[str], own: Own, sent_text: str | None) -> "Page":
        """A page on which nothing is cut yet."""
        return cls(lines, _marks_of(own), _sent_lines(sent_text))

    def cut_all(self) -> None:
        """Apply all rules in their order."""
        self.protect_fences()
        self.cut_attributions()
        self.cut_header_block()
        self.cut_quotes()
        self.cut_sent_tail()
        self.cut_signature()
        self.cut_footers()

    def typed(self) -> str:
        """What is left; where something was cut between empty lines, one of them stays."""
        kept: list[str] = []
        torn = False
        for line, cut, fenced in self._rows():
            if cut:
                torn = True
            elif line.strip() or not torn or (kept and kept[-1].strip()):
                kept.append(line if fenced else line.rstrip())
                torn = torn and not line.strip()
        return _trimmed(kept)

    def quoted(self) -> str:
        """What was taken away."""
        return _trimmed([line.rstrip() for line, cut, _ in self._rows() if cut])

    def _rows(self) -> Sequence[tuple[str, bool, bool]]:
        return list(zip(self.lines, self.cut, self.fenced, strict=True))

    def protect_fences(self) -> None:
        """Lines of a closed code fence are typed, whatever they look like."""
        opened: int | None = None
        for at, line in enumerate(self.lines):
            if _FENCE.match(line):
                if opened is None:
                    opened = at
                else:
                    self.fenced[opened : at + 1] = [True] * (at + 1 - opened)
                    opened = None

    def _ours(self, text: str) -> bool:
        folded = _SPACE.sub(" ", text).casefold()
        return any(mark in folded for mark in self.marks)

    def _is_blank(self, at: int) -> bool:
        return not self.flat[at]

    def _next_filled(self, at: int) -> int:
        while at < len(self.lines) and self._is_blank(at):
            at += 1
        return at

    def cut_attributions(self) -> None:
        """A block of few lines that names us and ends like ``…:``, above a quotation, our text or the end."""
        for last in range(len(self.lines)):
            start = self._attribution(last)
            if start is None:
                continue
            end = last + 1
            self.cut[start:end] = [True] * (end - start)
            below = self._next_filled(end)
            if below < len(self.lines) and _QUOTED.match(self.lines[below]):
                self.introduced = below if self.introduced is None else min(self.introduced, below)
            else:
                self.cut[end:] = [True] * (len(self.lines) - end)
                return

    def _attribution(self, last: int) -> int | None:
        """The first line of the attribution that ends with this line, or None.

        Upwards from its end, only as far as is needed for our name and then for a date or time.
        """
        line = self.lines[last]
        if self.cut[last] or self.fenced[last] or len(line) > 400 or not self._closes(last):
            return None
        start = self._upwards(last, self._ours)
        if start is None:
            return None
        dated = self._upwards(last, lambda block: self._ours(block) and _DATED.search(block) is not None)
        start = self._whole(start if dated is None else dated)
        block = " ".join(self.lines[start : last + 1])
        return start if self._introduces(last + 1, block) else None

    def _upwards(self, last: int, holds: Callable[[str], bool]) -> int | None:
        """The nearest line at or above from which on the block holds what is asked; few lines only."""
        block = ""
        filled = 0
        for at in range(last, max(-1, last - 7), -1):
            line = self.lines[at]
            if self._is_blank(at):
                if filled and holds(block):
                    return None
                continue
            if self.fenced[at] or self.cut[at] or len(line) > 400:
                return None
            if at < last and (self.flat[at] in self.sent or self._closes(at)):
                return None
            block = f"{line} {block}"
            filled += 1
            if holds(block):
                return at
            if filled >= 5:
                return None
        return None

    def _whole(self, start: int) -> int:
        """Take in the line above where it is plainly the other half of ours: an open ``<``, or our name."""
        above = start - 1
        if above < 0 or self._is_blank(above) or self.cut[above] or self.fenced[above]:
            return start
        line = self.flat[above]
        return above if line.endswith("<") or (len(line) < 80 and self._names_end(line)) else start

    def _names_end(self, line: str) -> bool:
        folded = line.casefold().rstrip("\"'<( ")
        return any(folded.endswith(mark) for mark in self.marks)

    def _closes(self, at: int) -> bool:
        """Whether a line ends as an attribution does; asked of each line several times."""
        known = self.closing.get(at)
        if known is None:
            known = self.closing[at] = self._ends_as_attribution(self.lines[at])
        return known

    def _ends_as_attribution(self, line: str) -> bool:
        end = _SPACE.sub(" ", line[-120:])
        return _ENDS.search(end[-40:]) is not None or WROTE.search(end[-60:]) is not None

    def _introduces(self, at: int, block: str) -> bool:
        below = self._next_filled(at)
        if below >= len(self.lines):
            return WROTE.search(block[-60:]) is not None or _DATED.search(block) is not None
        line = self.lines[below]
        if _QUOTED.match(line) or self.flat[below] in self.sent:
            return True
        return WROTE.search(block[-60:]) is not None and _DATED.search(block) is not None

    def cut_header_block(self) -> None:
        """Outlook and its like: our From, Sent, To, Subject lines, then our text without any marks."""
        for at in range(len(self.lines)):
            start = self._header_block(at)
            if start is None:
                continue
            above = start - 1
            while above >= 0 and (self._is_blank(above) or self._announces(above)):
                if self._announces(above):
                    start = above
                above -= 1
            self.cut[start:] = [True] * (len(self.lines) - start)
            return

    def _announces(self, at: int) -> bool:
        line = self.lines[at]
        return _RULE.match(line) is not None or ORIGINAL_MESSAGE.search(line[:200]) is not None

    def _is_label(self, at: int) -> bool:
        return (
            0 <= at < len(self.lines)
            and not self.fenced[at]
            and not self.cut[at]
            and _LABEL.match(self.lines[at]) is not None
        )

    def _header_block(self, named: int) -> int | None:
        """The first line of a block of three and more ``Label: value`` lines, found by the one that names us.

        A line above that one belongs to it only as a dated label, so that no typed line is taken along.
        """
        if not self._is_label(named) or not self._ours(" ".join(self.lines[named : named + 2])[:600]):
            return None
        start = named
        while start > named - 2 and self._is_label(start - 1) and _DATED.search(self.lines[start - 1]):
            start -= 1
        labels = named - start + 1
        end = named + 1
        while end < min(len(self.lines), named + 14):
            if self._is_label(end):
                labels += 1
            elif self._is_blank(end):
                if not self._is_label(self._next_filled(end)):
                    break
            elif not self._continues(end):
                break
            end += 1
        below = self._next_filled(end)
        ours_below = below < len(self.lines) and self.flat[below] in self.sent
        dated = _DATED.search(" ".join(self.lines[start:end])) is not None
        return start if labels >= 3 and (dated or ours_below) else None

    def _continues(self, at: int) -> bool:
        """Whether the line is the rest of a label's value: after an empty one, indented, or an address."""
        line = self.lines[at]
        return line[:1] in " \t" or "@" in line or self.flat[at - 1].rstrip("* ").endswith((":", "\uff1a"))

    def cut_quotes(self) -> None:
        """Runs of ``>`` lines: those under an attribution, at the end, or with a line that we sent."""
        at = 0
        while at < len(self.lines):
            if not _QUOTED.match(self.lines[at]) or self.fenced[at]:
                at += 1
                continue
            end = at
            while end < len(self.lines) and _QUOTED.match(self.lines[end]) and not self.fenced[end]:
                end += 1
            run = range(at, end)
            known = [self.flat[each] in self.sent for each in run]
            below = self.introduced is not None and at >= self.introduced
            if below or any(self.cut[each] for each in run) or any(known):
                self.cut[at:end] = [True] * (end - at)
                end = self._rewrapped(end)
            elif (
                not self.sent and self._next_filled(end) >= len(self.lines) and any(self._has_words_above(at))
            ):
                self.cut[at:end] = [True] * (end - at)
            at = end

    def _rewrapped(self, at: int) -> int:
        """Remainders of wrapped quoted lines that have lost their mark: our text, amid the quotation."""
        end = at
        while (
            end < len(self.lines)
            and not self._is_blank(end)
            and not _QUOTED.match(self.lines[end])
            and self._ends_sent_line(self.flat[end])
        ):
            self.cut[end] = True
            end += 1
        return end

    def _ends_sent_line(self, flat: str) -> bool:
        """Whether some line that we sent ends so; a search in order, since both texts may be long."""
        at = bisect_left(self.sent_ends, flat[::-1])
        return at < len(self.sent_ends) and self.sent_ends[at].startswith(flat[::-1])

    def _has_words_above(self, at: int) -> Sequence[bool]:
        return [not self.cut[each] and not self._is_blank(each) for each in range(at)]

    def cut_sent_tail(self) -> None:
        """Our text below the reply without any mark, from where two lines in a row are ours."""
        if len(self.sent) < 2:
            return
        for at in range(len(self.lines)):
            if self.cut[at] or self.fenced[at] or self._is_blank(at) or self.flat[at] not in self.sent:
                continue
            below = self._next_filled(at + 1)
            ours = below < len(self.lines) and self.flat[below] in self.sent
            if ours and len(self.flat[at]) > 12:
                self.cut[at:] = [True] * (len(self.lines) - at)
                return

    def cut_signature(self) -> None:
        """``-- `` and at most eight short lines up to a quotation or the end (RFC 3676, section 4.3)."""
        ends = self._next_cuts()
        for at, line in enumerate(self.lines):
            if self.cut[at] or self.fenced[at] or line not in {"-- ", "--", "--\xa0"}:
                continue
            end = ends[at]
            filled = (self.lines[each] for each in range(at + 1, end) if self.lines[each].strip())
            below = list(islice(filled, 9))
            if len(below) <= 8 and all(len(each) <= 100 for each in below):
                self.cut[at:end] = [True] * (end - at)

    def _next_cuts(self) -> list[int]:
        """For each line the next one that is cut, or the number of lines."""
        ends = [len(self.lines)] * len(self.lines)
        for at in range(len(self.lines) - 2, -1, -1):
            ends[at] = at + 1 if self.cut[at + 1] else ends[at + 1]
        return ends

    def cut_footers(self) -> None:
        """What a phone, a list or a scanner writes under the words, from the last line upwards."""
        for _ in range(4):
            kept = [at for at in range(len(self.lines)) if not self.cut[at] and not self._is_blank(at)]
            if not kept:
                return
            last = kept[-1]
            if self.fenced[last]:
                return
            if FOOTERS.match(self.flat[last][:200]) and not self._goes_on(last):
                self.cut[last] = True
                continue
            start = self._list_footer(kept)
            if start is None:
                return
            self.cut[start:] = [True] * (len(self.lines) - start)

    def _goes_on(self, at: int) -> bool:
        """Whether the line is the end of a sentence that began on the line above."""
        above = self.flat[at - 1] if at else ""
        return bool(above) and above[-1].isalnum() and self.flat[at].endswith(".")

    def _list_footer(self, kept: Sequence[int]) -> int | None:
        """Where the footer of a list or scanner begins: a long rule, then few lines with its words."""
        for at in reversed(kept[-8:]):
            if _RULE.match(self.lines[at]) and not self.fenced[at]:
                block = " ".join(self.lines[at:])[:3000]
                return at if LIST_FOOTERS.search(block) else None
        return None


def _trimmed(lines: Sequence[str]) -> str:
    """The lines without empty ones at both ends."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]).rstrip() if filled else ""
