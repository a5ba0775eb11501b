"""Memory is given back from time to time, where the C library can."""

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.service.memory import EVERY_SECONDS, FIRST_SECONDS, GiveBack, share_one_arena


class Library:
    """Counts."""

    trimmed = 0

    def malloc_trim(self, pad: int) -> int:
        """As glibc's: how much to leave at the end."""
        self.trimmed += 1 + pad
        return 1


class GiveBackTests(SynchronousTestCase):
    """When it happens."""

    def test_after_the_start_and_then_rarely(self) -> None:
        """Until the service stops."""
        clock, library = Clock(), Library()
        service = GiveBack(clock, library)
        service.startService()
        clock.advance(FIRST_SECONDS)
        self.assertEqual(library.trimmed, 1)
        clock.pump([EVERY_SECONDS] * 2)
        self.assertEqual(library.trimmed, 3)
        service.stopService()
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_another_library_is_left_alone(self) -> None:
        """It has nothing to call."""
        clock = Clock()
        service = GiveBack(clock, None)
        service.startService()
        self.assertEqual(clock.getDelayedCalls(), [])
        service.stopService()

    def test_this_machines_library_takes_the_calls(self) -> None:
        """Whichever it is: nothing of it may raise."""
        share_one_arena()
        clock = Clock()
        service = GiveBack(clock)
        service.startService()
        clock.advance(FIRST_SECONDS)
        service.stopService()
