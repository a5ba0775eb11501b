r"""``\Seen``: asked by an ack, taken by the watcher, said to be done or refused."""

from mailgateway.flows import flag
from mailgateway.store import flagging
from tests.flows.inbound import INBOX, InboundTestCase
from tests.flows.outbound import ACCOUNT


class FlagTests(InboundTestCase):
    """The rows between an ack and the flag."""

    def setUp(self) -> None:
        super().setUp()
        self.scan()
        self.receive(*(self.reply(f"answer {n}") for n in range(3)))
        for each in self.pending():
            self.take(each)

    def due(self, limit: int = 50) -> tuple[int, ...]:
        """UIDs to be flagged."""
        return self.now(flag.due(self.gateway.database, ACCOUNT, INBOX, 7, limit=limit))

    def test_nothing_before_the_ack(self) -> None:
        """A claim alone asks for nothing."""
        self.receive(self.reply("not acked"))
        self.claim_envelope(self.pending()[0])
        self.assertEqual(self.due(), (1, 2, 3))

    def test_done(self) -> None:
        """What is set is forgotten; the limit bounds what is taken at once."""
        self.assertEqual(self.due(limit=2), (1, 2))
        self.now(flag.done(self.gateway.database, ACCOUNT, INBOX, 7, [1, 2, 99]))
        self.assertEqual(self.due(), (3,))
        self.now(flag.done(self.gateway.database, ACCOUNT, INBOX, 7, []))
        self.assertEqual(self.due(), (3,))

    def test_failed(self) -> None:
        """What is refused stands back, and is given up in the end."""
        self.now(flag.failed(self.gateway.database, ACCOUNT, INBOX, 7, [1]))
        self.assertEqual(self.due(), (2, 3, 1))
        for _ in range(flagging.ATTEMPTS):
            self.now(flag.failed(self.gateway.database, ACCOUNT, INBOX, 7, [1]))
        self.assertEqual(self.due(), (2, 3))
