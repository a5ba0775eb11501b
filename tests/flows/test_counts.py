"""The numbers of ``/health``."""

from mailgateway.flows.counts import Counts, counts
from mailgateway.ids import MachineId
from mailgateway.store import tables
from tests.flows.inbound import InboundTestCase
from tests.flows.outbound import IDENTITY


class CountTests(InboundTestCase):
    """What waits, and who is there."""

    def counts(self) -> Counts:
        """Count."""
        return self.now(counts(self.gateway.database, IDENTITY))

    def test_counts(self) -> None:
        """Each number is that of this machine; what is for others is counted apart."""
        before = self.counts()
        self.assertEqual((before.pending, before.registry, before.clients), (0, 0, 1))
        self.assertEqual((before.held_elsewhere, before.outbox_waiting), (0, 1))
        assert before.last_ping_at is not None
        self.submit("decision")
        self.receive(self.reply("one"), self.reply("two"), self.reply("three"))
        one, two, _ = self.pending()
        self.claim_envelope(one)
        self.take(two)
        after = self.counts()
        self.assertEqual((after.pending, after.registry, after.outbox_waiting), (2, 1, 2))

        self.gateway.rows(
            lambda tx: tx.execute(tables.envelope.update().values(machine_id=MachineId("machine-two")))
        )
        moved = self.counts()
        self.assertEqual((moved.pending, moved.held_elsewhere), (0, 2))
