"""Every known way to pass for an allowed person, each a row with its decision, through the whole of judging.

The allowed person is ``boss@example.com``.  Unless a row says otherwise its mail has everything else that
would let it in: a valid signature by the key of example.com, good results of the trusted server on top, our
address in To, and a tag of ours.  So what refuses it is what the row is about.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from attrs import evolve, frozen
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.judge import BounceOf, FromPerson, Judged, Refused, Waits, judge
from mailgateway.mail.authenticity import BOTH, DISAGREEMENT, OWN_CHECK, RESULTS, SENT_COPY, Authentic
from mailgateway.mail.dkim_key import KeyAnswer, KeyTexts, KeyTrouble
from mailgateway.mail.evidence import Copy, Evidence, NoCopy
from mailgateway.mail.own import Own
from mailgateway.mail.reply import TextType, typed_words
from mailgateway.mail.verdict import Verdict
from mailgateway.providers import Results
from mailgateway.settings import Alignment, Authentication
from tests.fakes.dkim_signer import NAMES, Signer, rsa_key
from tests.mail.mails import SENT_ID, lay

BOSS = "boss@example.com"
EVIL = "evil@evil.example"
US = "agent@example.org"
SERVER = "mx.google.com"
ARRIVAL = datetime(2026, 11, 30, 12, tzinfo=UTC)
OWN = Own(addresses=[US], allowed=[BOSS], trusted_authserv_ids=[SERVER])
COMPANY = Signer(domain="example.com")
CROOK = Signer(domain="evil.example", private=rsa_key(1024, 7))
GOOD = f"{SERVER};\r\n dkim=pass header.d=example.com;\r\n dmarc=pass header.from=example.com"
FAIL = f"{SERVER};\r\n dkim=fail header.d=example.com;\r\n dmarc=fail header.from=example.com"
KEYS: Mapping[str, KeyAnswer] = {
    COMPANY.key_name: KeyTexts((COMPANY.record(),)),
    CROOK.key_name: KeyTexts((CROOK.record(),)),
}
EVIDENCE = Evidence(now=ARRIVAL + timedelta(minutes=1), received_at=ARRIVAL, keys=KEYS)
NO_KEYS = evolve(EVIDENCE, keys={})
DNS_DOWN = evolve(EVIDENCE, keys={COMPANY.key_name: KeyTrouble("DNS does not answer in time")})

Fields = Iterable[tuple[str, str | bytes]]


def results(value: str) -> tuple[str, str]:
    """One Authentication-Results field."""
    return ("Authentication-Results", value)


def letter(
    frm: str | bytes = f"Alice <{BOSS}>",
    body: str = "do it\r\n",
    *,
    to: str = US,
    subject: str = "Re: [mg:f913c9] Which database?",
    also: Fields = (),
) -> bytes:
    """The mail as it was written."""
    return lay(
        [
            ("From", frm),
            ("To", to),
            ("Subject", subject),
            ("Date", "Mon, 30 Nov 2026 11:59:00 +0000"),
            ("Message-ID", "<a1@example.com>"),
            ("In-Reply-To", SENT_ID),
            ("MIME-Version", "1.0"),
            ("Content-Type", "text/plain; charset=utf-8"),
            *also,
        ],
        body,
    )


def topped(mail: bytes, *fields: tuple[str, str]) -> bytes:
    """The mail with fields on top."""
    return lay(fields).removesuffix(b"\r\n") + mail


def with_everything(frm: str | bytes, *also: tuple[str, str | bytes]) -> bytes:
    """A mail that has all evidence, whatever its From."""
    return topped(COMPANY.sign(letter(frm, also=also)), results(GOOD))


@frozen
class Row:
    """One row: the mail, and what becomes of it (``None``: it is accepted)."""

    mail: bytes
    verdict: Verdict | None
    own: Own = OWN
    evidence: Evidence = EVIDENCE


TRUE_MAIL = COMPANY.sign(letter())
NOT_ALLOWED, UNAUTHENTICATED = Verdict.NOT_ALLOWED, Verdict.UNAUTHENTICATED
FORGED, MALFORMED = Verdict.FORGED, Verdict.MALFORMED
NO_RESULTS = evolve(OWN, trusted_authserv_ids=[])

FROM_ROWS: dict[str, tuple[str | bytes, Verdict | None]] = {
    "1 name and address": (f"Alice <{BOSS}>", None),
    "2 the address as another's name": (f'"{BOSS}" <{EVIL}>', NOT_ALLOWED),
    "3 the address in front of another": (f"{BOSS} <{EVIL}>", NOT_ALLOWED),
    "6 two addresses": (f"{BOSS}, {EVIL}", NOT_ALLOWED),
    "6 two addresses, the other first": (f"{EVIL}, {BOSS}", NOT_ALLOWED),
    "7 two, one with a name": (f"{BOSS}, Inc <{EVIL}>", NOT_ALLOWED),
    "8 a group": (f"Team: {BOSS};", NOT_ALLOWED),
    "9 the address as a group's name": (f"{BOSS}: {EVIL};", NOT_ALLOWED),
    "10 the address as an encoded name": (f"=?utf-8?Q?boss=40example.com?= <{EVIL}>", NOT_ALLOWED),
    "11 the whole as an encoded word": ("=?utf-8?B?PGJvc3NAZXhhbXBsZS5jb20+?=", NOT_ALLOWED),
    "12 an encoded word with NULs as local part": (
        "=?utf-8?B?Ym9zc0BleGFtcGxlLmNvbQAA?=@evil.example",
        NOT_ALLOWED,
    ),
    "13 line ends in an encoded name": (f"=?utf-8?Q?a=0D=0AFrom:_boss?= <{BOSS}>", NOT_ALLOWED),
    "14 NUL in the address": (f"{BOSS}\0@evil.example", MALFORMED),
    "14 NUL in the domain": ("<boss@example.com\0.evil.example>", MALFORMED),
    "15 another in a comment": (f"{BOSS}(<{EVIL}>)", NOT_ALLOWED),
    "16 a comment within the address": ("boss@(evil.example)example.com", NOT_ALLOWED),
    "17 the address in a comment behind": (f"{EVIL} (<{BOSS}>)", NOT_ALLOWED),
    "17 the address in a comment in front": (f"({BOSS}) {EVIL}", NOT_ALLOWED),
    "18 a comment without end": (f"{BOSS}(<{EVIL}>", NOT_ALLOWED),
    "19 two in angle brackets": (f"<{BOSS}> <{EVIL}>", NOT_ALLOWED),
    "19 two in angle brackets with a name": (f"Boss <{BOSS}><{EVIL}>", NOT_ALLOWED),
    "19 the second folded": (f"Boss <{BOSS}>\r\n <{EVIL}>", NOT_ALLOWED),
    "20 a semicolon": (f"{BOSS}; {EVIL}", NOT_ALLOWED),
    "21 a route": (f"<@evil.example:{BOSS}>", NOT_ALLOWED),
    "22 two at signs": (f"{BOSS}@evil.example", NOT_ALLOWED),
    "22 an escaped at sign": ("boss\\@example.com@evil.example", NOT_ALLOWED),
    "23 a quoted local part": (f'"{BOSS}"@evil.example', NOT_ALLOWED),
    "24 a Cyrillic letter": ("boss@ex\u0430mple.com".encode(), NOT_ALLOWED),
    "24 its A-label": ("boss@xn--exmple-cua.com", NOT_ALLOWED),
    "25 a Kelvin sign": ("\u212aen@example.com".encode(), NOT_ALLOWED),
    "25 a fullwidth at sign": ("boss\uff20example.com".encode(), NOT_ALLOWED),
    "25 a direction mark in the name": (f"\u202eecilA <{BOSS}>".encode(), NOT_ALLOWED),
    "26 a dot behind the domain": (f"<{BOSS}.>", NOT_ALLOWED),
    "26 a domain literal": ("<boss@[10.0.0.1]>", NOT_ALLOWED),
    "28 Sender is the boss": (EVIL, NOT_ALLOWED),
}


def headers_rows() -> dict[str, Row]:
    """The rows about the header block as a whole."""
    good = with_everything(f"Alice <{BOSS}>")
    second = f"From: {EVIL}\r\n".encode()
    other = {
        "Sender": BOSS,
        "Resent-From": BOSS,
        "Reply-To": BOSS,
        "X-Original-From": BOSS,
        "Return-Path": BOSS,
    }
    return {
        "4 a second From on top": Row(second + good, NOT_ALLOWED),
        "4 a second From behind": Row(good.replace(b"\r\nTo:", b"\r\n" + second + b"To:", 1), NOT_ALLOWED),
        "5 a second From in other case": Row(b"fRoM: " + EVIL.encode() + b"\r\n" + good, NOT_ALLOWED),
        "27 a blank before the colon": Row(f"From : {BOSS}\r\n".encode() + with_everything(EVIL), MALFORMED),
        "27 the first line begins with a blank": Row(b" From: x\r\n" + good, MALFORMED),
        "28 other fields name the boss": Row(with_everything(EVIL, *other.items()), NOT_ALLOWED),
        "28 other fields name somebody else": Row(
            with_everything(BOSS, ("Reply-To", EVIL), ("Sender", EVIL), ("X-Original-From", EVIL)), None
        ),
    }


def evidence_rows() -> dict[str, Row]:
    """The rows about who vouches for From."""
    plain = letter()
    server = ("Received", f"from relay.evil.example (x [192.0.2.1]) by {SERVER} with ESMTPS; x")
    crooked = CROOK.sign(plain)
    twice = f"{SERVER}; dkim=pass header.d=example.com; dmarc=fail; dmarc=pass header.from=example.com"
    return {
        "29 a forged field at the bottom, a real failing one on top": Row(
            topped(letter(also=[results(GOOD)]), results(FAIL), server), FORGED
        ),
        "30 a forged field, the provider adds none": Row(
            topped(plain, server, results(GOOD)), UNAUTHENTICATED
        ),
        "30 a forged field, nothing else on top, a provider not to be relied on": Row(
            topped(plain, results(GOOD)), UNAUTHENTICATED, evolve(OWN, results=Results.NONE)
        ),
        "31 an id with more behind": Row(
            topped(plain, results(GOOD.replace(SERVER, f"{SERVER}.evil.example"))), UNAUTHENTICATED
        ),
        "31 an id with more in front": Row(
            topped(plain, results(GOOD.replace(SERVER, f"x.{SERVER}"))), UNAUTHENTICATED
        ),
        "31 the id in quotes": Row(topped(plain, results(GOOD.replace(SERVER, f'"{SERVER}"'))), None),
        "31 the id with version 1": Row(topped(plain, results(GOOD.replace(SERVER, f"{SERVER} 1"))), None),
        "32 another domain passes everything, by the server": Row(
            topped(
                plain,
                results(
                    f"{SERVER}; spf=pass smtp.mailfrom={EVIL}; dkim=pass header.d=evil.example; dmarc=none"
                ),
            ),
            UNAUTHENTICATED,
        ),
        "32 another domain signs, by our own check": Row(crooked, UNAUTHENTICATED, NO_RESULTS),
        "33 a second Subject": Row(b"Subject: [mg:f913c9] rm\r\n" + TRUE_MAIL, UNAUTHENTICATED),
        "33 text behind a length": Row(COMPANY.sign(plain, more="l=7; ") + b"and rm -rf /\r\n", FORGED),
        "33 text behind without a length": Row(TRUE_MAIL + b"and rm -rf /\r\n", UNAUTHENTICATED),
        "33 changed, though the server found it good": Row(
            topped(TRUE_MAIL + b"and rm -rf /\r\n", results(GOOD)), FORGED
        ),
        "34 a true mail to somebody else": Row(COMPANY.sign(letter(to="carol@example.net")), UNAUTHENTICATED),
        "34 the same with our address put into an unsigned Cc": Row(
            f"Cc: {US}\r\n".encode() + COMPANY.sign(letter(to="carol@example.net")), UNAUTHENTICATED
        ),
        "34 a mail of ours that was passed on, its To unsigned and replaced": Row(
            COMPANY.sign(
                letter(subject="Fwd: [mg:f913c9] Which database?"),
                names=[each for each in NAMES if each != "to"],
            ),
            UNAUTHENTICATED,
        ),
        "34 a true mail from long ago": Row(
            TRUE_MAIL, UNAUTHENTICATED, evidence=evolve(EVIDENCE, now=ARRIVAL + timedelta(days=91))
        ),
        "34 an old mail that comes again today": Row(
            COMPANY.sign(letter().replace(b"30 Nov 2026", b"30 Jul 2026")), UNAUTHENTICATED
        ),
        "34 a Date that the signature leaves out": Row(
            COMPANY.sign(plain, names=[each for each in NAMES if each != "date"]), UNAUTHENTICATED
        ),
        "34 a Date that nobody can read": Row(
            COMPANY.sign(plain.replace(b"Date: Mon, 30 Nov 2026", b"Date: someday")), UNAUTHENTICATED
        ),
        "34 a signed mail that never had a Date": Row(
            COMPANY.sign(plain.replace(b"Date: Mon, 30 Nov 2026 11:59:00 +0000\r\n", b"")), UNAUTHENTICATED
        ),
        "34 a clock that is ahead": Row(COMPANY.sign(plain.replace(b"30 Nov 2026", b"05 Dec 2026")), None),
        "34 a Date from when we shall have forgotten the mail": Row(
            COMPANY.sign(plain.replace(b"30 Nov 2026", b"30 Dec 2026")), UNAUTHENTICATED
        ),
        "34 the same without its Date": Row(
            COMPANY.sign(
                plain.replace(b"Date: Mon, 30 Nov 2026 11:59:00 +0000\r\n", b""),
                names=[each for each in NAMES if each != "date"],
            ),
            UNAUTHENTICATED,
        ),
        "35 the boss is away": Row(
            COMPANY.sign(letter(also=[("Auto-Submitted", "auto-replied")])), Verdict.AUTOMATIC
        ),
        "37 DMARC that rests on SPF": Row(
            topped(
                plain,
                results(
                    f"{SERVER}; dkim=none; spf=pass smtp.mailfrom={BOSS}; dmarc=pass header.from=example.com"
                ),
            ),
            UNAUTHENTICATED,
        ),
        "37 the same with the aligned signature": Row(topped(TRUE_MAIL, results(GOOD)), None),
        "text in a MAIL FROM": Row(
            topped(plain, results(f'{SERVER}; spf=pass smtp.mailfrom="a) dmarc=pass (b"@evil.example')),
            UNAUTHENTICATED,
        ),
        "a nested comment": Row(
            topped(
                plain,
                results(
                    f"{SERVER}; dkim=none (a (b) ; dkim=pass header.d=example.com ; "
                    "dmarc=pass header.from=example.com)"
                ),
            ),
            UNAUTHENTICATED,
        ),
        "DMARC fails and passes": Row(topped(plain, results(twice)), FORGED),
        "the property of another clause": Row(
            topped(
                plain,
                results(
                    f"{SERVER}; dkim=fail header.d=example.com; dkim=pass header.d=evil.example; dmarc=none"
                ),
            ),
            FORGED,
        ),
    }


def decided(row: Row) -> Verdict | None:
    """What becomes of the mail: its verdict, or None where it is accepted."""
    judged = judge(row.mail, row.own, row.evidence)
    if isinstance(judged, FromPerson):
        assert isinstance(judged.authenticity, Authentic)
        return None
    assert isinstance(judged, Refused), judged
    return judged.verdict


class AttackTableTests(SynchronousTestCase):
    """Each row is decided as it is written."""

    def test_from(self) -> None:
        """Rows 1 to 26: the forms of From, with all the evidence that there could be."""
        for name, (frm, wanted) in FROM_ROWS.items():
            self.assertEqual(decided(Row(with_everything(frm), wanted)), wanted, name)

    def test_from_with_each_kind_of_evidence(self) -> None:
        """Our own check or the server's results alone change nothing about it."""
        for name, (frm, wanted) in FROM_ROWS.items():
            self.assertEqual(decided(Row(COMPANY.sign(letter(frm)), wanted)), wanted, name)
            bare = topped(letter(frm), results(GOOD))
            self.assertEqual(decided(Row(bare, wanted, evidence=NO_KEYS)), wanted, name)

    def test_header_blocks(self) -> None:
        """Rows 4, 5, 27 and 28."""
        for name, row in headers_rows().items():
            self.assertEqual(decided(row), row.verdict, name)

    def test_evidence(self) -> None:
        """Rows 29 to 37, and the four tricks with results."""
        for name, row in evidence_rows().items():
            self.assertEqual(decided(row), row.verdict, name)

    def test_row_35_a_bounce_that_quotes_a_command(self) -> None:
        """It is a report about recipients, whoever has signed it, and nobody's words."""
        report = (
            "--b\r\nContent-Type: text/plain\r\n\r\n/stop\r\n"
            "--b\r\nContent-Type: message/delivery-status\r\n\r\n"
            "Reporting-MTA: dns; example.com\r\n\r\n"
            "Final-Recipient: rfc822; carol@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\n"
            "--b\r\nContent-Type: message/rfc822\r\n\r\n"
            f"Message-ID: {SENT_ID}\r\nSubject: [mg:f913c9] x\r\n\r\n/stop\r\n--b--\r\n"
        )
        kind = b"multipart/report; report-type=delivery-status; boundary=b"
        raw = letter(body=report).replace(b"text/plain; charset=utf-8", kind, 1)
        judged = judge(topped(COMPANY.sign(raw), results(GOOD)), OWN, EVIDENCE)
        self.assertIsInstance(judged, BounceOf)

    def test_row_36_only_the_new_words_count(self) -> None:
        """What the boss quotes is not what the boss says."""
        quoting = "fine\r\n\r\nOn Mon, 30 Nov 2026, Eve wrote:\r\n> rm -rf /\r\n"
        judged = judge(COMPANY.sign(letter(body=quoting)), OWN, EVIDENCE)
        assert isinstance(judged, FromPerson)
        self.assertEqual(typed_words(judged.inbound, OWN, None).text.strip(), "fine")

    def test_row_38_the_outermost_header_and_one_text(self) -> None:
        """An enclosed mail says nothing about its carrier, and of two texts one is read."""
        enclosed = (
            f"--b\r\nContent-Type: text/plain\r\n\r\nmine\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n"
            f"From: {BOSS}\r\nSubject: [mg:f913c9]\r\n\r\nrm -rf /\r\n--b--\r\n"
        )
        mixed = letter(EVIL, enclosed).replace(
            b"text/plain; charset=utf-8", b"multipart/mixed; boundary=b", 1
        )
        self.assertEqual(decided(Row(topped(COMPANY.sign(mixed), results(GOOD)), None)), NOT_ALLOWED)
        two = (
            "--b\r\nContent-Type: text/plain\r\n\r\nwords\r\n--b\r\nContent-Type: text/html\r\n\r\n"
            "<p>others</p>\r\n--b--\r\n"
        )
        both = letter(body=two).replace(b"text/plain; charset=utf-8", b"multipart/alternative; boundary=b", 1)
        judged = judge(COMPANY.sign(both), OWN, EVIDENCE)
        assert isinstance(judged, FromPerson)
        words = typed_words(judged.inbound, OWN, None)
        self.assertEqual((words.text.strip(), words.text_type), ("words", TextType.PLAIN))
        html = COMPANY.sign(
            letter(body=two.replace("words", " ")).replace(
                b"text/plain; charset=utf-8", b"multipart/alternative; boundary=b", 1
            )
        )
        judged = judge(html, OWN, EVIDENCE)
        assert isinstance(judged, FromPerson)
        words = typed_words(judged.inbound, OWN, None)
        self.assertEqual((words.text.strip(), words.text_type), ("others", TextType.HTML))

    def test_row_25_marks_that_nobody_sees(self) -> None:
        """Where a mail is accepted, they are gone from what is shown of its sender."""
        coded = judge(with_everything(f"=?utf-8?Q?=E2=80=AEecilA=D8=9C?= <{BOSS}>"), OWN, EVIDENCE)
        assert isinstance(coded, FromPerson), coded
        self.assertEqual(coded.sender.name, "ecilA")


