"""The scan's few fields, and the whole mail."""

import base64

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.attachments import files_of
from mailgateway.mail.decode import Malformed, split_message
from mailgateway.mail.inbound import Inbound, ScanHeaders, concerns, is_candidate, may_concern, read
from mailgateway.mail.mime import PART_LIMIT
from mailgateway.mail.parts import safe_filename
from mailgateway.mail.sender import OneMailbox
from tests.mail.mails import AGENT, EVIL, OWN, PERSON, SENT_ID, lay, reply


def candidate(*fields: tuple[str, str]) -> bool:
    """Whether a mail with these fields is one, and the same with LF line ends."""
    block, _ = split_message(lay(fields))
    verdict = is_candidate(block, OWN)
    assert verdict == is_candidate(block.replace(b"\r\n", b"\n"), OWN)
    return verdict


class CandidateTests(SynchronousTestCase):
    """Which mails are fetched."""

    def test_what_concerns_us(self) -> None:
        """An allowed address, a tag, a plus-address, a thread, our own mail, maybe a bounce."""
        stranger = ("From", f"Eve <{EVIL}>")
        tag = base64.b64encode(b"Antw: [mg:f913c9] x").decode()
        for fields in (
            [("From", PERSON)],
            [("From", f"Robin <{PERSON.replace('example', 'EXAMPLE')}>")],
            [("fRoM", PERSON)],
            [("From", f"{PERSON}, {EVIL}")],
            [("From", f"{EVIL} ({PERSON})")],
            [("From", PERSON), stranger],
            [stranger, ("Subject", "Re: [mg:f913c9] x")],
            [stranger, ("Subject", "RE:\r\n [PI:F913C9]\r\n x")],
            [stranger, ("Subject", f"=?utf-8?B?{tag}?=")],
            [stranger, ("Subject", "=?utf-8?Q?=5Bmg=3Af91?=\r\n =?utf-8?Q?3c9=5D?=")],
            [stranger, ("To", "agent+f913c9@example.org")],
            [stranger, ("Delivered-To", "agent+f913c9@example.org")],
            [stranger, ("In-Reply-To", SENT_ID)],
            [stranger, ("References", f"<a@b>\r\n {SENT_ID}\r\n <c@d>")],
            [stranger, ("Message-ID", SENT_ID)],
            [stranger, ("X-Mailgateway-Instance", "other")],
            [("From", "MAILER-DAEMON@mx.example.net")],
            [("From", "Mail Delivery System <postmaster@mx.example.net>")],
        ):
            self.assertTrue(candidate(*fields), fields)

    def test_strangers_are_passed_over(self) -> None:
        """Also those who write to us, use encoded words, or name us and our people elsewhere."""
        stranger = ("From", f"=?utf-8?Q?Ev=C3=A9?= <{EVIL}>")
        for fields in (
            [stranger],
            [stranger, ("To", AGENT), ("Subject", "=?utf-8?Q?Offer_=5B1=5D?=")],
            [stranger, ("To", f"{PERSON}, agent+news@example.org")],
            [("From", f"x{PERSON}")],
            [("From", f'"{PERSON}" <{EVIL}>')],
            [stranger, ("Subject", "[zz:f913c9] [mg:x]")],
            [stranger, ("In-Reply-To", "<a@b>")],
        ):
            self.assertFalse(candidate(*fields), fields)

    def test_of_a_giant_block_only_a_trace_counts(self) -> None:
        """It is not parsed; what may concern us is fetched and then found malformed."""
        giant = b"From: eve@evil.example\r\nSubject: " + b"=?utf-8?Q?=5Bmg=3Af913c9=5D?= " * 5000
        self.assertFalse(is_candidate(giant, OWN))
        self.assertTrue(is_candidate(giant + b"[mg:", OWN))
        self.assertTrue(is_candidate(b"From: " + PERSON.encode() + b"\r\n" + giant, OWN))
        self.assertIsInstance(read(giant + b"[mg:f913c9]"), Malformed)

    def test_the_first_subject_is_looked_at(self) -> None:
        """A mail with two is no person's reply, and each one costs time."""
        tag, other = ("Subject", "=?utf-8?Q?=5Bmg=3Af913c9=5D?="), ("Subject", "x")
        self.assertTrue(candidate(("From", EVIL), tag, other))
        self.assertFalse(candidate(("From", EVIL), other, tag))

    def test_further_ids_of_ours_count(self) -> None:
        """Those that a server wrote in place of ours."""
        own = evolve(OWN, message_ids=["<X-1@Provider.example>"])
        block, _ = split_message(lay([("From", EVIL), ("In-Reply-To", "<X-1@Provider.example>")]))
        self.assertTrue(is_candidate(block, own))

    def test_a_broken_block_of_a_person_is_a_candidate(self) -> None:
        """So that its refusal is counted and not silent."""
        self.assertTrue(is_candidate(b"From : " + PERSON.encode() + b"\0\r\n", OWN))

    @given(st.binary(max_size=200))
    def test_no_bytes_raise(self, noise: bytes) -> None:
        """With and without traces of ours amid them."""
        is_candidate(noise, OWN)
        is_candidate(noise + b"\nSubject: =?" + noise + b" [mg:f913c9", OWN)


