"""FETCH responses: the fast reader and the patient one agree, dates, and the merging by UID."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import ProtocolViolation
from mailgateway.wire import imap_headers
from mailgateway.wire.imap_fetch import Fetched, Unreadable, parse_any, parse_internal_date, parse_usual
from mailgateway.wire.imap_headers import FetchedHeaders, HeaderCollector

numbers = st.one_of(st.integers(0, 2**34), st.sampled_from([1, 2**32 - 1, 2**32]))
words = st.text("AaZz\\$*%]-_.0", max_size=6).map(str.encode)
facts = st.one_of(
    numbers.map(lambda n: b"UID %d" % n),
    numbers.map(lambda n: b"RFC822.SIZE %d" % n),
    st.sampled_from([b"17-Jul-1996 02:44:25 -0700", b" 1-Nov-2026 10:00:00 +0000", b"", b"a b", b"NIL"]).map(
        lambda text: b'INTERNALDATE "' + text + b'"'
    ),
    st.lists(words, max_size=3).map(lambda flags: b"FLAGS (" + b" ".join(flags) + b")"),
)
fields = st.sampled_from([b"FROM TO", b"From", b"", b"X-A B"])


class AgreementTests(SynchronousTestCase):
    """The fast way is only a shorter way."""

    @settings(max_examples=100)
    @given(st.integers(0, 999), st.lists(facts, max_size=6), fields, st.binary(max_size=30))
    def test_both_readers_agree(self, number: int, said: list[bytes], names: bytes, header: bytes) -> None:
        """Whatever the fast reader takes, the patient one reads the same."""
        items = b"".join(fact + b" " for fact in said)
        head = b"* %d FETCH (%bBODY[HEADER.FIELDS (%b)] {%d}" % (number, items, names, len(header))
        frame = [head, header, b")"]
        fast = parse_usual(frame)
        if fast is not None:
            self.assertEqual(parse_any(frame), fast)

    def test_the_usual_shape_takes_the_fast_way(self) -> None:
        """Otherwise the agreement would be about nothing."""
        head = (
            b'* 1 FETCH (UID 7 RFC822.SIZE 9 INTERNALDATE "d" FLAGS (\\Seen) BODY[HEADER.FIELDS (FROM)] {1}'
        )
        expected = Fetched(7, 9, b"d", (b"\\Seen",), b"x")
        self.assertEqual(parse_usual([head, b"x", b")"]), expected)
        self.assertEqual(parse_any([head, b"x", b")"]), expected)


class DateTests(SynchronousTestCase):
    """INTERNALDATE."""

    def test_dates(self) -> None:
        """Aware, whatever the zone; nothing for what is no date."""
        self.assertEqual(
            parse_internal_date(b"17-Jul-1996 02:44:25 -0730"),
            datetime(1996, 7, 17, 2, 44, 25, tzinfo=timezone(-timedelta(hours=7, minutes=30))),
        )
        self.assertEqual(parse_internal_date(b" 1-nov-2026 10:00:00"), datetime(2026, 11, 1, 10, tzinfo=UTC))
        for odd in (None, b"", b"31-Feb-2026 10:00:00 +0000", b"01-Foo-2026 10:00:00 +0000", b"1 +9999",
                    b"01-Jan-2026 10:00:00 +9900", b"01-Jan-0000 10:00:00 +0000"):  # fmt: skip
            self.assertIsNone(parse_internal_date(odd), odd)


class CollectorTests(SynchronousTestCase):
    """Messages are put together by UID."""

    def test_halves(self) -> None:
        """Two responses make one message; facts that never come hold nothing back."""
        messages: list[FetchedHeaders] = []
        collector = HeaderCollector(1, 9, 0, messages.append)
        collector.take(Fetched(2, flags=(b"a",), internal_date=b" 1-Nov-2026 10:00:00 +0000"))
        collector.take(Fetched(3, header=b"y"))
        collector.take(Fetched(2, size=5, flags=(b"b",), header=b"x"))
        collector.take(Fetched(None, size=5, header=b"nobody"))
        collector.take(Fetched(10, size=5, header=b"outside"))
        collector.take(Unreadable(b"FETCH", 10, "outside"))
        self.assertEqual([message.uid for message in messages], [2])
        self.assertEqual(collector.finish(), ())
        self.assertEqual(
            messages,
            [
                FetchedHeaders(2, 5, datetime(2026, 11, 1, 10, tzinfo=UTC), (b"b",), b"x"),
                FetchedHeaders(3, 0, None, (), b"y"),
            ],
        )

    def test_named_without_header_fields(self) -> None:
        """A message whose header fields did not come is reported: it is there."""
        collector = HeaderCollector(1, 9, 0, lambda _: None)
        collector.take(Fetched(2, size=5))
        self.assertEqual([each.uid for each in collector.finish()], [2])

    def test_bounds(self) -> None:
        """A server that begins messages without end is stopped."""
        collector = HeaderCollector(1, None, 0, lambda _: None)
        with self.assertRaises(ProtocolViolation):
            for uid in range(1, imap_headers.MAX_INCOMPLETE + 2):
                collector.take(Fetched(uid, flags=()))
        with self.assertRaises(ProtocolViolation):
            for _ in range(imap_headers.MAX_INCOMPLETE + 1):
                collector.take(Unreadable(b"FETCH", None, ""))
