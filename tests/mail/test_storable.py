"""Every text that leaves the reading of a mail can be kept: no lone surrogate, no NUL, whatever was sent.

The walk asks the values themselves which texts they have, so that a new attribute is tested from its first
day.
"""

import types
from collections.abc import Iterator, Mapping
from functools import cached_property

import attrs
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.explain import explain
from mailgateway.domain.judge import judge
from mailgateway.mail.attachments import attachments_of
from mailgateway.mail.charset import NAME_LIMIT, codec_of, decode_text, storable
from mailgateway.mail.inbound import Inbound, ScanHeaders, concerns, is_candidate, read
from mailgateway.mail.reply import typed_words
from tests.mail.mails import OWN, PERSON, SENT_ID, SENT_TEXT, lay, reply

EVIL_TEXT = b"+2AA-+AAA- a\\ud800\\x00 \x00 \xed\xa0\x80 &#xD800;&#0;&#55296; =?utf-7?Q?+2AA-?= \xff"
"""A lone surrogate and a NUL, each in all ways that some reader would take for one."""

CHARSETS = (
    *("utf-7", "unicode-1-1-utf-7", ":unicode_escape", "raw-unicode_escape", "_punycode", "idna", "utf-8"),
    *("utf-16", "utf-16-le", "utf-32", "cp1252", "iso-2022-jp", "utf-8-sig", "utf-8; x", "rot13", "hex"),
    *("utf_16_surrogatepass", "mbcs", "undefined", "x" * 500, ""),
)


def evil_mail(charset: str) -> bytes:
    """The evil text everywhere, labelled with one charset."""
    label = charset.encode()
    word = (
        b"=?" + label + b"?Q?" + EVIL_TEXT.replace(b" ", b"_").replace(b"?", b"").replace(b"\0", b"") + b"?="
    )
    clean = EVIL_TEXT.replace(b"\0", b"")
    percent = b"".join(b"%%%02X" % byte for byte in EVIL_TEXT)
    fields: list[tuple[str, str | bytes]] = [
        ("From", word + b" <" + PERSON.encode() + b">"),
        ("To", b"<x" + clean + b"@example.org>, agent+f913c9@example.org"),
        ("Subject", b"[mg:f913c9] " + word + clean),
        ("Date", word),
        ("Message-ID", b"<" + clean.replace(b" ", b"") + b"@x>"),
        ("In-Reply-To", b"<\xed\xa0\x80+2AA-@x> " + SENT_ID.encode()),
        ("References", b"<\xff\xed\xa0\x80@x>"),
        ("Content-Type", b"multipart/mixed; boundary=b"),
    ]
    parts = [
        b"Content-Type: text/plain; charset=" + label + b"\r\n\r\n" + EVIL_TEXT + b"\r\n> " + EVIL_TEXT,
        b"Content-Type: text/html; charset=" + label + b"\r\n\r\n<p title='&#xD800;'>" + EVIL_TEXT,
        b"Content-Type: image/"
        + EVIL_TEXT
        + b"; name="
        + word
        + b"\r\nContent-Id: <"
        + EVIL_TEXT
        + b">\r\n\r\nx",
        b"Content-Type: a/b\r\nContent-Disposition: attachment; filename*="
        + label
        + b"''"
        + percent
        + b"\r\n\r\nx",
        b"Content-Type: a/b; x*0*=" + label + b"''%2B2AA; x*1=-; charset=" + label + b"\r\n\r\n" + EVIL_TEXT,
        b"Content-Type: text/plain; name="
        + EVIL_TEXT
        + b"\r\nContent-Transfer-Encoding: "
        + EVIL_TEXT
        + b"\r\n\r\n",
    ]
    return lay(fields) + b"".join(b"--b\r\n" + part + b"\r\n" for part in parts)


