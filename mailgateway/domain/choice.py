"""Which options a person's words choose, if they choose beyond doubt: one parser for every door.

A choice stands first in the text, behind a greeting at most: a number, a letter, an option's words, number and
words together, or yes and no where they mean one option.  What follows must plainly be a note; a note that
names another option, takes the choice back, denies it or asks makes the whole thing unclear, and then nothing
is chosen.  A missed choice costs little, since the session reads the words anyway; a wrong one costs trust.

The words of many languages are in ``choice_words``.  Consent to an action is stricter, and asks for more than
what is read here.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from re import Match, Pattern

from attrs import Factory, field, frozen

from mailgateway.domain import choice_words as language
from mailgateway.domain.choice_text import Typed, alternatives, fold, words

TEXT_LIMIT = 8_000
"""A text of more characters than this is prose and chooses nothing."""

SKIPS = 6
"""So many greetings and the like are passed over in front of a choice."""

UNCLEAR_WORDS = 12
"""A longer first line that chooses nothing is taken for prose, whatever it names."""


@frozen
class Option:
    """One possible answer: ``value`` is what the session reads, ``label`` what the person is shown.

    ``description``, ``impact`` and ``preview`` tell more about it, each ``""`` when there is nothing to tell.
    """

    value: str
    label: str
    description: str = field(default="", repr=False)
    impact: str = field(default="", repr=False)
    preview: str = field(default="", repr=False)


@frozen
class Chosen:
    """The ``value`` of each chosen option (one, unless several may be), and what the person added to them."""

    values: tuple[str, ...] = field(repr=False)
    note: str = field(default="", repr=False)


@frozen
class InWords:
    """The text chooses nothing and does not look as if it should."""


@frozen
class Unclear:
    """The text names options and chooses none beyond doubt; ``meant`` are the values that it may mean.

    Empty where it looks like a choice of something that is not offered, such as a number too high.
    """

    meant: tuple[str, ...] = field(default=(), repr=False)


Parsed = Chosen | InWords | Unclear


def parse_answer(text: str, options: Sequence[Option], multi: bool = False) -> Parsed:
    """What ``text``, the words that a person typed without quotes of ours, chooses of ``options``.

    Numbers count from 1 and letters from ``a``, in the order of ``options``.  With ``multi`` several may be
    chosen.  Never raises, whatever the text, and takes time in proportion to it.
    """
    if not options or len(text) > TEXT_LIMIT:
        return InWords()
    typed = Typed.of(text)
    if not typed.flat:
        return InWords()
    return _Reading(typed, _offer(tuple(options)), multi).parse()


# --- what is offered --------------------------------------------------------------------------------------


@frozen
class _Form:
    """A way to write an option in words; ``spoken`` is the same without its marks."""

    text: str
    spoken: str
    index: int


@frozen
class _Offer:
    """The options, as they are looked for; an option is its place in ``values``."""

    values: tuple[str, ...]
    forms: tuple[_Form, ...]
    """Values and labels, the longest first."""
    yes: int | None
    no: int | None
    plain: dict[str, frozenset[int]] = Factory(dict)
    """What names an option when it is all that is written."""
    none: bool = False
    """One of the options says that none is chosen."""


@lru_cache(maxsize=64)
def _offer(options: tuple[Option, ...]) -> _Offer:
    forms = []
    plain: dict[str, frozenset[int]] = {}

    def add(text: str, index: int) -> None:
        plain[text] = plain.get(text, frozenset()) | {index}

    for index, option in enumerate(options):
        for text in dict.fromkeys((_bare(fold(option.label)), _bare(fold(option.value)))):
            if words(text) or _is_picture(text):
                forms.append(_Form(text, words(text), index))
                add(text, index)
        add(str(index + 1), index)
        if index < 26:
            add(chr(ord("a") + index), index)
    forms.sort(key=lambda form: -len(form.text))
    yes, no = (_polar(options, own, other) for own, other in ((_YES, _NO), (_NO, _YES)))
    for spoken, found in ((_YES, yes), (_NO, no)):
        if found is not None:
            for each in spoken:
                add(each, found)
    none = any(_NONE_FIRST.match(form.text) for form in forms)
    return _Offer(tuple(option.value for option in options), tuple(forms), yes, no, plain, none)


def _bare(text: str) -> str:
    return text.rstrip(".!,;: ")


def _is_picture(text: str) -> bool:
    return any(ord(each) > 0x2000 for each in text)


def _polar(options: Sequence[Option], own: frozenset[str], other: frozenset[str]) -> int | None:
    """The one option that says yes (or no), where exactly one does."""
    strict = [index for index, option in enumerate(options) if _says(option, own, other, _MARKED)]
    if len(strict) == 1:
        return strict[0]
    loose, against = (
        [index for index, option in enumerate(options) if _says(option, *sides, _SPACED)]
        for sides in ((own, other), (other, own))
    )
    return loose[0] if len(loose) == len(against) == 1 and loose != against and not strict else None


def _says(option: Option, own: frozenset[str], other: frozenset[str], first: Pattern[str]) -> bool:
    """Whether the option is yes (or no), alone or with more words behind it, and not the opposite as well."""
    said = set()
    for text in (fold(option.label), fold(option.value)):
        found = first.match(text)
        said.add(_bare(text))
        if found is not None:
            said.add(found[1])
    return bool(said & own) and not said & other


# --- the words --------------------------------------------------------------------------------------------


def _phrases(table: str) -> frozenset[str]:
    return frozenset(fold(each) for each in table.split("|"))


_YES = frozenset().union(*map(_phrases, language.YES.values()))
_NO = frozenset().union(*map(_phrases, language.NO.values()))
_POLAR = "|".join(re.escape(each) for each in sorted(_YES | _NO, key=len, reverse=True))
_NOT = _phrases(language.NOT) | _NO
_ALL = _phrases(language.ALL)
_ARTICLES = _phrases(language.ARTICLES)
_UNIT = _phrases(language.UNIT)

_EDGE = r"(?![\w%°€$£/@#&+=<>-])(?![.,:]\d)"
"""Where a choice may end: nothing is written onto it that makes it a part of something else."""
_MARKED = re.compile(rf"({_POLAR})(?= ?[,.!:;(]| -)")
_SPACED = re.compile(rf"({_POLAR})(?!\w)")
_SAID = re.compile(rf"({_POLAR}){_EDGE}")
_NUMBER = re.compile(
    rf"(?:(?:(?:{alternatives(language.ARTICLE)}) )?(?P<named>{alternatives(language.OPTION)})"
    rf"(?![^\W\d])[ :.#]{{0,3}}|(?P<sharp># ?)|第)?"
    rf"(?P<open>[(\[] ?)?(?P<it>\d{{1,3}}|[a-z])(?P<close> ?[)\]])?"
    rf"(?:(?:{alternatives(language.AFTER_NUMBER)})(?=\W|$))?{_EDGE}"
)
_LIST_MARK = re.compile(r"[.):]+(?= |\n|$)")
_TO_WORDS = re.compile(r"[.):]? ?[-=>,]{0,2} ?[(\[]?")
_RECOMMENDED = re.compile(r" ?\(recommended\)")
_BULLET = re.compile("(?:[-\u2022\u00b7>] )+")
_GREETING = alternatives(language.GREETING)
_HELLO = re.compile(rf"(?:{_GREETING})(?![^\W\d])[,!.:]*[ \n]*-? ?")
_HELLO_NAME = re.compile(rf"(?:{_GREETING})(?: [^\W\d][\w.-]*){{1,4}} ?(?:[,!.:]+[ \n]*|\n| - )")
_FILLER = re.compile(rf"(?:{alternatives(language.FILLER)})(?:(?![^\W\d])|(?=\d))[,!.:]*[ \n]*-? ?")
_TAKE = re.compile(rf"(?:{alternatives(language.TAKE)})(?:(?![^\W\d])|(?=\d)):?[ \n]*")
_POLITE = re.compile(rf"(?:[ ,.!]*(?:{alternatives(language.POLITE)})(?![\w-]))+")
_BREAK = re.compile(r"[ ]?(?:(?:[,!]|\.+|[;:](?!\n|$))(?=[ \n]|$|[^\W\d])|-+ | -+(?= )|\()[ ]*")
_BECAUSE = re.compile(rf"[ ,;:.-]*(?:{alternatives(language.BECAUSE)})(?![\w-])")
_CLOSING = re.compile(
    rf"[\W_]*(?:(?:{alternatives(language.POLITE + '|' + language.CLOSING + '|' + language.FILLER)})(?!\w)[\W_]*)+"
    r"(?:[^\W\d]+[.]?(?: [^\W\d]+[.]?){0,2}\W*)?"
)
_RETRACT = re.compile(rf"(?<!\w)(?:{alternatives(language.RETRACT)})(?!\w)")
_CONDITION = re.compile(rf"(?:{alternatives(language.DOUBT)})(?!\w)")
_IF = re.compile(
    r"(?<!\w)(?:if|unless|otherwise|except|wenn|falls|sofern|sonst|sauf|sinon|excepto|tenzij|pokud|jeśli|если|иначе)(?!\w)"
)
_NONE_FIRST = re.compile(rf"(?:{alternatives(language.NONE)})(?!\w)")
_PART = re.compile(r"[.,;!:()\n]+ ?| - ")
_SPOKEN_NUMBER = re.compile(r"(?<![\w$€£+:/.])(\d{1,3})(?![\w%€$°:/]|[.,]\d)(?: ?(\w+))?")
_SPOKEN_LETTER = re.compile(r"(\w+ )?([(\[]?)(?<!\w)([a-z])(?!\w)([)\]]?)")
_BETWEEN = re.compile(
    rf"(?P<mark> ?[,;+&/] ?(?:(?:{alternatives(language.AND)}) )?|\.?\n| (?:{alternatives(language.AND)}) )|(?P<blank> )"
)
_NAMING = frozenset(
    ["or", "not", "and", "than", "to", "option", "take", "use", "choose", "oder", "nicht", "und", "ou", "pas", "et", "o", "no", "y", "e", "of", "lieber", "prefer"]
)


# --- reading ----------------------------------------------------------------------------------------------


@frozen
class _Found:
    """An option that is named somewhere: up to which place, and in which manner."""

    index: int
    end: int
    bare: bool = False
    """A letter alone, which may be a word."""
    listed: bool = False
    """A number with a mark as in a list (``2.``): more on the same line may be an item of the person's own."""


