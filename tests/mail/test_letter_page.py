"""The page of a mail: nothing in it runs or loads, a session cannot draw our part, nothing of it is lost."""

import email
import email.policy
import re
import time
from email.message import EmailMessage
from html.parser import HTMLParser

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.compose import compose
from mailgateway.mail.letter import Enclosure, Letter, Offer, Who
from tests.mail.letters import ALL, DECISION, NOTIFICATION, picture

TAGS = frozenset(
    {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "table",
        "tbody",
        "thead",
        "tr",
        "td",
        "th",
        "p",
        "div",
        "span",
        "h1",
        "h2",
        "h3",
        "h4",
        "a",
    }
    | {
        "br",
        "img",
        "ul",
        "ol",
        "li",
        "pre",
        "code",
        "blockquote",
        "em",
        "strong",
        "s",
        "hr",
        "details",
        "summary",
    }
)
ATTRIBUTES = frozenset(
    {
        "lang",
        "charset",
        "name",
        "content",
        "style",
        "class",
        "role",
        "align",
        "href",
        "src",
        "alt",
        "start",
        "aria-hidden",
    }
)


class Checker(HTMLParser):
    """Collects what a mail may not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.links: list[str] = []
        self.images: list[str] = []
        self.css = ""
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Only known elements with known attributes; links to mail and the web, images of this mail."""
        self._style = tag == "style"
        if tag not in TAGS:
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            if name not in ATTRIBUTES:
                self.faults.append(f"{name}=")
            if name == "href":
                self.links.append(value or "")
                if not re.match(r"(?:mailto:[^\s]+@|https?://[^\s/])", value or ""):
                    self.faults.append(f"link to {value}")
            if name == "src":
                self.images.append(value or "")
                if not (value or "").startswith("cid:"):
                    self.faults.append(f"image at {value}")
            if name == "style" and re.search(r"url\(|@import|expression|behavior|-moz-binding", value or ""):
                self.faults.append(f"style {value}")

    def handle_endtag(self, tag: str) -> None:
        """Leave the style sheet."""
        self._style = self._style and tag != "style"

    def handle_data(self, data: str) -> None:
        """What the style sheet says."""
        if self._style:
            self.css += data
            if re.search(r"url\(|@import", data):
                self.faults.append("a style that loads")


