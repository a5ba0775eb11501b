"""The lines of a reply while its rules are applied: what is known of each, and which of them are cut.

The rules live in `attribution`, `quotation` and `trailer`; each looks at what the earlier ones left.  Every
rule looks at each line once and at few lines around it, so that the time is linear in the text.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from attrs import Factory, define, field, frozen

from mailgateway.mail.own import Own
from mailgateway.mail.phrases import WROTE

LINE_LIMIT = 4000
"""Characters of a line that the rules look at."""

SEARCH_BUDGET = 400
"""Lines of a page that are looked for within our sent lines; for more only whole lines are compared."""

CONTEXT_LINES = 8
"""Filled quoted lines that are shown above an answer to them."""

SPACE = re.compile(r"[\s\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+")
MARKS = re.compile(r"[\s>|\uff1e]+")
QUOTED = re.compile(r"\s{0,3}(?:>|\uff1e)")
RULE = re.compile(r"[\s>]{0,6}[_\u2500=*-]{5,}\s*$")
"""A line that is drawn across the page."""
DATED = re.compile(r"\d[:.h\uff1a]\d\d|\b(?:19|20)\d\d\b|\d\u5e74|\d+[/.-]\d+[/.-]\d+")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_ENDS = re.compile(r"(?:[:\uff1a]|-{2,})[\s*_>]*$")


@frozen
class Line:
    """One line as the reader of a part gives it.

    ``apart`` says that the markup sets it apart as no words of the sender (a quotation or a signature),
    ``boxed`` that it stands in a block quotation, which may as well be formatting.
    """

    text: str
    apart: bool = False
    boxed: bool = False


def flattened(line: str) -> str:
    """The line as it is compared: without quote marks and invisible characters, blanks collapsed."""
    bare = line[:LINE_LIMIT]
    return SPACE.sub(" ", MARKS.sub(" ", bare, count=1) if bare[:1] in " \t>|\uff1e" else bare).strip()


OTHER_FORM = "\f"
"""Stands between the forms of a sent text: a reader's program quotes the plain text, or the page as text."""


@frozen
class Sent:
    """The text that is answered: its lines as they are compared."""

    forms: tuple[frozenset[str], ...]
    """The lines of each form."""
    flat: str = field(repr=False)
    """All lines after one another."""

    @classmethod
    def of(cls, text: str | None) -> "Sent":
        """Take the text that was sent, if there is one; see `OTHER_FORM`."""
        forms = [
            [flat for line in form.split("\n") if (flat := flattened(line))]
            for form in (text or "").split(OTHER_FORM)
        ]
        return cls(tuple(map(frozenset, forms)), " ".join(line for form in forms for line in form))

    @cached_property
    def lines(self) -> frozenset[str]:
        """The lines of all forms."""
        return frozenset().union(*self.forms)

    @cached_property
    def ends(self) -> list[str]:
        """The lines, each from its end, in order."""
        return sorted(line[::-1] for line in self.lines)


