"""Mailbox names, against Twisted's codec ``imap4-utf-7``."""

import twisted.mail.imap4
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.wire.modified_utf7 import decode, encode

assert twisted.mail.imap4.__doc__, "importing it registers the codec"

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
printable = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


class ModifiedUtf7Tests(SynchronousTestCase):
    """Both ways."""

    @settings(max_examples=100)
    @given(names)
    def test_round_trip(self, name: str) -> None:
        """Every name survives, and its wire form is printable ASCII."""
        raw = encode(name)
        self.assertEqual(decode(raw), name)
        self.assertTrue(all(32 <= byte < 127 for byte in raw))

    @settings(max_examples=100)
    @given(printable)
    def test_agrees_with_twisted(self, name: str) -> None:
        """Its codec reads what we write and writes what we read."""
        self.assertEqual(encode(name).decode("imap4-utf-7"), name)
        self.assertEqual(decode(name.encode("imap4-utf-7")), name)

    def test_examples(self) -> None:
        """From RFC 3501 and from the field (row 40)."""
        for name, raw in (
            ("~peter/mail/台北/日本語", b"~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
            ("A & B", b"A &- B"),
            ("[Gmail]/Gönderilmiş Postalar", b"[Gmail]/G&APY-nderilmi&AV8- Postalar"),
            ("a\r\nb", b"a&AA0ACg-b"),
        ):
            self.assertEqual((encode(name), decode(raw)), (raw, name))

    @settings(max_examples=100)
    @given(st.binary(max_size=30))
    def test_decoding_never_fails(self, raw: bytes) -> None:
        """What is broken is shown as it is."""
        self.assertIsInstance(decode(raw), str)

    def test_broken_names_stay_recognisable(self) -> None:
        """An open shift, raw UTF-8, a shift that means nothing."""
        self.assertEqual(decode(b"a&b"), "a&b")
        self.assertEqual(decode("Entwürfe".encode()), "Entwürfe")
        self.assertEqual(decode(b"x&A-y"), "x&A-y")
        self.assertEqual(decode(b"&2AA-"), "&2AA-")
