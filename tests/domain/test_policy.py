"""The budget of notifications, as a function of times."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.policy import retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)

AGES = st.lists(st.floats(min_value=0, max_value=120), max_size=30)


def _ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


class BudgetTests(SynchronousTestCase):
    """So many in any minute, and no more."""

    def test_within_and_over_the_budget(self) -> None:
        """The eleventh within a minute waits until the first of the ten is a minute old."""
        sent = [_ago(age) for age in range(10, 20)]
        self.assertIsNone(retry_after(sent[:9], NOW, 10))
        self.assertEqual(retry_after(sent, NOW, 10), 41)

    def test_what_is_a_minute_old_counts_no_more(self) -> None:
        """The window is half open: exactly a minute ago is out."""
        self.assertIsNone(retry_after([_ago(60)], NOW, 1))
        self.assertEqual(retry_after([_ago(59.5)], NOW, 1), 1)

    def test_a_budget_that_was_lowered(self) -> None:
        """More were sent than fit now: it is the last ones that have to age."""
        self.assertEqual(retry_after([_ago(50), _ago(20), _ago(5)], NOW, 1), 55)

    def test_no_budget_at_all(self) -> None:
        """Nothing ever fits."""
        self.assertEqual(retry_after([], NOW, 0), 60)

    @given(AGES, st.integers(min_value=1, max_value=12))
    def test_after_waiting_it_fits(self, ages: list[float], per_minute: int) -> None:
        """The seconds that are told suffice, are whole, and are at most a minute."""
        sent = [_ago(age) for age in ages]
        wait = retry_after(sent, NOW, per_minute)
        if wait is None:
            self.assertLess(sum(age < 60 for age in ages), per_minute)
        else:
            self.assertTrue(1 <= wait <= 60)
            self.assertIsNone(retry_after(sent, NOW + timedelta(seconds=wait), per_minute))
