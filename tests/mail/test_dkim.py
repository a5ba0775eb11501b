"""Our own check of signatures: the RFC's sample, another library's, and every way to deceive it."""

import base64
import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import dkim
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail import dkim_canonical
from mailgateway.mail.dkim import Broken, Checked, Nothing, Unanswered, Valid, check_signatures, signatures_of
from mailgateway.mail.dkim_canonical import body_digest
from mailgateway.mail.dkim_key import Key, KeyAnswer, KeyTexts, KeyTrouble, read_key
from mailgateway.mail.inbound import Inbound, read
from mailgateway.settings import Alignment
from tests.fakes.dkim_signer import NAMES, Signer, canonical_body, rsa_key
from tests.mail.mails import lay, reply

ARRIVAL = datetime(2026, 11, 30, 12, tzinfo=UTC)
SIGNER = Signer()
MAIL = reply(top=[])

SAMPLE = b"""\
DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=brisbane; t=1528637909; h=from : to :
 subject : date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11Bus
 Fa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw==
DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;
 d=football.example.com; i=@football.example.com;
 q=dns/txt; s=test; t=1528637909; h=from : to : subject :
 date : message-id : from : subject : date;
 bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;
 b=F45dVWDfMbQDGHJFlXUNB2HKfbCeLRyhDXgFpEL8GwpsRe0IeIixNTe3
 DhCVlUrSjV4BwcVcOF6+FF3Zo9Rpo1tFOeS9mPYQTnGdaSGsgeefOsk2Jz
 dA+L10TeYt9BgDfQNZtKdN1WO//KgIqXP7OdEFE4LjFYNcUxZQ4FADY+8=
From: Joe SixPack <joe@football.example.com>
To: Suzie Q <suzie@shopping.example.net>
Subject: Is dinner ready?
Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)
Message-ID: <20030712040037.46341.5F8J@football.example.com>

Hi.

We lost the game.  Are you hungry yet?

Joe.
""".replace(b"\n", b"\r\n")
"""The mail of RFC 8463, appendix A.3, and its two keys."""

