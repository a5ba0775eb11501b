"""What a person typed in a reply, and what their program put around it.

Chooses the part to read; the rules that take away quotations, signatures and footers are in
`mailgateway.mail.quotation`.
"""

import re

from attrs import evolve, field, frozen

from mailgateway.mail.inbound import Inbound
from mailgateway.mail.markup import text_of_html
from mailgateway.mail.own import Own
from mailgateway.mail.parts import Texts
from mailgateway.mail.quotation import Page

TEXT_LIMIT = 256 * 1024
"""Characters of a reply that are looked at; what lies behind is cut off."""

LINES_LIMIT = 10_000
"""Lines of a reply that are looked at; likewise."""


@frozen
class Reply:
    """``text`` is what was typed ('' when nothing was), ``quoted`` what was taken away, both with LF.

    ``shortened`` says that the text was longer than the limits and its end was not looked at.
    """

    text: str = field(repr=False)
    quoted: str = field(repr=False)
    shortened: bool = False


def typed_words(inbound: Inbound, own: Own, sent_text: str | None) -> Reply:
    """Separate the typed words of a reply from the rest.

    ``sent_text`` is the plain text of the mail that is answered, where it is known.  Plain text parts are
    read before HTML; HTML when there is no plain text or only a note that there is HTML.

    The time is linear and bounded by `TEXT_LIMIT`, `LINES_LIMIT` and the limit of HTML: 256 kB of prose take
    some 50 ms, a text of that size in which each line looks like an attribution 0.3 s, the worst HTML 1 s.
    A reply of a few lines takes less than one millisecond.
    """
    plain = "\n".join(text for text in inbound.texts if text.strip())
    stub = len(plain) < 400 and (not plain.strip() or _STUB.search(plain) is not None)
    if not stub or not inbound.htmls:
        return _said(separate(plain, own, sent_text), inbound.plain)
    parts = [text_of_html(html) for html in inbound.htmls]
    text = "\n".join(part.text for part in parts if part.text.strip())
    set_apart = "\n".join(part.quoted for part in parts if part.quoted.strip())
    reply = separate(text, own, sent_text)
    reply = evolve(reply, quoted="\n".join(each for each in (reply.quoted, set_apart) if each))
    return _said(reply, inbound.html)


def _said(reply: Reply, texts: Texts) -> Reply:
    return evolve(reply, shortened=reply.shortened or texts.clipped)


_STUB = re.compile(
    r"html\b.{0,80}\b(?:format|capable|viewer|client|reader)|view(?:ed)? (?:it )?in html",
    re.IGNORECASE | re.DOTALL,
)
_PGP_BEGIN = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----")
_PGP_SIGNATURE = re.compile(r"-----BEGIN PGP SIGNATURE-----")


def separate(text: str, own: Own, sent_text: str | None) -> Reply:
    """The same for a text that is already at hand."""
    given = text[:TEXT_LIMIT].split("\n")
    lines = _unarmoured(given[:LINES_LIMIT])
    page = Page.of(lines, own, sent_text)
    page.cut_all()
    return Reply(page.typed(), page.quoted(), shortened=len(text) > TEXT_LIMIT or len(given) > LINES_LIMIT)


def _unarmoured(lines: list[str]) -> list[str]:
    """The words inside an inline PGP signature, dash-escaping undone (RFC 4880, section 7.1)."""
    start = next((at for at, line in enumerate(lines[:50]) if _PGP_BEGIN.match(line)), None)
    if start is None:
        return lines
    end = next((at for at, line in enumerate(lines) if at > start and _PGP_SIGNATURE.match(line)), len(lines))
    body = next((at + 1 for at in range(start, end) if not lines[at].strip()), start + 1)
    return lines[:start] + [line.removeprefix("- ") for line in lines[body:end]]
