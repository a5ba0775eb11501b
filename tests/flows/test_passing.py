"""Windows in which nothing is to be filed are passed over together, and no way of it is walked twice."""

from twisted.internet.defer import Deferred

from mailgateway.errors import Unreachable
from mailgateway.flows import folders
from mailgateway.flows.patience import WINDOW
from tests.flows.test_scan import ScanTestCase, mail

WINDOWS = 4


class PassingTests(ScanTestCase):
    """Mailboxes full of other people's mail."""

    def setUp(self) -> None:
        super().setUp()
        self.scan()  # the first look
        self.raw = mail("buy this", "Offer", "eve@evil.example")

    def fill(self, count: int) -> None:
        """So many mails of a stranger."""
        for _ in range(count):
            self.mailbox.deliver(self.raw)

    def place(self) -> int:
        """The UID at which the cursor stands."""
        at = self.now(folders.cursor(self.gateway.database, self.mailbox.account, self.mailbox.folder))
        assert at is not None
        return at[1]

    def test_the_cursor_is_at_the_end_after_a_scan(self) -> None:
        """However many windows there were, also when the last ones hold no mail at all."""
        self.fill(WINDOWS * WINDOW + 1)
        self.mailbox.next_uid += 2 * WINDOW
        self.assertEqual(self.scan().examined, WINDOWS * WINDOW + 1)
        self.assertEqual(self.place(), (WINDOWS + 2) * WINDOW)

    def test_a_lost_connection_keeps_what_was_passed(self) -> None:
        """A server that hangs up every time comes no nearer to the end otherwise."""
        self.fill(WINDOWS * WINDOW)
        self.mailbox.poisoned_headers, self.mailbox.poison = {3 * WINDOW + 1}, Unreachable("lost")
        self.failureResultOf(Deferred.fromCoroutine(self.scanner.scan(self.mailbox, None)), Unreachable)
        self.assertGreaterEqual(self.place(), 2 * WINDOW)

    def test_an_answer_amid_strangers_is_filed_in_its_place(self) -> None:
        """And the cursor with it, before what follows is read."""
        self.fill(WINDOW + 1)
        self.answer("yes")
        self.fill(WINDOW)
        self.scan()
        self.assertEqual(self.words(), ["yes"])
        self.assertEqual(self.place(), self.mailbox.next_uid - 1)
