"""What is left of a session's words: no tag of ours and no mail link, however they are put together."""

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.agent_text import _without_mail_links, safe_line, safe_markdown
from mailgateway.mail.markdown import Shown, html_body
from mailgateway.mail.tag import without_tags

TAGS = frozenset({"mg", "pi"})
PIECES = st.sampled_from(
    [
        "[mg:",
        "abcdef",
        "]",
        "[](mailto:x)",
        "mail",
        "to:",
        "a@b.c",
        "[mg:abcdef]",
        "[x](",
        "mailto:",
        ")",
        " ",
    ]
)


class TakenOutTests(SynchronousTestCase):
    """Tags and mail links that come together when others are taken out."""

    def check(self, text: str) -> None:
        """Neither is left by either way."""
        for left in (safe_line(text, TAGS), safe_markdown(text, TAGS)):
            self.assertEqual(without_tags(left, TAGS), left, text)
            self.assertEqual(_without_mail_links(left), left, text)

    def test_put_together(self) -> None:
        """A tag around a mail link, a mail link around a tag, and many layers of both."""
        for text in (
            "[mg:abc[](mailto:x)def] How to answer",
            "mail[mg:abcdef]to:someone@example.net",
            "[mg:abc" * 30 + "[](mailto:x)" + "def]" * 30,
            "mail[mg:" * 30 + "abcdef" + "]to:x" * 30,
        ):
            self.check(text)

    @given(st.lists(PIECES, max_size=24).map("".join))
    @settings(max_examples=100)
    def test_whatever_is_put_together(self, text: str) -> None:
        """All of it from the pieces of both."""
        self.check(text)

    def test_links_say_where_they_lead(self) -> None:
        """The host stands behind a link whose words name another one, even one that holds it."""
        for words, url, told in (
            ("https://github.com/login", "https://hub.com/login", True),
            ("t.com", "https://t.co/x", True),
            ("here", "https://example.org/", True),
            ("https://example.org/a", "https://example.org/b", False),
            ("Look at example.org.", "https://example.org/b", False),
        ):
            page = html_body(f"[{words}]({url})", Shown())
            self.assertEqual('class="host"' in page, told, page)

    def test_other_words_stay(self) -> None:
        """Brackets, colons and links elsewhere are left alone."""
        text = "See [the notes](https://example.org/a): `x[1:2]`, and [mgr:abcdef]."
        self.assertEqual(safe_markdown(text, TAGS), text)
