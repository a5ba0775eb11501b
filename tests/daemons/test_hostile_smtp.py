"""A sender and the habits of real submission servers: what it does over hours, and that no mail comes twice.

The rows are those of the list in ``tests.protocols.test_smtp_rows``.
"""

from datetime import UTC, datetime
from itertools import chain, repeat

from mailgateway.domain.judge import judge
from mailgateway.domain.outbox import OutboxState
from mailgateway.flows import deliver
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.receive import Examined, Window, receive
from tests.daemons.sending import SenderTestCase
from tests.daemons.world import SMTP_PORT
from tests.fakes.smtp_script import DROP, HANG, Script, SmtpServer
from tests.flows.inbound import KEY, OWN, letter
from tests.flows.outbound import ACCOUNT, IDENTITY, S1

DAY = 24 * 3_600
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
WRONG = "535 5.7.8 authentication failed"
UNAVAILABLE = "454 4.7.0 Temporary authentication failure"
CROWDED = "421 4.7.0 Too many connections"


class AlwaysAnswering(SmtpServer):
    """Says the same at one point, each time."""

    point = ""
    words = ""

    def at(self, point: str, usual: str) -> bool:
        if point == self.point:
            self.script.answer(point, self.words)
        return super().at(point, usual)


class Cut(SmtpServer):
    """Hears so many octets, then closes."""

    def __init__(self, script: Script, octets: int) -> None:
        super().__init__(script)
        self.left = octets

    def dataReceived(self, data: bytes) -> None:
        heard, self.left = data[: self.left], max(0, self.left - len(data))
        super().dataReceived(heard)
        if not self.left:
            self.transport.loseConnection()


class LossTests(SenderTestCase):
    """Connections that are lost at any moment."""

    def test_a_connection_that_is_cut_at_any_byte(self) -> None:
        """Row 56: the mail arrives once, wherever the first connection was lost before the server had it."""
        octets, ended = 1, False
        while not ended:
            self.setUp()
            cut = Cut(self.script, octets)
            self.network.servers[SMTP_PORT] = chain([cut], map(SmtpServer, repeat(self.script))).__next__
            sent = self.submit()
            ended = cut.left > 0
            for _ in range(8):
                self.later(200)
            self.assertEqual((self.state(sent), self.copies()), (OutboxState.SENT, 1), octets)
            self.assertEqual(self.script.connections, 1 if ended else 2, octets)
            self.end(self.senders[-1])
            octets += 61
        self.assertGreater(octets, 1_000)


