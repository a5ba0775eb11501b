"""Mail programs, as far as they quote: what each makes of a mail of ours when a person replies to it.

Modelled on what Gmail, Outlook, Apple Mail, Thunderbird, Samsung and mutt write.  Those that show HTML quote
the page, and make the plain text of their replies from it in their own way: bold words between stars, a link
behind its words, lines wrapped where we did not.
"""

import html
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from email.message import EmailMessage
from html.parser import HTMLParser
from types import MappingProxyType

from tests.mail.letters import PERSON
from tests.mail.mails import AGENT

NAME = "Coding agents"
WHEN = "Tue, Dec 1, 2026 at 10:30 AM"


class _Text(HTMLParser):
    """The text that a program makes of a page; ``stars`` for bold words, and the targets of links."""

    BLOCKS = frozenset({"p", "div", "tr", "h1", "h2", "h3", "h4", "pre", "li", "table", "details", "summary"})

    def __init__(self, *, stars: bool, links: bool) -> None:
        super().__init__()
        self.stars, self.links = stars, links
        self.out: list[str] = []
        self.skip = 0
        self.href = ""
        self.pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"style", "title"} or given.get("class") == "preheader":
            self.skip += 1
        elif tag in self.BLOCKS:
            self.out.append("\n\n" if tag in {"p", "h1", "pre"} else "\n")
        elif tag == "br":
            self.out.append("\n")
        elif tag in {"strong", "b"} and self.stars:
            self.out.append("*")
        elif tag == "a":
            self.href = given.get("href") or ""
        elif tag == "li":
            self.out.append("   - ")
        self.pre += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in {"style", "title"} or (tag == "div" and self.skip):
            self.skip -= 1
        elif tag in self.BLOCKS:
            self.out.append("\n")
        elif tag in {"strong", "b"} and self.stars:
            self.out.append("*")
        elif tag == "a" and self.links:
            self.out.append(f"\n<{self.href.removeprefix('mailto:')}>")
        self.pre -= tag == "pre"

    def handle_data(self, data: str) -> None:
        if not self.skip:
            self.out.append(data if self.pre else re.sub(r"\s+", " ", data))


def text_of_page(page: str, *, width: int, stars: bool = True, links: bool = True) -> list[str]:
    """The lines of a page, wrapped."""
    reader = _Text(stars=stars, links=links)
    reader.feed(page)
    text = re.sub(r"\n{3,}", "\n\n", "".join(reader.out)).strip()
    lines: list[str] = []
    for line in text.split("\n"):
        lines += textwrap.wrap(line.rstrip(), width, break_long_words=False, break_on_hyphens=False) or [""]
    return lines


def _body(page: str) -> str:
    """What stands in the page's body, as programs put it into theirs."""
    found = re.search(r"<body[^>]*>(.*)</body>", page, re.DOTALL)
    assert found is not None
    return found[1]


def _renamed(page: str) -> str:
    """Our classes, as Gmail and Outlook rename them."""
    return re.sub(r'class="([^"]*)"', r'class="m_-42\1"', page)


def _quoted(lines: list[str]) -> str:
    return "\n".join(f"> {line}".rstrip() for line in lines)


Made = tuple[str, str]
"""The plain text of a reply, and its page (``""``: there is none)."""


def gmail(words: str, text: str, page: str) -> Made:
    """Gmail in a browser: wrapped at 78 with marks; the page in its blockquote."""
    del text
    below = _quoted(text_of_page(page, width=74))
    said = html.escape(words).replace("\n", "<br>")
    return (
        f"{words}\n\nOn {WHEN} {NAME} <{AGENT}>\nwrote:\n\n{below}\n",
        (
            f'<div dir="ltr">{said}</div><br><div class="gmail_quote gmail_quote_container"><div dir="ltr" '
            f'class="gmail_attr">On {WHEN} {NAME} &lt;<a href="mailto:{AGENT}">{AGENT}</a>&gt; wrote:<br>'
            '</div><blockquote class="gmail_quote" style="margin:0px 0px 0px 0.8ex;border-left:'
            f'1px solid rgb(204,204,204);padding-left:1ex"><u></u>{_renamed(_body(page))}</blockquote></div>'
        ),
    )