SAMPLE_KEYS = {
    "brisbane._domainkey.football.example.com": (
        b"v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    ),
    "test._domainkey.football.example.com": (
        b"v=DKIM1; k=rsa; p="
        b"MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQi"
        b"Y/J16JYi0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G"
        b"+2kryOTIKT+l/K4w3QIDAQAB"
    ),
}


def parsed(raw: bytes) -> Inbound:
    """The mail."""
    inbound = read(raw)
    assert isinstance(inbound, Inbound)
    return inbound


def check(
    raw: bytes,
    record: bytes | KeyAnswer | None = None,
    *,
    domain: str = "example.org",
    received_at: datetime = ARRIVAL,
    alignment: Alignment = Alignment.STRICT,
) -> Checked:
    """What our own check says of a mail; every key that it wants is this record (default: the signer's)."""
    if record is None:
        record = SIGNER.record()
    answer = KeyTexts((record,)) if isinstance(record, bytes) else record
    inbound = parsed(raw)
    keys = {each.key_name: answer for _, each in signatures_of(inbound.fields, domain, alignment)}
    return check_signatures(inbound, domain, alignment, keys, received_at)


class SampleTests(SynchronousTestCase):
    """Others' signatures."""

    def test_the_sample_of_the_rfc(self) -> None:
        """Ed25519 and RSA, each by itself."""
        for name, record in SAMPLE_KEYS.items():
            checked = check_signatures(
                parsed(SAMPLE),
                "football.example.com",
                Alignment.STRICT,
                {name: KeyTexts((record,))},
                ARRIVAL,
            )
            self.assertEqual(checked, Valid(frozenset({"from", "to", "subject", "date", "message-id"})), name)

    def test_what_dkimpy_signs_is_valid(self) -> None:
        """In every form, also with blanks and empty lines where the forms differ."""
        pem = SIGNER.private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        for raw in (MAIL, reply("a  b\t c \n\n  \n\n"), reply(""), reply("\n\n"), reply("no end").rstrip()):
            for header in (b"simple", b"relaxed"):
                for body in (b"simple", b"relaxed"):
                    signature = dkim.sign(
                        raw,
                        b"s1",
                        b"example.org",
                        pem,
                        canonicalize=(header, body),
                        include_headers=[each.encode() for each in NAMES],
                    )
                    checked = check(signature + raw, received_at=datetime.now(UTC))
                    self.assertEqual(checked, Valid(frozenset(NAMES)), f"{header!r} {body!r} {raw[-20:]!r}")

    def test_dkimpy_finds_our_signer_right(self) -> None:
        """The signer of these tests is no accomplice of what it tests."""
        for form in ("simple/simple", "relaxed/relaxed", "relaxed", "simple/relaxed"):
            signed = SIGNER.sign(reply("a  b \n c\n\n", top=[]), form=form)
            self.assertTrue(dkim.verify(signed, dnsfunc=lambda *_, **__: SIGNER.record()), form)

    def test_ed25519(self) -> None:
        """Our signer, too."""
        signer = Signer(private=Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
        self.assertIsInstance(check(signer.sign(MAIL), signer.record()), Valid)
        self.assertIsInstance(check(signer.sign(MAIL), SIGNER.record()), Nothing)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "a word of the text": lambda raw: raw.replace(b"Yes.", b"No. "),
    "text behind the text": lambda raw: raw + b"rm -rf /\r\n",
    "text in front": lambda raw: raw.replace(b"\r\n\r\n", b"\r\n\r\nrm\r\n", 1),
    "the subject": lambda raw: raw.replace(b"Which database", b"That database"),
    "the sender's name": lambda raw: raw.replace(b"Robin Sommer", b"Robin Winter"),
    "the signature": lambda raw: raw.replace(b"\r\n b=", b"\r\n b=AAAA", 1),
    "what it covers": lambda raw: raw.replace(b":in-reply-to:", b":", 1),
    "bare line ends": lambda raw: raw.replace(b"Yes.\r\n", b"Yes.\n"),
    "a bare CR": lambda raw: raw.replace(b"Yes.", b"Yes\r."),
    "bare line ends in the header": lambda raw: raw.replace(b"\r\nTo:", b"\nTo:"),
}


class ForgedTests(SynchronousTestCase):
    """What was changed after it was signed."""

    def test_every_change_breaks_it(self) -> None:
        """In the header or the text."""
        signed = SIGNER.sign(MAIL)
        self.assertIsInstance(check(signed), Valid)
        for name, change in CHANGES.items():
            self.assertNotEqual(change(signed), signed, name)
            self.assertIsInstance(check(change(signed)), (Broken, Nothing), name)

    def test_another_key(self) -> None:
        """A signature by whoever cannot publish a key of the domain."""
        thief = Signer(private=rsa_key(1024, 1))
        self.assertIsInstance(check(thief.sign(MAIL)), Broken)

    def test_a_field_that_was_signed_as_missing(self) -> None:
        """Named once more than it is there, it cannot be added."""
        signed = SIGNER.sign(MAIL, names=(*NAMES, "cc", "reply-to"))
        self.assertIsInstance(check(signed), Valid)
        self.assertIsInstance(check(b"Cc: eve@evil.example\r\n" + signed), Broken)

    @given(st.integers(0, 10_000), st.integers(0, 255))
    def test_no_octet_can_be_changed_unnoticed(self, at: int, value: int) -> None:
        """Except blanks and letter case where the form does not tell them apart."""
        signed = SIGNER.sign(MAIL, form="simple/simple")
        at %= len(signed)
        changed = signed[:at] + bytes([value]) + signed[at + 1 :]
        inbound = read(changed)
        if not isinstance(inbound, Inbound) or changed == signed:
            return
        keys = {SIGNER.key_name: KeyTexts((SIGNER.record(),))}
        checked = check_signatures(inbound, "example.org", Alignment.STRICT, keys, ARRIVAL)
        if isinstance(checked, Valid):
            before, _, _ = signed.partition(b"From:")
            self.assertTrue(at < len(before) or changed.lower() == signed.lower(), (at, value))


class RuleTests(SynchronousTestCase):
    """Where we are stricter than the RFC, or as strict as it says."""

    def test_a_length(self) -> None:
        """``l=`` is refused altogether: text behind it would be believed."""
        self.assertIsInstance(check(SIGNER.sign(MAIL, more="l=4; ")), Nothing)

    def test_times(self) -> None:
        """Expired when it arrived, or made in the future; later verification changes nothing."""
        at = int(ARRIVAL.timestamp())
        for more, wanted in (
            (f"t={at - 60}; x={at + 60}; ", Valid),
            (f"t={at + 600}; ", Valid),
            (f"t={at + 7200}; ", Nothing),
            (f"x={at - 1}; ", Nothing),
            (f"t={at}; x={at - 60}; ", Nothing),
            ("t=soon; ", Nothing),
            ("x=9999999999999999; ", Nothing),
        ):
            self.assertIsInstance(check(SIGNER.sign(MAIL, more=more)), wanted, more)
        signed = SIGNER.sign(MAIL, more=f"x={at + 60}; ")
        self.assertIsInstance(check(signed, received_at=ARRIVAL + timedelta(days=2)), Nothing)

    def test_keys(self) -> None:
        """Revoked, tried out, for something else, unreadable, too small, too large, ambiguous, missing."""
        signed = SIGNER.sign(MAIL)
        record = SIGNER.record()
        for text in (
            record.partition(b"p=")[0] + b"p=",
            SIGNER.record("t=y; "),
            SIGNER.record("t=s:y; "),
            SIGNER.record("s=tlsrpt; "),
            SIGNER.record("h=sha1; "),
            record.replace(b"DKIM1", b"DKIM2"),
            record.replace(b"k=rsa", b"k=ed25519"),
            record.replace(b"p=", b"p=!"),
            b"v=spf1 -all",
            b"",
            b"v=DKIM1; p=" + b"A" * 5000,
        ):
            self.assertIsInstance(check(signed, text), Nothing, text[:60])
        self.assertIsInstance(check(signed, KeyTexts(())), Nothing)
        self.assertIsInstance(check(signed, KeyTexts((record, record))), Nothing)
        self.assertIsInstance(check(signed, SIGNER.record("s=*; h=sha1:sha256; n=x; t=s; ")), Valid)

    def test_sizes_of_keys(self) -> None:
        """What can be broken says nothing; what only costs time is not tried."""
        for bits, wanted in ((512, False), (1023, False), (1024, True), (4096, True), (4097, False)):
            try:
                public = rsa.RSAPublicNumbers(65537, (1 << (bits - 1)) | 1).public_key()
            except ValueError:  # the library itself refuses the size
                self.assertFalse(wanted)
                continue
            data = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            found = read_key([b"p=" + base64.b64encode(data)])
            self.assertEqual(isinstance(found, Key), wanted, bits)

    def test_who_may_sign(self) -> None:
        """Strict: the very domain; relaxed: its organisation, as the list of public suffixes says."""
        for domain, alignment, wanted in (
            ("example.org", Alignment.STRICT, Valid),
            ("sub.example.org", Alignment.STRICT, Nothing),
            ("sub.example.org", Alignment.RELAXED, Valid),
            ("evil.org", Alignment.RELAXED, Nothing),
            ("org", Alignment.RELAXED, Nothing),
        ):
            signer = Signer(domain=domain)
            self.assertIsInstance(
                check(signer.sign(MAIL), signer.record(), alignment=alignment), wanted, (domain, alignment)
            )

    def test_the_identity(self) -> None:
        """``i=`` lies within ``d=``, and is ``d=`` itself where the key says so."""
        sub = SIGNER.sign(MAIL, more="i=@sub.example.org; ")
        self.assertIsInstance(check(sub), Valid)
        self.assertIsInstance(check(sub, SIGNER.record("t=s; ")), Nothing)
        self.assertIsInstance(check(SIGNER.sign(MAIL, more="i=@badexample.org; ")), Nothing)

    def test_old_ways(self) -> None:
        """SHA-1, other forms, other queries, other versions."""
        signed = SIGNER.sign(MAIL)
        for old, new in (
            (b"a=rsa-sha256", b"a=rsa-sha1"),
            (b"c=relaxed/relaxed", b"c=nofws"),
            (b"v=1;", b"v=2;"),
            (b"v=1;", b""),
            (b"s=s1", b"q=http; s=s1"),
            (b"s=s1", b"s=../../s1"),
            (b"h=from:", b"h="),
            (b"bh=", b"bh=!"),
        ):
            self.assertIsInstance(check(signed.replace(old, new, 1)), Nothing, new)

    def test_only_five_are_tried(self) -> None:
        """A mail with many signatures costs no more than five; the topmost are those."""
        junk = SIGNER.sign(MAIL).partition(b"From:")[0].replace(b"bh=", b"bh=AAAA")
        self.assertIsInstance(check(junk * 4 + SIGNER.sign(MAIL)), Valid)
        self.assertNotIsInstance(check(junk * 5 + SIGNER.sign(MAIL)), Valid)
        self.assertEqual(
            len(signatures_of(parsed(junk * 40 + MAIL).fields, "example.org", Alignment.STRICT)), 5
        )

    def test_dns_that_does_not_answer(self) -> None:
        """It is neither yes nor no; but another valid signature is enough."""
        signed = SIGNER.sign(MAIL)
        self.assertEqual(check(signed, KeyTrouble("no answer")), Unanswered("no answer"))
        other = Signer(selector="s2")
        both = other.sign(signed)
        inbound = parsed(both)
        keys: dict[str, KeyAnswer] = {
            SIGNER.key_name: KeyTexts((SIGNER.record(),)),
            other.key_name: KeyTrouble("no answer"),
        }
        self.assertIsInstance(
            check_signatures(inbound, "example.org", Alignment.STRICT, keys, ARRIVAL), Valid
        )
        self.assertIsInstance(
            check_signatures(inbound, "example.org", Alignment.STRICT, {}, ARRIVAL), Nothing
        )


class CanonicalTests(SynchronousTestCase):
    """The forms, against the words of the RFC, and their cost."""

    @given(st.lists(st.sampled_from([b" ", b"\t", b"\r\n", b"a", b"b", b"  \r\n", b"ab  c"]), max_size=40))
    def test_a_body(self, pieces: list[bytes]) -> None:
        """In both forms, whatever the size of the pieces that it is digested in."""
        body = b"".join(pieces)
        for piece in (1, 3, 65536):
            self.patch(dkim_canonical, "PIECE", piece)
            for form in ("simple", "relaxed"):
                wanted = hashlib.sha256(canonical_body(body, form)).digest()
                self.assertEqual(
                    body_digest(b"xx" + body, 2, relaxed=form == "relaxed"), wanted, (piece, form)
                )

    def test_bodies_that_cost(self) -> None:
        """Blanks and empty lines without end take no more time than anything else of their size."""
        for body in (
            b" " * 900_000 + b"x",
            b"x \t" * 300_000,
            b"\r\n" * 500_000,
            b" \r\n" * 300_000,
            b"x" + b" " * 900_000,
        ):
            before = time.process_time()
            body_digest(body, 0, relaxed=True)
            self.assertLess(time.process_time() - before, 0.5, body[:8])

    def test_a_gap_without_end(self) -> None:
        """Somewhere it is no mail any more."""
        self.assertIsNone(body_digest(b"x" * 70_000 + b" " * 2_000_000 + b"x", 0, relaxed=True))

    def test_headers_that_cost(self) -> None:
        """64 kB of blanks, semicolons, and signatures."""
        signed = SIGNER.sign(MAIL)
        for field in (
            b"X: " + b" " * 60_000,
            b"DKIM-Signature: " + b"; b" * 15_000,
            b"DKIM-Signature: ;" + b"\t" * 50_000 + b"b",
        ):
            before = time.process_time()
            check(field + b"\r\n" + signed)
            self.assertLess(time.process_time() - before, 0.5, field[:20])

    @given(st.binary(max_size=300))
    def test_no_bytes_raise(self, value: bytes) -> None:
        """Neither in a signature nor in a key."""
        read_key([value])
        found = read(lay([("DKIM-Signature", value), ("From", "a@example.org")], "x"))
        if isinstance(found, Inbound):
            signatures_of(found.fields, "example.org", Alignment.STRICT)