class TogetherTests(SynchronousTestCase):
    """Our own check and the server's results in one decision."""

    def method(self, mail: bytes, own: Own = OWN, evidence: Evidence = EVIDENCE) -> str:
        """By what it was accepted, or the reason of its refusal."""
        judged: Judged = judge(mail, own, evidence)
        if isinstance(judged, FromPerson):
            assert isinstance(judged.authenticity, Authentic)
            return judged.authenticity.method
        assert isinstance(judged, Refused | Waits)
        return judged.reason

    def test_each_alone_and_both(self) -> None:
        """Either suffices where the other cannot tell."""
        good = results(GOOD)
        self.assertEqual(self.method(topped(TRUE_MAIL, good)), BOTH)
        self.assertEqual(self.method(TRUE_MAIL), OWN_CHECK)
        self.assertEqual(self.method(TRUE_MAIL, NO_RESULTS), OWN_CHECK)
        self.assertEqual(self.method(topped(letter(), good)), RESULTS)
        for evidence in (NO_KEYS, DNS_DOWN, evolve(EVIDENCE, keys={COMPANY.key_name: KeyTexts(())})):
            self.assertEqual(self.method(topped(TRUE_MAIL, good), evidence=evidence), RESULTS)

    def test_they_disagree(self) -> None:
        """Refused, whichever of them says no."""
        changed = TRUE_MAIL.replace(b"do it", b"do not")
        self.assertEqual(self.method(topped(changed, results(GOOD))), DISAGREEMENT)
        self.assertEqual(self.method(topped(TRUE_MAIL, results(FAIL))), DISAGREEMENT)

    def test_dns_that_does_not_answer(self) -> None:
        """The mail waits, unless the server says enough, or says that it is forged."""
        judged = judge(TRUE_MAIL, OWN, DNS_DOWN)
        assert isinstance(judged, Waits)
        self.assertEqual(judged.reason, "DNS does not answer in time")
        self.assertIsInstance(judge(topped(TRUE_MAIL, results(FAIL)), OWN, DNS_DOWN), Refused)

    def test_forwarding_breaks_the_signature(self) -> None:
        """A list's footer: refused, and the reason says so."""
        self.assertIn("forwarders", self.method(TRUE_MAIL + b"-- \r\nthe list\r\n"))

    def test_arc_is_not_believed(self) -> None:
        """There is no list of sealers that are: what a forwarder found is its own word."""
        sealed = topped(
            letter(),
            ("ARC-Seal", f"i=1; a=rsa-sha256; cv=none; d={SERVER}; s=x; b=x"),
            ("ARC-Message-Signature", f"i=1; a=rsa-sha256; d={SERVER}; s=x; h=from; bh=x; b=x"),
            ("ARC-Authentication-Results", f"i=1; {GOOD}"),
        )
        self.assertEqual(decided(Row(sealed, None)), UNAUTHENTICATED)
        arc = results(f"{SERVER}; dkim=none; dmarc=none header.from=example.com; arc=pass")
        self.assertEqual(decided(Row(topped(letter(), arc), None)), UNAUTHENTICATED)

    def test_fastmail_s_four_fields(self) -> None:
        """The verdict may stand in the last; a second verdict may be anybody's."""
        parts = [
            results(f"{SERVER}; bimi=skipped"),
            results(f"{SERVER}; arc=none"),
            results(f"{SERVER}; x-tls=pass"),
        ]
        self.assertEqual(self.method(topped(letter(), *parts, results(GOOD))), RESULTS)
        self.assertEqual(
            decided(Row(topped(letter(), *parts, results(GOOD), results(GOOD)), None)), UNAUTHENTICATED
        )

    def test_microsoft_s_dialect(self) -> None:
        """Without an id: the topmost field below its own hops, for accounts on its servers alone."""
        own = evolve(NO_RESULTS, results=Results.ANONYMOUS)
        hop = (
            "Received",
            "from A.eurprd05.prod.outlook.com (2603:10a6::1) by B.eurprd05.prod.outlook.com with HTTPS; x",
        )
        good = results(
            "spf=pass (sender IP is 192.0.2.1) smtp.mailfrom=example.com; dkim=pass (verified)\r\n"
            " header.d=example.com;dmarc=pass action=none header.from=example.com;compauth=pass reason=100"
        )
        bad = results(
            "spf=fail; dkim=none (message not signed) header.d=none;dmarc=fail; compauth=fail reason=000"
        )
        foreign = ("Received", "from a.example by relay.evil.example; x")
        self.assertEqual(self.method(topped(letter(), hop, good), own), RESULTS)
        # its servers write other bytes than they checked
        changed = TRUE_MAIL.replace(b"do it", b"do  it!")
        self.assertEqual(self.method(topped(changed, hop, good), own), RESULTS)
        for mail, wanted in (
            (topped(letter(), hop, bad, good), FORGED),
            (topped(letter(), hop, foreign, good), UNAUTHENTICATED),
            (topped(letter(), hop, results("dkim=pass header.d=evil.example; dmarc=none")), UNAUTHENTICATED),
            (topped(letter(), hop), UNAUTHENTICATED),
        ):
            self.assertEqual(decided(Row(mail, None, own)), wanted, mail[:300])
        self.assertEqual(decided(Row(topped(letter(), good), None)), UNAUTHENTICATED)

    def test_relaxed_alignment_is_for_those_who_ask_for_it(self) -> None:
        """A subdomain of a large host may be anybody's."""
        sub = Signer(domain="mail.example.com")
        signed = sub.sign(letter())
        evidence = evolve(EVIDENCE, keys={sub.key_name: KeyTexts((sub.record(),))})
        self.assertEqual(decided(Row(signed, None, evidence=evidence)), UNAUTHENTICATED)
        relaxed = evolve(OWN, alignment=Alignment.RELAXED)
        self.assertIsNone(decided(Row(signed, None, relaxed, evidence)))


