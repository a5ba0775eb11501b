"""One-tap answers: for each option a ``mailto:`` link whose mail, sent as it is, chooses that option.

No address of ours has to be reachable, no scanner that presses links can answer, and the answer comes
authenticated from the person's own account.  The subject carries the tag, by which the mail finds its
question, and the option's number; the body is what the choice parser understands.
"""

import urllib.parse

from mailgateway.ids import RouteId
from mailgateway.mail.letter import Item, Letter, Offer
from mailgateway.mail.subject import human_subject
from mailgateway.mail.tag import format_tag, plus_address

LABEL_LIMIT = 60
"""Characters of a label that is sent back with its number; a link has to stay below 2,000 characters."""


def answer_link(letter: Letter, number: int) -> str:
    """The link of the option with this number, counted from 1 (RFC 6068).

    Blanks and line ends are ``%20`` and ``%0D%0A``, everything but letters, digits and ``-._~`` is
    percent-encoded UTF-8: mail programs agree on no more than that.
    """
    body = f"{answer_text(letter.options[number - 1], number)}\r\n\r\n"
    subject = _subject(letter, letter.route, letter.subject)
    return _mailto(letter.reply_address or letter.sender_address, subject=f"{subject} ({number})", body=body)


def reply_link(letter: Letter, item: Item) -> str:
    """The link by which a person writes to the session of one piece of a digest."""
    plus = letter.reply_address and letter.reply_address != letter.sender_address
    address = plus_address(letter.sender_address, item.route) if plus else letter.sender_address
    return _mailto(address, subject=_subject(letter, item.route, item.subject))


def _subject(letter: Letter, route: RouteId, subject: str) -> str:
    return f"Re: {format_tag(letter.tag, route)} {human_subject(subject, letter.tags)}"


def _mailto(address: str, **fields: str) -> str:
    query = urllib.parse.urlencode(fields, quote_via=urllib.parse.quote, safe="")
    local, _, domain = address.rpartition("@")
    return f"mailto:{urllib.parse.quote(local, safe='')}@{urllib.parse.quote(domain, safe='')}?{query}"


def answer_text(offer: Offer, number: int) -> str:
    """What choosing this option says: its number, and its label where that is plain words.

    A label that begins with a mark of its own is left out: behind the number it may look like another choice.
    """
    plain = offer.sendable and len(offer.label) <= LABEL_LIMIT and offer.label[:1].isalnum()
    return f"{number}. {offer.label}" if plain else str(number)
