"""The ways in which each option of a question can be named."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from attrs import Factory, frozen

from mailgateway.domain import choice_words as language
from mailgateway.domain.choice_text import alternatives, fold, phrases, words

YES = frozenset[str]().union(*map(phrases, language.YES.values()))
NO = frozenset[str]().union(*map(phrases, language.NO.values()))
POLAR = "|".join(re.escape(each) for each in sorted(YES | NO, key=len, reverse=True))

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
SYMBOLS = 0x2000
"""Behind it in Unicode stand symbols and pictures, and scripts that need no more than one character."""

_MARKED = re.compile(rf"({POLAR})(?= ?[,.!:;(]| -)")
_SPACED = re.compile(rf"({POLAR})(?!\w)")
_NONE = re.compile(rf"(?:{alternatives(language.NONE)})(?!\w)")


@frozen
class Form:
    """A way to write an option in words; ``spoken`` is the same without its marks."""

    text: str
    spoken: str
    index: int


@frozen
class Offer:
    """The options, as they are looked for; an option is its place among ``count``."""

    count: int
    forms: tuple[Form, ...]
    """Values and labels, the longest first."""
    yes: int | None
    no: int | None
    plain: Mapping[str, frozenset[int]] = Factory(dict)
    """What names an option when it is all that is written."""
    has_none: bool = False
    """One of the options says that none is chosen."""

    def plainly(self, text: str) -> frozenset[int]:
        """The options that a text names when it is all that is written."""
        return self.plain.get(text, frozenset())


@lru_cache(maxsize=64)
def offer_of(values: tuple[str, ...], labels: tuple[str, ...]) -> Offer:
    """Prepare options, given by their values and labels in their order."""
    forms: list[Form] = []
    plain: dict[str, frozenset[int]] = {}

    def add(text: str, index: int) -> None:
        plain[text] = plain.get(text, frozenset()) | {index}

    both = [(fold(label), fold(value)) for label, value in zip(labels, values, strict=True)]
    for index, texts in enumerate(both):
        for text in dict.fromkeys((*texts, *map(bare, texts))):
            if words(text) or any(ord(each) > SYMBOLS for each in text):
                forms.append(Form(text, words(text), index))
                add(text, index)
        add(str(index + 1), index)
        if index < len(ALPHABET):
            add(ALPHABET[index], index)
    forms.sort(key=lambda form: -len(form.text))
    yes, no = _polar(both, YES, NO), _polar(both, NO, YES)
    for said, found in ((YES, yes), (NO, no)):
        if found is not None:
            for each in said:
                add(each, found)
    return Offer(len(both), tuple(forms), yes, no, plain, any(_NONE.match(form.text) for form in forms))


def bare(text: str) -> str:
    """A folded text without the marks at its end."""
    return text.rstrip(".!,;: ")


def _polar(options: Sequence[tuple[str, str]], own: frozenset[str], other: frozenset[str]) -> int | None:
    """The one option that says yes (or no), where exactly one does.

    Where yes and no are only the first words of a sentence (``No tests``), both must be there, so that it was
    asked for yes or no.
    """
    strict = [index for index, texts in enumerate(options) if _says(texts, own, other, _MARKED)]
    if strict:
        return strict[0] if len(strict) == 1 else None
    loose = [index for index, texts in enumerate(options) if _says(texts, own, other, _SPACED)]
    against = [index for index, texts in enumerate(options) if _says(texts, other, own, _SPACED)]
    return loose[0] if len(loose) == len(against) == 1 else None


def _says(texts: tuple[str, str], own: frozenset[str], other: frozenset[str], first: re.Pattern[str]) -> bool:
    """Whether an option is yes (or no), alone or with more words behind it, and not the opposite as well."""
    said = {bare(text) for text in texts} | {found[1] for text in texts if (found := first.match(text))}
    return bool(said & own) and not said & other
