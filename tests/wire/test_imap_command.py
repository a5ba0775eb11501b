"""Commands on the wire: what a server reads is what was meant, and nothing more."""

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.wire import Misuse, imap_command
from mailgateway.wire.imap_command import Command, Text
from mailgateway.wire.imap_lexer import Framer, Reader
from mailgateway.wire.uid_set import UidSet


class SerialiserTests(SynchronousTestCase):
    """Atoms, quoted strings, literals."""

    @settings(max_examples=100)
    @given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.booleans())
    def test_a_server_reads_what_was_meant(self, contents: list[bytes], plus: bool) -> None:
        """One command, with exactly these strings; or a refusal to write it."""
        command = Command(b"X", tuple(map(Text, contents)))
        if any(forbidden in content for content in contents for forbidden in (b"\r", b"\n", b"\0")):
            with self.assertRaises(Misuse):
                command.pieces(b"A1", unasked=40 if plus else 0)
            return
        pieces = command.pieces(b"A1", unasked=40 if plus else 0)
        self.assertTrue(all(b"\r\n" in piece for piece in pieces))
        framer = Framer()
        framer.feed(b"".join(pieces))
        frame = framer.next_frame()
        assert frame is not None
        self.assertIsNone(framer.next_frame())
        self.assertEqual(framer.pending, 0)
        reader = Reader(frame, len(b"A1 X"))
        self.assertEqual([reader.value() for _ in contents], contents)
        self.assertTrue(reader.at_end())

    def test_forms(self) -> None:
        """The shortest form that is safe."""
        for content, written in (
            (b"INBOX", b"INBOX"),
            (b"", b'""'),
            (b"nil", b'"nil"'),
            (b"a b", b'"a b"'),
            (b'a"b\\', b'"a\\"b\\\\"'),
            (b"50%", b'"50%"'),
        ):
            self.assertEqual(Command(b"X", (Text(content),)).pieces(b"A"), [b"A X " + written + b"\r\n"])

    def test_line_ends_are_refused_everywhere(self) -> None:
        """No name, password or search text begins a command of its own."""
        for bad in ("a\rb", "a\nb", "a\0b"):
            for command in (
                lambda bad=bad: imap_command.login("u", bad).pieces(b"A"),
                lambda bad=bad: imap_command.select(bad.encode()).pieces(b"A"),
                lambda bad=bad: imap_command.search(*imap_command.header_holds("X", bad)).pieces(b"A"),
                lambda bad=bad: imap_command.identify({"name": bad}).pieces(b"A"),
                lambda bad=bad: imap_command.fetch_headers(1, 2, [bad]).pieces(b"A"),
            ):
                with self.assertRaises(Misuse):
                    command()

    def test_a_misuse_shows_no_secret(self) -> None:
        """Neither an error nor a repr holds what was to be sent."""
        command = imap_command.login("ann", "hush\r\n")
        self.assertNotIn("hush", repr(command))
        error = self.assertRaises(Misuse, command.pieces, b"A")
        self.assertNotIn("hush", str(error))

    def test_long_lines_are_refused(self) -> None:
        """Except where a token has to fit."""
        with self.assertRaises(Misuse):
            imap_command.add_seen(UidSet.of(range(1, 2000, 2))).pieces(b"A")
        imap_command.authenticate("XOAUTH2", b"x" * 3000).pieces(b"A")


class ConstructorTests(SynchronousTestCase):
    """The commands that we use."""

    def test_lines(self) -> None:
        """Each as the RFCs write it."""
        for command, line in (
            (imap_command.select("Entwürfe & mehr"), b'SELECT "Entw&APw-rfe &- mehr"'),
            (imap_command.select(b"raw&", read_only=True), b"EXAMINE raw&"),
            (imap_command.fetch_headers(5, 5, ["From"]),
             b"UID FETCH 5 (UID RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER.FIELDS (From)])"),
            (imap_command.fetch_headers(5, None, ["From", "To"], small_body=9),
             (b"UID FETCH 5:* (UID RFC822.SIZE INTERNALDATE BODY.PEEK[HEADER.FIELDS (From To)]"
              b" BODY.PEEK[]<0.10>)")),
            (imap_command.fetch_message(7, 100), b"UID FETCH 7 (UID RFC822.SIZE BODY.PEEK[]<0.100>)"),
            (imap_command.add_seen(UidSet.of([1, 2, 4])), b"UID STORE 1:2,4 +FLAGS.SILENT (\\Seen)"),
            (imap_command.search(imap_command.since(date(2026, 12, 24))), b"UID SEARCH SINCE 24-Dec-2026"),
            (imap_command.identify({}), b"ID NIL"),
            (imap_command.list_mailboxes(), b'LIST "" "*"'),
            (imap_command.status("a b"), b'STATUS "a b" (MESSAGES UIDNEXT UIDVALIDITY)'),
        ):  # fmt: skip
            self.assertEqual(command.pieces(b"A1"), [b"A1 " + line + b"\r\n"])

    def test_search_beyond_ascii_names_its_charset(self) -> None:
        """Otherwise the server may refuse it or find nothing."""
        pieces = imap_command.search(*imap_command.header_holds("Subject", "ä")).pieces(b"A")
        self.assertEqual(pieces, [b"A UID SEARCH CHARSET UTF-8 HEADER Subject {2}\r\n", "ä\r\n".encode()])
