"""``smoke`` at servers that follow a script: each way in which a mail may not come back has its sentence."""

from typing import Any

from mailgateway.operator.arrival import Arrival, arrival_of
from mailgateway.operator.findings import State
from mailgateway.operator.smoke import smoke, why_not_back
from mailgateway.operator.smoked import Smoked
from mailgateway.providers import of_imap
from mailgateway.settings import Settings
from tests.fakes.smtp_script import DROP
from tests.operator.mail_world import ADDRESS, PASSWORD, WorldCase, reactor

RESULTS = b"Authentication-Results: mx.example.org; dkim=pass header.d=example.org\r\n"


class SmokeTests(WorldCase):
    """One account, both servers, and a mailbox into which a test puts what was sent."""

    above = b""
    """What the receiving server puts on top of a mail."""
    lost = False
    host = b""
    """By what the submission server replaces the first word of a Message-ID."""

    async def smoke(self, settings: Settings | None = None, **more: Any) -> Smoked:
        """Send, and let what is sent come in; hold what is always so."""
        settings = settings or self.settings()
        deliver = self.deliver

        class Delivering(list[Any]):
            """Puts what the submission server takes into the mailbox."""

            def append(self, mail: Any) -> None:
                super().append(mail)
                deliver(mail.message)

        self.smtp.taken = Delivering()
        account = settings.accounts[next(iter(settings.accounts))]
        told = await smoke(reactor, settings, account, self.told.append, **{"seconds": 0.2, **more})
        self.assertEqual(
            list(told.findings), [each for each in self.told if each.state is not State.UNDERWAY]
        )
        self.assertNotIn(PASSWORD, self.said())
        for each in told.findings:
            if each.state is State.FAILED:
                self.assertTrue(each.advice, each)
        return told

    def deliver(self, raw: bytes) -> None:
        """Deliver a mail as the test wants it."""
        if self.host:
            raw = raw.replace(b"Message-ID: <smoke.", b"Message-ID: <" + self.host)
        if not self.lost:
            self.imap.mails.append(self.above + raw)

    async def test_there_and_back(self) -> None:
        """It is told where it lies, and what stands on it; other mail is left alone."""
        self.imap.mails.append(b"Subject: old\r\nX-Mailgateway-Id: other\r\n\r\nold\r\n")
        self.above = RESULTS + b"Received: by mx.example.org; Mon, 1 Dec 2025 00:00:00 +0000\r\n"
        told = await self.smoke()
        self.assertEqual((told.folder, told.junk, told.rewritten), ("INBOX", False, False), self.said())
        self.assertEqual((told.authserv_id, told.results_above, told.plus), ("mx.example.org", True, None))
        self.assertEqual(self.failures(), [])
        self.assertEqual([each.recipients for each in self.smtp.taken], [[ADDRESS]])
        self.assertEqual(set(self.imap.verbs) & {"STORE", "COPY", "MOVE", "EXPUNGE", "SELECT"}, set())
        self.assertEqual((self.imap.verbs.count("AUTHENTICATE"), self.smtp.logins), (1, 1))

    async def test_another_id(self) -> None:
        """A server that rewrites Message-IDs is found out, since the mail is known by our own field."""
        self.host = b"host."
        told = await self.smoke()
        self.assertTrue(told.rewritten)
        self.assertIn("tag in the subject", self.only("main message-id").advice)
        self.assertIs(told.as_dict()["rewritten"], True)

    async def test_it_does_not_come(self) -> None:
        """The time is over: that is a failure with what to do, and nothing else is said of it."""
        self.lost = True
        told = await self.smoke()
        self.assertEqual(self.failures(), ["main arrival"])
        self.assertEqual((told.folder, told.back_seconds), ("", None))
        self.assertIn("filter", self.only("main arrival").advice)

    async def test_a_provider_that_hides_it(self) -> None:
        """Where mail to oneself is not shown, its absence is called no proof."""
        self.assertIn("says nothing of mail from others", why_not_back(of_imap("imap.gmail.com")))
        self.assertNotIn("Gmail", why_not_back(of_imap("mail.example.org")))

    async def test_the_plus_address(self) -> None:
        """Mail to it that comes is told; one that the server refuses says what to set."""
        self.smtp.answer("RCPT", "250 ok", "550 5.1.1 no such user")
        told = await self.smoke(plus=True)
        self.assertEqual(told.plus, False)
        self.assertEqual(self.failures(), ["main plus-address"])
        self.assertEqual(told.folder, "INBOX")

    async def test_refusals(self) -> None:
        """A refused mail is not sent again; a refused login ends it before the other server."""
        self.smtp.answer("MAIL", "550 5.7.60 not yours")
        await self.smoke()
        self.assertEqual((self.failures(), self.smtp.taken), (["main sending"], []))
        self.told.clear()
        self.smtp.answer("LOGIN", "535 5.7.8 wrong")
        await self.smoke()
        self.assertEqual(self.failures(), ["main smtp login"])
        self.told.clear()
        before = self.smtp.connections
        self.imap.login = b"NO [AUTHENTICATIONFAILED] wrong"
        await self.smoke()
        self.assertEqual((self.failures(), self.smtp.connections), (["main imap login"], before))

    async def test_silence_after_the_dot(self) -> None:
        """It may be under way: it is looked for, and not sent again."""
        self.smtp.answer("END", DROP)
        await self.smoke()
        self.assertEqual(self.only("main sending").state, State.WARNING)
        self.assertEqual(self.smtp.verbs().count("DATA"), 1)


class ArrivalTests(WorldCase):
    """What a header shows."""

    def test_who_speaks(self) -> None:
        """The outermost results count, and where they stand."""
        received = b"Received: by mx; Mon, 1 Dec 2025 00:00:00 +0000\r\n"
        tail = b"Message-ID: <a@b>\r\n\r\nAuthentication-Results: body; none\r\n"
        for raw, wanted in (
            (RESULTS + received + tail, Arrival("<a@b>", "mx.example.org", above=True)),
            (received + RESULTS + tail, Arrival("<a@b>", "mx.example.org", above=False)),
            (received + tail, Arrival("<a@b>", None, above=False)),
            (b"Authentication-Results: (nobody\r\n" + tail, Arrival("<a@b>", "", above=True)),
        ):
            self.assertEqual(arrival_of(raw), wanted)