_TAG = base64.b64encode(b"[mg:f913c9]")
_JIS = "\u3042".encode("iso2022_jp")
_PIECES = st.sampled_from(
    [
        *(b"From: ", b"from :", b"To:", b"Delivered-To: ", b"Subject: ", b"SUBJECT\x0b:", b" subject:"),
        *(b"Message-ID: ", b"References:", b"X-Mailgateway-Instance: ", b"X-Subject: ", b"Subject\n :"),
        *(PERSON.encode(), PERSON.upper().encode(), b"robin@", b"example.org", b"agent+f913c9@example.org"),
        *(b"agent+", b"MAILER-DAEMON@x", b"postmaster", SENT_ID.encode(), b"<MG.", b"<mg.f913c9.", b">"),
        *(b"[mg:", b"[Pi:F913C9]", b"f913c9]", b"[", b"=?utf-8?B?" + _TAG + b"?=", b"=?utf-8?q?=5bmg:?="),
        *(b"=?utf-7?Q?+AFs-mg:f913c9]?=", b"=?iso-2022-jp?B?", b"=?", b"?=", b"<meta charset=utf-7>"),
        *(b"+AFs-mg:f913c9+AF0-", _JIS, b"\x1b(B", b"\xff", "\N{KELVIN SIGN}\u0130".encode(), b"a", b" "),
        *(b"\r\n", b"\r\n", b"\n", b"\r\n ", b"\n\t", b"\r", b"\0", b'"', b",", b"(", b":", b"<", b"@"),
    ]
)


class ShortcutTests(SynchronousTestCase):
    """What is decided by the bytes alone is decided as the fields would."""

    @settings(max_examples=100)
    @given(st.lists(_PIECES, max_size=14).map(b"".join))
    def test_no_candidate_is_missed(self, block: bytes) -> None:
        """Folded, encoded, in any case and spelling, malformed or not."""
        careful = concerns(ScanHeaders(block), OWN)
        self.assertEqual(is_candidate(block, OWN), careful)
        if careful:
            self.assertTrue(may_concern(block, OWN))

    def test_what_decoding_drops_hides_nothing(self) -> None:
        """NULs, escapes, and charsets that a value names itself, each in the middle of a trace."""
        for block in (
            b"From : ro\0bin@" + PERSON.partition("@")[2].encode(),
            b"Subject: [m\0g:f913c9]\r\nFrom : x",
            b"Subject: [\x1b(Bmg:f913c9] \x1b$B\x1b(B",
            b"Subject: <meta charset=utf-7>\xff +AFs-mg:f913c9]",
            b"Subject : =?utf-8?B?" + _TAG + b"?=\r\n",
            b"A: b\rSubject: =?utf-8?B?" + _TAG + b"?=\r\n",
            b"X: subject subject subject subject\r\nSubject: =?utf-8?B?" + _TAG + b"?=",
        ):
            self.assertEqual(is_candidate(block, OWN), concerns(ScanHeaders(block), OWN), block)

    def test_a_stranger_costs_no_parsing(self) -> None:
        """The usual mail of others is passed over by its bytes, an encoded name or not."""
        for name in ("Eve", "=?utf-8?Q?Ev=C3=A9?="):
            block = f"From: {name} <{EVIL}>\r\nTo: {AGENT}\r\nSubject: [list] the subject: x\r\n\r\n"
            self.assertFalse(may_concern(block.encode(), OWN))


