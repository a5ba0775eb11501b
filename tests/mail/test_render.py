"""Markdown to the two bodies."""

import subprocess
import sys
import time

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.agent_text import clean_lines
from mailgateway.mail.markdown import HTML_LIMIT, MOST_CELLS, Shown, html_body
from mailgateway.mail.render import WIDTH, plain_text


class PlainTests(SynchronousTestCase):
    """Plain text is the Markdown, wrapped where that harms nobody."""

    def test_prose_is_wrapped_and_the_rest_is_not(self) -> None:
        """Fenced and indented code, tables and quotations keep their lines; list items hang."""
        long = "word " * 30
        kept = f"```\n{long}\n```\n    {long}\n| {long} |\n> {long}\n{'-' * 90}"
        self.assertEqual(plain_text(kept), kept)
        wrapped = plain_text(f"- {long.strip()}").split("\n")
        self.assertTrue(all(len(line) <= WIDTH for line in wrapped))
        self.assertTrue(all(line.startswith("  ") for line in wrapped[1:]))
        self.assertEqual(" ".join(plain_text(long).split()), long.strip())

    def test_a_fence_ends_only_with_its_like(self) -> None:
        """Shorter and other fences inside are lines of code."""
        text = "````\n```\n" + "x " * 60 + "\n~~~\n````"
        self.assertEqual(plain_text(text), text)

    @given(st.text(max_size=300))
    def test_no_control_character_is_left(self, text: str) -> None:
        """But tab and LF; and all is encodable."""
        clean = clean_lines(plain_text(text))
        self.assertFalse(set(clean) & {chr(code) for code in range(32)} - {"\n", "\t"})
        clean.encode()


class HtmlTests(SynchronousTestCase):
    """The page is made of Markdown alone."""

    def test_raw_html_is_shown_as_text(self) -> None:
        """Scripts, images and handlers are letters."""
        page = html_body(
            "<script>alert(1)</script>\n\n<img src=x onerror=y> [a](javascript:b) ![c](https://d/e)",
            Shown(),
        )
        for tag in ("<script", "<img", 'href="javascript'):
            self.assertNotIn(tag, page)

    def test_a_long_text_is_not_rendered(self) -> None:
        """The worst that is rendered takes no second."""
        began = time.process_time()
        html_body("[" * HTML_LIMIT, Shown())
        self.assertLess(time.process_time() - began, 2)

    def test_few_bytes_do_not_make_a_million_cells(self) -> None:
        """Rows that are not written out count in full; over the bound a table is shown as it was written."""
        huge = "|a" * 250 + "\n" + "|-" * 250 + "\n" + "|b\n" * 100 + "\n"
        shown = html_body(huge * 3, Shown())
        self.assertNotIn("<td", shown)
        self.assertEqual(shown.count("|b"), 300)
        small = "| a | b |\n|---|---|\n| c |\n\n"
        self.assertEqual(html_body(small * 50, Shown()).count("<td"), 100)
        self.assertLessEqual(html_body(small * 2_500, Shown()).count("<td"), MOST_CELLS)
        self.assertEqual(html_body(small + huge + small, Shown()).count("<td"), 2)

    def test_the_libraries_are_loaded_late(self) -> None:
        """The start of the service does not pay for them."""
        code = (
            "import sys, mailgateway.mail.compose, mailgateway.domain.judge, mailgateway.domain.explain;"
            "late = ('markdown_it', 'css_inline', 'pygments', 'nh3', 'authres');"
            "print([name for name in late if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
        self.assertEqual(done.stdout.strip(), b"[]")