@define(slots=False)
class Page:
    """The lines of one text and which of them are cut."""

    given: Sequence[Line]
    marks: tuple[str, ...]
    """What tells that a block speaks of us: our addresses and names, folded."""
    sent: Sent
    subject: str = ""
    """The mail's subject without its prefixes, folded."""
    lines: list[str] = Factory(lambda self: [line.text for line in self.given], takes_self=True)
    cut: list[bool] = Factory(lambda self: [line.apart for line in self.given], takes_self=True)
    quote: list[bool] = Factory(
        lambda self: [line.apart and line.boxed for line in self.given], takes_self=True
    )
    """Which of the lines that are cut are what somebody else wrote."""
    fenced: list[bool] = Factory(lambda self: [False] * len(self.lines), takes_self=True)
    flat: list[str] = Factory(lambda self: [flattened(line) for line in self.lines], takes_self=True)
    introduced: int | None = None
    """The first line of the first quotation below an attribution."""
    _closing: dict[int, bool] = Factory(dict)
    _searches: int = SEARCH_BUDGET

    @classmethod
    def of(cls, lines: Sequence[Line], own: Own, sent_text: str | None, subject: str = "") -> "Page":
        """A page on which only that is cut which the markup sets apart."""
        marks = tuple(mark.casefold() for mark in (*own.addresses, *own.names) if len(mark) > 2)
        page = cls(lines, marks, Sent.of(sent_text), subject)
        page._protect_fences()
        return page

    def __len__(self) -> int:
        return len(self.lines)

    def _protect_fences(self) -> None:
        """Lines of a closed code fence are typed, whatever they look like."""
        opened: int | None = None
        for at, line in enumerate(self.lines):
            if self.cut[at] or not _FENCE.match(line):
                continue
            if opened is None:
                opened = at
            else:
                self.fenced[opened : at + 1] = [True] * (at + 1 - opened)
                opened = None

    # ------------------------------------------------------------------- questions about lines

    def is_blank(self, at: int) -> bool:
        """Whether nothing is seen in the line but quote marks."""
        return not self.flat[at]

    def is_quoted(self, at: int) -> bool:
        """Whether the line carries a quote mark, or its equal in HTML."""
        return QUOTED.match(self.lines[at]) is not None or self.given[at].boxed

    def is_sent(self, at: int) -> bool:
        """Whether the line is one of those that we sent."""
        return self.flat[at] in self.sent.lines

    def is_within_sent(self, at: int) -> bool:
        """Whether the line is one of those, or a piece of some, as programs break and join them."""
        if self.is_sent(at):
            return True
        flat = self.flat[at]
        if len(flat) < 12 or self._searches <= 0:
            return False
        self._searches -= 1
        return flat in self.sent.flat

    def is_free(self, at: int) -> bool:
        """Whether the line may still be cut."""
        return not self.cut[at] and not self.fenced[at]

    def next_filled(self, at: int) -> int:
        """The first line at or below this one that is not blank, or the number of lines."""
        while at < len(self.lines) and self.is_blank(at):
            at += 1
        return at

    def names_us(self, text: str) -> bool:
        """Whether one of our addresses or names stands in it."""
        folded = SPACE.sub(" ", text).casefold()
        return any(mark in folded for mark in self.marks)

    def closes(self, at: int) -> bool:
        """Whether a line ends as an attribution does; asked of each line several times."""
        known = self._closing.get(at)
        if known is None:
            end = SPACE.sub(" ", self.lines[at][-120:])
            known = _ENDS.search(end[-40:]) is not None or WROTE.search(end[-60:]) is not None
            self._closing[at] = known
        return known

    def ends_with_colon(self, at: int) -> bool:
        """Whether a line ends as a whole attribution does, and not in the middle of one."""
        return _ENDS.search(SPACE.sub(" ", self.lines[at][-60:])) is not None

    # ------------------------------------------------------------------- changes

    def take(self, start: int, end: int, *, quote: bool = False) -> None:
        """Cut the lines from ``start`` up to ``end``; ``quote`` says that somebody else wrote them."""
        self.cut[start:end] = [True] * (end - start)
        if quote:
            self.quote[start:end] = [True] * (end - start)

    # ------------------------------------------------------------------- the result

    def typed(self) -> str:
        """What is left; where something was cut between empty lines, one of them stays.

        Where the words answer several quotations, each stands below the lines that it answers.
        """
        shown = self._context()
        kept: list[str] = []
        torn = False
        for at, line in enumerate(self.lines):
            if at in shown:
                kept.append(line.rstrip() if QUOTED.match(line) else f"> {line.strip()}".rstrip())
                torn = False
            elif self.cut[at]:
                torn = True
            elif line.strip() or not torn or (kept and kept[-1].strip()):
                kept.append(line if self.fenced[at] else line.rstrip())
                torn = torn and not line.strip()
        return trimmed(kept)

    def quoted(self) -> str:
        """What was taken away."""
        shown = self._context()
        return trimmed(
            [line.rstrip() for at, line in enumerate(self.lines) if self.cut[at] and at not in shown]
        )

    def _context(self) -> frozenset[int]:
        """The quoted lines that are answered, when the words answer more than one quotation."""
        runs = [run for run, answered in self._runs() if answered]
        if len(runs) < 2:
            return frozenset()
        return frozenset(at for run in runs for at in run[-CONTEXT_LINES:])

    def _runs(self) -> Iterator[tuple[list[int], bool]]:
        """The runs of quoted lines, blank ones left out, and whether typed words follow each."""
        run: list[int] = []
        for at in range(len(self.lines)):
            if self.cut[at]:
                if self.quote[at] and not self.is_blank(at):
                    run.append(at)
            elif run and not self.is_blank(at):
                yield run, True
                run = []
        if run:
            yield run, False


def trimmed(lines: Sequence[str]) -> str:
    """The lines without empty ones at both ends."""
    filled = [at for at, line in enumerate(lines) if line.strip()]
    return "\n".join(lines[filled[0] : filled[-1] + 1]).rstrip() if filled else ""
