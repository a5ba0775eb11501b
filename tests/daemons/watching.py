"""The stage of the tests of watching: a small server, and time that is let pass."""

from typing import Any

from mailgateway.daemons.watcher import STOP_SECONDS, Watcher
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.scan import ScanRules
from tests.daemons.small_imap import Habits
from tests.daemons.world import IMAP_PORT, KEY, Network, Run, SlowDatabase
from tests.flows.inbound import OWN, TTL
from tests.flows.outbound import IDENTITY, OutboundTestCase

THROTTLED = b"* BYE too many connections from your IP address"


class WatcherTestCase(OutboundTestCase):
    """A watcher, and a small server that it watches."""

    def setUp(self) -> None:
        super().setUp()
        self.network = Network()
        self.habits = Habits()
        self.network.servers[IMAP_PORT] = self.habits.server
        self.database = SlowDatabase(self.gateway.database.engine)

    def begin(self, **more: Any) -> Watcher:
        """A new process that watches; ``more`` is given to the watcher."""
        run = Run(self.network, self.database)
        self.now(run.load())
        watcher = Watcher(
            self.network,
            self.database,
            self.gateway.bell,
            ScanRules(FilingRules(IDENTITY, OWN, KEY), TTL),
            run.logins,
            "INBOX",
            run.imap,
            60,
            lambda _: None,
            **more,
        )
        watcher.startService()
        self.later(0)
        self.addCleanup(self.end, watcher)
        self.health = run.imap
        return watcher

    def end(self, watcher: Watcher) -> None:
        """Stop, and see that nothing is left."""
        if watcher.running:
            stopping = watcher.stopService()
            self.later(0)
            self.later(STOP_SECONDS)
            self.successResultOf(stopping)

    def later(self, seconds: float) -> None:
        """Let time pass for everybody."""
        self.database.advance(seconds=seconds)
        self.network.advance(seconds)
        self.network.settle()

    @property
    def state(self) -> str:
        """What ``/health`` tells."""
        return self.health.status.state

    @property
    def dialled(self) -> int:
        """How many connections were attempted."""
        return len(self.network.dialled)
