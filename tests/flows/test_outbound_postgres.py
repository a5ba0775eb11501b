"""The outbound flows on a real PostgreSQL: the same tests, and races that it decides by serialization."""

from functools import lru_cache

from sqlalchemy import Engine

from mailgateway.store.database import Tx, transact
from mailgateway.store.tables import metadata
from mailgateway.store.upgrade import open_engine, upgrade
from tests.fakes.postgres import fresh_url
from tests.flows import (
    outbound,
    test_bundles,
    test_digest,
    test_outbox,
    test_reminders,
    test_resolve,
    test_sessions,
    test_settle,
    test_submit,
)


@lru_cache(maxsize=1)
def _engine() -> Engine:
    engine = open_engine(fresh_url())
    upgrade(engine)
    return engine


class OnPostgres(outbound.OutboundTestCase):
    """One database for all, emptied before each test."""

    def make_engine(self) -> Engine:
        """The database, emptied."""
        engine = _engine()
        self.addCleanup(engine.dispose)

        def empty(tx: Tx) -> None:
            for table in reversed(metadata.sorted_tables):
                tx.execute(table.delete())

        transact(engine, empty)
        return engine

    def contested_engine(self) -> Engine:
        """The same database: it has a pool of connections."""
        return self.make_engine()


class SubmitTests(OnPostgres, test_submit.SubmitTests):
    """Submitting."""


class KeyTests(OnPostgres, test_submit.KeyTests):
    """Idempotency."""


class DecisionTests(OnPostgres, test_submit.DecisionTests):
    """The one blocking decision."""


class ClaimTests(OnPostgres, test_outbox.ClaimTests):
    """The sender's claim."""


class ConcludeTests(OnPostgres, test_outbox.ConcludeTests):
    """The outcome of an attempt."""


class UnclearTests(OnPostgres, test_outbox.UnclearTests):
    """Mails of unclear fate."""


class CrashTests(OnPostgres, test_outbox.CrashTests):
    """Interrupted senders."""


class SettleTests(OnPostgres, test_settle.SettleTests):
    """The settled event."""


class QuietTests(OnPostgres, test_digest.QuietTests):
    """Mails that are held back over the night."""


class BundleTests(OnPostgres, test_bundles.BundleTests):
    """Mails that leave together."""


class RemindTests(OnPostgres, test_reminders.RemindTests):
    """Decisions that are brought to mind."""


class SecondAddressTests(OnPostgres, test_reminders.SecondAddressTests):
    """Decisions that go to a second person."""


class ReserveTests(OnPostgres, test_sessions.ReserveTests):
    """Reservations."""


class ByeTests(OnPostgres, test_sessions.ByeTests):
    """Leaving."""


class ResolveTests(OnPostgres, test_resolve.ResolveTests):
    """The first answer wins."""