def texts_in(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    """All texts that a value holds or computes, with the way to each."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from texts_in(key, f"{path}.keys")
            yield from texts_in(each, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list, set, frozenset)):
        for each in value:
            yield from texts_in(each, f"{path}[]")
    elif attrs.has(type(value)):
        computed = (property, cached_property, types.MemberDescriptorType)  # attrs makes slots of cached ones
        for name in [name for name, each in vars(type(value)).items() if isinstance(each, computed)]:
            if not name.startswith("_"):
                yield from texts_in(getattr(value, name), f"{path}.{name}")


MAILS = (
    reply(),
    reply(
        "Yes.\n\n> " + SENT_TEXT.replace("\n", "\n> "),
        content_type="text/plain; charset=utf-8; format=flowed",
    ),
    reply(
        "--b\nContent-Type: text/plain; charset=iso-2022-jp\n\nx\n"
        "--b\nContent-Type: text/html\n\n<ol><li>x</ol>\n"
        "--b\nContent-Type: image/png; name*0*=utf-8''gr%C3%BCn; name*1=.png\n"
        "Content-Transfer-Encoding: base64\n\naGk=\n--b--\n",
        subject="Re: =?utf-8?B?w7w=?= [mg:f913c9]",
        content_type="multipart/mixed; boundary=b",
    ),
    lay(
        [("From", "MAILER-DAEMON@x.example"), ("Content-Type", "multipart/report; boundary=b; report-type=x")]
    )
    + b"--b\r\n\r\nno\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nAction: failed\r\n"
    b"--b\r\nContent-Type: message/rfc822\r\n\r\nMessage-ID: " + SENT_ID.encode(),
    *(evil_mail(charset) for charset in CHARSETS),
)

TOKENS = (
    *(
        b"\0",
        b"\r",
        b"\n",
        b"\r\n",
        b" ",
        b'"',
        b"(",
        b";",
        b"=",
        b"--",
        b"--b\r\n",
        b"\xff",
        b"<",
        b">",
        b":",
    ),
    *(b"=?utf-7?Q?+2AA-?=", b"=?:unicode_escape?Q?=5Cud800?=", b"=?utf-16?B?ANg=?=", b"&#xD800;", b"&#0;"),
    *(b"*0*=utf-7''%2B2AA-", b"charset=utf-7", b"charset=:unicode_escape", b"\\ud800", b"+2AA-", b"\x1b$B"),
    *(
        b"base64",
        b"quoted-printable",
        b"=ED=A0=80",
        b"=00",
        b"text/html",
        b"&#" + b"9" * 5000,
        b"\xed\xa0\x80",
    ),
)

EDITS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(TOKENS), st.integers(0, 30)), max_size=8)


class StorableTests(SynchronousTestCase):
    """The one property, at every exit."""

    def assert_storable(self, value: object) -> None:
        """Each text of the value can be encoded as UTF-8 and holds no NUL."""
        for path, text in texts_in(value, type(value).__name__):
            self.assertEqual(text, storable(text), path)
            text.encode("utf-8")
            self.assertNotIn("\0", text, path)

    def read_all(self, raw: bytes) -> None:
        """Take one mail through all readings."""
        headers = ScanHeaders(raw[:3000])
        is_candidate(headers.raw, OWN)
        concerns(headers, OWN)
        self.assert_storable(headers)
        self.assert_storable(judge(raw, OWN))
        self.assert_storable(explain(raw, OWN))
        inbound = read(raw)
        if isinstance(inbound, Inbound):
            self.assert_storable(inbound)
            self.assert_storable([inbound.get(each.name) or "" for each in inbound.fields])
            for sent in (None, SENT_TEXT):
                self.assert_storable(typed_words(inbound, OWN, sent))
                self.assert_storable(attachments_of(inbound, OWN, sent))

    def test_the_walk_sees_what_is_computed(self) -> None:
        """It would prove nothing if it looked at stored attributes alone."""
        paths = {path for path, _ in texts_in(read(MAILS[2]), "inbound")}
        for name in (
            "subject",
            "message_id",
            "sender.name",
            "recipients[]",
            "texts[]",
        ):
            self.assertIn(f"inbound.{name}", paths)

    def test_evil_mails(self) -> None:
        """The evil text everywhere, with every label."""
        for raw in MAILS:
            self.read_all(raw)

    @given(st.sampled_from(MAILS), EDITS)
    def test_mutated_mails(self, raw: bytes, edits: list[tuple[float, bytes, int]]) -> None:
        """Wherever something is put in or left out."""
        for place, token, gone in edits:
            at = int(place * len(raw))
            raw = raw[:at] + token + raw[at + gone :]
        self.read_all(raw)

    @given(st.text(), st.lists(st.sampled_from(["\ud800", "\udfff", "\0", "\ud83d\ude00", "\U0001f600"])))
    def test_one_function(self, text: str, evil: list[str]) -> None:
        """It changes what cannot be kept, and nothing else."""
        self.assertEqual(storable(text), text.replace("\0", "\ufffd"))
        kept = storable(text + "".join(evil))
        self.assertEqual(len(kept), len(text + "".join(evil)))
        kept.encode("utf-8")


class CharsetNameTests(SynchronousTestCase):
    """Names are looked up in our own table."""

    def test_what_is_no_charset_is_unknown(self) -> None:
        """However it is spelled: the registry of codecs would find most of these."""
        for name in (
            *(
                "unicode_escape",
                ":unicode_escape",
                "unicode-escape",
                "raw_unicode_escape",
                "punycode",
                "_punycode",
            ),
            *(
                "idna",
                "rot13",
                "hex",
                "zip",
                "bz2",
                "uu",
                "mbcs",
                "oem",
                "undefined",
                "string_escape",
                "a\0b",
                "",
            ),
            *("x" * 100_000, "utf-8" + " " * NAME_LIMIT + "-", "\ud800"),
        ):
            self.assertIsNone(codec_of(name), name[:40])

    def test_spellings(self) -> None:
        """Letters in any case, punctuation left out or other, quotes around."""
        for name in ("utf-8", "UTF8", "Utf_8", '"utf-8"', " utf-8 ", "uft-8"):
            self.assertEqual(codec_of(name), "utf-8", name)
        for name in ("ISO-8859-1", "iso8859-1", "iso_8859-1", "latin1", "Latin-1", "windows-1252", "cp1252"):
            self.assertEqual(codec_of(name), "cp1252", name)

    def test_a_cut_character_is_left_out(self) -> None:
        """And does not make the whole text something else."""
        data = "äöü€".encode()
        for end in range(len(data) + 1):
            self.assertEqual(decode_text(data[:end], "utf-8", cut=True), data[:end].decode("utf-8", "ignore"))