def whole(raw: bytes) -> Inbound:
    """A mail that must be readable."""
    inbound = read(raw)
    assert isinstance(inbound, Inbound), inbound
    return inbound


def multipart(subtype: str, *parts: str) -> str:
    """A body of these parts, boundary ``b``, for a Content-Type that says so."""
    return "".join(f"--b-{subtype}\n{part}\n" for part in parts) + f"--b-{subtype}--\n"


class ReadTests(SynchronousTestCase):
    """The whole mail as a value."""

    def test_the_header(self) -> None:
        """Decoded, with references in document order."""
        inbound = whole(reply(more=[("X-A", "=?utf-8?Q?=C3=BC?=")], subject="=?utf-8?Q?=C3=BC?= [mg:f913c9]"))
        self.assertEqual(inbound.sender, OneMailbox(PERSON, "Robin Sommer"))
        self.assertEqual(inbound.subject, "ü [mg:f913c9]")
        self.assertEqual(inbound.message_id, "<a1@mail.example.org>")
        self.assertEqual((inbound.in_reply_to, inbound.references), ((SENT_ID,), (SENT_ID,)))
        self.assertEqual(inbound.recipients, (AGENT,))
        self.assertEqual((inbound.get("x-a"), inbound.get("x-b")), ("ü", None))

    def test_parts(self) -> None:
        """All inline text parts in order, HTML apart, files apart, an enclosed message closed."""
        body = multipart(
            "mixed",
            "Content-Type: text/plain\n\nfirst",
            "Content-Type: image/png; name*0*=utf-8''gr%C3%BCn; name*1=.png\n"
            "Content-Transfer-Encoding: base64\n\naGk=",
            "Content-Type: text/plain; charset=latin1\nContent-Transfer-Encoding: quoted-printable\n\n=FC",
            'Content-Type: text/plain\nContent-Disposition: attachment; filename="../../etc/passwd"\n\nfile',
            "Content-Type: message/rfc822\n\nFrom: x@y\n\ninner words",
            "Content-Type: text/html\n\n<p>x</p>",
        )
        inbound = whole(reply(body, content_type="multipart/mixed; boundary=b-mixed"))
        self.assertEqual(inbound.texts, ("first", "ü"))
        self.assertEqual(inbound.htmls, ("<p>x</p>",))
        self.assertEqual(
            [(part.filename, part.content_type, part.data) for part in files_of(inbound.tree)],
            [
                ("grün.png", "image/png", b"hi"),
                ("passwd", "text/plain", b"file"),
                ("message.eml", "message/rfc822", b"From: x@y\r\n\r\ninner words"),
            ],
        )

    def test_damaged_structure_is_read_as_far_as_it_goes(self) -> None:
        """No end, no boundary, an inner boundary that begins as the outer one."""
        cut = whole(
            reply("--b\nContent-Type: text/plain\n\nwords", content_type="multipart/mixed; boundary=b")
        )
        self.assertEqual(cut.texts, ("words",))
        self.assertEqual(len(whole(reply("words", content_type="multipart/mixed")).texts), 1)
        nested = (
            "--b\nContent-Type: multipart/alternative; boundary=b2\n\n--b2\n\nin\n--b2--\n--b\n\nout\n--b--\n"
        )
        self.assertEqual(
            whole(reply(nested, content_type="multipart/mixed; boundary=b")).texts, ("in", "out")
        )

    def test_bounds(self) -> None:
        """Thousands of parts and levels end early; the rest is not looked at."""
        many = whole(
            reply("--b\nContent-Type: image/png\n\nx\n" * 3000, content_type="multipart/mixed; boundary=b")
        )
        self.assertEqual(len(files_of(many.tree)), PART_LIMIT - 1)
        deep = "".join(
            f"Content-Type: multipart/mixed; boundary=b{level}\n\n--b{level}\n" for level in range(400)
        )
        inbound = whole(
            lay([("From", PERSON), ("Content-Type", "multipart/mixed; boundary=b")], f"--b\n{deep}\nx")
        )
        self.assertTrue(inbound.tree.truncated)
        self.assertEqual(inbound.texts, ())

    def test_flowed_text_is_joined(self) -> None:
        """Within one depth of quotation; the signature's line is no soft break; delsp joins without blank."""
        flowed = "text/plain; charset=utf-8; format=flowed"
        self.assertEqual(
            whole(reply("a \nb\n> q \n> r\n c\n-- \nme", content_type=flowed)).texts,
            ("a b\n> q r\nc\n-- \nme",),
        )
        self.assertEqual(whole(reply("日 \n本", content_type=f"{flowed}; delsp=yes")).texts, ("日本",))

    def test_sealed_words_are_said_to_be_unreadable(self) -> None:
        """PGP/MIME and S/MIME encryption."""
        self.assertTrue(
            whole(reply("x", content_type="application/pkcs7-mime; smime-type=enveloped-data")).unreadable
        )
        self.assertFalse(whole(reply()).unreadable)

    def test_hostile_bytes(self) -> None:
        """Empty, noise, NUL, a giant header: malformed or read, never an exception."""
        for raw in (
            b"",
            b"\r\n",
            b"\0" * 500,
            bytes(range(256)) * 40,
            b"From: a@b\r\nReferences: " + b"<a@b> " * 20_000,
        ):
            self.assertIsInstance(read(raw), Malformed)

    @given(
        st.binary(max_size=600),
        st.sampled_from(
            [
                "multipart/mixed; boundary=b",
                "text/html",
                "text/plain; charset=utf-7",
                "a/b; x*0*=u''%; x*9=\"\\",
            ]
        ),
    )
    def test_no_bytes_raise(self, noise: bytes, content_type: str) -> None:
        """Every accessor of whatever could be read."""
        raw = b"From: a@b\r\nContent-Type: " + content_type.encode() + b"\r\n\r\n--b\r\n" + noise
        for each in (noise, raw, raw + b"\r\n--b\r\n\r\n" + noise):
            inbound = read(each)
            if isinstance(inbound, Inbound):
                _ = (
                    inbound.subject,
                    inbound.texts,
                    inbound.htmls,
                    files_of(inbound.tree),
                    inbound.recipients,
                    inbound.date,
                )


class FilenameTests(SynchronousTestCase):
    """Names of attachments are a stranger's input."""

    def test_names_are_made_safe(self) -> None:
        """No path, no control or direction characters, never empty, not too long."""
        for given_name, wanted in {
            "a.txt": "a.txt",
            "C:\\x\\a.txt": "a.txt",
            "../../etc/passwd": "passwd",
            "..": "attachment-7",
            "": "attachment-7",
            "a\r\nb.txt": "a b.txt",
            "\u202etxt.exe": "txt.exe",
            'a"b<c>.txt': "a_b_c_.txt",
        }.items():
            self.assertEqual(safe_filename(given_name, 7), wanted)
        self.assertEqual(safe_filename("x" * 300 + ".tar", 1), "x" * 116 + ".tar")

    @given(st.text(max_size=200))
    def test_no_name_gets_through_unsafe(self, name: str) -> None:
        """Whatever the sender chose."""
        safe = safe_filename(name, 1)
        self.assertTrue(0 < len(safe) <= 120)
        self.assertFalse(set(safe) & set("/\\\0\n\r"))
        self.assertNotIn(safe, {".", ".."})
