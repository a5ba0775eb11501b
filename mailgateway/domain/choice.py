"""Which options a person's words choose, if they choose beyond doubt: one parser for every door.

A choice stands first in the text, behind a greeting at most: a number, a letter, an option's words, number
and words together, or yes and no where they mean one option.  What follows must plainly be a note; a note
that names another option, takes the choice back, denies it or asks makes the whole thing unclear, and then
nothing is chosen.  A missed choice costs little, since the session reads the words anyway; a wrong one costs
trust.

``choice_offer`` knows the ways to name an option, ``choice_reading`` finds one in a text, ``choice_rest``
decides whether what follows is a note to it, and the words of many languages are in ``choice_words``.
Consent to an action is stricter, and asks for more than what is read here.
"""

from collections.abc import Sequence

from attrs import field, frozen

TEXT_LIMIT = 8_000
"""A text of more characters than this is prose and chooses nothing."""


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
    chosen, and their values come in that order.  Never raises, whatever the text, and takes time in
    proportion to it.
    """
    # the words of 25 languages are made into expressions, which the start of the service need not wait for
    from mailgateway.domain.choice_offer import offer_of  # noqa: PLC0415 (see above)
    from mailgateway.domain.choice_reading import Doubt, Reading, Taken  # noqa: PLC0415 (see above)
    from mailgateway.domain.choice_text import Typed  # noqa: PLC0415 (see above)

    if not options or len(text) > TEXT_LIMIT:
        return InWords()
    typed = Typed.of(text)
    if not typed.flat:
        return InWords()
    values = tuple(option.value for option in options)
    offer = offer_of(values, tuple(option.label for option in options))
    match Reading(typed, offer, multi).read():
        case Taken(indices=indices, note=note):
            return Chosen(tuple(values[index] for index in indices), note)
        case Doubt(indices=indices):
            return Unclear(tuple(values[index] for index in indices))
        case None:
            return InWords()
