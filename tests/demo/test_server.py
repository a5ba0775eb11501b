"""The embedded servers against the standard library's clients, and the person against the servers.

The clients of the standard library block, so they run on a thread while the servers run on the reactor.
"""

import imaplib
import re
import smtplib
from collections.abc import Callable
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, TypeVar

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from mailgateway.demo.mailbox import SEEN
from mailgateway.demo.person import Person, reply_to
from mailgateway.demo.server import AUTHSERV_ID, MailServer, stamped

AGENT, ROBIN = "agent@example.org", "robin@example.net"
USERS = {AGENT: "sesame one", ROBIN: "sesame two"}
T = TypeVar("T")


def mail(sender: str = AGENT, recipient: str = ROBIN, subject: str = "[mg:f913c9] Shall I?") -> bytes:
    """Make a question."""
    question = EmailMessage(policy=policy.SMTP)
    question["From"] = f"Coding agents <{sender}>"
    question["To"] = recipient
    question["Subject"] = subject
    question["Date"] = "Mon, 30 Nov 2026 20:15:00 +0000"
    question["Message-ID"] = "<mg.f913c9.x.12345678@example.org>"
    question.set_content("Shall I deploy?\n\n.with a dot\n")
    return question.as_bytes()


class ServerTests(TestCase):
    """IMAP and SMTP on real sockets."""

    timeout = 30

    def setUp(self) -> None:
        self.server = MailServer(USERS)
        self.server.start(reactor)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.server.stop()))

    async def imap(self, work: Callable[[imaplib.IMAP4], T], user: str = ROBIN) -> T:
        """Run blocking work with a logged-in client."""

        def blocking() -> T:
            with imaplib.IMAP4("127.0.0.1", self.server.imap_port, timeout=10) as client:
                client.login(user, USERS[user])
                client.select("INBOX")
                return work(client)

        return await deferToThread(blocking)

    async def submit(self, raw: bytes, user: str = AGENT, password: str = "", recipient: str = ROBIN) -> Any:
        """Submit a mail; the refusal when it is refused."""

        def blocking() -> Any:
            with smtplib.SMTP("127.0.0.1", self.server.smtp_port, timeout=10) as client:
                try:
                    client.login(user, password or USERS[user])
                    return client.sendmail(AGENT, [recipient], raw)
                except smtplib.SMTPException as refusal:
                    return refusal

        return await deferToThread(blocking)

    async def test_a_mail_goes_from_one_mailbox_to_the_other(self) -> None:
        """What was submitted is read byte for byte below the two fields that the server wrote on top."""
        self.assertEqual(await self.submit(mail()), {})
        _, data = await self.imap(lambda c: c.uid("FETCH", "1:*", "(UID FLAGS RFC822.SIZE BODY.PEEK[])"))
        raw = data[0][1]
        self.assertTrue(raw.endswith(mail()))
        self.assertTrue(
            raw.startswith(b"Authentication-Results: mx.demo.example; dkim=pass header.d=example.org;")
        )
        self.assertIn(b"RFC822.SIZE %d" % len(raw), data[0][0])
        self.assertNotIn(SEEN, self.server.mailboxes[ROBIN].letters[0].flags)

    async def test_header_fields_come_from_the_raw_bytes(self) -> None:
        """Doubled fields are all there, in their case and order, and a part of a body is that part."""
        self.server.mailboxes[ROBIN].file(
            b"Received: 1\r\nReceived: 2\r\n folded\r\nsUBJECT: a\r\nX: y\r\n\r\nbody"
        )

        def ask(client: imaplib.IMAP4) -> list[Any]:
            asked = ["BODY.PEEK[HEADER.FIELDS (Received Subject)]", "BODY.PEEK[HEADER.FIELDS.NOT (Received)]"]
            asked += ["BODY.PEEK[HEADER]", "BODY.PEEK[]<2.7>", "BODY.PEEK[TEXT]"]
            return [client.uid("FETCH", "1", f"({item})")[1][0] for item in asked]

        some, others, header, piece, text = await self.imap(ask)
        self.assertEqual(some[1], b"Received: 1\r\nReceived: 2\r\n folded\r\nsUBJECT: a\r\n\r\n")
        self.assertIn(b"BODY[HEADER.FIELDS (Received Subject)]", some[0])
        self.assertEqual(others[1], b"sUBJECT: a\r\nX: y\r\n\r\n")
        self.assertTrue(header[1].endswith(b"X: y\r\n\r\n"))
        self.assertEqual((piece[1], b"BODY[]<2> {7}" in piece[0]), (b"ceived:", True))
        self.assertEqual(text[1], b"body")

    async def test_what_a_watching_client_asks(self) -> None:
        """SELECT tells the numbering, a search finds by UID, a flag can be set, IDLE is offered."""
        self.server.mailboxes[ROBIN].file(mail())

        def ask(client: imaplib.IMAP4) -> list[Any]:
            numbers = [client.response(name)[1] for name in ("UIDVALIDITY", "UIDNEXT")]
            found = client.uid("SEARCH", "UID 1:5")[1]
            client.uid("STORE", "1", "+FLAGS.SILENT", "(\\Seen)")
            return [*numbers, found, "IDLE" in client.capabilities]

        self.assertEqual(await self.imap(ask), [[b"1002"], [b"2"], [b"1"], True])
        self.assertIn(SEEN, self.server.mailboxes[ROBIN].letters[0].flags)

    async def test_who_may_not(self) -> None:
        """A wrong password, a strange recipient and another's address are refused, and nothing is filed."""
        wrong = await self.submit(mail(), password="wrong")
        self.assertEqual((type(wrong), wrong.smtp_code), (smtplib.SMTPAuthenticationError, 535))
        strange = await self.submit(mail(), recipient="stranger@example.com")
        self.assertIsInstance(strange, smtplib.SMTPRecipientsRefused)
        other = await self.submit(mail(), user=ROBIN)
        self.assertEqual((type(other), other.smtp_code), (smtplib.SMTPSenderRefused, 550))

        def login() -> str:
            with imaplib.IMAP4("127.0.0.1", self.server.imap_port, timeout=10) as client:
                try:
                    client.login(AGENT, "wrong")
                except imaplib.IMAP4.error as refusal:
                    return str(refusal)
            return "logged in"

        self.assertIn("LOGIN failed", await deferToThread(login))
        self.assertEqual([box.letters for box in self.server.mailboxes.values()], [[], []])

    async def test_a_person_reads_and_answers(self) -> None:
        """The mail program wakes from IDLE, reads the question, and its reply reaches the other mailbox."""
        robin = Person(reactor, ROBIN, "Robin", USERS[ROBIN], self.server.imap_port, self.server.smtp_port)
        await robin.open()
        try:
            arriving = Deferred.fromCoroutine(robin.next_mail(lambda m: "mg:" in m["Subject"]))
            await self.submit(mail(subject="something else"))
            await self.submit(mail())
            question = await arriving
            self.assertEqual(question["Subject"], "[mg:f913c9] Shall I?")
            answer = await robin.answer(question, "yes, do it")
        finally:
            await robin.close()
        self.assertEqual(
            [SEEN in letter.flags for letter in self.server.mailboxes[ROBIN].letters], [True, True]
        )
        self.assertEqual(answer.subject, "Re: [mg:f913c9] Shall I?")
        (letter,) = self.server.mailboxes[AGENT].letters
        filed = message_from_bytes(letter.raw, policy=policy.default)
        assert isinstance(filed, EmailMessage)
        body = filed.get_body(("plain",))
        assert body is not None
        self.assertTrue(
            body.get_content().startswith("yes, do it\r\n\r\nOn Mon, Nov 30, 2026 at 08:15 PM Coding")
        )
        self.assertIn("\n> Shall I deploy?", body.get_content().replace("\r\n", "\n"))
        self.assertEqual(filed["In-Reply-To"], question["Message-ID"])
        results = re.sub(r"\s+", " ", filed["Authentication-Results"])
        self.assertEqual(
            results, f"{AUTHSERV_ID}; dkim=pass header.d=example.net; dmarc=pass header.from=example.net"
        )

    async def test_a_lost_connection_wakes_the_person(self) -> None:
        """When the server goes, the wait ends with a failure and not never."""
        robin = Person(reactor, ROBIN, "Robin", USERS[ROBIN], self.server.imap_port, self.server.smtp_port)
        await robin.open()
        arriving: Deferred[Any] = Deferred.fromCoroutine(robin.next_mail())
        await self.imap(lambda client: client.noop(), user=AGENT)  # by now the person has entered IDLE
        await self.server.stop()
        ended: list[Failure] = []
        await arriving.addErrback(ended.append)
        self.assertEqual(len(ended), 1)