def outlook(words: str, text: str, page: str) -> Made:
    """Outlook on a desktop: a header block, then our page without marks."""
    del text
    head = f"From: {NAME} <{AGENT}>\nSent: Tuesday, 1 December 2026 10:30\nTo: Robin <{PERSON}>"
    below = "\n".join(text_of_page(page, width=400, stars=False))
    marked = "<br>".join(f"<b>{html.escape(line).replace(':', ':</b>', 1)}" for line in head.split("\n"))
    said = "".join(f'<p class="MsoNormal">{html.escape(line) or "&nbsp;"}</p>' for line in words.split("\n"))
    return (
        f"{words}\n\n{head}\nSubject: [mg:f913c9] Keep it?\n\n{below}\n",
        (
            f'<div class="WordSection1">{said}<p class="MsoNormal">&nbsp;</p><div style="border:none;'
            'border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm"><p class="MsoNormal">'
            f"{marked}<br><b>Subject:</b> [mg:f913c9] Keep it?</p></div>{_renamed(_body(page))}</div>"
        ),
    )


def apple(words: str, text: str, page: str) -> Made:
    """Apple Mail on a phone: marks without the targets of links; the page in a cite."""
    del text
    below = _quoted(["", *text_of_page(page, width=400, stars=False, links=False)])
    said = "".join(f"<div>{html.escape(line) or '<br>'}</div>" for line in words.split("\n"))
    wrote = f"On 1 Dec 2026, at 10:30, {NAME} <{AGENT}> wrote:"
    cite = f'<blockquote type="cite">{html.escape(wrote)}<br><br></blockquote>'
    return (
        f"{words}\n\n> {wrote}\n{below}\n",
        (
            f'<html><body dir="auto">{said}<div dir="ltr"><br>{cite}</div>'
            f'<blockquote type="cite"><div dir="ltr">{_body(page)}</div></blockquote></body></html>'
        ),
    )


def thunderbird(words: str, text: str, page: str) -> Made:
    """Thunderbird, which writes plain text: the page as text, wrapped at 72 with marks."""
    del text
    below = _quoted(text_of_page(page, width=70, links=False))
    return f"{words}\n\nOn 01.12.26 10:30, {NAME} wrote:\n{below}\n", ""


def mutt(words: str, text: str, page: str) -> Made:
    """A terminal program, which quotes the plain text."""
    del page
    below = _quoted(text.strip().split("\n"))
    return f"On Tue, Dec 01, 2026 at 10:30:00AM +0000, {NAME} wrote:\n{below}\n\n{words}\n", ""


def samsung(words: str, text: str, page: str) -> Made:
    """A phone's program: a line of dashes and a header block, without marks."""
    del text
    below = "\n".join(text_of_page(page, width=400, stars=False, links=False))
    return (
        (
            f"{words}\n\n-------- Original message --------\nFrom: {NAME} <{AGENT}>\nDate: 01/12/2026 10:30 "
            f"(GMT+00:00)\nTo: {PERSON}\nSubject: [mg:f913c9] Keep it?\n\n{below}\n"
        ),
        "",
    )


def bare(words: str, text: str, page: str) -> Made:
    """A program that puts our page's text below, and nothing in between."""
    del text
    below = "\n".join(text_of_page(page, width=400, stars=False, links=False))
    return f"{words}\n\n\n{below}\n", ""


PROGRAMS: Mapping[str, Callable[[str, str, str], Made]] = MappingProxyType(
    {each.__name__: each for each in (gmail, outlook, apple, thunderbird, mutt, samsung, bare)}
)


def replies(words: str, text: str, page: str) -> Iterator[tuple[str, EmailMessage]]:
    """What each program makes of a reply with these words: its name, and the mail without addresses."""
    for name, program in PROGRAMS.items():
        plain, rich = program(words, text, page)
        for form in ("", *(["html only"] if rich else [])):
            mail = EmailMessage()
            mail["From"], mail["To"] = f"Robin <{PERSON}>", f"{NAME} <{AGENT}>"
            mail["Subject"], mail["Message-ID"] = "Re: [mg:f913c9] Keep it?", "<r1@example.net>"
            if form:
                mail.set_content(rich, subtype="html")
            else:
                mail.set_content(plain)
                if rich:
                    mail.add_alternative(rich, subtype="html")
            yield f"{name} {form}".strip(), mail
