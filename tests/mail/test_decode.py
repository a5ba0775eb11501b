"""From bytes to text: never raising, within bounds, kind to bodies, strict with header blocks."""

import base64
import email.header

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.charset import decode_text
from mailgateway.mail.decode import (
    HEADER_LIMIT,
    Field,
    Malformed,
    decode_base64,
    decode_header,
    decode_transfer,
    parse_fields,
    parse_fields_kindly,
    split_message,
    visible,
)


class HeaderBlockTests(SynchronousTestCase):
    """A header block has one reading or none."""

    def test_lines_end_in_crlf_or_lf(self) -> None:
        """Both give the same fields and the same body."""
        raw = b"From: a@b.example\r\nSubject: x\r\n y\r\n\r\nbody\r\n\r\nmore"
        for each in (raw, raw.replace(b"\r\n", b"\n")):
            block, body = split_message(each)
            self.assertEqual(parse_fields(block), (Field("from", b"a@b.example"), Field("subject", b"x y")))
            self.assertEqual(body.replace(b"\r\n", b"\n"), b"body\n\nmore")

    def test_what_can_be_read_in_two_ways_is_malformed(self) -> None:
        """NUL, bare CR, a leading blank, blanks before a colon that matters, nothing, too much."""
        for block in (
            b"",
            b"no field at all",
            b"From: a\0@b.example",
            b"From: a@b.example\rFrom: c@d.example",
            b" From: a@b.example",
            b"\tx\r\nFrom: a@b.example",
            b"From : a@b.example\r\nFrom: c@d.example",
            b"Authentication-Results\t: x\r\nFrom: c@d.example",
            b"Subject: " + b"a" * HEADER_LIMIT,
            b"A: b\r\n" * 3000,
        ):
            self.assertIsInstance(parse_fields(block), Malformed, block[:40])

    def test_a_line_that_is_no_field_is_left_out(self) -> None:
        """With its continuation; what follows is read."""
        self.assertEqual(parse_fields(b"garbage\r\n more\r\nFrom: a@b"), (Field("from", b"a@b"),))

    def test_a_mail_without_an_empty_line_is_all_header(self) -> None:
        """And one that begins with an empty line has none."""
        self.assertEqual(split_message(b"A: b\r\nC: d"), (b"A: b\r\nC: d", b""))
        self.assertEqual(split_message(b"\r\nbody"), (b"", b"body"))

    @given(st.binary(max_size=400))
    def test_no_bytes_raise(self, raw: bytes) -> None:
        """Strict and kind reading both end; the strict one yields no line break and no NUL."""
        block, _ = split_message(raw)
        parse_fields_kindly(block)
        fields = parse_fields(block)
        if not isinstance(fields, Malformed):
            for each in fields:
                self.assertFalse(set(each.value) & {0, 10, 13})


class EncodedWordTests(SynchronousTestCase):
    """RFC 2047, with the faults of the field."""

    def test_words_are_decoded_and_joined(self) -> None:
        """Blanks between two words vanish, those beside plain text stay; characters may be cut in two."""
        umlaut = base64.b64encode("ü".encode()).decode()
        self.assertEqual(decode_header(b"Re: =?utf-8?Q?a_b?= =?UTF-8?q?=C3=BC?= c"), "Re: a bü c")
        self.assertEqual(decode_header(f"=?utf-8?B?{umlaut}?=".encode()), "ü")
        self.assertEqual(decode_header(b"=?utf-8?Q?=C3?= =?utf-8?Q?=BC?="), "ü")
        self.assertEqual(decode_header(b"=?iso-8859-1*de?Q?=FC?="), "ü")
        self.assertEqual(decode_header("grün".encode()), "grün")
        self.assertEqual(decode_header(b"gr\xfcn"), "grün")

    def test_control_characters_become_blanks(self) -> None:
        """No encoded word can smuggle a line break into a log or a header."""
        self.assertEqual(decode_header(b"=?utf-8?Q?a=0D=0AFrom:_b?="), "a From: b")

    def test_direction_marks_are_not_shown(self) -> None:
        """They would turn a name around in a log."""
        self.assertEqual(visible("\u202eevil\u202c\x00name\u200b"), "evil name")

    @given(st.text(max_size=60))
    def test_what_the_standard_library_encodes_comes_back(self, text: str) -> None:
        """For any text that survives cleaning itself."""
        text = " ".join("".join(char for char in text if char.isprintable()).split())
        if not text or not text.strip() or "=?" in text:
            return
        encoded = email.header.Header(text, "utf-8").encode().replace("\n", "").encode()
        self.assertEqual(decode_header(encoded), text)

    @given(st.binary(max_size=200))
    def test_no_bytes_raise(self, value: bytes) -> None:
        """And none leaves a line break."""
        self.assertNotIn("\n", decode_header(b"=?utf-8?B?" + value + b"?= " + value))


