"""The plain text of a mail: reads well in a terminal at 72 columns, in the same order as the page.

Who, the question, what is unclear, the options by numbers, more of what the session says, how to answer.
Our own blocks begin with the mail's tag, which is taken out of everything that a session gives: so a line
with the tag in front is ours.  Nothing is drawn, and code keeps its lines.
"""

from mailgateway.mail.letter import Item, Letter, LetterKind, Offer
from mailgateway.mail.letter_words import (
    HOW_TO_ANSWER,
    MORE,
    OPTIONS,
    RECOMMENDED,
    asked_line,
    exact_time,
    foot,
    state_of,
    who_line,
)
from mailgateway.mail.markdown import lead_and_rest
from mailgateway.mail.render import plain_text, wrapped
from mailgateway.mail.tag import format_tag


def letter_text(letter: Letter) -> str:
    """The plain text part of a cleaned letter, with LF."""
    blocks = [wrapped(first_line(letter))]
    if letter.kind is not LetterKind.ANSWER:
        blocks.append(wrapped(letter.heading))
    blocks += [wrapped(asked_line(letter)), wrapped(letter.ambiguity)]
    lead, rest = lead_and_rest(letter)
    blocks.append(plain_text(lead).strip("\n"))
    if letter.options:
        blocks += [_ours(letter, OPTIONS), _options(letter)]
    if letter.advice:
        blocks.append(wrapped(f"Recommendation: {letter.advice}"))
    if rest:
        blocks += [_ours(letter, MORE), plain_text(rest).strip("\n")]
    for item in letter.items:
        blocks += _item(letter, item)
    words = foot(letter, tappable=False)
    if words:
        blocks += [_ours(letter, HOW_TO_ANSWER), *(wrapped(each) for each in words)]
    if letter.card_url:
        blocks.append(f"In the web inbox: {letter.card_url}")
    return "\n\n".join(block for block in blocks if block) + "\n"


def first_line(letter: Letter) -> str:
    """The state, and who speaks."""
    state = state_of(letter)
    return " · ".join(each for each in (state.word if state else "", who_line(letter)) if each)


def _ours(letter: Letter, words: str) -> str:
    """The first line of a block that is ours."""
    tag = format_tag(letter.tag, letter.route) if letter.route else ""
    return wrapped(f"{tag} {words}".strip())


def _item(letter: Letter, item: Item) -> list[str]:
    """The blocks of one piece of a digest."""
    when = "" if item.at is None else exact_time(item.at)
    about = " · ".join(each for each in (item.who.line, when) if each)
    reply = ""
    if item.route:
        reply = f"To write to this session: a mail with {format_tag(letter.tag, item.route)} in its subject."
    words = plain_text(item.text).strip("\n")
    return [_ours(letter, about), wrapped(item.subject), words, _ours(letter, reply) if reply else ""]


def _options(letter: Letter) -> str:
    width = len(str(len(letter.options)))
    return "\n".join(_option(letter, number, offer, width) for number, offer in enumerate(letter.options, 1))


def _option(letter: Letter, number: int, offer: Offer, width: int) -> str:
    mark = f" ({RECOMMENDED})" if letter.is_recommended(offer) else ""
    indent = " " * (width + 2)
    lines = [wrapped(f"{number:>{width}}. {offer.label}{mark}", indent)]
    if offer.description:
        lines.append(wrapped(f"{indent}{offer.description}", indent))
    if offer.impact:
        lines.append(wrapped(f"{indent}If chosen: {offer.impact}", indent))
    return "\n".join(lines)
