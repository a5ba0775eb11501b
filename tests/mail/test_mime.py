"""The walk over the parts: what is found where, and that size and nesting cost little."""

import tracemalloc
from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.judge import BounceOf, FromPerson, Refused, judge
from mailgateway.mail.attachments import files_of
from mailgateway.mail.decode import Field
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.mime import BOUNDARY_LIMIT, DASHES_LIMIT, PART_LIMIT, Leaf, Walked, walk
from mailgateway.mail.parts import TEXT_LIMIT
from mailgateway.mail.reply import typed_words
from tests.mail.mails import OWN, lay, reply

MIXED = b"Content-Type: multipart/mixed; boundary="
ROOT = (Field("content-type", b"multipart/mixed; boundary=b"),)


def walked(body: bytes, fields: tuple[Field, ...] = ROOT) -> Walked:
    """The parts of a body under these fields."""
    return walk(fields, b"\n" + body, 1)


def bodies(body: bytes) -> list[bytes]:
    """The bodies of all leaves."""
    return [leaf.body for leaf in walked(body).leaves]


def nested(levels: int, leaf: bytes) -> bytes:
    """A body for boundary ``b`` in which each multipart holds one more, and the last one the leaf."""
    head = b"".join(b"--b%d\r\n" % level + MIXED + b"b%d\r\n\r\n" % (level + 1) for level in range(levels))
    return b"--b\r\n" + MIXED + b"b0\r\n\r\n" + head + b"--b%d\r\n\r\n" % levels + leaf


def large_mail(raw: bytes, body: bytes) -> bytes:
    """The header of a mail with another body."""
    return raw.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n" + body


