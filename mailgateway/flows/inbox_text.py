"""A session's Markdown as HTML for people's pages: by the same rules as in mails."""

import html

from mailgateway.mail.agent_text import clean_lines, one_line
from mailgateway.mail.markdown import FOLD_AFTER, HTML_LIMIT, Shown, html_body

FOLDED = 2 * FOLD_AFTER
"""Lines on a phone, roughly, that are shown before the rest is folded."""

WIDE = '<div class="wide">'
BY_KEYS = ' tabindex="0"'
"""What is wider than the screen can be reached by keys, and scrolled."""


def page_of_text(markdown: str, heading: str) -> str:
    """The HTML of a text, without a first line that only says the heading again; ``""`` of nothing.

    Nothing in it runs or loads anything: raw HTML is shown as text, images are links.
    """
    text = clean_lines(markdown).strip("\n")
    first, _, rest = text.partition("\n")
    if heading and one_line(first).strip("#*_ ") == heading:
        text = rest.strip("\n")
    if not text.strip():
        return ""
    if len(text) > HTML_LIMIT:
        return f"<pre{BY_KEYS}>{html.escape(text)}</pre>"
    made = html_body(text, Shown(), FOLDED)
    return made.replace("<pre>", f"<pre{BY_KEYS}>").replace(WIDE, f"{WIDE[:-1]}{BY_KEYS}>")
