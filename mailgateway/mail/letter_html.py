"""The page of a mail: who, the question, what is unclear, the options, more of the session's words, the foot.

What a session says stands beside a line under a label; the heading, the options and the foot are ours, and
nothing that Markdown can make looks like them.  Tables lay the page out, since some programs know nothing
else; nothing is loaded, nothing runs, nothing tells that the mail was read.
"""

import html
from collections.abc import Iterable, Mapping

from mailgateway.mail.answer_link import answer_link, reply_link
from mailgateway.mail.highlight import Palette
from mailgateway.mail.letter import Item, Letter, LetterKind, Offer
from mailgateway.mail.letter_words import (
    FROM_SESSION,
    HOW_TO_ANSWER,
    MORE,
    OPTIONS_AGAIN,
    OPTIONS_BY_REPLY,
    RECOMMENDED,
    REPLY_TO_THIS,
    asked_line,
    exact_time,
    foot,
    state_of,
    who_line,
)
from mailgateway.mail.markdown import (
    FOLD_AFTER,
    HTML_LIMIT,
    Shown,
    html_body,
    lead_and_rest,
    learn_links,
)
from mailgateway.mail.style import STYLE, inlined
from mailgateway.mail.subject import cut

PAGE_LIMIT = 95_000
"""Octets of a page: Gmail shows no more than some 100 kB, so that a longer one goes without colours."""


def letter_html(letter: Letter, images: Mapping[str, str]) -> str | None:
    """The HTML part of a cleaned letter; ``None`` for a text too long to render.

    ``images`` are the content ids of the mail's own images by their attachment ids.
    """
    if len(letter.text) + sum(len(item.text) for item in letter.items) > HTML_LIMIT:
        return None
    page = _page(letter, Shown(images, tags=_foreign(letter)))
    if len(page.encode()) <= PAGE_LIMIT:
        return page
    return _page(letter, Shown(images, Palette(room=0), _foreign(letter)))


def _foreign(letter: Letter) -> frozenset[str]:
    """The tags that may not stand in the rendered text; our own words may name them."""
    return frozenset() if letter.kind is LetterKind.ANSWER else letter.tags


def _page(letter: Letter, shown: Shown) -> str:
    title = html.escape(letter.subject)
    body = "".join(_pieces(letter, shown))
    return inlined(
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="supported-color-schemes" content="light dark">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>"
        f"{_preheader(letter)}"
        '<table role="presentation" class="page"><tr><td class="around">'
        '<table role="presentation" class="card" align="center"><tr><td class="inner">'
        f"{body}</td></tr></table></td></tr></table></body></html>"
    )


def _preheader(letter: Letter) -> str:
    """What a list of mails shows behind the subject: what is unclear, or how the text begins."""
    first = letter.ambiguity or asked_line(letter) or next(iter(lead_and_rest(letter)[0].split("\n\n")), "")
    words = cut(" ".join(first.replace("*", "").replace("`", "").split()), 140)
    return f'<div class="preheader">{html.escape(words)}</div>' if words else ""


def _pieces(letter: Letter, shown: Shown) -> Iterable[str]:
    """The page from its top to its foot."""
    yield _who(letter)
    if letter.kind is not LetterKind.ANSWER:
        yield f"<h1>{html.escape(letter.heading)}</h1>"
    yield _paragraph(asked_line(letter), "aside")
    lead, rest = lead_and_rest(letter)
    learn_links(rest, shown)
    if letter.kind is LetterKind.ANSWER:
        yield html_body(lead, shown)
    else:
        unclear = f"<p>{html.escape(letter.ambiguity)}</p>" if letter.ambiguity else ""
        folded = None if letter.options else 2 * FOLD_AFTER
        yield _said(FROM_SESSION, unclear + (html_body(lead, shown, folded) if lead else ""))
    if letter.options:
        yield _options(letter)
    if letter.advice:
        yield _said("The session recommends", f"<p>{html.escape(letter.advice)}</p>")
    if letter.card_url:
        yield (
            f'<p class="aside"><a class="button" href="{html.escape(letter.card_url)}">'
            "Open this question in the web inbox</a></p>"
        )
    if rest:
        yield _said(MORE, html_body(rest, shown, FOLD_AFTER))
    yield from (_item(letter, item, shown) for item in letter.items)
    words = foot(letter, tappable=bool(letter.options) and letter.one_tap)
    if words:
        lines = "".join(f"<p>{html.escape(each)}</p>" for each in words)
        yield f'<div class="foot"><p class="state">{HOW_TO_ANSWER}</p>{lines}</div>'


def _item(letter: Letter, item: Item, shown: Shown) -> str:
    """One piece of a digest, with a link to its session."""
    when = "" if item.at is None else exact_time(item.at)
    about = " · ".join(each for each in (item.who.line, when) if each)
    words = _said("", html_body(item.text, shown, FOLD_AFTER))
    link = ""
    if item.route:
        href = html.escape(reply_link(letter, item))
        link = f'<p class="aside"><a class="button" href="{href}">{REPLY_TO_THIS}</a></p>'
    return (
        f'<div class="item">{_paragraph(about, "who")}<h2>{html.escape(item.subject)}</h2>{words}{link}</div>'
    )


def _who(letter: Letter) -> str:
    state = state_of(letter)
    who = html.escape(who_line(letter)).replace(" · ", "&nbsp;· ")  # no line begins with a dot
    if state is None:
        return f'<p class="who">{who}</p>' if who else ""
    dot = f'<span class="{state.dot}" aria-hidden="true">●</span> <span class="state {state.dot}">'
    return f'<p class="who">{dot}{state.word}</span>{"&nbsp;· " if who else ""}{who}</p>'


def _paragraph(words: str, css: str) -> str:
    return f'<p class="{css}">{html.escape(words)}</p>' if words else ""


def _said(label: str, body: str) -> str:
    """Words of the session, beside a line; nothing when there are none."""
    if not body.strip():
        return ""
    head = f'<p class="label">{label}</p>' if label else ""
    return f'{head}<div class="said">{body}</div>'


def _options(letter: Letter) -> str:
    rows = "".join(
        f'<tr><td class="gap">{_option(letter, number, offer)}</td></tr>'
        for number, offer in enumerate(letter.options, 1)
    )
    table = f'<table role="presentation" class="options">{rows}</table>'
    return f'{table}<p class="or">{OPTIONS_AGAIN if letter.one_tap else OPTIONS_BY_REPLY}</p>'


def _option(letter: Letter, number: int, offer: Offer) -> str:
    """One row: number and label, whether it is recommended, what it is and what comes of it."""
    words = f'<span class="pick">{number}. {html.escape(offer.label)}</span>'
    if letter.is_recommended(offer):
        words += f' <span class="mark">({RECOMMENDED})</span>'
    if offer.description:
        words += f'<br><span class="more">{html.escape(offer.description)}</span>'
    if offer.impact:
        words += f'<br><span class="more">If chosen: {html.escape(offer.impact)}</span>'
    if not letter.one_tap:
        return f'<div class="option">{words}</div>'
    return f'<a class="option" href="{html.escape(answer_link(letter, number))}">{words}</a>'
