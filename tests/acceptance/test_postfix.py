"""A real mail server of another make, with its queue, between the service, the person, and the mailbox."""

import contextlib
import os
import shutil
import smtplib
import socket
import ssl
import tempfile
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

from twisted.trial.unittest import TestCase

from mailgateway.client.answers import Delivery
from mailgateway.demo.person import reply_to
from mailgateway.errors import LoginRefused, LoginUnavailable, TlsRefused
from mailgateway.protocols import smtp
from mailgateway.protocols.dial import Peer
from mailgateway.settings import Tls
from mailgateway.wire.sasl import Password
from mailgateway.wire.smtp_outcome import Accepted, Outcome, Rejected
from mailgateway.wire.submission import Submission
from tests.acceptance.harness import AGENT, PASSWORD, RESULTS, ROBIN, Asked, WorldTestCase
from tests.cli.test_setup import Terminal
from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot, eventually, require_dovecot
from tests.fakes.postfix import REWRITTEN, SMALL, Postfix, require_postfix
from tests.fakes.smtp_sink import Received, SmtpSink

DOMAINS = ("example.org", "example.net")


class WalkCase(WorldTestCase):
    """The service at a Postfix that delivers to both: to the agents' mailbox, and to Robin's."""

    imap_tls = "implicit"
    port = "submission"

    def setUp(self) -> None:
        require_postfix()
        super().setUp()

    def make_sink(self) -> SmtpSink:
        """Put Postfix in its place: nothing comes to the sink."""
        self.dovecot.users = {AGENT: PASSWORD, ROBIN: PASSWORD}
        self.postfix = Postfix(self.folder / "postfix", self.dovecot, self.authority, DOMAINS, ROBIN, RESULTS)
        return super().make_sink()

    def make_settings(self) -> dict[str, dict[str, object]]:
        """Send by Postfix."""
        settings = super().make_settings()
        settings["accounts.main.smtp"] = {
            "host": "localhost",
            "port": self.postfix.ports[self.port],
            "tls": "implicit" if self.port == "smtps" else "starttls",
            "ca_file": str(self.authority.anchor),
            "password_file": str(self.folder / "password"),
        }
        return settings

    def start_watching(self) -> None:
        """Start Postfix before the service."""
        self.addCleanup(self.postfix.stop)
        self.postfix.start()
        super().start_watching()

    def came(self, user: str, name: str, text: str) -> EmailMessage:
        """Wait for a mail in somebody's inbox by a header field."""

        def found() -> EmailMessage | None:
            with self.dovecot.client(user) as client:
                _, data = client.uid("SEARCH", f'HEADER {name} "{text}"')
                if not data or not data[0]:
                    return None
                _, parts = client.uid("FETCH", data[0].split()[0].decode(), "(BODY.PEEK[])")
            return next(
                message_from_bytes(part[1], policy=policy.default)
                for part in parts
                if isinstance(part, tuple)
            )

        return eventually(f"a mail with {name}: {text} came to {user}", found)

    def ask(self, subject: str = "Which database?") -> Asked:
        """Let a new session ask; the question as it lies in Robin's mailbox."""
        self.sessions += 1
        session, instance = f"session-{self.sessions}", f"instance-{self.sessions}"
        self.gateway.client.ping(session, instance, title="acceptance")
        self.sent = self.gateway.client.send("decision", session, subject, "SQLite or PostgreSQL?")
        mail = self.came(ROBIN, "X-Mailgateway-Id", self.sent["outboxId"])
        return Asked(session, instance, Received(AGENT, (ROBIN,), mail.as_bytes(), AGENT, "", encrypted=True))

    def answer(self, asked: Asked, typed: str, *, subject: str = "") -> EmailMessage:
        """Let Robin's mail program send a reply by its own login."""
        reply = reply_to(asked.question, typed, "Robin", ROBIN, datetime.now(UTC))
        if subject:
            reply.replace_header("Subject", subject)
        trust = ssl.create_default_context(cafile=str(self.authority.anchor))
        with smtplib.SMTP("localhost", self.postfix.ports["submission"], timeout=20) as client:
            client.starttls(context=trust)
            client.login(ROBIN, PASSWORD)
            client.send_message(reply)
        return reply

    def taken(self, asked: Asked) -> Delivery:
        """Wait for the delivery, and take it over."""
        delivery = self.poll(asked)
        self.take(asked, delivery)
        return delivery


