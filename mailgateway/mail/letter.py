"""What a mail of ours says, before it is bytes; and the words around it.

One order for text and HTML: who asks, the question, the options, what else the session says, how to answer.
"""

import html
import urllib.parse
from datetime import datetime
from enum import StrEnum, unique

from attrs import field, frozen

from mailgateway.ids import MessageId, OutboxId, RouteId
from mailgateway.mail.render import STYLE, clean_lines, html_body, inlined, plain_text


@unique
class LetterKind(StrEnum):
    """What a mail of ours is for."""

    NOTIFICATION = "notification"
    SETTLE = "settle"
    DECISION = "decision"
    ANSWER = "answer"
    """To a person's command, or why a reply was not delivered."""


@frozen
class Enclosure:
    """A file that goes with a letter."""

    filename: str
    content_type: str
    data: bytes = field(repr=False)


@frozen(kw_only=True)
class Who:
    """The session that speaks: what a person needs to know where the question comes from."""

    title: str = ""
    project: str = ""
    branch: str = ""
    device: str = ""

    @property
    def line(self) -> str:
        """The facts that are known, in one line."""
        facts = (self.title, self.project, self.branch, self.device)
        return " · ".join(one_line(each) for each in facts if each.strip())


@frozen(kw_only=True)
class Letter:
    """One mail to send.  ``text`` is Markdown; times are aware; Message-IDs have their brackets.

    ``references`` are the ancestors, oldest first.  ``expires_at`` is said in the footer where
    given.  Control characters in any field are replaced by blanks, so that no field can break out.
    """

    kind: LetterKind
    sender_address: str
    sender_name: str
    recipient: str
    tag: str
    route: RouteId
    subject: str
    text: str = field(repr=False)
    message_id: MessageId
    date: datetime
    instance: str
    outbox_id: OutboxId
    who: Who = field(factory=Who)
    options: tuple[str, ...] = ()
    recommendation: str | None = None
    in_reply_to: MessageId | None = None
    references: tuple[MessageId, ...] = ()
    attachments: tuple[Enclosure, ...] = ()
    expires_at: datetime | None = None


def one_line(text: str) -> str:
    """The text on one line: every run of blanks and control characters is one blank."""
    return " ".join(clean_lines(text).split())


def letter_text(letter: Letter) -> str:
    """The plain text part, with LF and 72 columns, code untouched."""
    text = plain_text(letter.text).strip("\n")
    question = plain_text(one_line(letter.subject))
    if letter.kind is LetterKind.ANSWER or text.startswith(question):  # an answer repeats no subject
        question = ""
    blocks = [letter.who.line, question, text]
    if letter.options:
        lines = []
        for number, option in enumerate(letter.options, 1):
            mark = "  (recommended)" if _recommended(letter, option) else ""
            lines.append(plain_text(f"{number}. {one_line(option)}{mark}"))
        blocks.append("\n".join(lines))
    if letter.recommendation and not any(_recommended(letter, option) for option in letter.options):
        blocks.append(plain_text(f"Recommendation: {one_line(letter.recommendation)}"))
    blocks.append("\n".join(plain_text(line) for line in _foot(letter)))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _recommended(letter: Letter, option: str) -> bool:
    return letter.recommendation is not None and one_line(option) == one_line(letter.recommendation)


def _foot(letter: Letter) -> list[str]:
    """How to answer, and until when."""
    match letter.kind:
        case LetterKind.DECISION:
            how = (
                "Reply with the number or in your own words."
                if letter.options
                else "Reply in your own words."
            )
            lines = [f"{how} The session waits for your answer."]
        case LetterKind.NOTIFICATION | LetterKind.SETTLE:
            lines = ["Reply to write to the session."]
        case LetterKind.ANSWER:
            lines = []
    if letter.expires_at is not None and lines:
        lines.append(f"Replies arrive until {letter.expires_at:%Y-%m-%d %H:%M %Z}.")
    return lines


def letter_html(letter: Letter, subject: str) -> str | None:
    """The HTML part; None for a text too long to render.  ``subject`` is what an option's link answers to."""
    body = html_body(letter.text)
    if body is None:
        return None
    pieces = []
    if letter.who.line:
        pieces.append(f'<p class="who">{html.escape(letter.who.line)}</p>')
    if letter.kind is not LetterKind.ANSWER:
        pieces.append(f"<h1>{html.escape(one_line(letter.subject))}</h1>")
    pieces.append(body)
    for number, option in enumerate(letter.options, 1):
        query = urllib.parse.urlencode(
            {"subject": f"Re: {subject}", "body": f"{number}. {one_line(option)}"},
            quote_via=urllib.parse.quote,
        )
        link = html.escape(f"mailto:{letter.sender_address}?{query}")
        mark = ' <span class="recommended">(recommended)</span>' if _recommended(letter, option) else ""
        pieces.append(
            f'<div class="option"><a href="{link}">{number}. {html.escape(one_line(option))}</a>{mark}</div>'
        )
    if letter.recommendation and not any(_recommended(letter, option) for option in letter.options):
        pieces.append(f"<p>Recommendation: {html.escape(one_line(letter.recommendation))}</p>")
    foot = "<br>".join(html.escape(line) for line in _foot(letter))
    if foot:
        pieces.append(f'<p class="foot">{foot}</p>')
    return inlined(
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(one_line(letter.subject))}</title><style>{STYLE}</style></head>"
        f'<body><div class="card">{"".join(pieces)}</div></body></html>'
    )
