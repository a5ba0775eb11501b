"""The health of accounts survives a restart."""

from datetime import UTC, datetime

from attrs import evolve

from mailgateway.domain.account import AccountState
from mailgateway.flows import health
from mailgateway.flows.health import AccountHealth
from mailgateway.ids import AccountName
from tests.flows.outbound import ACCOUNT, OutboundTestCase

SINCE = datetime(2026, 11, 30, 12, 0, 0, 123456, tzinfo=UTC)
REFUSED = AccountHealth(
    account=ACCOUNT,
    state=AccountState.REFUSED,
    since=SINCE,
    failure="login-refused",
    failures=2,
    next_attempt_at=None,
    refusals=2,
    credential_digest="ab" * 32,
    last_error="NO [AUTHENTICATIONFAILED]",
    proven=True,
)


class HealthTests(OutboundTestCase):
    """Rows in, rows out."""

    def test_saved_is_loaded(self) -> None:
        """Everything comes back, the last word wins, and accounts do not mix."""
        database = self.gateway.database
        self.assertIsNone(self.now(health.load(database, ACCOUNT)))
        self.now(health.save(database, REFUSED))
        self.assertEqual(self.now(health.load(database, ACCOUNT)), REFUSED)
        waiting = evolve(
            REFUSED, state=AccountState.BACKING_OFF, next_attempt_at=SINCE, refusals=0, proven=False
        )
        self.now(health.save(database, waiting))
        self.assertEqual(self.now(health.load(database, ACCOUNT)), waiting)
        other = evolve(REFUSED, account=AccountName("another"))
        self.now(health.save(database, other))
        self.assertEqual(self.now(health.load_all(database)), (other, waiting))
