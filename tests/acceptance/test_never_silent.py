"""Through a real Dovecot: a person's mail is never met with silence, commands by mail, bounces, files."""

import json
import subprocess
import sys
from email.message import EmailMessage
from pathlib import Path

from tests.acceptance.harness import AGENT, RESULTS, ROBIN, Asked, WorldTestCase
from tests.fakes.smtp_sink import Received
from tests.flows.test_bounces import report


def text_of(received: Received) -> str:
    """The plain text of a mail, on one line."""
    body = received.mail.get_body(("plain",))
    assert body is not None
    return " ".join(body.get_content().split())


COMMAND = "from mailgateway.cli.main import main; main()"


class NeverSilentTests(WorldTestCase):
    """One service for all: what people hear, and what is seen of their mail."""

    def answer_to(self, message_id: str) -> Received:
        """Wait for the gateway's own answer to a mail."""
        return self.sink.wait(lambda mail: mail.mail["In-Reply-To"] == message_id)

    def answers(self) -> list[EmailMessage]:
        """Every answer of the gateway's own."""
        return [each.mail for each in self.sink.mails if each.mail["Auto-Submitted"] == "auto-replied"]

    def cli(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run the command as a person at this machine does."""
        return subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments, "--config", str(self.config)],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            cwd=self.folder,
        )

    @property
    def config(self) -> Path:
        """The settings file."""
        return self.gateway.folder / "mailgateway.toml"

    def test_an_empty_reply_is_answered_in_its_thread(self) -> None:
        """The person hears why, once a day, can reply to that, and sees each step of the reply."""
        asked = self.ask()
        empty = self.deliver_reply(asked, "")
        answer = self.answer_to(empty)
        self.assertEqual(answer.recipients, (ROBIN,))
        self.assertIn("no words of yours", text_of(answer))
        self.deliver_reply(asked, "")
        self.wait_fates(("empty", "routed"), ("empty", "routed"))
        to_the_answer = Asked(asked.session, asked.instance, answer)
        words = self.deliver_reply(to_the_answer, "SQLite")
        delivery = self.poll(asked)
        self.assertEqual(self.words(delivery), "SQLite")
        self.wait_fates(("empty", "routed"), ("empty", "routed"), ("delivered", "delivered"))
        self.take(asked, delivery)
        self.wait_seen(words)
        self.wait_fates(("empty", "routed"), ("empty", "routed"), ("delivered", "acked"))
        self.assertEqual(self.fates()[-1].get("deliveryId"), delivery["id"])
        self.assertEqual(len(self.answers()), 1)
        self.assertFalse(self.seen(empty))

    def test_a_crash_says_nothing_twice(self) -> None:
        """Killed after the answer was queued: the next life sends it, and does not read the mail anew."""
        asked = self.ask()
        self.gateway.kill()
        empty = self.deliver_reply(asked, "")
        self.gateway.fault = "receive.receive:after-commit"
        self.gateway.launch()
        self.gateway.wait_killed()
        self.gateway.start()
        self.answer_to(empty)
        self.gateway.kill()
        self.gateway.start()
        self.dovecot.wait_idle(AGENT)
        self.deliver_reply(asked, "SQLite")
        self.assertEqual(self.words(self.poll(asked)), "SQLite")
        self.assertEqual(len(self.answers()), 1)

    def test_commands(self) -> None:
        """Off keeps what comes behind it, on hands it out; strangers command nothing and hear nothing."""
        asked = self.ask()
        raw, _ = self.reply(
            asked, "/off", results="mx.example.org; dkim=fail; dmarc=fail header.from=example.net"
        )
        self.dovecot.deliver(AGENT, raw, "eve@evil.example")
        off = self.deliver_reply(asked, "/OFF")
        answer = self.answer_to(off)
        self.assertIn("is off", text_of(answer))
        self.assertEqual(self.gateway.client.mode(), "off")
        self.wait_seen(off)
        self.deliver_reply(asked, "SQLite")
        self.wait_fates(("forged", "received"), ("command", "acked"), ("delivered", "delivered"))
        self.assert_nothing_pending(asked)
        on = self.deliver_reply(asked, "/on")
        self.answer_to(on)
        self.assertEqual(self.words(self.poll(asked)), "SQLite")
        self.assertEqual(len(self.answers()), 2)

    def test_a_bounce_reaches_the_waiting_session(self) -> None:
        """The one whom it asked has no mailbox: the session hears it, in our words."""
        asked = self.ask()
        self.dovecot.deliver(AGENT, report(str(asked.question["Message-ID"]), recipient=ROBIN), "")
        delivery = self.poll(asked)
        self.assertEqual(delivery["kind"], "notice")
        self.assertIn(f"to {ROBIN} could not be delivered: the mailbox does not exist", delivery["body"])
        self.assertNotIn("Ignore", delivery["rendered"])
        self.gateway.client.register(asked.session, asked.instance)

    def test_files(self) -> None:
        """A file is listed, and written for the session by the command; what is not kept is named."""
        asked = self.ask()
        question = asked.question
        reply = EmailMessage()
        reply["From"], reply["To"] = ROBIN, AGENT
        reply["Subject"] = f"Re: {question['Subject']}"
        reply["In-Reply-To"] = question["Message-ID"]
        reply["Message-ID"] = "<files@example.net>"
        reply.set_content("see the notes")
        reply.add_attachment(b"# notes", maintype="text", subtype="markdown", filename="../notes.md")
        reply.add_attachment(b"MZ", maintype="application", subtype="octet-stream", filename="setup.exe")
        mail = f"Authentication-Results: {RESULTS}\r\n".encode() + reply.as_bytes().replace(b"\n", b"\r\n")
        self.dovecot.deliver(AGENT, mail, ROBIN)
        delivery = self.poll(asked)
        self.assertEqual([each["filename"] for each in delivery["attachments"]], ["notes.md"])
        self.assertEqual([each["reason"] for each in delivery["leftOut"]], ["program"])
        for _ in range(2):
            done = self.cli(
                "attachments", delivery["id"], "--to", "files", "--session", asked.session, "--json"
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        paths = [Path(self.folder, each["path"]) for each in json.loads(done.stdout)["files"]]
        self.assertEqual([path.name for path in paths], ["notes (2).md"])
        self.assertEqual(paths[0].read_bytes(), b"# notes")
        self.assertEqual(paths[0].stat().st_mode & 0o777, 0o600)
        status = self.cli("status")
        self.assertIn("delivered", status.stdout, status.stderr)
        self.assertIn(ROBIN, status.stdout)
