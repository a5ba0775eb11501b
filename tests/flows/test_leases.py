"""Leases between machines, as daemons use them."""

from mailgateway.flows import leases
from mailgateway.ids import MachineId
from tests.flows.outbound import IDENTITY, OutboundTestCase

ELSEWHERE = MachineId("machine-two")


class LeaseTests(OutboundTestCase):
    """Taken, kept, lost, given back."""

    def test_life(self) -> None:
        """One holder at a time; the loser is told at the next renewal."""
        database = self.gateway.database
        mine = self.now(leases.acquire(database, "r", IDENTITY.machine_id))
        assert mine is not None
        self.assertIsNone(self.now(leases.acquire(database, "r", ELSEWHERE)))
        self.gateway.later(seconds=15)
        mine = self.now(leases.renew(database, mine))
        assert mine is not None
        self.gateway.later(seconds=15)
        self.assertIsNone(self.now(leases.acquire(database, "r", ELSEWHERE)))
        self.gateway.later(seconds=15)
        other = self.now(leases.acquire(database, "r", ELSEWHERE, seconds=5))
        assert other is not None
        self.assertIsNone(self.now(leases.renew(database, mine)))
        self.now(leases.release(database, mine))
        self.assertIsNone(self.now(leases.acquire(database, "r", IDENTITY.machine_id)))
        self.now(leases.release(database, other))
        self.assertIsNotNone(self.now(leases.acquire(database, "r", IDENTITY.machine_id)))

    def test_nobody_wanted_it(self) -> None:
        """A lease that ran out unnoticed is renewed: nobody has taken it."""
        database = self.gateway.database
        mine = self.now(leases.acquire(database, "r", IDENTITY.machine_id))
        assert mine is not None
        self.gateway.later(hours=8)
        self.assertIsNotNone(self.now(leases.renew(database, mine)))

    def test_other_resources(self) -> None:
        """Each resource has its own."""
        database = self.gateway.database
        self.assertIsNotNone(self.now(leases.acquire(database, "a", IDENTITY.machine_id)))
        self.assertIsNotNone(self.now(leases.acquire(database, "b", ELSEWHERE)))
