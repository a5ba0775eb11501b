"""FETCH responses: the fast reader and the patient one agree, dates, and the merging by UID."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import ProtocolViolation
from mailgateway.wire import imap_headers
from mailgateway.wire.imap_fetch import Fetched, Unreadable, parse_fetch, parse_internal_date, take_usual
from mailgateway.wire.imap_headers import FetchedHeaders, HeaderCollector
from mailgateway.wire.imap_lexer import Framer

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
fields = st.sampled_from([b"FROM TO", b"From", b"", b"X-A B", b'"a)"', b"A {1}"])
ends = st.sampled_from([b")\r\n", b")\r\n", b")\n", b" )\r\n", b" X 1)\r\n", b")", b""])


@st.composite
def responses(draw: st.DrawFn) -> bytes:
    """A response as most servers give it, or nearly."""
    header = draw(st.one_of(st.binary(max_size=30), st.just(b"a)\r\n* 1 FETCH (UID 5 X {1}\r\n")))
    items = b"".join(fact + b" " for fact in draw(st.lists(facts, max_size=4)))
    names, end = draw(fields), draw(ends)
    return b"* 1 FETCH (%bBODY[HEADER.FIELDS (%b)] {%d}\r\n%b%b" % (items, names, len(header), header, end)


def read(pieces: list[bytes], *, fast: bool) -> list[object]:
    """What comes out of a stream that arrives in these pieces; a breach is the last."""
    framer = Framer()
    said: list[object] = []
    try:
        for piece in pieces:
            framer.feed(piece)
            while True:
                if fast:
                    said += take_usual(framer)
                frame = framer.next_frame()
                if frame is None:
                    break
                said.append(parse_fetch(frame))
    except ProtocolViolation as error:
        said.append(str(error))
    return said


class AgreementTests(SynchronousTestCase):
    """The fast way is only a shorter way."""

    @settings(max_examples=100)
    @given(st.lists(responses(), max_size=4), st.lists(st.integers(1, 60), max_size=12))
    def test_both_readers_agree(self, said: list[bytes], sizes: list[int]) -> None:
        """Whatever comes, in whatever pieces, the fast reader changes nothing of what is understood."""
        stream = b"".join(said)
        expected = read([stream], fast=False)
        self.assertEqual(read([stream], fast=True), expected)
        self.assertEqual(read([stream[at : at + 1] for at in range(len(stream))], fast=True), expected)
        pieces, at = [], 0
        for size in sizes:
            pieces.append(stream[at : at + size])
            at += size
        self.assertEqual(read([*pieces, stream[at:]], fast=True), expected)

    def test_the_usual_shape_takes_the_fast_way(self) -> None:
        """Otherwise the agreement would be about nothing."""
        framer = Framer()
        one = b'* 1 FETCH (UID %d RFC822.SIZE 9 INTERNALDATE "d" BODY[HEADER.FIELDS (FROM)] {1}\r\nx)\r\n'
        framer.feed(one % 7 + one % 8 + b"* OK between\r\n" + one % 9)
        self.assertEqual(take_usual(framer), [Fetched(7, 9, b"d", b"x"), Fetched(8, 9, b"d", b"x")])
        self.assertEqual(framer.next_frame(), [b"* OK between"])
        self.assertEqual(take_usual(framer), [Fetched(9, 9, b"d", b"x")])
        self.assertEqual(framer.pending, 0)

    def test_bounds_hold_on_the_fast_way(self) -> None:
        """A literal that is larger than allowed is left to the framer, which refuses it."""
        framer = Framer(max_literal=3)
        framer.feed(b"* 1 FETCH (UID 7 BODY[HEADER.FIELDS (FROM)] {4}\r\nabcd)\r\n")
        self.assertEqual(take_usual(framer), [])
        with self.assertRaises(ProtocolViolation):
            framer.next_frame()


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
        collector.take(Fetched(2, internal_date=b" 1-Nov-2026 10:00:00 +0000"))
        collector.take(Fetched(3, header=b"y"))
        collector.take(Fetched(2, size=5, header=b"x"))
        collector.take(Fetched(None, size=5, header=b"nobody"))
        collector.take(Fetched(10, size=5, header=b"outside"))
        collector.take(Unreadable(b"FETCH", 10, "outside"))
        self.assertEqual([message.uid for message in messages], [2])
        self.assertEqual(collector.finish(), ())
        self.assertEqual(
            messages,
            [
                FetchedHeaders(2, 5, datetime(2026, 11, 1, 10, tzinfo=UTC), b"x"),
                FetchedHeaders(3, 0, None, b"y"),
            ],
        )

    def test_nothing_is_made_of_what_is_not_wanted(self) -> None:
        """Each message is shown once, whole or in halves; one that is refused does not come again."""
        shown: list[tuple[int, bytes]] = []
        messages: list[FetchedHeaders] = []

        def wanted(uid: int, header: bytes) -> bool:
            shown.append((uid, header))
            return uid == 3

        collector = HeaderCollector(1, 9, 0, messages.append, wanted)
        for uid in (2, 3, 2):
            collector.take(Fetched(uid, size=5, header=b"x"))
        collector.take(Fetched(4, header=b"y"))
        self.assertEqual(collector.finish(), ())
        self.assertEqual(shown, [(2, b"x"), (3, b"x"), (4, b"y")])
        self.assertEqual([message.uid for message in messages], [3])

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
                collector.take(Fetched(uid))
        with self.assertRaises(ProtocolViolation):
            for _ in range(imap_headers.MAX_INCOMPLETE + 1):
                collector.take(Unreadable(b"FETCH", None, ""))