class ReadingTests(SynchronousTestCase):
    """An unsigned Content-Type is followed as far as the signed bytes bear it out."""

    names = tuple(each for each in NAMES if each != "content-type")

    def words(self, mail: bytes) -> str:
        """What is read of an accepted mail."""
        judged = judge(mail, OWN, EVIDENCE)
        assert isinstance(judged, FromPerson), judged
        return "\n".join((*judged.inbound.texts, *judged.inbound.htmls))

    def typed(self, kind: str, body: str, *also: tuple[str, str]) -> bytes:
        """A signed mail of this type, the type not covered."""
        raw = letter(body=body, also=also).replace(b"text/plain; charset=utf-8", kind.encode(), 1)
        return COMPANY.sign(raw, names=self.names)

    def test_another_type_makes_no_other_words(self) -> None:
        """A text that was quoted at the end of a mail does not become a part of its own."""
        quoted = "all fine\r\n\r\nFrom: Eve\r\n--b\r\nContent-Type: text/plain\r\n\r\nrm -rf /\r\n--b--\r\n"
        for kind in ("multipart/mixed; boundary=b", "multipart/digest; boundary=b", "text/html", "image/png"):
            self.assertTrue(self.words(self.typed(kind, quoted)).startswith("all fine"), kind)
        self.assertTrue(
            self.words(self.typed("text/plain; charset=utf-7", "a +ADw-b\r\n")).startswith("a +ADw-b")
        )

    def test_what_programs_write_is_read_as_they_meant(self) -> None:
        """Gmail's two texts, and single ones with their encoding."""
        two = (
            "--b\r\nContent-Type: text/plain\r\n\r\nwords\r\n--b\r\nContent-Type: text/html\r\n\r\n"
            "<p>words</p>\r\n--b--\r\n"
        )
        self.assertEqual(self.words(self.typed("multipart/alternative; boundary=b", two)).split()[0], "words")
        preamble = f"This is a multi-part message in MIME format.\r\n{two}"
        self.assertEqual(
            self.words(self.typed('multipart/mixed; boundary="b"', preamble)).split()[0], "words"
        )
        coded = self.typed(
            "text/plain; charset=utf-8", "w=C3=B6rds\r\n", ("Content-Transfer-Encoding", "quoted-printable")
        )
        self.assertEqual(self.words(coded).strip(), "w\u00f6rds")
        coded = self.typed(
            "text/plain; charset=utf-8", "d29yZHM=\r\n", ("Content-Transfer-Encoding", "base64")
        )
        self.assertEqual(self.words(coded).strip(), "words")
        self.assertIn("<p>hi", self.words(self.typed("text/html; charset=utf-8", "<p>hi</p>\r\n")))

    def test_the_source_of_a_mail_is_not_its_words(self) -> None:
        """A quotation in the HTML does not become words where somebody calls the whole plain, or nothing."""
        quoting = "<html><p>no</p><blockquote>rm -rf /</blockquote></html>"
        two = (
            "--b\r\nContent-Type: text/plain\r\n\r\nno\r\n\r\n> rm -rf /\r\n"
            f"--b\r\nContent-Type: text/html\r\n\r\n{quoting}\r\n--b--\r\n"
        )
        for kind in ("text/plain", "text/html", "multipart/mixed; boundary=c", "image/png", None):
            for body in (two, f"{quoting}\r\n"):
                mail = self.typed(kind or "x/x", body)
                if kind is None:
                    mail = mail.replace(b"Content-Type: x/x\r\n", b"", 1)
                judged = judge(mail, OWN, EVIDENCE)
                assert isinstance(judged, FromPerson), judged
                inbound = judged.inbound
                self.assertEqual([text.split()[0] for text in inbound.texts], ["no"] * (body is two), kind)
                self.assertEqual([page.strip() for page in inbound.htmls], [quoting], kind)

    def test_a_signed_type_is_followed_wherever_it_begins(self) -> None:
        """A preamble of its own, and an encoding that nobody signed."""
        two = "hello\r\n--b\r\nContent-Type: text/plain\r\n\r\nwords\r\n--b--\r\nbye\r\n"
        for also in ([], [("Content-Transfer-Encoding", "8bit")]):
            raw = letter(body=two, also=also).replace(
                b"text/plain; charset=utf-8", b"multipart/mixed; boundary=b", 1
            )
            self.assertEqual(self.words(COMPANY.sign(raw)).strip(), "words")

    def test_an_encoding_that_the_text_is_not_in(self) -> None:
        """It is left aside."""
        for encoding in ("base64", "quoted-printable", "x-uuencode"):
            mail = self.typed("text/plain", "say a = b\r\n", ("Content-Transfer-Encoding", encoding))
            self.assertEqual(self.words(mail).strip(), "say a = b", encoding)