class StampTests(SynchronousTestCase):
    """The server's verdict on a sender."""

    def test_only_the_own_address_passes(self) -> None:
        """Another From, two of them or none is told as a failure."""
        for field in (b"From: boss@example.com\r\n", b"From: robin@example.net\r\nFrom: x@y.z\r\n", b""):
            top = stamped(field + b"\r\nbody", ROBIN).split(b"\r\n")[0]
            self.assertIn(b"dkim=none; dmarc=fail", top)
        self.assertIn(b"dkim=pass", stamped(b"From: robin@example.net\r\n\r\n", ROBIN).split(b"\r\n")[0])

    def test_verdicts_in_our_name_are_taken_away(self) -> None:
        """A sender cannot bring a field that says our name; those of others stay."""
        forged = b"authentication-RESULTS:  MX.demo.example;\r\n\tdkim=pass\r\n"
        forged += b"Authentication-Results: other; a=b\r\n"
        raw = stamped(
            forged + b"Subject: x\r\n\r\nAuthentication-Results: mx.demo.example; in the body", ROBIN
        )
        self.assertEqual(raw.lower().count(b"mx.demo.example; dkim=pass"), 0)
        self.assertIn(b"\r\nAuthentication-Results: other; a=b\r\nSubject: x\r\n\r\n", raw)
        self.assertTrue(raw.endswith(b"in the body"))


class ReplyTests(SynchronousTestCase):
    """What the person writes."""

    def test_subjects_and_threads(self) -> None:
        """An answer to an answer keeps its subject, and its References grow."""
        question = EmailMessage()
        question.set_content("Shall I?")
        question["Subject"], question["From"], question["Message-ID"] = "RE: x", "a@b.example", "<2@b>"
        question["References"], question["Reply-To"] = "<1@b>", "c@b.example"
        reply = reply_to(question, "ok <b>", "Robin", ROBIN, datetime(2026, 11, 30, tzinfo=UTC))
        self.assertEqual((reply["Subject"], reply["To"]), ("RE: x", "c@b.example"))
        self.assertEqual(reply["References"], "<1@b> <2@b>")
        self.assertIn("ok &lt;b&gt;", reply.as_string())