class WalkTests(WalkCase):
    """By STARTTLS."""

    def test_question_reply_ack(self) -> None:
        """A question goes out with a login over TLS; the reply comes back the same way, and is acked."""
        asked = self.ask()
        self.assertEqual(asked.question["Message-ID"], self.sent["messageId"])
        self.assertEqual(self.postfix.logins(AGENT), 1)
        received = str(asked.question["Received"])
        self.assertIn("ESMTPSA", received, "encrypted, and after a login")
        reply = self.answer(asked, "PostgreSQL, please.")
        delivery = self.taken(asked)
        self.assertEqual(self.words(delivery), "PostgreSQL, please.")
        self.wait_seen(str(reply["Message-ID"]))
        self.assert_nothing_pending(asked)
        self.assertEqual(self.postfix.refusals(), 0)

    def test_smoke_beside_the_service(self) -> None:
        """Both halves are timed, the plus-address works, and the service takes it for no answer."""
        status, told = self.gateway.run_verb("smoke", "--plus")
        self.assertEqual((status, told["ok"]), (0, True), told)
        account = told["accounts"][0]
        self.assertEqual((account["folder"], account["junk"], account["plusAddress"]), ("INBOX", False, True))
        self.assertFalse(account["rewritten"])
        self.assertIsNone(account["authservId"])
        for half in ("sentSeconds", "backSeconds"):
            self.assertTrue(0 <= account[half] < 20, account)
        asked = self.ask()
        self.answer(asked, "SQLite.")
        self.assertEqual(self.words(self.taken(asked)), "SQLite.")
        self.assertEqual([fate["from"] for fate in self.fates() if fate["step"] == "delivered"], [])
        self.assertEqual({fate["verdict"] for fate in self.fates() if fate["from"] == AGENT} - {"own"}, set())
        self.assertFalse(self.seen(account["messageId"]), "nothing flags it")

    def test_operators_tools_in_a_terminal(self) -> None:
        """What each does is shown line by line; nothing refused, and no secret on the screen."""
        environment = {**os.environ, "HOME": str(self.folder / "home"), "TERM": "dumb"}
        config = str(self.gateway.folder / "mailgateway.toml")
        for verb, last in (
            ("check", "main smtp login"),
            ("smoke", "main arrival"),
            ("doctor", "main arrival"),
        ):
            terminal = Terminal([verb, "--config", config], environment).start()
            terminal.wait_for(last)
            self.assertEqual(terminal.end(), 0, terminal.read)
            self.assertNotIn(PASSWORD, terminal.read)
        self.assertEqual(self.postfix.refusals(), 0)


class ImplicitTests(WalkCase):
    """By TLS from the first byte."""

    port = "smtps"

    def test_question_and_reply(self) -> None:
        """The same walk."""
        asked = self.ask()
        self.answer(asked, "SQLite.")
        self.assertEqual(self.words(self.taken(asked)), "SQLite.")


class RewritingTests(WalkCase):
    """A hop that gives every mail another Message-ID, and does not tell."""

    port = "rewriting"

    def test_reply_to_an_unknown_id(self) -> None:
        """The tag leads to the session where the id does not; without both nobody gets it."""
        asked = self.ask()
        self.assertTrue(str(asked.question["Message-ID"]).endswith(f"@{REWRITTEN}>"), asked.question)
        self.assertEqual(asked.question["X-Mailgateway-Id"], self.sent["outboxId"])
        reply = self.answer(asked, "By the tag.")
        self.assertNotIn(self.sent["messageId"], str(reply))
        self.assertEqual(self.words(self.taken(asked)), "By the tag.")
        self.answer(asked, "By nothing at all.", subject="Re: something")
        eventually("the second reply was looked at", lambda: len(self.fates()) >= 2)
        self.assert_nothing_pending(asked)

    def test_smoke_tells(self) -> None:
        """It is known by our own field, and the other id is told."""
        status, told = self.gateway.run_verb("smoke")
        self.assertEqual(status, 0, told)
        account = told["accounts"][0]
        self.assertTrue(account["rewritten"])
        self.assertTrue(account["seenMessageId"].endswith(f"@{REWRITTEN}>"))
        found = next(each for each in told["findings"] if each["step"] == "main message-id")
        self.assertIn("tag in the subject", found["advice"])


