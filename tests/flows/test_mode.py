"""Mode: switched by sessions and people, and a person's peace is a person's to end."""

from mailgateway.domain.mode import By, Mode
from mailgateway.flows import mode
from mailgateway.flows.bell import EventKind
from tests.flows.outbound import IDENTITY, OutboundTestCase


class ModeTests(OutboundTestCase):
    """What may be switched by whom, and who hears of it."""

    def test_a_change_is_kept_and_told(self) -> None:
        """The bell rings once for a change and not at all for none."""
        self.assertEqual(self._change(Mode.OFF, "session"), Mode.OFF)
        self.assertEqual(self._current(), Mode.OFF)
        self.assertEqual(self.gateway.kinds(), [EventKind.MODE])
        self._change(Mode.OFF, "session")
        self.assertEqual(self.gateway.kinds(), [])

    def test_on_lets_everything_go_on(self) -> None:
        """Whoever was held back looks again: pending deliveries, the outbox, settles."""
        self._change(Mode.OFF, "session")
        self.gateway.kinds()
        self._change(Mode.ON, "session")
        self.assertEqual(
            set(self.gateway.kinds()),
            {EventKind.MODE, EventKind.DELIVERY, EventKind.OUTBOX, EventKind.SETTLE},
        )

    def test_only_a_person_undoes_a_persons_off(self) -> None:
        """Also when a session asked for the same ``off`` before or after."""
        for before, after in ((False, False), (True, False), (False, True)):
            if before:
                self._change(Mode.OFF, "session")
            self._change(Mode.OFF, "person")
            if after:
                self._change(Mode.OFF, "session")
            refusal = self.refused(
                mode.change(self.gateway.database, self.gateway.bell, IDENTITY, Mode.ON, by="session")
            )
            self.assertEqual(refusal.code, "person_required")
            self.assertEqual(self._current(), Mode.OFF)
            self._change(Mode.ON, "person")
            self.assertEqual(self._current(), Mode.ON)

    def test_a_session_may_end_a_persons_on(self) -> None:
        """Less mail needs nobody's leave."""
        self._change(Mode.ON, "person")
        self._change(Mode.OFF, "session")
        self._change(Mode.ON, "session")
        self.assertEqual(self._current(), Mode.ON)

    def _change(self, wanted: Mode, by: By) -> Mode:
        return self.now(mode.change(self.gateway.database, self.gateway.bell, IDENTITY, wanted, by=by))

    def _current(self) -> Mode:
        return self.now(mode.current(self.gateway.database, IDENTITY))
