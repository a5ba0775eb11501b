"""The order of trust, from whole mails to verdicts."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.judge import BounceOf, FromPerson, Refused, judge
from mailgateway.ids import RouteId
from mailgateway.mail.authenticity import Authentic, NeedsProof
from mailgateway.mail.own import Own
from mailgateway.mail.sender import OneMailbox
from mailgateway.mail.verdict import Verdict
from mailgateway.settings import Authentication, SingleMailboxProof
from tests.mail.mails import AGENT, EVIL, GOOD_RESULTS, OWN, PERSON, RECEIVED, SENT_ID, lay, reply
from tests.mail.test_sender import REFUSED


def verdict(raw: bytes, own: Own = OWN) -> str:
    """The verdict, or the outcome's name."""
    judged = judge(raw, own)
    return judged.verdict if isinstance(judged, Refused) else type(judged).__name__


class JudgeTests(SynchronousTestCase):
    """No layer stands in for an earlier one."""

    def test_a_person_s_mail(self) -> None:
        """With everything that the next steps need."""
        judged = judge(reply(), OWN)
        assert isinstance(judged, FromPerson)
        self.assertEqual(judged.sender, OneMailbox(PERSON, "Robin Sommer"))
        self.assertEqual(judged.authenticity, Authentic("authentication-results"))
        self.assertEqual((judged.claims.short, judged.claims.chain), (RouteId("f913c9"), (SENT_ID,)))

    def test_each_layer_in_its_turn(self) -> None:
        """A mail that fails at several is named by the first."""
        marker = ("X-Mailgateway-Instance", "i")
        away = ("Auto-Submitted", "auto-replied")
        hop = ("Received", RECEIVED)
        failing = ("Authentication-Results", GOOD_RESULTS.replace("=pass", "=fail"))
        for wanted, raw in (
            (Verdict.MALFORMED, b""),
            (Verdict.MALFORMED, reply(more=[("From ", PERSON), marker])),
            (Verdict.OWN_MAIL, reply(frm=EVIL, more=[marker, away])),
            (Verdict.AUTOMATIC, reply(frm=EVIL, top=[], more=[away])),
            (Verdict.NOT_ALLOWED, reply(frm=EVIL, top=[])),
            (Verdict.NOT_ALLOWED, reply(frm=f"{PERSON}, {EVIL}")),
            (Verdict.NOT_ALLOWED, reply(more=[("From", PERSON)])),
            (Verdict.NOT_ALLOWED, lay([("Sender", PERSON), ("Reply-To", PERSON), ("From", EVIL)])),
            (Verdict.NOT_ALLOWED, lay([("Subject", "[mg:f913c9]")], f"From: {PERSON}\n")),
            (Verdict.AUTOMATIC, reply(more=[("List-Post", "<mailto:dev@example.org>")])),
            (Verdict.UNAUTHENTICATED, reply(top=[hop])),
            (Verdict.UNAUTHENTICATED, reply(more=[("Subject", "[mg:000000] another")])),
            (Verdict.FORGED, reply(top=[failing, hop])),
            ("BounceOf", reply(more=[("X-Failed-Recipients", PERSON)])),
        ):
            self.assertEqual(verdict(raw), wanted, raw[:200])

    def test_a_calendar_s_answer(self) -> None:
        """Only the parts tell, and these are looked at last: nobody's words without a true From."""
        calendar = "text/calendar; method=REPLY"
        self.assertEqual(verdict(reply(content_type=calendar)), Verdict.AUTOMATIC)
        self.assertEqual(verdict(reply(top=[], content_type=calendar)), Verdict.UNAUTHENTICATED)
        self.assertEqual(verdict(reply(frm=EVIL, content_type=calendar)), Verdict.NOT_ALLOWED)

    def test_every_odd_from_with_good_results_is_refused(self) -> None:
        """The receiving server vouches for the domain; From alone decides."""
        let_in = [name for name, raw in REFUSED.items() if verdict(reply(frm=raw)) == "FromPerson"]
        self.assertEqual(let_in, [])

    def test_a_folded_second_address(self) -> None:
        """On its own line it still belongs to From."""
        self.assertEqual(verdict(reply(frm=f"Robin <{PERSON}>\r\n <{EVIL}>")), Verdict.NOT_ALLOWED)

    def test_near_misses_of_the_allowed_address(self) -> None:
        """Subdomains, prefixes, suffixes and another case of the local part are other people."""
        for address in (
            "robin@mail.example.org",
            "robin@example.org.evil.example",
            "xrobin@example.org",
            "robin+x@example.org",
            "Robin@example.org",
            "robin@xn--exmple-4nf.org",
        ):
            self.assertEqual(verdict(reply(frm=address)), Verdict.NOT_ALLOWED, address)
        self.assertEqual(verdict(reply(frm="robin@EXAMPLE.org")), "FromPerson")

    def test_a_single_mailbox(self) -> None:
        """Agent and person share the address; the store has to find the proof."""
        own = evolve(
            OWN,
            allowed=[AGENT],
            authentication=Authentication.SINGLE_MAILBOX,
            single_mailbox_proof=SingleMailboxProof.THREAD,
        )
        judged = judge(reply(frm=AGENT, top=[]), own)
        assert isinstance(judged, FromPerson)
        self.assertEqual(judged.authenticity, NeedsProof(SingleMailboxProof.THREAD))

    def test_a_bounce_names_our_mail(self) -> None:
        """As found in what was returned."""
        judged = judge(
            lay([("From", "MAILER-DAEMON@mx.example.net")], f"no such user\n\nMessage-ID: {SENT_ID}\n"), OWN
        )
        assert isinstance(judged, BounceOf)
        self.assertEqual((judged.message_ids, judged.failed), ((SENT_ID,), True))

    def test_a_refusal_quotes_nothing(self) -> None:
        """Its reason can be logged; the address only where it was read strictly."""
        judged = judge(reply(frm=f"{PERSON} <{EVIL}>", subject="secret words"), OWN)
        assert isinstance(judged, Refused)
        self.assertEqual(judged.address, "")
        self.assertNotIn("secret", repr(judged))
        self.assertNotIn("evil", judged.reason)

    @given(st.binary(max_size=300), st.sampled_from([b"", reply()[:400], reply().split(b"Subject")[0]]))
    def test_no_bytes_raise(self, noise: bytes, head: bytes) -> None:
        """Nor do they become a person's words without a true From."""
        judged = judge(head + noise, OWN)
        if isinstance(judged, FromPerson):
            self.assertEqual(judged.sender.address, PERSON)
