"""Sets of UIDs, against plain sets and against Twisted's ``MessageSet``."""

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.mail.imap4 import MessageSet
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.wire.uid_set import MAX_UID, UidSet

uids = st.sets(st.integers(1, 60), max_size=40)


class UidSetTests(SynchronousTestCase):
    """Building, writing, reading, dividing."""

    @settings(max_examples=100)
    @given(uids, uids)
    def test_is_a_set(self, one: set[int], other: set[int]) -> None:
        """It holds what was put in, once and in order."""
        both = UidSet.of(one) | UidSet.of(other)
        self.assertEqual(list(both), sorted(one | other))
        self.assertEqual(len(both), len(one | other))
        self.assertTrue(all((uid in both) == (uid in one | other) for uid in range(62)))

    @settings(max_examples=100)
    @given(uids.filter(bool))
    def test_writes_what_twisted_writes(self, numbers: set[int]) -> None:
        """And reads it back."""
        oracle = MessageSet()
        for number in numbers:
            oracle.add(number)
        written = bytes(UidSet.of(numbers))
        self.assertEqual(written, str(oracle).encode())
        self.assertEqual(UidSet.parse(written), UidSet.of(numbers))

    @settings(max_examples=50)
    @given(st.sets(st.integers(1, MAX_UID), max_size=60), st.integers(21, 60))
    def test_batches(self, numbers: set[int], size: int) -> None:
        """They are small enough and lose nothing."""
        batches = list(UidSet.of(numbers).batches(size))
        self.assertTrue(all(0 < len(bytes(batch)) <= size for batch in batches))
        self.assertEqual([uid for batch in batches for uid in batch], sorted(numbers))

    def test_large_spans_cost_nothing(self) -> None:
        """A hostile ``1:4294967295`` is two numbers."""
        whole = UidSet.parse(b"4294967295:1")
        self.assertEqual(whole, UidSet.span(1, MAX_UID))
        self.assertEqual(whole.ranges, ((1, MAX_UID),))
        self.assertIn(7, whole)
        self.assertEqual(list(UidSet.span(5, 4)), [])

    def test_refuses_what_is_no_set(self) -> None:
        """Numbers from 1 to 4294967295, and nothing else."""
        for bad in (
            b"",
            b"0",
            b"1:",
            b":1",
            b"a",
            b"1,",
            b"*",
            b"1:*",
            b"4294967296",
            b"1:2:3",
            b"-1",
            b"9" * 5000,
        ):
            with self.subTest(bad), self.assertRaises(ValueError):
                UidSet.parse(bad)
