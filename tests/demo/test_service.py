"""The service as the demo's child process, here with settings that it refuses."""

import tempfile
from pathlib import Path

from twisted.internet import reactor
from twisted.trial.unittest import TestCase

from mailgateway.demo.service import Service


class ServiceTests(TestCase):
    """Start and end of the process."""

    timeout = 60

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="mailgateway-test-")
        self.addCleanup(folder.cleanup)
        self.service = Service(reactor, Path(folder.name))

    async def test_how_it_ended(self) -> None:
        """A process that ends by itself tells its status, and its last words are there to be shown."""
        ended = self.service.start({"daemon": self.service.place(), "nonsense": {"key": 1}})
        self.assertEqual(await ended, "exit status 2")
        self.assertIn("nonsense", self.service.log_tail())
        await self.service.stop()

    async def test_stopping_what_never_started(self) -> None:
        """There is nothing to do."""
        await self.service.stop()
        self.assertEqual(self.service.log_tail(), "")

    async def test_stopping_at_once(self) -> None:
        """A process that was just started is stopped."""
        self.service.start({"daemon": self.service.place()})
        await self.service.stop()
        self.assertTrue(self.service.how_it_ended)