def peak(run: Callable[[], object]) -> int:
    """Bytes that a call takes at most, beside what was there before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


class DelimiterTests(SynchronousTestCase):
    """Where a part ends."""

    def test_the_line_break_before_a_delimiter_belongs_to_it(self) -> None:
        """With CRLF and with LF, in an empty part, and at the end."""
        self.assertEqual(bodies(b"--b\r\n\r\nx\r\n\r\n--b--\r\n"), [b"x\r\n"])
        self.assertEqual(bodies(b"pre\n--b\n\nx\n--b\n--b\n\n\n--b-- \t\nepi\n--b\n\nz"), [b"x", b"", b""])
        self.assertEqual(bodies(b"--b\n\nx\n--b--"), [b"x"])
        self.assertEqual(bodies(b"--b\n\nx\n"), [b"x\n"])

    def test_what_only_looks_like_a_delimiter(self) -> None:
        """Inside a line, longer, or of a multipart that is closed or not yet open."""
        text = b" --b\nx--b\n--bb\n--b x\n--c\n---b\n--b---\n--b" + b" " * 400
        self.assertEqual(bodies(b"--b\n\n" + text + b"\n--b--"), [text])
        inner = b"--b\n" + MIXED + b"c\n\n--c\n\n1\n--c--\n--c\n\n2\n--b\n\n--c\n--b--"
        self.assertEqual(bodies(inner), [b"1", b"--c"])

    def test_the_outermost_ends_all_within(self) -> None:
        """Even amid a header, and when an inner one has the same boundary, or one with more dashes."""
        self.assertEqual(
            bodies(b"--b\n" + MIXED + b"c\n\n--c\n\n1\n--b\n\n2\n--c\n\n--b--"), [b"1", b"2\n--c\n"]
        )
        self.assertEqual(bodies(b"--b\nContent-Type: text/html\n--b\n\n2\n--b--"), [b"", b"2"])
        self.assertEqual(bodies(b"--b\n" + MIXED + b"b\n\n--b\n\n1\n--b--\n--b\n\n2"), [b"1"])
        dashes = b'--b\nContent-Type: multipart/mixed; boundary="b--"\n\n--b--\n\n1\n'
        self.assertEqual(bodies(dashes), [])

    def test_a_boundary_that_cannot_be_one(self) -> None:
        """Empty or too long: the multipart is one text."""
        for boundary in (b"", b'""', b"x" * (BOUNDARY_LIMIT + 1)):
            (leaf,) = walked(
                b"--\n\nx", (Field("content-type", b"multipart/mixed; boundary=" + boundary),)
            ).leaves
            self.assertEqual((leaf.content_type, leaf.body), ("text/plain", b"--\n\nx"))

    @given(
        st.lists(
            st.sampled_from(
                [
                    *(b"\n", b"\r\n", b"--b\n", b"--b--\n", b"--c\r\n", b"--c--", b"x", b"\n\n", b"--", b" "),
                    *(MIXED + b"c\n\n", MIXED + b"b\n\n", b"Content-Type: text/html\n", MIXED + b'"c--"\n\n'),
                ]
            ),
            max_size=40,
        )
    )
    def test_leaves_lie_apart_and_in_order(self, pieces: list[bytes]) -> None:
        """No byte belongs to two parts, and none is invented."""
        body = b"\n" + b"".join(pieces)
        at = 0
        for leaf in walk(ROOT, body, 1).leaves:
            self.assertTrue(at <= leaf.start <= leaf.end <= len(body), leaf)
            at = leaf.end


class BoundTests(SynchronousTestCase):
    """What no mail can make the walk do."""

    def test_three_hundred_levels_are_read(self) -> None:
        """Some programs wrap a thread once more with each answer."""
        inbound = read(reply(nested(300, b"words\r\n").decode(), content_type="multipart/mixed; boundary=b"))
        assert isinstance(inbound, Inbound)
        self.assertEqual((inbound.texts, inbound.tree.truncated), (("words\n",), False))

    def test_every_part_counts(self) -> None:
        """Leaves, multiparts without any leaf, and one within the other: the walk ends at the bound."""
        empty = b"--b\r\n" + MIXED + b"c\r\n\r\nx\r\n"
        wide = b"".join(
            b"--b\r\n"
            + MIXED
            + b"c%d\r\n\r\n" % outer
            + b"".join(b"--c%d\r\n" % outer + MIXED + b"d\r\n\r\n" for _ in range(30))
            for outer in range(300)
        )
        for body in (empty * 3000, wide, nested(PART_LIMIT + 5, b"x"), b"--b\r\n\r\nx\r\n" * 3000):
            found = walked(body)
            self.assertTrue(found.truncated)
            self.assertEqual(len(found.leaves) + len(found.multiparts), PART_LIMIT)

    def test_lines_of_dashes_are_counted(self) -> None:
        """The part that is open then takes the rest; nothing of it is lost."""
        body = b"--b\n\n" + b"--\n" * DASHES_LIMIT + b"--b\n\nx"
        found = walked(body)
        self.assertTrue(found.truncated)
        self.assertEqual([leaf.size for leaf in found.leaves], [len(body) - 5])

    def test_no_level_costs_a_copy(self) -> None:
        """A mail of 25 MB, nested deep: what judging takes beside it is small, and reading it not much."""
        size = 25_000_000
        body = nested(250, b"Yes.\r\n--b250\r\nContent-Type: application/x\r\n\r\n" + b"x" * size)
        raw = large_mail(reply(content_type="multipart/mixed; boundary=b"), body)
        self.assertIsInstance(judge(raw, OWN), FromPerson)
        self.assertLess(peak(lambda: judge(raw, OWN)), size / 10)

        def read_all() -> None:
            inbound = read(raw)
            assert isinstance(inbound, Inbound)
            self.assertEqual(typed_words(inbound, OWN, None).text, "Yes.")
            self.assertEqual([len(part.data) for part in files_of(inbound.tree)], [size])

        self.assertLess(peak(read_all), size * 1.5)

    def test_a_forged_mail_s_parts_are_not_looked_at(self) -> None:
        """Its header says enough, whatever hangs on it."""
        body = nested(250, b"x" * 25_000_000)
        for top in ([], [("Authentication-Results", "mx.example.net; dmarc=fail; dkim=fail")]):
            raw = large_mail(reply(top=top, content_type="multipart/mixed; boundary=b"), body)
            self.assertIsInstance(judge(raw, OWN), Refused)
            self.assertLess(peak(partial(judge, raw, OWN)), 200_000)

    def test_a_report_s_parts_are_looked_at_within_bounds(self) -> None:
        """Anybody can send one."""
        raw = large_mail(
            lay([("From", "mailer-daemon@x.example"), ("Content-Type", "multipart/report; boundary=b")]),
            b"".join(
                b"--b\r\nContent-Type: message/rfc822\r\n\r\n" + b"<x" * 500_000 + b"\r\n" for _ in range(20)
            ),
        )
        self.assertIsInstance(judge(raw, OWN), BounceOf)
        self.assertLess(peak(lambda: judge(raw, OWN)), len(raw) / 4)

    def test_a_large_attachment_is_decoded_without_its_lines(self) -> None:
        """A list of all lines would take several times the mail."""
        data = b"QUJD" * 19 + b"\r\n"
        body = b"--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\n" + data * 130_000
        for end in (b"", b"____ a footer\r\n"):
            raw = large_mail(reply(content_type="multipart/mixed; boundary=b"), body + end)
            inbound = read(raw)
            assert isinstance(inbound, Inbound)
            self.assertEqual([len(part.data) for part in files_of(inbound.tree)], [130_000 * 57])
            self.assertLess(peak(partial(files_of, inbound.tree)), len(raw) * 3)

    def test_no_more_text_is_decoded_than_is_read(self) -> None:
        """In one part or in many, plain or HTML; that it goes on is said."""
        for kind in ("plain", "html"):
            for part in (b"\xc3\xa9 \r\n" * 200_000, b"a" * 4_000_000):
                head = b"--b\r\nContent-Type: text/%s; charset=utf-8; format=flowed\r\n\r\n" % kind.encode()
                body = (head + part + b"\r\n") * 4
                raw = large_mail(reply(content_type="multipart/mixed; boundary=b"), body)
                inbound = read(raw)
                assert isinstance(inbound, Inbound)
                texts = inbound.texts + inbound.htmls
                self.assertLessEqual(sum(map(len, texts)), TEXT_LIMIT + 10)
                self.assertNotIn("\xc3", "".join(texts))
                self.assertTrue(typed_words(inbound, OWN, None).shortened)


class LeafTests(SynchronousTestCase):
    """A leaf knows its place."""

    def test_its_bytes_are_cut_out_when_asked_for(self) -> None:
        """The whole or its beginning; and they are in no repr."""
        (leaf,) = walked(b"--b\nContent-Id: <i>\n\nsecret words\n--b--").leaves
        self.assertEqual(
            (leaf.body, leaf.head(6), leaf.head(99), leaf.size), (b"secret words", b"secret", leaf.body, 12)
        )
        self.assertNotIn("secret", repr(leaf))
        self.assertIsInstance(leaf, Leaf)
