"""Words of sessions and of strangers on people's pages: in every field, and on every page."""

from html.parser import HTMLParser

from attrs import evolve

from mailgateway.domain.envelope import AttachmentInfo
from mailgateway.ids import AttachmentId
from tests.http.case import ENVELOPE, MAIL, file
from tests.http.test_inbox_pages import PagesCase

HOSTILE = "</bdi><script>alert(1)</script>\"'><img src=x onerror=alert(1)> {{ 7*7 }} &lt;b&gt; \u202eevil"
LINKS = "[x](javascript:alert(1)) ![y](http://evil.example/z.png) [z](data:text/html,x)"


class HostileTests(PagesCase):
    """Words of sessions and of strangers stay words."""

    def test_words_stay_words_on_every_page(self) -> None:
        """In every field that somebody else fills in: no tag, no attribute, no template of theirs."""
        self.ping("s", "i", title=HOSTILE, project=HOSTILE, branch=HOSTILE, cwd="/x" + HOSTILE)
        option = dict.fromkeys(("value", "label", "description", "impact", "preview"), HOSTILE)
        handle = self.create(
            prompt=f"{HOSTILE}\n\n{HOSTILE}\n{LINKS}\n```html\n{HOSTILE}\n```",
            ambiguity=HOSTILE,
            options=[option, {"value": "b", "label": "b"}],
        )
        ended = self.create(prompt=HOSTILE)
        self.answered(ended, note=HOSTILE)
        self.browser.send("/inbox/sessions", ("session", "t"), ("name", HOSTILE[:100]))
        self.good("POST", "/send", {**MAIL, "subject": HOSTILE, "text": HOSTILE})
        sent = evolve(ENVELOPE, subject=HOSTILE, from_name=HOSTILE, from_address=HOSTILE)
        named = AttachmentInfo(AttachmentId("a-1"), HOSTILE, HOSTILE, 1)
        file(self.rig, sent, [(named, b"x")])
        answer = self.answered(handle, "nothing", note=HOSTILE)
        pages = [answer] + [
            self.browser.get(path)
            for path in (
                "/inbox",
                self.card(handle),
                self.card(ended),
                f"/inbox/rows/{handle['questionId']}",
                "/inbox/sessions",
                "/inbox/history",
                "/inbox/history?q=%3Cscript%3E%22%27%3E",
                "/inbox/mail",
                "/inbox/settings",
                "/inbox/%3Cscript%3E",
                "/login?to=%22%3E%3Cscript%3E",
            )
        ]
        seen = 0
        for page in pages:
            text = page.body.decode()
            seen += text.count("&lt;script&gt;")
            tags = Tags()
            tags.feed(text)
            for name, attributes in tags.found:
                self.assertNotIn(name, {"img", "style", "iframe", "object", "base", "svg"}, text)
                if name == "script":
                    self.assertRegex(attributes.get("src") or "", r"^/static/[\w.-]+$")
                for attribute, value in attributes.items():
                    self.assertNotRegex(attribute, r"(?i)^on|^hx-on|^style$", text)
                    if attribute in {"href", "src", "action"}:
                        self.assertRegex(value or "", r"^(/|#|https?://)", text)
        self.assertGreater(seen, 20)
        self.assertIn("file </bdi><script>", self.browser.text("/inbox/mail"))


class Tags(HTMLParser):
    """The tags of a page, as a browser takes them apart."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one."""
        self.found.append((tag, dict(attrs)))
