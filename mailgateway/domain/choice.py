"""Which option a person's words choose, if they choose one beyond doubt.

The first line with words in it must be the choice and nothing else: an option's number, its letter, its
value or label, number and label together, or yes or no.  What follows is a note.  Every reading of the
first line is collected; when two readings lead to different options, or when the note names another
option, nothing is chosen.  A missed choice costs little, since the session reads the words anyway; a wrong
one costs trust.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from attrs import field, frozen

LINE_LIMIT = 1_000
"""A first line of more characters than this is prose and chooses nothing."""


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
class Choice:
    """The chosen option's ``value``, and what the person added (``""``: nothing)."""

    value: str = field(repr=False)
    note: str = field(default="", repr=False)


_YES = frozenset({"yes", "y"})
_NO = frozenset({"no", "n"})
_SEPARATOR = r"(?: [-:] |[.):]? |\)|$)"
_NUMBERED = re.compile(rf"(?:option |nr |number |#)?([0-9]{{1,3}}){_SEPARATOR}(.*)", re.DOTALL)
_LETTERED = re.compile(rf"(?:option )?([a-z]){_SEPARATOR}(.*)", re.DOTALL)
_AROUND = "*_\"'`\u201c\u201d\u2018\u2019\u201e\u00ab\u00bb"
"""Markdown emphasis and the quotation marks of several languages."""
_ENDING = ".!,;:"


def parse_choice(text: str, options: Sequence[Option]) -> Choice | None:
    """The option that ``text`` chooses beyond doubt, with the rest as the note; else ``None``.

    ``text`` is what the person typed, without quotes of our mail.  Numbers count from 1 and letters from
    ``a``, in the order of ``options``.  Never raises, whatever the text.
    """
    first, note = _split(text)
    if not first or len(first) > LINE_LIMIT:
        return None
    found = set(_readings(_plain(first), options))
    if len(found) != 1:
        return None
    value = found.pop()
    if note and _names_another(note, value, options):
        return None
    return Choice(value, note)


def _split(text: str) -> tuple[str, str]:
    """The first line with words in it, and all that comes after it."""
    first, _, rest = text.strip().partition("\n")
    return first.strip(), rest.strip()


def _plain(text: str) -> str:
    """The text as it is compared: folded, blanks collapsed, without the marks that people put around it."""
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    while True:
        bare = folded.strip(_AROUND).rstrip(_ENDING).strip()
        if bare.startswith("(") and bare.endswith(")") and bare.count("(") == 1:
            bare = bare[1:-1].strip()
        if bare == folded:
            return bare
        folded = bare


def _readings(line: str, options: Sequence[Option]) -> Iterator[str]:
    """Each value that the plain line can be read as; one value may come several times."""
    if not line:
        return
    for option in options:
        if line in (_plain(option.value), _plain(option.label)):
            yield option.value
    for pattern, base in ((_NUMBERED, None), (_LETTERED, ord("a"))):
        match = pattern.fullmatch(line)
        if match is None:
            continue
        index = int(match[1]) - 1 if base is None else ord(match[1]) - base
        if 0 <= index < len(options):
            rest = _plain(match[2])
            if not rest or rest in (_plain(options[index].value), _plain(options[index].label)):
                yield options[index].value
    for words in (_YES, _NO):
        if line in words:
            yield from (option.value for option in options if _first_word(option) in words)


def _first_word(option: Option) -> str:
    """The first word of the label, as it is compared."""
    return re.split(r"\W", _plain(option.label), maxsplit=1)[0]


def _names_another(note: str, value: str, options: Sequence[Option]) -> bool:
    """Whether the note names another option: by its words, its number, or on a line of its own."""
    spoken = f" {_words(note)} "
    for number, option in enumerate(options, start=1):
        if option.value == value:
            continue
        names = {_words(option.value), _words(option.label), str(number)} - {""}
        if any(f" {name} " in spoken for name in names if len(name) > 1 or name.isdigit()):
            return True
    return any(set(_readings(_plain(line), options)) - {value} for line in note.splitlines()[:100])


def _words(text: str) -> str:
    """The words of a text alone, as they are compared, with one blank between them."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))
