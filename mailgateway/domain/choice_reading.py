"""Finding the option that a text names first, and taking it when nothing speaks against it."""

import re
from collections.abc import Iterator

from attrs import frozen

from mailgateway.domain import choice_words as language
from mailgateway.domain.choice_offer import ALPHABET, NO, POLAR, YES, Offer, bare
from mailgateway.domain.choice_rest import (
    BECAUSE,
    BREAK,
    LONE,
    PART,
    POLITE,
    is_closing,
    is_longer,
    leading,
    numbers_in,
    speaks_against,
)
from mailgateway.domain.choice_text import Typed, alternatives, phrases, words

SKIPS = 6
"""So many greetings and the like are passed over in front of a choice."""

NAMED = 200
"""A list that names more options, or one so often, is none that a person wrote."""

SHORT = 12
"""A longer text that chooses nothing is taken for prose, whatever it names."""

_ALL = phrases(language.ALL)
_EDGE = r"(?![\w%°€$£/@#&+=<>-])(?![.,:]\d)"
"""Where a choice may end: nothing is written onto it that makes it a part of something else."""
_LIST_EDGE = r"(?![\w%°€$£@#=<>-])(?![.:]\d)"
"""The same where several may be chosen, as in ``1,3``."""
_SAID = re.compile(rf"({POLAR}){_EDGE}")
_ITEM = (
    rf"(?:(?:{alternatives(language.ARTICLE)}) (?![a-z](?!\w)))?"
    rf"(?:(?P<named>{alternatives(language.OPTION)})(?![^\W\d])[ :.#]{{0,3}}|(?P<sharp># ?)|第)?"
    rf"(?P<open>[(\[] ?)?(?P<it>\d{{1,3}}|[a-z])(?P<close> ?[)\]])?"
    rf"(?:(?:{alternatives(language.AFTER_NUMBER)})(?=\W|$))?"
)
_NUMBER = re.compile(_ITEM + _EDGE)
_LIST_NUMBER = re.compile(_ITEM + _LIST_EDGE)
_LIST_MARK = re.compile(r"[.):]+(?= |\n|$)")
_TO_WORDS = (re.compile(r"[.):]? ?"), re.compile(r"[.):]? ?[-=>,]{0,2} ?[(\[]?"))
"""What stands between a number and its words; a label may begin with a mark itself."""
_RECOMMENDED = re.compile(r" ?\(recommended\)")
_BULLET = re.compile("(?:[-\u2022\u00b7>] )+")
_GREETING = alternatives(language.GREETING)
_HELLO = re.compile(rf"(?:{_GREETING})(?![^\W\d])[,!.:]*[ \n]*-? ?")
_HELLO_NAME = re.compile(rf"(?:{_GREETING})(?: [^\W\d][\w.-]*){{1,4}} ?(?:[,!.:]+[ \n]*|\n| - )")
_FILLER = re.compile(rf"(?:{alternatives(language.FILLER)})(?:(?![^\W\d])|(?=\d))[,!.:]*[ \n]*-? ?")
_TAKE = re.compile(rf"(?:{alternatives(language.TAKE)})(?:(?![^\W\d])|(?=\d)):?[ \n]*")
_BEFORE = (_BULLET, _HELLO, _HELLO_NAME, _FILLER, _TAKE)
_AND = alternatives(language.AND)
_BETWEEN = re.compile(rf"(?P<mark> ?[,;+&/] ?(?:(?:{_AND}) )?|\.?\n| (?:{_AND}) )|(?P<blank> )")
_WORDLIKE = {
    ALPHABET.index(letter) for letter in phrases(language.ARTICLES) if letter in ALPHABET and letter != "b"
}


@frozen
class Taken:
    """These options are chosen, with a note (``""``: none)."""

    indices: tuple[int, ...]
    note: str


@frozen
class Doubt:
    """Something is named, and nothing chosen; these options may be meant."""

    indices: tuple[int, ...]


@frozen
class _Found:
    """An option that is named somewhere: up to which place, and in which manner."""

    index: int
    end: int
    lone: bool = False
    """A letter alone, which may be a word."""
    listed: bool = False
    """A number with a mark as in a list (``2.``): more on the line may be an item of the person's own."""


