"""The texts of ESMTP: lenient in what is read, strict in what is written."""

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.wire.esmtp import (
    MAX_TEXT,
    Extensions,
    Path,
    Reply,
    ehlo_name,
    extensions,
    is_reply_line,
    mail_command,
    path,
    reply,
)


class ReplyTests(SynchronousTestCase):
    """Replies are shown to people, so they are made fit for it."""

    def test_control_characters_are_blanked(self) -> None:
        """A server's text cannot draw on a terminal or forge a line of a log."""
        self.assertEqual(reply(550, b"no\r\n\x1b[31m\xe2\x80\xaered").text, "no [31m red")

    def test_echoed_secrets_are_removed(self) -> None:
        """Some servers repeat a command that they do not understand."""
        shown = reply(500, b"unknown: AUTH PLAIN AGFnAHg= pass:x y", ["AGFnAHg=", "x y", ""])
        self.assertEqual(str(shown), "500 unknown: AUTH PLAIN *** pass:***")

    def test_secret_at_the_cut(self) -> None:
        """What is cut off does not leave half a secret behind."""
        self.assertNotIn("sec", reply(500, b"a" * (MAX_TEXT - 3) + b"secret", ["secret"]).text)

    def test_enhanced_code(self) -> None:
        """Only at the start, and only a whole one."""
        for text, enhanced in (
            ("5.7.8 bad", "5.7.8"),
            ("5.7.139", "5.7.139"),
            ("1.2.3 x", ""),
            ("see 5.7.8", ""),
            ("5.7.8.9 x", ""),
        ):
            self.assertEqual(Reply(550, text).enhanced, enhanced, text)

    def test_reply_lines(self) -> None:
        """A code, then nothing, a space or a hyphen."""
        for line in (b"250", b"250 ok", b"250-", b"599 \xff"):
            self.assertTrue(is_reply_line(line), line)
        for line in (b"", b"25", b"150 x", b"650 x", b"2500", b"* OK", b"250ok", b" 250 ok"):
            self.assertFalse(is_reply_line(line), line)


class ExtensionTests(SynchronousTestCase):
    """The answer to EHLO as servers really write it."""

    def test_usual(self) -> None:
        """Every extension that we use."""
        self.assertEqual(
            extensions(b"me\nSTARTTLS\nAUTH PLAIN LOGIN\nSIZE 1000\n8BITMIME\nSMTPUTF8\nPIPELINING"),
            Extensions(
                starttls=True,
                mechanisms=frozenset({"PLAIN", "LOGIN"}),
                announces_size=True,
                size=1000,
                eight_bit=True,
                utf8=True,
            ),
        )

    def test_odd(self) -> None:
        """Empty lines, lower case, the old form of AUTH beside the new one, and limits that are none."""
        self.assertEqual(extensions(b"me\n\nauth plain").mechanisms, {"PLAIN"})
        self.assertEqual(
            extensions(b"me\nAUTH=PLAIN LOGIN\nAUTH XOAUTH2").mechanisms, {"PLAIN", "LOGIN", "XOAUTH2"}
        )
        self.assertTrue(extensions(b"me\nstarttls").starttls)
        for line in (b"SIZE", b"SIZE 0", b"size many", b"SIZE -1"):
            offered = extensions(b"me\n" + line)
            self.assertTrue(offered.announces_size)
            self.assertIsNone(offered.size)

    def test_the_name_is_no_extension(self) -> None:
        """The first line names the server, whatever it is called."""
        self.assertEqual(extensions(b"STARTTLS"), Extensions())

    @given(st.binary(max_size=200))
    def test_anything_is_survived(self, text: bytes) -> None:
        """No answer makes the reader fail."""
        extensions(text)


class PathTests(SynchronousTestCase):
    """Addresses between angle brackets."""

    def test_ascii_is_written_as_it_is(self) -> None:
        """Case, plus signs, quoted strings and address literals included."""
        for address in ("Agent+mg-1@Example.org", '"a b"@x.org', "me@[127.0.0.1]", "x=y@localhost"):
            written = path(address)
            assert written is not None
            self.assertEqual(bytes(written), f"<{address}>".encode())
            self.assertFalse(written.utf8)

    def test_international(self) -> None:
        """A domain has an ASCII form; a local part has none."""
        self.assertEqual(path("a@bücher.example"), Path("a@xn--bcher-kva.example"))
        self.assertEqual(path("jörg@bücher.example"), Path("jörg@xn--bcher-kva.example", utf8=True))

    def test_dangerous(self) -> None:
        """What could end the command, or the address, is refused and not cut."""
        for address in (
            "",
            "nobody",
            "a@b>\r\nRCPT TO:<c@d",
            "a@b\n",
            "a b@c",
            "a@b c",
            "a@b> SIZE=1",
            "<a@b>",
            "@relay:a@b",
            "a@b,c@d",
            '"a\nb"@c',
            "a@@b",
            "a@",
            "x" * 250 + "@example.org",
            "a@\u2024.example..",
        ):
            self.assertIsNone(path(address), address)

    @given(st.text(max_size=60))
    def test_what_is_written_stays_inside_its_brackets(self, text: str) -> None:
        """Whatever the address, the path is one word on one line."""
        for address in (text, f"{text}@example.org", f"me@{text}"):
            written = path(address)
            if written is not None:
                self.assertRegex(bytes(written), rb"\A<[^\r\n<>]+>\Z")


class CommandTests(SynchronousTestCase):
    """MAIL and EHLO."""

    def test_parameters(self) -> None:
        """Each only when it is offered and needed."""
        sender = Path("me@x")
        everything = Extensions(announces_size=True, eight_bit=True, utf8=True)
        for offered, message, utf8, line in (
            (Extensions(), b"\xff\r\n", False, b"MAIL FROM:<me@x>"),
            (everything, b"hi\r\n", False, b"MAIL FROM:<me@x> SIZE=4"),
            (everything, b"\xff\r\n", False, b"MAIL FROM:<me@x> SIZE=3 BODY=8BITMIME"),
            (everything, b"hi\r\n", True, b"MAIL FROM:<me@x> SIZE=4 SMTPUTF8"),
        ):
            self.assertEqual(mail_command(sender, message, offered, utf8=utf8), line)

    def test_ehlo_name(self) -> None:
        """A host name that EHLO cannot carry is replaced by an address literal."""
        for name in ("mail.example.org", "box", "[192.0.2.1]", "[IPv6:::1]"):
            self.assertEqual(ehlo_name(name), name)
        for name in ("", "my_box", "bücher", "a b", "x\r\nMAIL", "a..b", "x" * 300):
            self.assertEqual(ehlo_name(name), "[127.0.0.1]", name)
