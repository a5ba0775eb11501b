"""The first transaction of a process."""

from mailgateway.domain.mode import Mode
from mailgateway.flows import mode, start
from mailgateway.ids import MachineId, device_digest
from mailgateway.store import machines, modes
from tests.flows.outbound import IDENTITY, OutboundTestCase


class IntroduceTests(OutboundTestCase):
    """A machine says who it is, again and again, and nothing it once said is lost."""

    def test_the_mode_is_on_at_the_very_first_start_only(self) -> None:
        """A restart does not switch on what was off."""
        self.assertEqual(self._mode(), Mode.ON)
        self.now(mode.change(self.gateway.database, self.gateway.bell, IDENTITY, Mode.OFF, by="session"))
        self.start()
        self.assertEqual(self._mode(), Mode.OFF)

    def test_former_names_stay_known(self) -> None:
        """A token that was minted under a former name still finds its machine."""
        self.now(start.introduce(self.gateway.database, IDENTITY.machine_id, "workstation"))
        rows = self.gateway.rows
        self.assertEqual(rows(lambda tx: machines.name(tx, IDENTITY.machine_id)), "workstation")
        digests = {device_digest(name).hex() for name in ("laptop", "workstation")}
        self.assertEqual(rows(lambda tx: machines.digests(tx, IDENTITY.machine_id)), digests)

    def test_machines_are_apart(self) -> None:
        """Each has a name and a mode of its own; one that never came has none."""
        other = MachineId("machine-two")
        self.now(start.introduce(self.gateway.database, other, "desktop"))
        self.now(mode.change(self.gateway.database, self.gateway.bell, IDENTITY, Mode.OFF, by="session"))
        rows = self.gateway.rows
        self.assertEqual(rows(lambda tx: modes.current(tx, other)), Mode.ON)
        self.assertEqual(rows(lambda tx: machines.name(tx, MachineId("nobody"))), "")

    def _mode(self) -> Mode:
        return self.now(mode.current(self.gateway.database, IDENTITY))
