"""What a person typed in a reply, and what their program put around it.

Chooses the part to read; the rules that take away quotations, signatures and footers are in
`mailgateway.mail.quotation`.
"""

import re
from collections.abc import Sequence
from enum import StrEnum, unique

from attrs import evolve, field, frozen

from mailgateway.mail.inbound import Inbound
from mailgateway.mail.markup import lines_of_html
from mailgateway.mail.own import Own
from mailgateway.mail.page import Line, Page
from mailgateway.mail.parts import Texts
from mailgateway.mail.quotation import cut_all

TEXT_LIMIT = 256 * 1024
"""Characters of a reply that are looked at; what lies behind is cut off."""

LINES_LIMIT = 10_000
"""Lines of a reply that are looked at; likewise."""


@unique
class TextType(StrEnum):
    """Which text of a mail was read: programs write the same in two forms, and others may not."""

    PLAIN = "text/plain"
    HTML = "text/html"


@frozen
class Reply:
    """``text`` is what was typed ('' when nothing was), ``quoted`` what was taken away, both with LF.

    ``shortened`` says that the text was longer than the limits and its end was not looked at.
    """

    text: str = field(repr=False)
    quoted: str = field(repr=False)
    shortened: bool = False
    text_type: TextType = TextType.PLAIN


def typed_words(inbound: Inbound, own: Own, sent_text: str | None) -> Reply:
    """Separate the typed words of a reply from the rest.

    ``sent_text`` is the plain text of the mail that is answered, where it is known.  Plain text parts are
    read before HTML; HTML when there is no plain text or only a note that there is HTML.

    The time is linear and bounded by `TEXT_LIMIT`, `LINES_LIMIT` and the limit of HTML: 256 kB of prose take
    some 50 ms, a text of that size in which each line looks like an attribution 0.3 s, the worst HTML 1 s.
    A reply of a few lines takes less than one millisecond.
    """
    subject = _bare_subject(inbound.subject)
    plain = "\n".join(text for text in inbound.texts if text.strip())
    stub = len(plain) < 400 and (not plain.strip() or _STUB.search(plain) is not None)
    if not stub or not inbound.htmls:
        return _said(separate(plain, own, sent_text, subject), inbound.plain)
    read = _separated(_lines_of(inbound.htmls), own, sent_text, subject)
    return _said(evolve(read, text_type=TextType.HTML), inbound.html)


def typed_in_html(pages: Sequence[str], inbound: Inbound, own: Own, sent_text: str | None) -> Reply:
    """The same for the HTML of a mail alone, in the shape that it is given here."""
    return _separated(_lines_of(pages), own, sent_text, _bare_subject(inbound.subject))


def _lines_of(pages: Sequence[str]) -> list[Line]:
    return [line for page in pages for line in lines_of_html(page).lines]


_PREFIX = re.compile(r"\s*[^\W\d]{1,12}(?:\[\d{1,3}\])?\s?[:\uff1a]\s*")


def _bare_subject(subject: str) -> str:
    """The subject folded and without ``Re:`` and its like."""
    for _ in range(5):
        found = _PREFIX.match(subject)
        if found is None:
            break
        subject = subject[found.end() :]
    return " ".join(subject.casefold().split())


def _said(reply: Reply, texts: Texts) -> Reply:
    return evolve(reply, shortened=reply.shortened or texts.clipped)


_STUB = re.compile(
    r"html\b.{0,80}\b(?:format|capable|viewer|client|reader)|view(?:ed)? (?:it )?in html",
    re.IGNORECASE | re.DOTALL,
)
_PGP_BEGIN = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----")
_PGP_SIGNATURE = re.compile(r"-----BEGIN PGP SIGNATURE-----")


def separate(text: str, own: Own, sent_text: str | None, subject: str = "") -> Reply:
    """The same for a plain text that is already at hand; ``subject`` as `_bare_subject` gives it."""
    given = text[:TEXT_LIMIT].split("\n")
    lines = _unarmoured(given[: LINES_LIMIT + 1])
    reply = _separated([Line(line) for line in lines], own, sent_text, subject)
    return evolve(reply, shortened=reply.shortened or len(text) > TEXT_LIMIT)


def _separated(lines: Sequence[Line], own: Own, sent_text: str | None, subject: str) -> Reply:
    page = Page.of(lines[:LINES_LIMIT], own, sent_text, subject)
    cut_all(page)
    return Reply(page.typed(), page.quoted(), shortened=len(lines) > LINES_LIMIT)


def _unarmoured(lines: list[str]) -> list[str]:
    """The words inside an inline PGP signature, dash-escaping undone (RFC 4880, section 7.1)."""
    start = next((at for at, line in enumerate(lines[:50]) if _PGP_BEGIN.match(line)), None)
    if start is None:
        return lines
    end = next((at for at, line in enumerate(lines) if at > start and _PGP_SIGNATURE.match(line)), len(lines))
    body = next((at + 1 for at in range(start, end) if not lines[at].strip()), start + 1)
    return lines[:start] + [line.removeprefix("- ") for line in lines[body:end]]
