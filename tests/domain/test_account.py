"""Which states of an account are well."""

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.account import AccountState, is_well


class WellTests(SynchronousTestCase):
    """What ``/health`` calls well."""

    def test_a_failure_counts_until_it_is_over(self) -> None:
        """Dialling after a failure is not well yet; standing by is, whatever failed before."""
        self.assertTrue(is_well(AccountState.CONNECTING, ""))
        self.assertFalse(is_well(AccountState.CONNECTING, "network"))
        self.assertFalse(is_well(AccountState.BACKING_OFF, "network"))
        self.assertTrue(is_well(AccountState.STANDBY, "network"))
