"""What follows a choice: whether it is a note to it, or speaks against it."""

import re
from collections.abc import Collection

from mailgateway.domain import choice_words as language
from mailgateway.domain.choice_offer import ALPHABET, NO, Offer, bare
from mailgateway.domain.choice_text import alternatives, phrases, words

PARTS = 200
"""So many parts of a note are looked at one by one."""

BACK = 4
"""So few words with a question mark ask back (``Really?``); more are another question."""

SHORT_NO = 2
"""So few words of which the first denies (``No way.``) deny the choice; more deny something else."""

POLITE = re.compile(rf"(?:[ ,.!]*(?:{alternatives(language.POLITE)})(?![\w-]))+")
BECAUSE = re.compile(rf"[ ,;:.-]*(?:{alternatives(language.BECAUSE)})(?![\w-])")
PART = re.compile(r"[.,;!:()\n]+ ?| - ")
BREAK = re.compile(r"[ ]?(?:(?:[,!:]|\.+|;(?!\n|$))(?=[ \n]|$|[^\W\d])|-+ | -+(?= )|\()[ ]*")
"""A mark behind which a note may begin; a semicolon at the end of a line asks in Greek."""

_NOT = phrases(language.NOT) | NO
_ARTICLES = phrases(language.ARTICLES)
_UNIT = phrases(language.UNIT)
_CLOSING = re.compile(
    rf"[\W_]*(?:(?:{alternatives(language.POLITE, language.CLOSING, language.FILLER)})(?!\w)[\W_]*)*"
)
_NAME = re.compile(r"[^\W\d]+\.?(?: [^\W\d]+\.?){0,2}\W*")
LONE = re.compile(r"(?:option )?#?[(]?(?:\d{1,3}|[a-z])[.)]?")
"""What would be a choice, were it offered."""
_RETRACT = re.compile(rf"(?<!\w)(?:{alternatives(language.RETRACT)})(?!\w)")
_DOUBT = re.compile(rf"(?:{alternatives(language.DOUBT)})(?!\w)")
_IF = re.compile(rf"(?<!\w)(?:{alternatives(language.IF)})(?!\w)")
_NUMBER = re.compile(r"(?<![\w$€£+:/.])(\d{1,3})(?![\w%€$°:/]|[.,]\d)(?:(?= ?(\w+))|)")
_LETTER = re.compile(r"(?<!\w)[a-z](?!\w)")
_WORD_BEFORE = re.compile(r"(\w+) [(\[]?$")
_NAMING = phrases(language.NAMING)


def is_closing(rest: str, raw: str) -> bool:
    """Whether what follows is nothing but thanks, a greeting, and a name; ``raw`` ends as it was typed."""
    closing = _CLOSING.match(rest)
    end = 0 if closing is None else closing.end()
    if end >= len(rest):
        return True
    if not words(rest[:end]) or rest[:end].rstrip(" ")[-1] not in "\n,":
        return False
    name = _NAME.fullmatch(rest, end)
    return name is not None and not any(each[0].islower() for each in raw.split()[-len(name[0].split()) :])


def speaks_against(offer: Offer, chosen: Collection[int], rest: str) -> bool:
    """Whether what follows a choice asks, denies, takes back, opens another way, or names another option."""
    if not rest:
        return False
    first, _, more = rest.partition("\n")
    if "?" in first or ("?" in more and len(more.split()) <= BACK):
        return True
    if _RETRACT.search(rest) is not None or _IF.search(first) is not None:
        return True
    because = BECAUSE.match(first)
    denies = set(chosen) != {offer.no}  # a no may deny
    if denies and _denies(first, None if because is None else because.end()):
        return True
    for number, part in enumerate(PART.split(rest, PARTS)):
        text = bare(part.strip(" -"))
        if not text:
            continue
        if _DOUBT.match(text) is not None and not (number == 0 and because is not None):
            return True
        if not offer.plainly(text) <= set(chosen) or (LONE.fullmatch(text) and not offer.plainly(text)):
            return True
        if any(form.spoken.startswith(f"{words(text)} ") for form in offer.forms if form.index not in chosen):
            return True
        said = text.split()
        if denies and len(said) <= SHORT_NO and said[0] in _NOT:
            return True
    return names_other(offer, chosen, rest)


def _denies(first: str, because: int | None) -> bool:
    """Whether the first word behind a choice, on its line, denies it."""
    said = words(first[:200]).split()
    if not said:
        return False
    behind = said if because is None else words(first[because : because + 200]).split()
    return said[0] in _NOT or (len(behind) == 1 and behind[0] in _NOT)


def names_other(offer: Offer, chosen: Collection[int], rest: str) -> bool:
    """Whether a text names an option that is not chosen: by number, letter, or words."""
    if numbers_in(offer, rest) - set(chosen):
        return True
    for letter in _LETTER.finditer(rest):
        index, at = ALPHABET.index(letter[0]), letter.start()
        if index < offer.count and index not in chosen:
            before = _WORD_BEFORE.search(rest, max(0, at - 16), at)
            plain = rest[at - 1 : at] in ("(", "[") or (before is not None and before[1] in _NAMING)
            if plain or letter[0] not in _ARTICLES:
                return True
    spoken = f" {words(rest)} "
    own = {form.spoken for form in offer.forms if form.index in chosen}
    return any(
        form.index not in chosen and form.spoken not in own and f" {form.spoken} " in spoken
        for form in offer.forms
        if len(form.spoken) > 1
    )


def numbers_in(offer: Offer, text: str) -> set[int]:
    """The options whose numbers stand in a text, and count nothing there."""
    return {
        int(number) - 1
        for number, unit in _NUMBER.findall(text)
        if number[0] != "0" and 0 < int(number) <= offer.count and unit not in _UNIT
    }


def is_longer(offer: Offer, chosen: Collection[int], named: str, whole: str) -> bool:
    """Whether the words of another option begin with those that were taken for the choice."""
    first, spoken = f"{words(named)} ", f"{words(whole)} "
    return any(
        form.index not in chosen and form.spoken.startswith(first) and spoken.startswith(f"{form.spoken} ")
        for form in offer.forms
    )


def leading(text: str) -> int:
    """How many marks and blanks stand in front of the words."""
    return len(text) - len(text.lstrip(" ,;:.!-(\n"))