@frozen
class Reading:
    """One text against one offer; with ``multi`` several options may be named one behind the other."""

    typed: Typed
    offer: Offer
    multi: bool

    def read(self) -> Taken | Doubt | None:
        """Take what is named first; what speaks against it makes it unclear.  ``None``: it is prose."""
        if self.multi and (everything := self._everything()) is not None:
            return everything
        for start in self._starts():
            if not (found := self._named(start)):
                continue
            taken = self._several(start) if self.multi else self._one(found)
            note = None if taken is None else self._note(*taken)
            if taken is None or note is None:
                return self._doubt({each.index for each in found})
            return Taken(taken[0], note)
        text = bare(self.typed.flat)
        short = len(text.split()) <= SHORT
        if short and (self._mentioned() or LONE.fullmatch(text) or text in YES | NO):
            return self._doubt(set())
        return None

    def _starts(self) -> Iterator[int]:
        """The places where a choice may begin: first, and behind what people write before it."""
        lined = self.typed.lined
        places = [0]
        for _ in range(SKIPS):
            at = places.pop(0)
            yield at
            ends = [found.end() for skip in _BEFORE if (found := skip.match(lined, at)) is not None]
            if at == 0 and self.offer.yes is None:  # a yes to the mail, and not to an option
                said = _SAID.match(lined)
                if said is not None and said[1] in YES:
                    ends.append(said.end() + leading(lined[said.end() :]))
            places = sorted({*places, *(end for end in ends if at < end < len(lined))})
            if not places:
                return

    # --- what is named ---------------------------------------------------------------------------------

    def _one(self, found: list[_Found]) -> tuple[tuple[int, ...], int] | None:
        """The one option that is meant, and where its naming ends."""
        end = max(each.end for each in found)
        last = [each for each in found if each.end == end]
        if len({each.index for each in last}) > 1:
            return None
        if any(map(self._ends, last)):
            return (last[0].index,), end
        # a shorter reading of the same words, such as a number with a note behind it
        shorter = {each.end for each in found if each.end < end and self._ends(each)}
        if shorter and len({each.index for each in found}) == 1:
            return (last[0].index,), max(shorter)
        return None

    def _several(self, start: int) -> tuple[tuple[int, ...], int] | None:
        """The options named one behind the other, in the order of the offer."""
        chosen: set[int] = set()
        at, end, rows, named = start, start, 0, 0
        last: list[_Found] = []
        while found := self._named(at):
            end = max(each.end for each in found)
            last = [each for each in found if each.end == end]
            if len({each.index for each in last}) > 1:
                return None
            chosen.add(last[0].index)
            named += 1
            if named > NAMED:
                return None
            between = _BETWEEN.match(self.typed.lined, end)
            if between is None:
                break
            at = between.end()
            rows += "\n" in between[0]
            around = self.typed.flat[end - 1] + self.typed.flat[at : at + 1]
            if between["blank"] and not around.isdigit():
                break
        # all of ours, each on its own line, is the list of our mail that was left in the reply
        quoted = rows and self.offer.count > 1 and len(chosen) == self.offer.count
        ends = len(chosen) > 1 or any(map(self._ends, last))
        return None if quoted or not ends else (tuple(sorted(chosen)), end)

    def _everything(self) -> Taken | Doubt | None:
        text = bare(self.typed.flat)
        polite = POLITE.search(text)
        if polite is not None and polite.end() == len(text):
            text = bare(text[: polite.start()]) or text
        if text not in _ALL or self.offer.plainly(text):
            return None
        return Doubt(()) if self.offer.has_none else Taken(tuple(range(self.offer.count)), "")

    def _named(self, start: int) -> list[_Found]:
        """Every way to read an option at a place, whatever comes behind it."""
        flat, lined = self.typed.flat, self.typed.lined
        found: list[_Found] = []
        length = 0
        opened = flat[start : start + 1] in ("(", "[")
        for form in self.offer.forms:  # of two labels the longer one is meant, where it is all there
            if len(form.text) < length:
                break
            at = start + opened if flat.startswith(form.text, start + opened) else start
            end = at + len(form.text)
            if not flat.startswith(form.text, at) or not _ends_here(flat, end):
                continue
            if at > start:
                if flat[end : end + 1] not in (")", "]"):
                    continue
                end += 1
            length = len(form.text)
            found.append(_Found(form.index, self._past_mark(end)))
        number = (_LIST_NUMBER if self.multi else _NUMBER).match(lined, start)
        if number is not None and bool(number["open"]) <= bool(number["close"]):
            found += self._numbered(number)
        said = _SAID.match(lined, start)
        if said is not None:
            option = self.offer.yes if said[1] in YES else self.offer.no
            if option is not None:
                found.append(_Found(option, said.end()))
        return found

    def _numbered(self, number: re.Match[str]) -> Iterator[_Found]:
        """An option by its number or letter, and where its words follow, with them."""
        it = number["it"]
        index = int(it) - 1 if it.isdecimal() else ALPHABET.index(it)
        if not 0 <= index < self.offer.count:
            return
        lined, flat = self.typed.lined, self.typed.flat
        mark = _LIST_MARK.match(lined, number.end())
        for form in self.offer.forms:
            ends = [
                end
                for to in _TO_WORDS
                if (between := to.match(lined, number.end())) is not None and between[0]
                if form.index == index and flat.startswith(form.text, between.end())
                if _ends_here(flat, end := between.end() + len(form.text))
            ]
            if ends:
                end = max(ends)
                end += flat[end : end + 1] in (")", "]")
                yield _Found(index, self._past_mark(end))
                break
        plain = mark or number["close"] or number["named"] or number["sharp"]
        yield _Found(
            index,
            number.end() if mark is None else mark.end(),
            lone=it.isalpha() and not plain,
            listed=mark is not None and not number["named"],
        )

    def _past_mark(self, end: int) -> int:
        mark = _RECOMMENDED.match(self.typed.flat, end)
        return end if mark is None else mark.end()

    # --- what follows ----------------------------------------------------------------------------------

    def _ends(self, found: _Found) -> bool:
        """Whether the choice ends there, so that what follows can only be a note to it."""
        after = self._past_politeness(found.end)
        if after > found.end or self._stops(found.end):
            strict = found.listed or (found.lone and found.index in _WORDLIKE)
            return not (strict and after == found.end) or self._stops(found.end, strict=True)
        return False

    def _past_politeness(self, end: int) -> int:
        """Where the politeness behind a choice ends, if that is all it is: ``it is`` may go on."""
        polite = POLITE.match(self.typed.lined, end)
        return polite.end() if polite is not None and self._stops(polite.end()) else end

    def _stops(self, end: int, *, strict: bool = False) -> bool:
        """Whether nothing follows, a new line, or what begins a note; ``strict``: not after a mark alone."""
        lined = self.typed.lined
        rest = lined[end:]
        if not rest.strip(" .!,:-") or rest[0] == "\n" or BECAUSE.match(lined, end) is not None:
            return True
        return not strict and BREAK.match(lined, end) is not None

    def _note(self, chosen: tuple[int, ...], end: int) -> str | None:
        """What was added to the choice; ``None`` when it speaks against it."""
        lined = self.typed.lined
        after = self._past_politeness(end)
        if speaks_against(self.offer, chosen, lined[after:]):
            return None
        if is_longer(self.offer, chosen, lined[:end], lined):
            return None
        if is_closing(lined[end:], self.typed.raw):
            return ""
        at = after if PART.match(lined, after) else end
        note = self.typed.raw_from(at + leading(lined[at:])).strip()
        return note[:-1] if note.endswith(")") and "(" not in note else note

    # --- no choice -------------------------------------------------------------------------------------

    def _doubt(self, named: set[int]) -> Doubt:
        return Doubt(tuple(sorted(named | self._mentioned())))

    def _mentioned(self) -> set[int]:
        """The options that are named anywhere in the beginning of the text."""
        text = self.typed.flat[:400]
        spoken = f" {words(text)} "
        by_words = {form.index for form in self.offer.forms if form.spoken and f" {form.spoken} " in spoken}
        return numbers_in(self.offer, text) | by_words


def _ends_here(flat: str, end: int) -> bool:
    return end >= len(flat) or not (flat[end].isalnum() or flat[end] in "%@&+=<>-/")
