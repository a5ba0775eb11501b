"""An answer as it is compared: folded, and still known by its places in what was typed.

Case, width, quotes, emphasis, invisible characters and the number of blanks are not what a person means to
say.  Nothing here knows what an option is.
"""

import re
import unicodedata
from collections.abc import Mapping

from attrs import frozen

_DROPPED = (
    "*_`\"'\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f"
    "\u00bf\u00a1"  # quotes, emphasis, and the marks that open a Spanish question
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufeff"
    "\ufe0e\ufe0f\u20e3\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"  # keycaps, and skin tones
)
_MAPPED = {
    "\u2010": "-",
    "\u2011": "-",
    "\u2012": "-",
    "\u2013": "-",
    "\u2014": "-",
    "\u2015": "-",
    "\u2212": "-",
    "\u3001": ",",
    "\u3002": ".",
    "\uff61": ".",
    "\u060c": ",",
    "\u061b": ";",
    "\u061f": "?",
    "\u2116": "#",
}
_TABLE: Mapping[int, str | None] = {
    **dict.fromkeys(map(ord, _DROPPED)),
    **{ord(one): other for one, other in _MAPPED.items()},
}
_WORD = re.compile(r"\S+")


def fold(text: str) -> str:
    """The text on one line, as it is compared."""
    return " ".join(filter(None, map(_fold_word, text.split())))


def _fold_word(word: str) -> str:
    """One run of characters without blanks; ``""`` for one of marks alone."""
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word.replace("\u2116", "#"))
    return word.casefold().translate(_TABLE)


@frozen
class Typed:
    """What somebody typed: ``flat`` is folded on one line, ``lined`` the same with the line ends in it.

    Both have the same length, so a place in one is a place in the other.
    """

    raw: str
    flat: str
    lined: str

    @classmethod
    def of(cls, text: str) -> "Typed":
        """Fold a text; empty lines are left out."""
        lines = [line for each in text.splitlines() if (line := fold(each))]
        lined = "\n".join(lines)
        return cls(text, lined.replace("\n", " "), lined)

    def raw_from(self, place: int) -> str:
        """What was typed from a place in the folded text on."""
        if place >= len(self.flat):
            return ""
        at = 0
        for word in _WORD.finditer(self.raw):
            folded = _fold_word(word[0])
            if not folded:
                continue
            if place <= at:
                return self.raw[word.start() :]
            if place < at + len(folded):  # within a word: as many characters from its end
                return self.raw[word.end() - min(len(word[0]), at + len(folded) - place) :]
            at += len(folded) + 1
        return ""


def words(text: str) -> str:
    """The words of a folded text alone, with one blank between them."""
    return " ".join(re.findall(r"\w+", text))


def phrases(table: str) -> frozenset[str]:
    """The entries of a table."""
    return frozenset(fold(entry) for entry in table.split("|"))


def alternatives(*tables: str) -> str:
    """The entries of tables as one expression, the longest first."""
    entries = frozenset[str]().union(*map(phrases, tables))
    return "|".join(re.escape(entry) for entry in sorted(entries, key=lambda entry: (-len(entry), entry)))
