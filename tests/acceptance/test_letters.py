"""Mails of the running service: what arrives, and that one tap on an option answers the question."""

import re
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.acceptance.harness import AGENT, RESULTS, ROBIN, Asked, WorldTestCase
from tests.mail.letters import picture

PUBLIC = "https://gateway.example.org"


def page_of(mail: EmailMessage) -> str:
    """The page of a mail."""
    body = mail.get_body(("html",))
    assert body is not None
    return str(body.get_content())


def tapped(link: str) -> bytes:
    """What a person's program sends for a link: a new mail, no reply."""
    parts = urlsplit(link)
    fields = dict(piece.split("=", 1) for piece in parts.query.split("&"))
    mail = EmailMessage()
    mail["From"], mail["To"] = f"Robin <{ROBIN}>", unquote(parts.path)
    mail["Subject"] = unquote(fields["subject"])
    mail["Date"], mail["Message-ID"] = format_datetime(datetime.now(UTC)), "<tap@example.net>"
    mail.set_content(unquote(fields["body"]) + "Sent from my iPhone\n")
    return f"Authentication-Results: {RESULTS}\r\n".encode() + mail.as_bytes().replace(b"\n", b"\r\n")


class LetterTests(WorldTestCase):
    """Over the wire."""

    def make_settings(self) -> dict[str, dict[str, object]]:
        """With plus-addresses and a public address."""
        settings = super().make_settings()
        settings["accounts.main"]["plus_address"] = True
        settings["daemon"] = {"public_url": PUBLIC}
        return settings

    def test_a_tap_answers_the_question(self) -> None:
        """The link's mail goes to the plus-address, and the session reads the option that was tapped."""
        session, instance = "session-tap", "instance-tap"
        client = self.gateway.client
        client.ping(session, instance, title="Migration", project="api", branch="main")
        options = ("Keep it", "Größe ändern & löschen", "x" * 300)
        sent = client.send(
            "decision",
            session,
            "Keep the old API?",
            "Two clients use it.",
            options=options,
            recommendation="Keep it",
        )
        received = self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"])
        page = page_of(received.mail)
        route = sent["route"]
        self.assertIn("Migration", page)
        self.assertIn(f'href="{PUBLIC}/inbox/questions/{sent["questionId"]}"', page)
        local, _, domain = AGENT.partition("@")
        self.assertEqual(
            str(received.mail["Reply-To"]).rpartition("<")[2].strip(">"), f"{local}+{route}@{domain}"
        )
        links = [unescape(link) for link in re.findall(r'href="(mailto:[^"]+)"', page)]
        self.assertEqual(len(links), 3)
        self.assertEqual(unquote(urlsplit(links[1]).path), f"{local}+{route}@{domain}")
        self.dovecot.deliver(AGENT, tapped(links[1]), ROBIN)
        delivery = self.poll(Asked(session, instance, received))
        self.assertEqual((delivery["questionId"], delivery["choice"]), (sent["questionId"], options[1]))
        self.assertFalse(delivery.get("note"))

    def test_an_image_is_shown_and_nothing_heavy_is_loaded_before(self) -> None:
        """A service that has sent nothing holds none of the libraries that make mails."""
        client = self.gateway.client
        client.ping("session-i", "instance-i")
        maps = Path(f"/proc/{self.gateway.pid}/maps").read_text(encoding="utf-8")
        self.assertNotIn("css_inline", maps)
        file = client.upload("chart.png", picture(48, 20), "session-i")
        sent = client.send(
            "notification", "session-i", "Chart", f"![The chart](attachment:{file})", attachments=(file,)
        )
        mail = self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"]).mail
        self.assertEqual(
            [part.get_content_type() for part in mail.walk()],
            ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"],
        )
        self.assertIn('alt="The chart"', page_of(mail))
        self.assertIn("css_inline", Path(f"/proc/{self.gateway.pid}/maps").read_text(encoding="utf-8"))