class TransferTests(SynchronousTestCase):
    """Transfer encodings as they really come."""

    def test_base64_with_the_usual_faults(self) -> None:
        """No padding, several padded blocks, and a plain footer below."""
        whole = base64.b64encode(b"hello world, this is it")
        self.assertEqual(decode_base64(whole.rstrip(b"=")), b"hello world, this is it")
        self.assertEqual(decode_base64(base64.b64encode(b"ab") + b"\r\n" + base64.b64encode(b"c")), b"abc")
        self.assertEqual(decode_base64(base64.b64encode(b"ab") + base64.b64encode(b"c")), b"abc")
        self.assertEqual(decode_base64(whole + b"\r\n____ list footer!\r\n"), b"hello world, this is it")
        self.assertEqual(decode_base64(b"!!!!"), b"")

    def test_the_name_of_the_encoding_is_read_kindly(self) -> None:
        """Blanks, quotes, capitals and trailing rubbish; an unknown one leaves the bytes alone."""
        for name in ("quoted-printable ", "Quoted-Printable; x", '"quoted-printable"'):
            self.assertEqual(decode_transfer(b"=C3=BC=\r\nx", name), "üx".encode())
        self.assertEqual(decode_transfer(b"=C3", "utf8"), b"=C3")

    @given(st.binary(max_size=300), st.sampled_from(["base64", "quoted-printable", "7bit", "", ";", "x y"]))
    def test_no_bytes_raise(self, body: bytes, encoding: str) -> None:
        """Whatever the encoding is said to be."""
        decode_transfer(body, encoding)

    @given(st.binary(max_size=300))
    def test_base64_comes_back(self, data: bytes) -> None:
        """Wrapped at any width."""
        text = base64.encodebytes(data)
        self.assertEqual(decode_base64(text), data)


class CharsetTests(SynchronousTestCase):
    """The ladder of charsets."""

    def test_the_declared_one_as_the_web_reads_it(self) -> None:
        """What is labelled so is the wider set."""
        for text, label, codec in (
            ("①の方で", "Shift_JIS", "cp932"),
            ("朱镕基", "gb2312", "gb18030"),
            ("“x”", "iso-8859-1", "cp1252"),
            ("ü", "uft-8", "utf-8"),
            ("שלום", "iso-8859-8-i", "iso-8859-8"),
        ):
            self.assertEqual(decode_text(text.encode(codec), label), text)

    def test_when_the_label_is_wrong_or_missing(self) -> None:
        """UTF-8 when it is, escapes when there are some, the HTML's own word, else Windows-1252."""
        self.assertEqual(decode_text("ü".encode(), "klingon"), "ü")
        self.assertEqual(decode_text(b"\xfc", "utf-8"), "ü")
        self.assertEqual(decode_text("日本".encode("iso2022_jp"), ""), "日本")
        self.assertEqual(
            decode_text("<meta charset=koi8-r>привет".encode("koi8-r"), ""), "<meta charset=koi8-r>привет"
        )

    @given(
        st.binary(max_size=200),
        st.one_of(st.text(max_size=20), st.sampled_from(["idna", "zip", "hex", "rot13", "utf-7", "a\0b"])),
    )
    def test_no_bytes_and_no_label_raise(self, data: bytes, charset: str) -> None:
        """Codecs that are no charsets included."""
        self.assertIsInstance(decode_text(data, charset), str)
