"""Dot-stuffing: no text can end a mail, wherever a chunk ends."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.wire.dot_stuffing import DotStuffing, bare_line_end, stuff

PIECES = st.lists(st.sampled_from([b".", b"\r\n", b"a", b"..", b"\r\n.\r\n", b"\r", b"\n", b"\x00\xff"]))


def unstuff(wire: bytes) -> tuple[bytes, bytes]:
    """A receiver: the message up to the first line with a single dot, and what comes after that line."""
    message, rest = b"", wire
    while True:
        line, end, rest = rest.partition(b"\r\n")
        assert end, "the message has no end"
        if line == b".":
            return message, rest
        message += line.removeprefix(b".") + end


class DotStuffingTests(SynchronousTestCase):
    """What a receiver gets is what was handed in."""

    def test_a_dot_at_the_very_start_is_doubled(self) -> None:
        """The message begins a line, too."""
        self.assertEqual(stuff(b".\r\n"), b"..\r\n.\r\n")

    def test_only_the_start_of_a_line_counts(self) -> None:
        """Dots elsewhere stay as they are."""
        self.assertEqual(stuff(b"a.b\r\n..\r\n"), b"a.b\r\n...\r\n.\r\n")

    def test_an_unended_last_line_is_ended(self) -> None:
        """The final dot stands on a line of its own, also after nothing at all."""
        self.assertEqual(stuff(b"a"), b"a\r\n.\r\n")
        self.assertEqual(stuff(b"a\r"), b"a\r\r\n.\r\n")
        self.assertEqual(stuff(b""), b".\r\n")

    @given(PIECES)
    def test_a_receiver_gets_the_message_and_nothing_after_it(self, pieces: list[bytes]) -> None:
        """No message can put a command behind its own end."""
        message = b"".join(pieces)
        got, after = unstuff(stuff(message))
        self.assertEqual(after, b"")
        self.assertIn(got, (message, message + b"\r\n"))

    @given(PIECES, st.lists(st.integers(min_value=0, max_value=40)))
    def test_chunking_never_matters(self, pieces: list[bytes], cuts: list[int]) -> None:
        """Whole, byte by byte and ragged give the same bytes."""
        message = b"".join(pieces)
        edges = sorted({0, len(message), *(min(cut, len(message)) for cut in cuts)})
        ragged = [message[a:b] for a, b in pairwise(edges)]
        bytewise = [message[i : i + 1] for i in range(len(message))]
        for chunks in (ragged, bytewise, [*ragged, b""]):
            stuffing = DotStuffing()
            written = b"".join(stuffing.feed(chunk) for chunk in chunks) + stuffing.end()
            self.assertEqual(written, stuff(message))


class BareLineEndTests(SynchronousTestCase):
    """Line ends that servers disagree about are found."""

    def test_positions(self) -> None:
        """The first offender is named by its offset."""
        for message, at in (
            (b"a\r\nb\r\n", None),
            (b"", None),
            (b"a\nb", 1),
            (b"\n", 0),
            (b"a\rb", 1),
            (b"ab\r", 2),
            (b"a\r\r\n", 1),
            (b"a\r\n\n", 3),
        ):
            self.assertEqual(bare_line_end(message), at, message)

    @given(PIECES)
    def test_against_the_definition(self, pieces: list[bytes]) -> None:
        """Without its pairs a message has no CR and no LF, or there is an offender at the offset."""
        message = b"".join(pieces)
        at = bare_line_end(message)
        clean = not set(message.replace(b"\r\n", b"")) & set(b"\r\n")
        self.assertEqual(at is None, clean)
        if at is not None:
            self.assertIn(message[at : at + 1], (b"\r", b"\n"))
            self.assertIsNone(bare_line_end(message[:at]))
            self.assertNotEqual(message[at : at + 2], b"\r\n")
