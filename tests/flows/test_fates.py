"""What a person is told about where a reply went."""

from mailgateway.flows import fates
from mailgateway.store import fates as rows
from tests.flows.inbound import InboundTestCase, letter
from tests.flows.outbound import PERSON


class FateTests(InboundTestCase):
    """The newest first, and bounded."""

    def test_newest_first_with_their_envelopes(self) -> None:
        """Each says from whom, about what, how it ended and as which envelope."""
        received = self.receive(self.reply("fine"), letter("lunch?", subject="lunch?"))
        lost, fine = self.now(fates.fates(self.gateway.database, since=None, limit=10))
        self.assertEqual((lost.from_address, lost.subject, lost.verdict), (PERSON, "lunch?", "no-token"))
        self.assertEqual((fine.verdict, fine.envelope_id), ("delivered", received.envelopes[0]))
        self.assertIsNone(lost.envelope_id)

    def test_which_text_was_read(self) -> None:
        """Where it is not the plain one, that is said."""
        html_only = self.reply("<p>go on</p>").replace(b"text/plain", b"text/html")
        self.receive(self.reply("fine"), html_only)
        html, plain = self.now(fates.fates(self.gateway.database, since=None, limit=10))
        self.assertEqual((plain.verdict, plain.reason), ("delivered", ""))
        self.assertEqual(html.verdict, "delivered")
        self.assertIn("its HTML was read", html.reason)

    def test_marks_that_nobody_sees(self) -> None:
        """A subject must not be shown as another one than it is."""
        self.receive(letter("x", subject="\u202etxt.exe\u2069\u061c\u200b"))
        [fate] = self.now(fates.fates(self.gateway.database, since=None, limit=10))
        self.assertEqual(fate.subject, "txt.exe")

    def test_since_and_limit(self) -> None:
        """Older ones are left out; a limit is kept, also a silly one."""
        self.receive(letter("one", subject="one"))
        self.gateway.later(minutes=5)
        moment = self.at()
        self.receive(letter("two", subject="two"))
        found = self.now(fates.fates(self.gateway.database, since=moment, limit=10))
        self.assertEqual([each.subject for each in found], ["two"])
        self.assertEqual(len(self.now(fates.fates(self.gateway.database, since=None, limit=1))), 1)
        self.assertEqual(self.now(fates.fates(self.gateway.database, since=None, limit=-5)), ())

    def test_bounded(self) -> None:
        """However much comes, the table does not grow over its bound."""
        self.patch(rows, "KEPT", 5)
        self.patch(rows, "PRUNE_EVERY", 1)
        self.patch(rows.prune, "__defaults__", (5,))
        self.receive(*(letter(f"{n}", subject=f"{n}") for n in range(20)))
        self.assertEqual(self.gateway.rows(rows.count), 5)