class HabitTests(TestCase):
    """What one server refuses or does not offer, met by the client itself."""

    def setUp(self) -> None:
        require_postfix()
        require_dovecot()
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        self.authority = Authority.make(self.folder / "ca")
        self.dovecot = Dovecot(self.folder / "dovecot", {AGENT: PASSWORD}, self.authority)
        self.addCleanup(self.dovecot.stop, hard=True)
        self.dovecot.start()
        self.postfix = Postfix(self.folder / "postfix", self.dovecot, self.authority, DOMAINS)
        self.addCleanup(self.postfix.stop)
        self.postfix.start()

    async def connect(self, port: str, password: str = PASSWORD) -> smtp.SmtpConnection:
        """Log in at one of the ports."""
        from twisted.internet import reactor  # noqa: PLC0415 (sockets need the real one)

        peer = Peer("localhost", self.postfix.ports[port], Tls.STARTTLS, self.authority.anchor.read_bytes())
        return await smtp.connect(reactor, peer, Password(AGENT, password), socket.gethostname(), 20)

    async def hand_over(self, port: str, body: bytes, to: str = AGENT) -> Outcome:
        """Hand one mail over, and leave."""
        connection = await self.connect(port)
        head = b"From: agent@example.org\r\nSubject: x\r\nMessage-ID: <a@example.org>\r\n\r\n"
        result = await connection.send(Submission(AGENT, (to,), head + body))
        await connection.quit()
        return result.outcomes[0]

    async def test_sizes(self) -> None:
        """A size that was announced is kept to without asking; one that was not is told by 552."""
        large = b"words of some length\r\n" * (SMALL // 10)
        announced = await self.hand_over("small", large)
        self.assertIsInstance(announced, Rejected)
        self.assertIn(f"takes at most {SMALL}", str(announced))
        unsaid = await self.hand_over("small_unsaid", large)
        self.assertIsInstance(unsaid, Rejected)
        self.assertEqual(getattr(unsaid, "code", 0), 552)
        self.assertIsInstance(await self.hand_over("small", b"short\r\n"), Accepted)

    async def test_without_extensions(self) -> None:
        """Plain mail needs neither 8BITMIME nor SMTPUTF8; an address that needs SMTPUTF8 is refused."""
        connection = await self.connect("old")
        self.assertFalse(connection.offered.utf8)
        await connection.quit()
        self.assertIsInstance(await self.hand_over("old", b".dot\r\n..\r\nend\r\n"), Accepted)
        refused = await self.hand_over("old", b"x\r\n", to="r\u00f6bin@example.org")
        self.assertIsInstance(refused, Rejected)
        self.assertEqual(getattr(refused, "code", 0), 553)

    async def test_no_way_in(self) -> None:
        """STARTTLS missing, AUTH missing, and a wrong password: three errors, and one try at the last."""
        with self.assertRaises(TlsRefused):
            await self.connect("without_tls")
        with self.assertRaises(LoginUnavailable):
            await self.connect("without_auth")
        self.assertEqual(self.postfix.refusals(), 0)
        with self.assertRaises(LoginRefused):
            await self.connect("submission", "wrong")
        eventually("the refusal is in the log", lambda: self.postfix.refusals() == 1)

    async def test_nothing_is_left(self) -> None:
        """After its end no process of it runs and no port answers; before, it listens on loopback alone."""
        for port in self.postfix.ports.values():
            self.assertRegex(_sockets(), rf"(?m)^ *\d+: 0100007F:{port:04X} 00000000:0000 0A ")
        self.assertNotEqual(_working_in(self.folder / "postfix"), [])
        self.postfix.stop()
        self.assertEqual(_working_in(self.folder / "postfix"), [])
        for port in self.postfix.ports.values():
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5)


def _sockets() -> str:
    """The TCP sockets of this machine, as the kernel lists them."""
    return Path("/proc/net/tcp").read_text("ascii")


def _working_in(folder: Path) -> list[int]:
    """The processes whose working directory lies in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cwd").readlink().is_relative_to(folder):
                    found.append(int(entry.name))
    return found
