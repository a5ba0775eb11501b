"""Reading ``winmail.dat``: what Outlook packs, and whatever else the bytes may be."""

import struct
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.tnef import FILES_LIMIT, SIGNATURE, files_of_tnef


def attribute(level: int, number: int, value: bytes, kind: int = 6) -> bytes:
    """One attribute with its checksum."""
    head = struct.pack("<BHHI", level, number, kind, len(value))
    return head + value + struct.pack("<H", sum(value) & 0xFFFF)


def stream(*attributes: bytes) -> bytes:
    """A whole stream."""
    return SIGNATURE + b"\x01\x00" + b"".join(attributes)


def string(tag: int, text: str) -> bytes:
    """A MAPI property with Unicode text."""
    value = text.encode("utf-16-le") + b"\0\0"
    return struct.pack("<HHII", 0x001F, tag, 1, len(value)) + value + b"\0" * (-len(value) % 4)


def packed(title: str, data: bytes, long_name: str = "", mime: str = "") -> bytes:
    """The attributes of one file."""
    found = attribute(2, 0x9002, b"\0" * 14) + attribute(2, 0x8010, title.encode("cp1252") + b"\0")
    found += attribute(2, 0x800F, data)
    properties = [string(0x3707, long_name)] if long_name else []
    properties += [string(0x370E, mime)] if mime else []
    # properties that say nothing to us: a number, several numbers, a named one, a binary
    properties.append(struct.pack("<HHI", 0x0003, 0x0E20, 7))
    properties.append(struct.pack("<HHIII", 0x1003, 0x6600, 2, 1, 2))
    name = "x".encode("utf-16-le") + b"\0\0"
    properties.append(
        struct.pack("<HH", 0x000B, 0x8001)
        + b"\0" * 16
        + struct.pack("<II", 1, len(name))
        + name
        + b"\1\0\0\0"
    )
    block = struct.pack("<I", len(properties)) + b"".join(properties)
    return found + attribute(2, 0x9005, block)


class FilesTests(SynchronousTestCase):
    """What is found in streams as Outlook writes them."""

    def test_files_with_their_names(self) -> None:
        """The long name where there is one, else the short one; type and bytes."""
        raw = stream(
            attribute(1, 0x9007, struct.pack("<II", 1252, 0)),
            attribute(1, 0x800C, b"the text, which the mail has itself"),
            packed("REPORT~1.PDF", b"%PDF-1.7", "report for Zoë.pdf", "application/pdf"),
            packed("notes.md", b"# notes"),
        )
        found = files_of_tnef(raw)
        assert found is not None
        self.assertEqual(
            [(each.filename, each.content_type, each.data) for each in found],
            [("report for Zoë.pdf", "application/pdf", b"%PDF-1.7"), ("notes.md", "", b"# notes")],
        )

    def test_bytes_among_the_properties(self) -> None:
        """Without a data attribute they stand there; an embedded object has an id in front."""
        for kind, value in ((0x0102, b"abcde"), (0x000D, b"\x0b" * 16 + b"abcde")):
            data = struct.pack("<HHII", kind, 0x3701, 1, len(value)) + value + b"\0" * (-len(value) % 4)
            block = struct.pack("<I", 2) + data + string(0x3707, "a.bin")
            found = files_of_tnef(stream(attribute(2, 0x9002, b""), attribute(2, 0x9005, block)))
            assert found is not None
            self.assertEqual([(each.filename, each.data) for each in found], [("a.bin", b"abcde")])

    def test_no_files(self) -> None:
        """A stream that holds the look of the text alone; what some servers put behind it is no matter."""
        raw = stream(attribute(1, 0x800C, b"text"))
        self.assertEqual(files_of_tnef(raw), ())
        self.assertEqual(files_of_tnef(raw + b"\r\n"), ())

    def test_what_is_no_stream(self) -> None:
        """Something else, and a stream that ends within a file: the caller keeps it as it came."""
        self.assertIsNone(files_of_tnef(b""))
        self.assertIsNone(files_of_tnef(b"%PDF-1.7 and so on"))
        raw = stream(packed("a.txt", b"x" * 100))
        self.assertIsNone(files_of_tnef(raw[:60]))


class HostileTests(SynchronousTestCase):
    """Bytes that somebody made up."""

    def test_many_files(self) -> None:
        """Their number is bounded."""
        found = files_of_tnef(stream(*(packed(f"{n}", b"") for n in range(FILES_LIMIT + 20))))
        assert found is not None
        self.assertEqual(len(found), FILES_LIMIT)

    def test_counts_that_lie(self) -> None:
        """A property with four thousand million values, each of no bytes, costs nothing."""
        block = struct.pack("<IHHI", 1, 0x101E, 0x3001, 0xFFFFFFFF) + b"\0" * 4_000_000
        raw = stream(attribute(2, 0x9002, b""), *(attribute(2, 0x9005, block) for _ in range(5)))
        start = time.process_time()
        self.assertEqual(files_of_tnef(raw), ())
        self.assertLess(time.process_time() - start, 0.5)

    @given(st.data())
    @settings(max_examples=100, deadline=None)
    def test_changed_bytes(self, data: st.DataObject) -> None:
        """Whatever is changed or cut, it is read or refused, and gives no more bytes than it has."""
        raw = bytearray(
            stream(packed("a.txt", b"words", "long name.txt", "text/plain"), packed("b", b"x" * 40, "c.bin"))
        )
        for _ in range(data.draw(st.integers(0, 6))):
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
        cut = bytes(raw[: data.draw(st.integers(0, len(raw)))])
        for each in files_of_tnef(cut) or ():
            self.assertLessEqual(len(each.data), len(cut))
            each.filename.encode("utf-8")
            self.assertNotIn("\0", each.filename)

    @given(st.binary(max_size=400))
    @settings(max_examples=100, deadline=None)
    def test_any_bytes(self, noise: bytes) -> None:
        """Behind a true signature too."""
        files_of_tnef(noise)
        files_of_tnef(stream(noise))
        files_of_tnef(stream(attribute(2, 0x9002, b""), attribute(2, 0x9005, noise)))
