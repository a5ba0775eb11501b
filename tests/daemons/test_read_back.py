"""A Message-ID that the server changed: read back from the Sent folder, and never to anybody's harm."""

from twisted.internet.task import Clock

from mailgateway.daemons.read_back import AT_ONCE, PAUSES, ReadBack
from mailgateway.daemons.tasks import Tasks
from mailgateway.errors import CommandRefused, Unreachable
from mailgateway.ids import MessageId, OutboxId
from mailgateway.providers import of_smtp
from mailgateway.store import threads
from tests.fakes.sent import FakeSentFolder
from tests.flows.outbound import OutboundTestCase

THEIRS = MessageId("<tencent_ABC@qq.com>")


class ReadBackTests(OutboundTestCase):
    """A mail that was just sent."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.sent = FakeSentFolder()
        self.tasks = Tasks()
        self.addCleanup(self.tasks.stop)
        self.reading = ReadBack(self.clock, self.gateway.database, self.sent, self.tasks)
        self.mail = self.submit()
        self.conclude(self.claim())

    def leads(self) -> bool:
        """Whether a reply to their id would reach the session."""
        found = self.gateway.rows(lambda tx: threads.find(tx, [THEIRS]))
        return [each.route.id for each in found.values()] == [self.mail.route_id]

    def test_it_is_found_late(self) -> None:
        """Six looks in 112 s; their id then leads where ours does, and nobody looks on."""
        self.assertEqual((len(PAUSES), sum(PAUSES)), (6, 112))
        self.reading.begin(self.mail.outbox_id)
        for seconds in PAUSES[:-1]:
            self.clock.advance(seconds)
        self.assertFalse(self.leads())
        self.sent.names[self.mail.outbox_id] = THEIRS
        self.clock.advance(PAUSES[-1])
        self.assertTrue(self.leads())
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_trouble(self) -> None:
        """Who cannot look now looks again; who never can gives up, and what is never found is forgotten."""
        self.sent.outage = Unreachable("not now")
        self.reading.begin(self.mail.outbox_id)
        self.clock.advance(PAUSES[0])
        self.sent.outage = None
        self.sent.names[self.mail.outbox_id] = THEIRS
        self.clock.advance(PAUSES[1])
        self.assertTrue(self.leads())
        self.sent.outage = CommandRefused("no such folder", code="NOSENT")
        self.reading.begin(OutboxId("o-2"))
        self.clock.advance(PAUSES[0])
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.sent.outage = None
        self.reading.begin(OutboxId("o-3"))
        self.clock.pump(PAUSES)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_a_burst(self) -> None:
        """So many at a time; there is room again when they are done."""
        for number in range(AT_ONCE + 5):
            self.reading.begin(OutboxId(f"o-{number}"))
        self.assertEqual(len(self.clock.getDelayedCalls()), AT_ONCE)
        self.clock.pump(PAUSES)
        self.reading.begin(self.mail.outbox_id)
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)

    def test_who_does_that(self) -> None:
        """Known by the submission server; others are left alone."""
        self.assertTrue(of_smtp("smtp.qq.com").rewrites_ids)
        self.assertFalse(of_smtp("smtp.gmail.com").rewrites_ids)
        self.assertFalse(of_smtp("mail.example.org").rewrites_ids)
