"""One-tap answers: a link becomes a mail, the mail is judged, and the choice is that option."""

import email
import email.policy
import html
import re
import urllib.parse

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.choice import Chosen, Option, parse_answer
from mailgateway.ids import RouteId
from mailgateway.mail.answer_link import answer_link, answer_text
from mailgateway.mail.compose import compose
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.letter import LetterKind, Offer, cleaned
from mailgateway.mail.letter_html import letter_html
from mailgateway.mail.reply import typed_words
from mailgateway.mail.tag import ShortTag, find_tag, plus_address, plus_route
from tests.mail.letters import DECISION, DIGEST
from tests.mail.mails import AGENT, OWN, PERSON, reply

LABELS = (
    "Keep it until March",
    "50 % & more; a=b? #1 + \"quoted\" <b> 'x' \\ | ^ ` {y}",
    "größer → 大きい 🎉",
    "x" * 60,
    "The whole long sentence of an option that nobody can read on a phone, " * 3,
    "2",
    "yes",
    "No: use the other one",
    "(a) first",
    "`code` **bold**",
    "-- ",
    "[mg:000000] tagged",
    "> quoted",
)


def mail_of(link: str) -> tuple[str, str, str]:
    """Recipient, subject and body of the mail that a program makes of a link (RFC 6068)."""
    parts = urllib.parse.urlsplit(link)
    fields = dict(piece.split("=", 1) for piece in parts.query.split("&"))
    decoded = {name: urllib.parse.unquote(value, errors="strict") for name, value in fields.items()}
    return urllib.parse.unquote(parts.path), decoded["subject"], decoded.get("body", "")


def chosen(link: str, labels: tuple[str, ...], footer: str = "") -> str | None:
    """The value that a tap on the link and Send choose, by way of a mail."""
    _, subject, body = mail_of(link)
    raw = reply(body.replace("\r\n", "\n") + footer, subject=subject, frm=f"Robin <{PERSON}>")
    inbound = read(raw)
    assert isinstance(inbound, Inbound)
    words = typed_words(inbound, OWN, None).text
    parsed = parse_answer(words, [Option(label, label) for label in labels])
    return parsed.values[0] if isinstance(parsed, Chosen) else None


class LinkTests(SynchronousTestCase):
    """The links of the page."""

    def test_a_tap_chooses_that_option(self) -> None:
        """Whatever its label is made of; with what a phone writes below, too."""
        letter = cleaned(evolve(DECISION, options=tuple(Offer(label=label, value=label) for label in LABELS)))
        for number, label in enumerate(LABELS, 1):
            for footer in ("", "Sent from my iPhone\n"):
                self.assertEqual(chosen(answer_link(letter, number), LABELS, footer), label)

    def test_the_mail_finds_its_question(self) -> None:
        """By the tag in its subject, and by the address where the account has such addresses."""
        letter = cleaned(DECISION)
        address, subject, body = mail_of(answer_link(letter, 2))
        self.assertEqual(
            (address, subject), (AGENT, "Re: [mg:f913c9] Keep the old API during the migration? (2)")
        )
        self.assertEqual(body, "2. Remove it now\r\n\r\n")
        self.assertEqual(find_tag(subject, OWN.accepted_tags), ShortTag("mg", letter.route))
        plus = evolve(letter, reply_address=plus_address(AGENT, letter.route))
        self.assertEqual(plus_route(mail_of(answer_link(plus, 1))[0], AGENT), letter.route)
        message = email.message_from_bytes(compose(plus).raw, policy=email.policy.default)
        self.assertEqual(str(message["Reply-To"]), f"Coding agents <{plus.reply_address}>")

    def test_the_encoding_is_what_all_programs_take(self) -> None:
        """Letters, digits and ``-._~%`` alone, and short enough for Outlook."""
        options = tuple(Offer(label=label) for label in (*LABELS, "🎉" * 60))
        letter = cleaned(evolve(DECISION, subject="🎉" * 200, options=options))
        for number in range(1, len(options) + 1):
            link = answer_link(letter, number)
            self.assertRegex(
                link, r"\Amailto:agent@example\.org\?subject=[A-Za-z0-9._~%-]+&body=[A-Za-z0-9._~%-]+\Z"
            )
            self.assertLess(len(link), 2_000)

    def test_no_links_where_a_new_mail_is_not_believed(self) -> None:
        """Then options are lines, and the foot says to reply."""
        page = letter_html(cleaned(evolve(DECISION, one_tap=False)), {})
        assert page is not None
        self.assertNotIn("mailto:", page)
        self.assertIn("Reply with the number", page)

    def test_a_digest_has_a_link_for_each_session(self) -> None:
        """With its own tag."""
        page = letter_html(cleaned(evolve(DIGEST, reply_address="")), {})
        assert page is not None
        links = [html.unescape(link) for link in re.findall(r'href="(mailto:[^"]*)"', page)]
        tags = [find_tag(mail_of(link)[1], OWN.accepted_tags) for link in links]
        self.assertEqual(tags, [ShortTag("mg", RouteId("c3d9a1")), ShortTag("mg", RouteId("0b7e42"))])
        self.assertEqual(DIGEST.kind, LetterKind.DIGEST)

    @settings(max_examples=100)
    @given(
        st.lists(st.text(min_size=1, max_size=70).filter(str.strip), min_size=1, max_size=5, unique=True),
        st.data(),
    )
    def test_no_tap_ever_chooses_another_option(self, labels: list[str], data: st.DataObject) -> None:
        """At worst the words reach the session without a choice."""
        given_labels = tuple(labels)
        letter = cleaned(evolve(DECISION, options=tuple(Offer(label=label) for label in given_labels)))
        number = data.draw(st.integers(1, len(labels)))
        text = answer_text(letter.options[number - 1], number)
        parsed = parse_answer(text, [Option(f"v{at}", label) for at, label in enumerate(given_labels)])
        if isinstance(parsed, Chosen):
            self.assertEqual(parsed.values, (f"v{number - 1}",))