@frozen
class _Reading:
    """One text against one offer."""

    typed: Typed
    offer: _Offer
    multi: bool

    def parse(self) -> Parsed:
        """Take what is named first; what speaks against it makes it unclear."""
        if self.multi and (everything := self._everything()) is not None:
            return everything
        for start in self._starts():
            chosen, end, doubt = self._list(start) if self.multi else self._one(start)
            if not chosen:
                if doubt:
                    return self._unclear()
                continue
            note = None if doubt else self._note(chosen, end)
            if note is None:
                return self._unclear(chosen)
            values = tuple(self.offer.values[index] for index in chosen)
            return Chosen(values, note)
        return self._nothing()

    def _starts(self) -> Iterator[int]:
        """The places where a choice may begin: first, and behind what people write before it."""
        lined = self.typed.lined
        places = [0]
        for _ in range(SKIPS):
            at = places.pop(0)
            yield at
            for skip in (_BULLET, _HELLO, _HELLO_NAME, _FILLER, _TAKE):
                found = skip.match(lined, at)
                if found is not None and at < found.end() < len(lined) and found.end() not in places:
                    places.append(found.end())
            if at == 0 and self.offer.yes is None and (found := _SAID.match(lined)) and found[1] in _YES:
                places.append(found.end() + len(_leading(lined[found.end() :])))
            places.sort()
            if not places:
                return

    # --- what is named ---------------------------------------------------------------------------------

    def _one(self, start: int) -> tuple[tuple[int, ...], int, bool]:
        """The option named at a place; the third says that two are meant by the same words."""
        found = self._named(start)
        if not found:
            return (), start, False
        end = max(each.end for each in found)
        last = [each for each in found if each.end == end]
        chosen = tuple(dict.fromkeys(each.index for each in last))
        fits = [each for each in last if self._ends(each)]
        if len(chosen) == 1 and fits:
            return chosen, end, False
        # a shorter reading of the same words, such as a number with a note behind it
        shorter = {each.index: each.end for each in found if each.end < end and self._ends(each)}
        if len(chosen) == 1 and len(shorter) == 1:
            [(index, end)] = shorter.items()
            return (index,), end, index != chosen[0]
        return (), end, True

    def _list(self, start: int) -> tuple[tuple[int, ...], int, bool]:
        """The options named one behind the other."""
        chosen: list[int] = []
        at = end = start
        rows = 0
        while found := self._named(at):
            far = max(each.end for each in found)
            last = [each for each in found if each.end == far]
            if len({each.index for each in last}) > 1:
                return (), far, True
            chosen.append(last[0].index)
            end = far
            between = _BETWEEN.match(self.typed.lined, end)
            if between is None:
                break
            at = between.end()
            rows += "\n" in between[0]
            if between["blank"] and not (
                self.typed.flat[end - 1].isdigit() and self.typed.flat[at : at + 1].isdigit()
            ):
                break
        if not chosen:
            return (), start, False
        distinct = tuple(sorted(set(chosen)))
        # all of ours, each on its own line, is the list of our mail that was left in the reply
        quoted = rows >= 1 and len(self.offer.values) > 1 and len(distinct) == len(self.offer.values)
        ends = len(distinct) > 1 or any(self._ends(each) for each in last)
        return distinct, end, quoted or not ends

    def _everything(self) -> Parsed | None:
        text = _bare(self.typed.flat)
        polite = _POLITE.search(text)
        if polite is not None and polite.end() == len(text):
            text = _bare(text[: polite.start()]) or text
        if text not in _ALL or text in self.offer.plain:
            return None
        return Unclear() if self.offer.none else Chosen(self.offer.values)

    def _named(self, start: int) -> list[_Found]:
        """Every way to read an option at a place, whatever comes behind it."""
        flat, lined = self.typed.flat, self.typed.lined
        found: list[_Found] = []
        length = 0
        for form in self.offer.forms:  # of two labels the longer one is meant, where it is all there
            if len(form.text) < length:
                break
            end = start + len(form.text)
            if flat.startswith(form.text, start) and _ends_here(flat, end):
                length = len(form.text)
                found.append(_Found(form.index, self._past_mark(end)))
        number = _NUMBER.match(lined, start)
        if number is not None and bool(number["open"]) <= bool(number["close"]):
            found += self._numbered(number)
        said = _SAID.match(lined, start)
        if said is not None:
            option = self.offer.yes if said[1] in _YES else self.offer.no
            if option is not None:
                found.append(_Found(option, said.end()))
        return found

    def _numbered(self, number: Match[str]) -> Iterator[_Found]:
        """An option by its number or letter, and where its words follow, with them."""
        it = number["it"]
        index = int(it) - 1 if it.isdecimal() else ord(it) - ord("a")
        if not 0 <= index < len(self.offer.values):
            return
        lined, flat = self.typed.lined, self.typed.flat
        mark = _LIST_MARK.match(lined, number.end())
        end = number.end() if mark is None else mark.end()
        marked = mark is not None or number["close"] is not None
        plain = bool(marked or number["named"] or number["sharp"])
        between = _TO_WORDS.match(flat, number.end())
        at = number.end() if between is None else between.end()
        for form in self.offer.forms:
            after = at + len(form.text)
            if form.index == index and at > number.end() and flat.startswith(form.text, at):
                if _ends_here(flat, after):
                    if flat[after : after + 1] in (")", "]"):
                        after += 1
                    yield _Found(index, self._past_mark(after))
                    break
        yield _Found(
            index, end, bare=not plain and it.isalpha(), listed=mark is not None and not number["named"]
        )

    def _past_mark(self, end: int) -> int:
        mark = _RECOMMENDED.match(self.typed.flat, end)
        return end if mark is None else mark.end()

    # --- what follows ----------------------------------------------------------------------------------

    def _ends(self, found: _Found) -> bool:
        """Whether the choice ends there, so that what follows can only be a note to it."""
        lined = self.typed.lined
        polite = _POLITE.match(lined, found.end)
        end = found.end if polite is None else polite.end()
        rest = lined[end:]
        if not rest.strip(" .!,-") or rest[0] == "\n":
            return True
        if _BECAUSE.match(lined, end) is not None:
            return True
        if polite is None and (found.listed or (found.bare and found.index in _WORDLIKE)):
            return False
        return _BREAK.match(lined, end) is not None

    def _note(self, chosen: tuple[int, ...], end: int) -> str | None:
        """What was added to the choice; ``None`` when it speaks against it."""
        lined = self.typed.lined
        polite = _POLITE.match(lined, end)
        rest = lined[end:]
        if self._against(chosen, rest if polite is None else lined[polite.end() :]):
            return None
        if self._longer(chosen, end):
            return None
        if not rest.strip(" .!,-\n") or _CLOSING.fullmatch(rest) is not None:
            return ""
        at = polite.end() if polite is not None and _PART.match(lined, polite.end()) else end
        at += len(_leading(lined[at:]))
        note = self.typed.raw_from(at).strip()
        if note.endswith(")") and "(" not in note:
            note = note[:-1]
        return note

    def _against(self, chosen: tuple[int, ...], rest: str) -> bool:
        """Whether what follows asks, denies, takes back, opens another way, or names another option."""
        if not rest:
            return False
        first, _, more = rest.partition("\n")
        if "?" in first or ("?" in more and len(more.split()) <= 4):
            return True
        if _RETRACT.search(rest) is not None or _IF.search(first) is not None:
            return True
        said = _leading_words(first) or _leading_words(more)
        because = _BECAUSE.match(first)
        behind = _leading_words(first[because.end() :]) if because is not None else said
        denied = self.offer.no is None or chosen != (self.offer.no,)
        if denied and said and (said[0] in _NOT or (len(behind) == 1 and behind[0] in _NOT)):
            return True
        for number, part in enumerate(_PART.split(rest)):
            text = _bare(part.strip(" -"))
            if not text or number > 200:
                continue
            if _CONDITION.match(text) is not None and not (number == 0 and because is not None):
                return True
            if not self.offer.plain.get(text, frozenset()) <= set(chosen):
                return True
            if denied and text in _NO:
                return True
        return self._names_another(chosen, rest)

    def _names_another(self, chosen: tuple[int, ...], rest: str) -> bool:
        count = len(self.offer.values)
        for number, unit in _SPOKEN_NUMBER.findall(rest):
            if (
                0 < int(number) <= count
                and int(number) - 1 not in chosen
                and unit not in _UNIT
                and number[0] != "0"
            ):
                return True
        for before, opened, letter, closed in _SPOKEN_LETTER.findall(rest):
            index = ord(letter) - ord("a")
            if index < count and index not in chosen:
                plain = (opened and closed) or before.strip() in _NAMING
                if plain or letter not in _ARTICLES:
                    return True
        spoken = f" {words(rest)} "
        own = {form.spoken for form in self.offer.forms if form.index in chosen}
        return any(
            form.index not in chosen
            and form.spoken
            and form.spoken not in own
            and f" {form.spoken} " in spoken
            for form in self.offer.forms
            if len(form.spoken) > 1
        )

    def _longer(self, chosen: tuple[int, ...], end: int) -> bool:
        """Whether the words of another option begin with those that were taken for the choice."""
        first = words(self.typed.flat[:end])
        spoken = f"{words(self.typed.flat)} "
        return any(
            form.index not in chosen
            and form.spoken.startswith(f"{first} ")
            and spoken.startswith(f"{form.spoken} ")
            for form in self.offer.forms
        )

    # --- no choice -------------------------------------------------------------------------------------

    def _nothing(self) -> Parsed:
        """Words, or something like a choice of what is not offered."""
        text = _bare(self.typed.flat)
        short = len(text.split()) <= UNCLEAR_WORDS
        if short and (self._mentioned() or _WHOLE_NUMBER.fullmatch(text) or text in _YES | _NO):
            return self._unclear()
        return InWords()

    def _unclear(self, chosen: tuple[int, ...] = ()) -> Unclear:
        meant = self._mentioned() | set(chosen)
        return Unclear(tuple(value for index, value in enumerate(self.offer.values) if index in meant))

    def _mentioned(self) -> set[int]:
        """The options that are named anywhere in the beginning of the text."""
        text = self.typed.flat[:400]
        count = len(self.offer.values)
        found = {
            int(number) - 1
            for number, unit in _SPOKEN_NUMBER.findall(text)
            if 0 < int(number) <= count and unit not in _UNIT
        }
        spoken = f" {words(text)} "
        return found | {
            form.index for form in self.offer.forms if form.spoken and f" {form.spoken} " in spoken
        }


_WHOLE_NUMBER = re.compile(r"(?:option )?#?[(]?(?:\d{1,3}|[a-z])[.)]?")
_WORDLIKE = frozenset(ord(letter) - ord("a") for letter in _ARTICLES if letter.isascii() and letter != "b")


def _ends_here(flat: str, end: int) -> bool:
    return end >= len(flat) or not (flat[end].isalnum() or flat[end] in "%@&+=<>-/")


def _leading(text: str) -> str:
    """The marks and blanks in front of words."""
    return text[: len(text) - len(text.lstrip(" ,;:.!-(\n"))]


def _leading_words(text: str) -> list[str]:
    return words(text[:200]).split()
