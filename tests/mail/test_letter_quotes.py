"""What programs quote of our mails is known again: of a reply, only what was typed is left."""

import email
import email.policy
from email.message import EmailMessage

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.compose import Composed, compose
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.letter import Letter
from mailgateway.mail.markup import lines_of_html
from mailgateway.mail.reply import separate, typed_in_html, typed_words
from tests.mail.letters import ALL, DECISION
from tests.mail.mails import AGENT, OWN
from tests.mail.programs import NAME, WHEN, replies, text_of_page

WORDS = ("Yes, keep it.\nBut tell the billing team first.", "2", "1. Keep it until March\n\nand only that")


def page_and(letter: Letter) -> tuple[Composed, str]:
    """What is sent, and its page."""
    composed = compose(letter)
    message = email.message_from_bytes(composed.raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    body = message.get_body(("html",))
    assert body is not None
    return composed, str(body.get_content())


class QuoteTests(SynchronousTestCase):
    """Every kind of mail in every program."""

    def test_only_the_typed_words_are_left(self) -> None:
        """In plain text and in HTML, whether the program quotes our text or makes its own of our page."""
        for kind, letter in ALL.items():
            composed, page = page_and(letter)
            for words in WORDS:
                for name, mail in replies(words, composed.text, page):
                    if (kind, name) == ("answer", "bare"):
                        continue  # two lines of ours without a mark may as well be the person's
                    inbound = read(mail.as_bytes(policy=email.policy.SMTP))
                    assert isinstance(inbound, Inbound)
                    got = typed_words(inbound, OWN, composed.quotable).text
                    self.assertEqual(got, words, f"{kind}, {name}: {got!r}")
                    if inbound.htmls:
                        got = typed_in_html(inbound.htmls, inbound, OWN, composed.quotable).text
                        self.assertEqual(
                            " ".join(got.split()), " ".join(words.split()), f"{kind}, {name}, page: {got!r}"
                        )

    def test_all_but_the_unmarked_is_cut_without_the_sent_text(self) -> None:
        """Another gateway sent it, or it was forgotten: what introduces a quotation is enough."""
        for kind, letter in ALL.items():
            composed, page = page_and(letter)
            for name, mail in replies(WORDS[0], composed.text, page):
                inbound = read(mail.as_bytes(policy=email.policy.SMTP))
                assert isinstance(inbound, Inbound)
                if name != "bare":
                    self.assertEqual(typed_words(inbound, OWN, None).text, WORDS[0], f"{kind}, {name}")

    def test_answers_between_our_lines_are_kept(self) -> None:
        """Below a quoted option of the page, with marks and without."""
        composed, page = page_and(DECISION)
        lines = text_of_page(page, width=400, stars=False, links=False)
        at = next(number for number, line in enumerate(lines) if line.startswith("2. Remove it now"))
        quoted = [f"> {line}".rstrip() for line in lines]
        text = "\n".join(
            [
                f"On {WHEN} {NAME} <{AGENT}> wrote:",
                *quoted[: at + 3],
                "",
                "This one, please.",
                "",
                *quoted[at + 3 :],
            ]
        )
        self.assertEqual(separate(text, OWN, composed.quotable).text, "This one, please.")
        head = f"From: {NAME} <{AGENT}>\nSent: Tuesday, 1 December 2026 10:30\nTo: x\nSubject: y\n"
        lines = [line.text for line in lines_of_html(page).lines]
        at = next(number for number, line in enumerate(lines) if line.startswith("2. Remove it now"))
        text = "\n".join(["See below.", "", head, *lines[: at + 3], "This one, please.", *lines[at + 3 :]])
        self.assertIn("This one, please.", separate(text, OWN, composed.quotable).text)
