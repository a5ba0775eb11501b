"""What the sender signed is the sender's; what somebody put on the mail later is not."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.judge import FromPerson, Refused, judge
from mailgateway.domain.routing import Claims, claims_of
from mailgateway.ids import MessageId, RouteId
from mailgateway.mail.decode import Field, Malformed
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.own import Own
from mailgateway.mail.signature import Coverage, Partial, coverage_of
from mailgateway.mail.verdict import Verdict
from mailgateway.settings import Alignment, Authentication
from tests.mail.mails import AGENT, EVIL, GOOD_RESULTS, OWN, PERSON, RECEIVED, SENT_ID, lay, reply

GMAIL = (
    "to:subject:message-id:date:from:in-reply-to:references:mime-version:from:to:cc:subject:date:message-id"
)
OUTLOOK = "From:Date:Subject:Message-ID:Content-Type:MIME-Version:X-MS-Exchange-SenderADCheck"
TOP = [("Authentication-Results", GOOD_RESULTS), ("Received", RECEIVED)]
OTHER_ID = MessageId("<mg.aaaaaa.00112233445566778899aabb.0a1b2c3d@example.org>")


def signature(h: str, d: str = "example.org", more: str = "") -> tuple[str, str]:
    """A DKIM-Signature field as programs fold it."""
    return (
        "DKIM-Signature",
        f"v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n d={d}; s=x;\r\n h={h};{more} bh=AA=;\r\n b=B\r\n B=",
    )


def coverage(*values: str, alignment: Alignment = Alignment.STRICT) -> Coverage | Partial | Malformed:
    """What these field values cover for example.org."""
    fields = [Field("dkim-signature", value.replace("\r\n", "").encode()) for value in values]
    return coverage_of(fields, "example.org", alignment)


def claims(raw: bytes, own: Own = OWN) -> Claims:
    """The claims of a mail."""
    inbound = read(raw)
    assert isinstance(inbound, Inbound)
    return claims_of(inbound, own)


class CoverageTests(SynchronousTestCase):
    """The tags of a signature."""

    def test_no_aligned_signature_says_nothing(self) -> None:
        """None at all, or one of somebody else."""
        self.assertEqual(coverage(), Coverage(None))
        self.assertEqual(coverage(signature("from:to", d="esp.example")[1]), Coverage(None))
        self.assertEqual(coverage(signature("from:to", d="mail.example.org")[1]), Coverage(None))
        self.assertTrue(Coverage(None).covers("subject"))

    def test_what_all_of_them_name(self) -> None:
        """In any case, with blanks and folds; the signatures of others do not matter."""
        self.assertEqual(
            coverage(
                signature("From : Subject:\r\n\tTo", d="Example.ORG.")[1],
                signature("from:subject:in-reply-to")[1],
                signature("x", d="esp.example", more=" l=1;")[1],
            ),
            Coverage(frozenset({"from", "subject"})),
        )

    def test_relaxed_alignment(self) -> None:
        """The signature of a parent or child counts, as it does for the results."""
        child = signature("from", d="mail.example.org")[1]
        self.assertEqual(coverage(child, alignment=Alignment.RELAXED), Coverage(frozenset({"from"})))

    def test_room_for_others(self) -> None:
        """A length, even one that nobody can read, and a From that is not covered."""
        for value in (
            signature("from", more=" l=20;")[1],
            signature("from", more="\r\n\tl\t=\t;")[1],
            signature("subject:to")[1],
            "d=example.org",
        ):
            self.assertIsInstance(coverage(value), Partial, value)
            self.assertIsInstance(coverage(signature("from")[1], value), Partial, value)

    def test_what_cannot_be_read_may_be_the_valid_one(self) -> None:
        """No tag list, a tag twice, other than ASCII."""
        for value in (
            "",
            "d",
            "d=example.org;; h=from",
            "d=x.example; d=example.org; h=from",
            "d=exämple.org",
            "=x",
        ):
            self.assertIsInstance(coverage(value), Malformed, value)

    @given(st.binary(max_size=80))
    def test_no_bytes_raise(self, noise: bytes) -> None:
        """Alone and behind a true beginning."""
        for value in (noise, b"d=example.org; h=from; " + noise):
            coverage_of([Field("dkim-signature", value)], "example.org", Alignment.STRICT)


class ReplayTests(SynchronousTestCase):
    """A true mail of the person, handed to us by somebody who got it."""

    def replayed(self, h: str, added: list[tuple[str, str]], *, to: str = EVIL, more: str = "") -> bytes:
        """The person's signed mail to somebody, with fields that were put on it."""
        return lay(
            [
                *TOP,
                *added,
                signature(h, more=more),
                ("From", PERSON),
                ("To", to),
                ("Subject", "please"),
                ("Date", "Mon, 30 Nov 2026 10:00:00 +0000"),
            ],
            "Eve, delete it all.\n",
        )

    def test_an_added_cc_does_not_address_us(self) -> None:
        """The signature tells whom the mail was for."""
        added = [("Cc", AGENT), ("In-Reply-To", SENT_ID)]
        judged = judge(self.replayed("from:to:subject:date", added), OWN)
        assert isinstance(judged, Refused)
        self.assertEqual(judged.verdict, Verdict.UNAUTHENTICATED)

    def test_a_length_is_refused_as_forged(self) -> None:
        """Whatever follows the signed part is anybody's."""
        judged = judge(self.replayed("from:to:subject:date", [], to=AGENT, more=" l=20;"), OWN)
        assert isinstance(judged, Refused)
        self.assertEqual(judged.verdict, Verdict.FORGED)
        self.assertIn("only a part", judged.reason)

    def test_a_signature_that_cannot_be_read_is_refused(self) -> None:
        """It is not taken for none."""
        raw = self.replayed("from", [("DKIM-Signature", "d=example.org; d=x")], to=AGENT)
        judged = judge(raw, OWN)
        assert isinstance(judged, Refused)
        self.assertEqual(judged.verdict, Verdict.UNAUTHENTICATED)

    def test_what_the_large_providers_sign_is_enough(self) -> None:
        """Gmail covers all that routes; with Outlook it is the tag, and the thread tells what is quoted."""
        for h, chain, unsigned in ((GMAIL, (SENT_ID,), ()), (OUTLOOK, (), (SENT_ID,))):
            judged = judge(reply(top=[*TOP, signature(h)]), OWN)
            assert isinstance(judged, FromPerson), judged
            self.assertEqual(judged.claims.short, RouteId("f913c9"))
            self.assertEqual((judged.claims.chain, judged.claims.unsigned), (chain, unsigned))

    def test_a_cc_to_us_where_nobody_is_signed(self) -> None:
        """Outlook signs neither To nor Cc; a person who answers to all must get through."""
        raw = reply(top=[*TOP, signature(OUTLOOK)]).replace(b"To: Coding", b"To: x@example.org\r\nCc: Coding")
        self.assertIsInstance(judge(raw, OWN), FromPerson)

    def test_each_claim_stands_in_a_covered_field(self) -> None:
        """Field by field, for every subset of what a signature may cover."""
        raw = reply(
            top=TOP,
            more=[("Cc", "agent+bbbbbb@example.org"), ("X-Original-To", "agent+cccccc@example.org")],
        ).replace(f"<{AGENT}>".encode(), b"<agent+aaaaaa@example.org>")
        names = ("subject", "in-reply-to", "references", "to", "cc")
        for bits in range(2 ** len(names)):
            covered = {name for at, name in enumerate(names) if bits >> at & 1}
            got = claims(lay([signature(":".join(["from", *sorted(covered)]))])[:-2] + raw)
            plus = [route for name, route in (("to", "aaaaaa"), ("cc", "bbbbbb")) if name in covered]
            self.assertEqual(got.all_plus, tuple(plus), covered)
            self.assertEqual(got.short, "f913c9" if "subject" in covered else None, covered)
            self.assertEqual(
                got.chain, (SENT_ID,) if covered & {"in-reply-to", "references"} else (), covered
            )

    @given(
        st.sets(st.sampled_from(["subject", "to", "cc", "in-reply-to", "references", "date", "message-id"])),
        st.lists(
            st.sampled_from(
                [
                    ("In-Reply-To", OTHER_ID),
                    ("References", OTHER_ID),
                    ("Cc", f"{AGENT}, agent+aaaaaa@example.org"),
                    ("Subject", "[mg:aaaaaa] x"),
                    ("Delivered-To", "agent+aaaaaa@example.org"),
                    ("X-Original-To", "agent+aaaaaa@example.org"),
                    ("DKIM-Signature", "v=1; d=example.org; h=from:to:cc:subject:in-reply-to:references; b="),
                    (
                        "DKIM-Signature",
                        "v=1; d=evil.example; h=from:to:cc:subject:in-reply-to:references; b=",
                    ),
                ]
            ),
            max_size=4,
        ),
    )
    def test_nothing_that_is_put_on_a_mail_routes_it(
        self, covered: set[str], added: list[tuple[str, str]]
    ) -> None:
        """Where the server would still find the signature valid, and the mail is taken."""
        there = {"from", "to", "subject", "date"}
        # one more field of a name that is covered breaks the signature, and the server says so
        if any(name.lower() in covered for name, _ in added):
            return
        h = ":".join(sorted({"from", "to", *(covered & there), *covered}))
        judged = judge(self.replayed(h, added, to=AGENT), OWN)
        if isinstance(judged, FromPerson):
            self.assertEqual((judged.claims.routes, judged.claims.chain), ((), ()))

    def test_where_no_signature_was_looked_at_none_limits(self) -> None:
        """Agent and person share a mailbox: the proof is another one."""
        own = evolve(OWN, authentication=Authentication.SINGLE_MAILBOX)
        self.assertEqual(claims(reply(top=[signature("from")]), own).chain, (SENT_ID,))
        self.assertEqual(claims(reply(top=[signature("from")])).chain, ())
        self.assertEqual(claims(reply(top=[("DKIM-Signature", "x")])), Claims(unsigned=(SENT_ID,)))
