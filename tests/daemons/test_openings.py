"""Connections to one server are made a few at a time, and scans spread with the number of folders."""

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.daemons.accounts import SCANS_PER_SECOND, stretched
from mailgateway.daemons.openings import AT_A_TIME, Openings
from mailgateway.errors import Unreachable


class OpeningsTests(SynchronousTestCase):
    """Who waits, and who goes on."""

    def setUp(self) -> None:
        self.openings = Openings()
        self.dialled: list[Deferred[str]] = []

    async def connect(self) -> str:
        """One connection that is being made."""
        self.dialled.append(Deferred())
        return await self.dialled[-1]

    def open(self, host: str = "imap.example.org") -> Deferred[Any]:
        """Ask for one more."""
        return Deferred.fromCoroutine(self.openings.make(host, 993, self.connect))

    def test_one_server_is_not_stormed(self) -> None:
        """As many as there are places are dialled; each that ends, well or not, lets another one begin."""
        opened = [self.open() for _ in range(AT_A_TIME + 2)]
        self.assertEqual(len(self.dialled), AT_A_TIME)
        self.dialled[0].callback("there")
        self.assertEqual(self.successResultOf(opened[0]), "there")
        self.assertEqual(len(self.dialled), AT_A_TIME + 1)
        self.dialled[1].errback(Unreachable("refused"))
        self.failureResultOf(opened[1], Unreachable)
        self.assertEqual(len(self.dialled), AT_A_TIME + 2)

    def test_a_dead_server_holds_up_nobody_else(self) -> None:
        """Each has places of its own."""
        for _ in range(AT_A_TIME + 1):
            self.open()
        self.open("imap.example.net")
        self.assertEqual(len(self.dialled), AT_A_TIME + 1)

    def test_who_gives_up_takes_no_place(self) -> None:
        """Neither while it waits nor while it is dialled."""
        first = [self.open() for _ in range(AT_A_TIME)]
        waiting = self.open()
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        first[0].cancel()
        self.failureResultOf(first[0], CancelledError)
        self.open()
        self.assertEqual(len(self.dialled), AT_A_TIME + 1)


class StretchTests(SynchronousTestCase):
    """How often a folder is scanned without news."""

    def test_the_setting_holds_for_the_usual_number(self) -> None:
        """And none stays none."""
        self.assertEqual(stretched(60.0, 1), 60.0)
        self.assertEqual(stretched(60.0, 60), 60.0)
        self.assertEqual(stretched(0.0, 5_000), 0.0)

    def test_many_folders_share_what_there_is(self) -> None:
        """All together are scanned no more often than is cheap."""
        for folders in (1_000, 5_000):
            self.assertAlmostEqual(folders / stretched(60.0, folders), SCANS_PER_SECOND)