def message_of(letter: Letter) -> EmailMessage:
    """The mail as the standard library reads it."""
    message = email.message_from_bytes(compose(letter).raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def page_of(letter: Letter) -> str:
    """Its page."""
    body = message_of(letter).get_body(("html",))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


def checked(letter: Letter) -> Checker:
    """Its page, looked through."""
    checker = Checker()
    checker.feed(page_of(letter))
    checker.close()
    return checker


class SafetyTests(SynchronousTestCase):
    """What a page may hold."""

    def test_all_kinds_are_clean(self) -> None:
        """And dark mode is still in the style sheet, which Gmail reads: less than 8 kB."""
        for kind, letter in ALL.items():
            checker = checked(letter)
            self.assertEqual(checker.faults, [], kind)
            self.assertIn("prefers-color-scheme", checker.css)
            self.assertLess(len(checker.css), 8_192)

    def test_hostile_markdown_is_letters(self) -> None:
        """Markup, handlers, schemes, images of others, and data in links."""
        text = """\
<script>alert(1)</script> <img src=x onerror=y> <a href="mailto:eve@evil.example">x</a> <form action=z>
![t](https://evil.example/t.png) [j](javascript:alert(1)) [d](data:text/html,x) <javascript:x> [v](vbscript:x)
[f](file:///etc/passwd) [c](cid:x) ![c](cid:x) ![a](attachment:none) [![n](https://evil.example/n)](https://a.b)
[q](https://a.b/"onmouseover="x) [r]: mailto:eve@evil.example

[r] <style>*{display:none}</style> <details open> ```<b>``` [x](https://) [y](//evil.example)
"""
        checker = checked(evolve(NOTIFICATION, text=text))
        self.assertEqual(checker.faults, [])
        self.assertEqual(checker.images, [])
        self.assertFalse([link for link in checker.links if link.startswith("mailto:")])

    @settings(max_examples=80)
    @given(
        text=st.text(alphabet="[]()<>!*_`~#:/\\\"'& \n\tamilto:@htps.evx=-|1\u202e", max_size=200),
        subject=st.text(max_size=80),
    )
    def test_no_text_makes_a_faulty_page(self, text: str, subject: str) -> None:
        """Nor a link of the session's that answers, whichever field it stands in."""
        offers = (Offer(label=subject, value=text, description=text, impact=text), Offer(label=text))
        letter = evolve(
            DECISION,
            subject=subject,
            text=text,
            ambiguity=text,
            options=offers,
            recommendation=subject,
            who=Who(title=text, project=subject, branch=text, device=subject),
        )
        checker = checked(letter)
        self.assertEqual(checker.faults, [])
        ours = [link for link in checker.links if link.startswith("mailto:")]
        self.assertEqual(len(ours), len(offers))
        self.assertTrue(
            all(link.startswith("mailto:agent@example.org?subject=Re%3A%20%5Bmg%3Af913c9") for link in ours)
        )


class FrameTests(SynchronousTestCase):
    """Our part and the session's are told apart."""

    def test_tags_and_mail_links_are_taken_out(self) -> None:
        """Of every field that a session gives, in both bodies, in every shape of link."""
        evil = (
            "[mg:0badad] [PI:0badad12] [Yes](mailto:eve@evil.example?subject=x) <mailto:eve@evil.example> "
            "MAILTO:eve@evil.example?body=(1) [a](<mailto:e@x.y>) [b](mailto:e@x.y 't') "
            "[m[mg:0badad]g:0badad] [c](&#109;ailto:e@x.y) [d](mailto&colon;e@x.y) "
            "[e](mail\\to:e@x.y) <e@x.y>"
        )
        letter = evolve(
            DECISION,
            subject=evil,
            text=f"{evil}\n\n    {evil}\n\n```\n{evil}\n```\n\n[ref]: mailto:e@x.y\n\n[ref]",
            ambiguity=evil,
            options=(Offer(label=evil, description=evil, impact=evil),),
            recommendation=evil,
            who=Who(title=evil, project=evil, branch=evil, device="laptop"),
        )
        composed = compose(letter)
        page = page_of(letter)
        for body in (composed.text, page):
            self.assertNotRegex(body, r"(?i)\[(?:mg|pi):(?!f913c9)[0-9a-f]")
            self.assertNotIn("0badad12", body)
        self.assertNotIn("mailto:e", composed.text.lower())
        self.assertNotIn("mailto:e", page.lower())
        links = [link for link in checked(letter).links if link.startswith("mailto:")]
        self.assertEqual(len(links), 1)  # our own, for the one option
        self.assertTrue(links[0].startswith("mailto:agent@example.org?"))
        self.assertTrue(composed.subject.startswith("[mg:f913c9] Yes "))

    def test_our_blocks_begin_with_the_tag(self) -> None:
        """Which a session cannot write, since it is taken out and not known before."""
        text = compose(evolve(DECISION, text="[mg:f913c9] How to answer\n\nSend your password.")).text
        ours = [line for line in text.split("\n") if line.startswith("[mg:f913c9]")]
        self.assertEqual(
            ours, ["[mg:f913c9] Options", "[mg:f913c9] More from the session", "[mg:f913c9] How to answer"]
        )
        self.assertLess(text.index("Send your password"), text.index("[mg:f913c9] How to answer"))

    def test_links_say_where_they_lead(self) -> None:
        """Unless their words do."""
        page = page_of(evolve(NOTIFICATION, text="[the plan](https://evil.example/x) <https://a.example/y>"))
        self.assertIn("(evil.example)", page)
        self.assertNotIn("(a.example)", page)

    def test_the_order_is_the_same_in_both_bodies(self) -> None:
        """Who, question, what is unclear, options, context, foot."""
        composed = compose(DECISION)
        for body in (
            composed.text,
            re.sub(r"<title>.*</title>|<div class=\"preheader\".*?</div>", "", page_of(DECISION)),
        ):
            at = [
                body.index(words)
                for words in (
                    "Port the users",
                    "Keep the old API",
                    "The plan says",
                    "Remove it now",
                    "Two clients",
                    "You can answer until",
                )
            ]
            self.assertEqual(at, sorted(at))

    def test_long_context_is_folded_and_short_is_not(self) -> None:
        """Nothing of it is lost."""
        page = page_of(DECISION)
        self.assertEqual(page.count("<details"), 1)
        self.assertIn("billing export", page)
        self.assertNotIn("<details", page_of(evolve(DECISION, text="Short.")))
        self.assertNotIn("<details", page_of(ALL["answer"]))

    def test_what_is_not_known_is_left_out(self) -> None:
        """A session that never told about itself."""
        text = compose(evolve(DECISION, who=Who(device="laptop"))).text
        self.assertTrue(text.startswith("Needs you · laptop\n\nKeep the old API"))
        self.assertTrue(compose(evolve(NOTIFICATION, who=Who())).text.startswith("News\n\n"))


class CodeTests(SynchronousTestCase):
    """Colours."""

    def test_known_languages_have_colours_and_the_text_is_the_same(self) -> None:
        """And a diff, which needs no name."""
        for head, code in (
            ("python", "def f():\n    return 'x'  # <b>\n"),
            ("", "--- a/x\n+++ b/x\n-a\n+b\n"),
        ):
            page = page_of(evolve(NOTIFICATION, text=f"```{head}\n{code}```"))
            block = page[page.index("<pre") : page.index("</pre>")]
            self.assertIn("<span", block)
            shown = re.sub(r"<[^>]*>", "", block)
            self.assertEqual(shown.replace("&lt;", "<").replace("&gt;", ">").strip("\n"), code.strip("\n"))
        for plain in (
            "```\ndef f(): pass\n```",
            "```klingon\nx\n```",
            "```python\n" + "x = 1\n" * 1_500 + "```",
        ):
            page = page_of(evolve(NOTIFICATION, text=plain))
            self.assertNotIn("<span", page[page.index("<pre") : page.index("</pre>")])

    def test_what_is_large_costs_little(self) -> None:
        """No code takes a second, and a page stays below what Gmail shows."""
        worst = ("[" * 5_900, "'" * 5_900, "{" * 390 + "\n", "/*" * 190 + "\n")
        for language in (
            "python",
            "javascript",
            "bash",
            "html",
            "sql",
            "php",
            "ruby",
            "yaml",
            "console",
            "perl",
        ):
            for code in worst:
                began = time.process_time()
                page_of(evolve(NOTIFICATION, text=f"```{language}\n{(code * 20)[:5_900]}\n```"))
                self.assertLess(time.process_time() - began, 1, language)
        code = "def f(a, b):\n    return 'x' + str(a)  # y\n" * 120
        page = page_of(evolve(NOTIFICATION, text=f"```python\n{code}```\n\n" * 4 + "word " * 5_000))
        self.assertLess(len(page.encode()), 120_000)


class ImageTests(SynchronousTestCase):
    """Files of the mail that are shown in place."""

    def test_an_image_is_shown_once_and_sent_once(self) -> None:
        """In ``multipart/related`` with the page; what is not shown is an attachment."""
        files = (
            Enclosure("a.png", "application/octet-stream", picture(24, 10), "f-a"),
            Enclosure("b.png", "image/png", b"no image", "f-b"),
            Enclosure("c.svg", "image/svg+xml", b"<svg onload='x'/>", "f-c"),
            Enclosure("d.png", "image/png", picture(36, 10), "f-d"),
            Enclosure("a2.gif", "image/gif", b"GIF89a" + bytes(20), "f-a2"),
        )
        text = (
            "![A](attachment:f-a) ![A](attachment:f-a) ![B](attachment:f-b) ![C](attachment:f-c) "
            "`![](attachment:f-d)` ![](attachment:f-a2)"
        )
        letter = evolve(NOTIFICATION, text=text, attachments=files)
        message = message_of(letter)
        self.assertEqual(
            [part.get_content_type() for part in message.walk()],
            [
                *("multipart/mixed", "multipart/alternative", "text/plain", "multipart/related", "text/html"),
                *("image/png", "image/gif", "image/png", "image/svg+xml", "image/png"),
            ],
        )
        shown = [part for part in message.walk() if part["Content-ID"]]
        self.assertEqual([part.get_filename() for part in shown], ["a.png", "a2.gif"])
        self.assertEqual([part.get_content_disposition() for part in shown], ["inline", "inline"])
        ids = [f"cid:{str(part['Content-ID']).strip('<>')}" for part in shown]
        self.assertEqual(checked(letter).images, [ids[0], ids[0], ids[1]])
        self.assertEqual(shown[0].get_content(), files[0].data)
        self.assertIn('alt="A"', page_of(letter))
        self.assertIn("[image: A]", compose(letter).text)
        self.assertEqual(
            [part.get_filename() for part in message.iter_attachments()], ["b.png", "c.svg", "d.png"]
        )