class SentCopyTests(SynchronousTestCase):
    """``single-mailbox`` with ``sent-copy``: the same mail lies in the Sent folder."""

    own = Own(addresses=[BOSS], allowed=[BOSS], authentication=Authentication.SINGLE_MAILBOX)
    sent = letter(to=BOSS)

    def judged(self, mail: bytes, copy: bytes | None) -> Judged:
        """Judged with what the Sent folder has."""
        found = NoCopy("no copy of it lies in the Sent folder") if copy is None else Copy(copy)
        return judge(mail, self.own, evolve(EVIDENCE, copy=found))

    def test_the_same_mail(self) -> None:
        """On its way servers add fields and recode the text."""
        came = topped(self.sent, ("Received", "from a by b; x"), ("DKIM-Signature", "v=1; d=example.com"))
        came = came.replace(
            b"Content-Type: text/plain; charset=utf-8\r\n",
            b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n",
        ).replace(b"\r\n\r\ndo it\r\n", b"\r\n\r\nZG8gaXQNCg==\r\n")
        judged = self.judged(came, self.sent)
        assert isinstance(judged, FromPerson)
        self.assertEqual(judged.authenticity, Authentic(SENT_COPY))

    def test_a_known_message_id_with_other_words(self) -> None:
        """Who got a mail of the owner knows a Message-ID that lies there; nothing else may differ."""
        for name, old, new in (
            ("words", b"do it", b"rm -rf /"),
            ("subject", b"[mg:f913c9] Which", b"[mg:aaaaaa] Which"),
            ("date", b"11:59", b"11:58"),
            ("thread", SENT_ID.encode(), b"<mg.aaaaaa.0.1@example.org>"),
            ("type", b"text/plain", b"text/html"),
            ("recipients", b"To: boss@example.com", b"To: boss@example.com, carol@example.net"),
        ):
            changed = self.sent.replace(old, new, 1)
            self.assertNotEqual(changed, self.sent, name)
            judged = self.judged(changed, self.sent)
            assert isinstance(judged, Refused), name
            self.assertEqual(judged.verdict, FORGED, name)

    def test_what_is_read_is_the_copy(self) -> None:
        """Other line ends, blanks and forms of the date are the same mail, and make no other words of it."""
        sent = letter(to=BOSS, body="fine\r\n\r\nOn Mon, 30 Nov 2026, Eve wrote:\r\n> rm -rf /\r\n")
        for old, new in (
            (b"wrote:\r\n> rm", b"wrote: > rm"),
            (b"fine\r\n\r\nOn", b"fine On"),
            (b"11:59:00 +0000", b"12:59:00 +0100"),
        ):
            came = sent.replace(old, new)
            self.assertNotEqual(came, sent)
            judged = self.judged(came, sent)
            assert isinstance(judged, FromPerson)
            self.assertEqual(judged.inbound.raw, sent)
            self.assertEqual(typed_words(judged.inbound, self.own, None).text.strip(), "fine")

    def test_a_date_that_nobody_can_read(self) -> None:
        """The copy lies there for ever, and the mail could come again when it is forgotten."""
        for date in (b"Date: someday\r\n", b""):
            mail = self.sent.replace(b"Date: Mon, 30 Nov 2026 11:59:00 +0000\r\n", date)
            judged = self.judged(mail, mail)
            assert isinstance(judged, Refused)
            self.assertEqual(judged.verdict, UNAUTHENTICATED)

    def test_a_copy_of_our_own(self) -> None:
        """A provider may give it another Message-ID, and whoever sends it again leaves our marker out."""
        ours = letter(to=BOSS, also=[("X-Mailgateway-Instance", "i"), ("Auto-Submitted", "auto-generated")])
        judged = self.judged(self.sent, ours)
        assert isinstance(judged, Refused)
        self.assertEqual(judged.verdict, FORGED)

    def test_a_mail_that_went_to_others(self) -> None:
        """The owner's own mail to somebody, handed to the owner's mailbox again, is not for us."""
        other = letter(to="carol@example.net")
        judged = self.judged(other, other)
        assert isinstance(judged, Refused)
        self.assertEqual(judged.verdict, UNAUTHENTICATED)

    def test_it_is_not_there_yet(self) -> None:
        """The mail waits."""
        self.assertIsInstance(self.judged(self.sent, None), Waits)

    def test_a_copy_that_is_another_thing(self) -> None:
        """From another address, or no mail at all."""
        for copy in (b"", b"\0", letter(EVIL, to=BOSS), self.sent[:40]):
            self.assertIsInstance(self.judged(self.sent, copy), Refused)

    def test_doubled_fields(self) -> None:
        """The first of two is not always the one that is read."""
        self.assertIsInstance(self.judged(b"Subject: [mg:aaaaaa]\r\n" + self.sent, self.sent), Refused)

    def test_our_own_mail_is_never_a_persons(self) -> None:
        """It lies in the Sent folder, too."""
        ours = letter(to=BOSS, also=[("X-Mailgateway-Instance", "i")])
        judged = self.judged(ours, ours)
        assert isinstance(judged, Refused)
        self.assertEqual(judged.verdict, Verdict.OWN_MAIL)
