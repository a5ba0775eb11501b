"""Mail that is too large to be read: who is told, and by what."""

from datetime import timedelta
from email import message_from_bytes, policy

from twisted.internet.defer import succeed

from mailgateway.domain.envelope import EnvelopeKind
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.scan import Scanner, ScanRules
from mailgateway.flows.troubles import Writer
from mailgateway.flows.unread import HEADER_LIMIT
from mailgateway.mail.inbound import LARGEST_MAIL
from mailgateway.store.database import Database, Tx
from mailgateway.store.tables import outbox
from tests.flows.outbound import IDENTITY, SENDER
from tests.flows.test_scan import OWN, ScanTestCase, mail


class TooLargeTests(ScanTestCase):
    """The session gets a notice in any case; the person is told where the header proves who wrote."""

    def setUp(self) -> None:
        super().setUp()
        self.scan()

    def make_scanner(self, database: Database) -> Scanner:
        """A scanner of a gateway that answers people."""
        writer = Writer(IDENTITY, SENDER, self.gateway.mint)
        rules = ScanRules(FilingRules(IDENTITY, OWN, "k" * 64, writer=writer), timedelta(hours=168))
        return Scanner(database, self.gateway.bell, rules, lambda judging: succeed(judging()))

    def test_the_sender_is_told(self) -> None:
        """What the receiving server found out stands in the header; no more than that is fetched."""
        self.mailbox.deliver(self._large())
        self.assertEqual(dict(self.scan().refused), {"too-large": 1})
        [notice] = self.pending()
        self.assertEqual(notice.kind, EnvelopeKind.NOTICE)
        [answer] = self._answers()
        self.assertIn("larger than 25 MB", answer)
        self.assertNotIn("the large words", answer + notice.body)

    def test_once(self) -> None:
        """A second one on the same day is not answered again."""
        self.mailbox.deliver(self._large())
        self.mailbox.deliver(self._large("another one"))
        self.scan()
        self.assertEqual(len(self._answers()), 1)

    def test_nobody_whom_the_header_does_not_prove(self) -> None:
        """Without results of ours, with bad ones, of a machine, or where the header does not end in time."""
        good = self._large()
        for raw in (
            good.replace(b"mx.example.net;", b"mx.evil.example;"),
            good.replace(b"=pass", b"=fail"),
            good.replace(b"To: agent", b"Auto-Submitted: auto-replied\r\nTo: agent"),
            b"X-Long: " + b"x " * HEADER_LIMIT + b"\r\n" + good,
        ):
            self.mailbox.deliver(raw)
        self.scan()
        self.assertEqual(self._answers(), [])
        self.assertEqual({each.kind for each in self.pending()}, {EnvelopeKind.NOTICE})

    def test_what_is_not_given(self) -> None:
        """A server that does not hand the beginning out: the mail is filed by what is known."""
        self.mailbox.withheld.add(self.mailbox.deliver(self._large()))
        self.assertEqual(dict(self.scan().refused), {"too-large": 1})
        self.assertEqual((len(self.pending()), self._answers()), (1, []))

    def _large(self, words: str = "the large words") -> bytes:
        return mail(words, self.subject) + b"x" * LARGEST_MAIL

    def _answers(self) -> list[str]:
        def work(tx: Tx) -> list[bytes]:
            return [row.raw for row in tx.execute(outbox.select().where(outbox.c.kind == "notice"))]

        raws = self.gateway.rows(work)
        bodies = [message_from_bytes(raw, policy=policy.default).get_body(("plain",)) for raw in raws]
        return [" ".join(body.get_content().split()) for body in bodies if body is not None]