class MailTests(SenderTestCase):
    """Single mails."""

    def test_loss_after_the_final_dot(self) -> None:
        """Row 56: nothing for ten minutes, then the same Message-ID once more, and never a third time."""
        for odd in (DROP, HANG):
            self.setUp()
            self.script.answer("END", odd, odd)
            sent = self.submit()
            self.later(599)
            self.assertEqual(self.copies(), 1, odd)
            for _ in range(50):
                self.later(700)
            self.assertEqual((self.state(sent), self.copies()), (OutboxState.FAILED, 2), odd)
            first, second = (
                [line for line in taken.message.split(b"\r\n") if line.lower().startswith(b"message-id:")]
                for taken in self.script.taken
            )
            self.assertEqual(first, second)
            self.assertEqual(len(first), 1)

    def test_greylisting(self) -> None:
        """Row 57: twice put off, then taken, once; five minutes and then longer."""
        self.script.answer("RCPT", "450 4.2.0 greylisted", "451 4.7.1 try again later")
        sent = self.submit()
        self.later(299)
        self.assertEqual(self.script.connections, 1)
        self.later(31)
        self.assertEqual(self.script.connections, 2)
        self.later(599)
        self.assertEqual(self.script.connections, 2)
        self.later(600)
        self.assertEqual((self.state(sent), self.copies()), (OutboxState.SENT, 1))

    def test_refused_for_good(self) -> None:
        """Row 57: 5xx is told at once and never tried again."""
        self.script.answer("RCPT", "550 5.1.1 no such user")
        sent = self.submit()
        self.assertEqual(self.state(sent), OutboxState.FAILED)
        self.later(DAY)
        self.assertEqual(self.script.connections, 1)

    def test_senders_that_are_not_ours(self) -> None:
        """Row 59: permanent, with the server's own words, and no refusal of the login."""
        for words in (
            "501 mail from address must be same as authorization user",
            "553 5.7.1 sender address rejected: not owned by user",
            "550 5.7.60 SMTP; Client does not have permissions to send as this sender",
        ):
            self.setUp()
            self.script.answer("MAIL", words)
            sent = self.submit()
            self.assertEqual(self.state(sent), OutboxState.FAILED, words)
            self.assertIn(words[4:20], self.row(sent).last_error)
            self.assertEqual(self.run_.smtp.login.refusals, 0)

    def test_the_message_is_too_large(self) -> None:
        """Row 68: announced, the mail is not even begun; refused at the end, it is not tried again."""
        self.script.extensions[0] = "SIZE 100"
        sent = self.submit()
        self.assertEqual((self.state(sent), "MAIL" in self.script.verbs()), (OutboxState.FAILED, False))
        self.setUp()
        self.script.answer("END", "552 5.3.4 message too big")
        sent = self.submit()
        self.later(DAY)
        self.assertEqual((self.state(sent), self.script.connections), (OutboxState.FAILED, 1))

    def test_too_many_mails_on_a_connection(self) -> None:
        """Row 69: 421 at the third MAIL; the others wait and go over other connections, each once."""
        self.end(self.senders[-1])
        sent = [self.submit() for _ in range(5)]
        self.script.answer("MAIL", "250 2.1.0 ok", "250 2.1.0 ok", "421 4.7.0 too many messages")
        self.begin()
        for _ in range(10):
            self.later(400)
        self.assertEqual({self.state(each) for each in sent}, {OutboxState.SENT})
        self.assertEqual(len({taken.message for taken in self.script.taken}), 5)
        self.assertEqual(self.copies(), 5)

    def test_the_server_gives_another_message_id(self) -> None:
        """Row 62: an answer that names only that one finds its session."""
        other = "<AM0PR01@AM0PR01MB.eurprd01.prod.outlook.com>"
        self.script.answer("END", f"250 2.0.0 OK {other} [Hostname=AM0PR01MB.prod.outlook.com]")
        sent = self.submit(session=S1)
        for replies_to, words in ((other, "by theirs"), (sent.message_id, "by ours")):
            raw = letter(words, subject="another subject", replies_to=replies_to)
            window = Window(ACCOUNT, "INBOX", 7, 9, None)
            uid = 8 if replies_to == other else 9
            examined = Examined(uid, AT, len(raw), words, judge(raw, OWN))
            database, bell = self.gateway.database, self.gateway.bell
            self.now(receive(database, bell, FilingRules(IDENTITY, OWN, KEY), window, [examined]))
        pending = self.now(deliver.pending(self.gateway.database, IDENTITY, session=S1, kind=None))
        self.assertEqual([each.body.strip() for each in pending], ["by theirs", "by ours"])


class LoginTests(SenderTestCase):
    """Logins that are refused, and how often they are tried."""

    def always(self, point: str, words: str) -> None:
        """From now on the server says the same at this point."""
        kind = type("Answering", (AlwaysAnswering,), {"point": point, "words": words})
        self.network.servers.update(dict.fromkeys(self.network.servers, lambda: kind(self.script)))

    def test_a_login_that_cannot_be_checked_now(self) -> None:
        """Row 50: 454 keeps the mail and counts as no refusal; it goes when the server has recovered."""
        self.script.answer("AUTH", UNAVAILABLE)
        sent = self.submit()
        self.assertEqual((self.state(sent), self.run_.smtp.login.refusals), (OutboxState.QUEUED, 0))
        self.later(299)
        self.assertEqual(self.script.logins, 1)
        for _ in range(3):
            self.later(200)
        self.assertEqual((self.state(sent), self.script.logins), (OutboxState.SENT, 2))

    def test_a_refusal_that_comes_and_goes(self) -> None:
        """Row 61: one quiet retry, and all is well."""
        self.script.answer("LOGIN", "535 Login Fail. Please enter your authorization code to login.")
        sent = self.submit()
        self.later(590)
        self.assertEqual(self.script.logins, 1)
        for _ in range(4):
            self.later(300)
        self.assertEqual((self.state(sent), self.script.logins), (OutboxState.SENT, 2))

    def test_a_day_with_a_server_that_always_says_the_same(self) -> None:
        """Rows 49 and 50: with mail to send and restarts all day, each kind of failure keeps its budget."""
        for point, words, most in (
            ("LOGIN", WRONG, 2),
            ("LOGIN", UNAVAILABLE, 40),
            ("LOGIN", CROWDED, 60),
            ("GREETING", CROWDED, 60),
        ):
            self.setUp()
            self.always(point, words)
            for _ in range(2 * 24):
                self.submit()
                for _ in range(6):
                    self.later(300)
                self.restart()
            self.assertLessEqual(self.script.connections, most, words)
            self.assertGreater(self.script.connections, 1, words)
