"""Who is believed: each row says what the receiving server left in the header, and what we make of it."""

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.mail.authenticity import (
    Authentic,
    Authenticity,
    Forged,
    NeedsProof,
    Unauthenticated,
    authenticate,
)
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.own import Own
from mailgateway.providers import Results
from mailgateway.settings import Alignment, Authentication, SingleMailboxProof
from tests.mail.mails import AGENT, AUTHSERV, EVIL, GOOD_RESULTS, OWN, RECEIVED, reply

RESULTS = "Authentication-Results"
DMARC = "dmarc=pass header.from=example.org"
GOOD = (RESULTS, GOOD_RESULTS)
HOP = ("Received", RECEIVED)
OLD_HOP = ("Received", "from evil.example by relay.evil.example; Mon, 30 Nov 2026")
FAIL = (RESULTS, f"{AUTHSERV}; dkim=fail header.d=example.org; spf=fail; dmarc=fail header.from=example.org")


def results(clauses: str, authserv: str = AUTHSERV) -> tuple[str, str]:
    """One field with these clauses."""
    return (RESULTS, f"{authserv}; {clauses}")


REFUSED: dict[str, tuple[type[Authenticity], list[tuple[str, str]]]] = {
    "no results at all": (Unauthenticated, [HOP]),
    "29 forged good one below the real failing one": (Forged, [FAIL, HOP, GOOD]),
    "30 forged one below Received, provider adds none": (Unauthenticated, [HOP, GOOD]),
    "30 forged one far below": (Unauthenticated, [OLD_HOP, HOP, GOOD, OLD_HOP]),
    "31 foreign id": (Unauthenticated, [(RESULTS, GOOD_RESULTS.replace(AUTHSERV, "mx.evil.example")), HOP]),
    "31 id with a suffix": (
        Unauthenticated,
        [(RESULTS, GOOD_RESULTS.replace(AUTHSERV, f"{AUTHSERV}.evil.example")), HOP],
    ),
    "31 id with a prefix": (
        Unauthenticated,
        [(RESULTS, GOOD_RESULTS.replace(AUTHSERV, f"evil-{AUTHSERV}")), HOP],
    ),
    "no id, as Outlook writes": (Unauthenticated, [(RESULTS, GOOD_RESULTS.split(";", 1)[1].strip()), HOP]),
    "real failing": (Forged, [FAIL, HOP]),
    "failing beside a good one in the run": (Forged, [GOOD, FAIL, HOP]),
    "32 everything passes for another domain": (
        Unauthenticated,
        [results("dkim=pass header.d=evil.example; dmarc=pass header.from=evil.example"), HOP],
    ),
    "DMARC for another domain, DKIM aligned": (
        Unauthenticated,
        [results("dkim=pass header.d=example.org; dmarc=pass header.from=evil.example"), HOP],
    ),
    "spf alone": (Unauthenticated, [results("spf=pass smtp.mailfrom=robin@example.org"), HOP]),
    "DMARC alone": (Unauthenticated, [results("dmarc=pass header.from=example.org"), HOP]),
    "none": (Unauthenticated, [results("none"), HOP]),
    "37 DMARC rests on SPF": (
        Unauthenticated,
        [
            results(
                "dkim=none; spf=pass smtp.mailfrom=robin@example.org; dmarc=pass header.from=example.org"
            ),
            HOP,
        ],
    ),
    "subdomain": (
        Unauthenticated,
        [results("dkim=pass header.d=sub.example.org; dmarc=pass header.from=example.org"), HOP],
    ),
    "pass inside a comment": (
        Unauthenticated,
        [
            results(
                "dkim=none (dkim=pass header.d=example.org); dmarc=none (dmarc=pass header.from=example.org)"
            ),
            HOP,
        ],
    ),
    "pass inside a quoted string": (
        Unauthenticated,
        [
            results(f'spf=pass smtp.mailfrom="a; dkim=pass header.d=example.org; {DMARC}; b"@evil.example'),
            HOP,
        ],
    ),
    "DMARC twice": (
        Forged,
        [results("dkim=pass header.d=example.org; dmarc=fail; dmarc=pass header.from=example.org"), HOP],
    ),
    "DMARC passed twice": (
        Unauthenticated,
        [
            results(f"dkim=pass header.d=example.org; {DMARC}; {DMARC}"),
            HOP,
        ],
    ),
    "property of another clause": (
        Forged,
        [
            results(f"dkim=fail header.d=example.org; dkim=pass header.d=evil.example; {DMARC}"),
            HOP,
        ],
    ),
    "signer given twice": (
        Unauthenticated,
        [
            results(
                "dkim=pass header.d=evil.example header.d=example.org; dmarc=pass header.from=example.org"
            ),
            HOP,
        ],
    ),
    "DKIM in two fields": (
        Unauthenticated,
        [
            results("dkim=none"),
            results("dkim=pass header.d=example.org; dmarc=pass header.from=example.org"),
            HOP,
        ],
    ),
    "a malformed field in the run": (Unauthenticated, [GOOD, results("dkim=pass (open"), HOP]),
    "the run is interrupted": (Unauthenticated, [results("spf=pass"), ("X-Other", "x"), GOOD, HOP]),
}

ACCEPTED: dict[str, list[tuple[str, str]]] = {
    "good": [GOOD, HOP],
    "below the traces of the last delivery": [
        ("Return-Path", "<robin@example.org>"),
        ("Delivered-To", AGENT),
        GOOD,
        HOP,
    ],
    "no Received at all, as when handed over by LMTP": [GOOD],
    "id in capitals": [(RESULTS, GOOD_RESULTS.replace(AUTHSERV, AUTHSERV.upper())), HOP],
    "quoted id": [(RESULTS, GOOD_RESULTS.replace(AUTHSERV, f'"{AUTHSERV}"')), HOP],
    "version and comment": [(RESULTS, GOOD_RESULTS.replace(AUTHSERV, f"{AUTHSERV} 1 (checked)")), HOP],
    "several fields, verdict in the last": [
        results("iprev=pass policy.iprev=192.0.2.7"),
        results("x-tls=pass"),
        GOOD,
        HOP,
    ],
    "signer told by header.i": [
        results("dkim=pass header.i=@example.org; dmarc=pass header.from=Example.org"),
        HOP,
    ],
    "a second signature of a third party": [
        results(f"dkim=pass header.d=esp.example; dkim=pass header.d=example.org; {DMARC}"),
        HOP,
    ],
    "a server that checks no DMARC": [results("dkim=pass header.d=example.org; spf=pass"), HOP],
    "SPF failed, as when forwarded": [
        results("dkim=pass header.d=example.org; spf=fail; dmarc=pass header.from=example.org"),
        HOP,
    ],
}


def mail(top: list[tuple[str, str]], more: list[tuple[str, str]] | None = None) -> Inbound:
    """A reply with these fields on top."""
    inbound = read(reply(top=top, more=more or []))
    assert isinstance(inbound, Inbound)
    return inbound


class AuthenticationTests(SynchronousTestCase):
    """``required``: closed by default."""

    def test_refused(self) -> None:
        """Every row is refused, and as what it is: failing evidence is forged, missing is unauthenticated."""
        for name, (wanted, top) in REFUSED.items():
            self.assertIsInstance(authenticate(mail(top), OWN), wanted, name)

    def test_accepted(self) -> None:
        """What good providers write is believed."""
        for name, top in ACCEPTED.items():
            self.assertEqual(authenticate(mail(top), OWN), Authentic("authentication-results"), name)

    def test_with_no_trusted_id_nobody_is_believed(self) -> None:
        """The service starts without one, and accepts nobody."""
        self.assertIsInstance(
            authenticate(mail([GOOD, HOP]), evolve(OWN, trusted_authserv_ids=[])), Unauthenticated
        )

    def test_doubled_fields_are_refused(self) -> None:
        """A second Subject or Content-Type may be an attacker's, put on a signed mail."""
        for name in ("Subject", "To", "Message-ID", "Content-Type", "Content-Transfer-Encoding", "Date"):
            twice = [(name, "x"), (name, "x")]
            self.assertIsInstance(authenticate(mail([GOOD, HOP], twice), OWN), Unauthenticated, name)

    def test_a_true_mail_to_somebody_else_is_refused(self) -> None:
        """Whoever received it could hand it to us unchanged, signature and all."""
        raw = reply().replace(f"To: Coding agents <{AGENT}>".encode(), f"To: {EVIL}".encode())
        inbound = read(raw)
        assert isinstance(inbound, Inbound)
        self.assertIsInstance(authenticate(inbound, OWN), Unauthenticated)
        plus = read(reply().replace(AGENT.encode(), b"Agent+f913c9@EXAMPLE.org"))
        assert isinstance(plus, Inbound)
        self.assertIsInstance(authenticate(plus, OWN), Authentic)

    def test_relaxed_alignment_takes_a_parent_and_a_child(self) -> None:
        """Not a sibling, and not a bare top-level domain."""
        own = evolve(OWN, alignment=Alignment.RELAXED)
        for signer, wanted in (
            ("sub.example.org", Authentic),
            ("example.org", Authentic),
            ("org", Unauthenticated),
            ("badexample.org", Unauthenticated),
            ("evil.org", Unauthenticated),
        ):
            top = [results(f"dkim=pass header.d={signer}; dmarc=pass header.from=example.org"), HOP]
            self.assertIsInstance(authenticate(mail(top), own), wanted, signer)


class BelowReceivedTests(SynchronousTestCase):
    """``results_below_received``: where Gmail writes them."""

    own: Own = evolve(OWN, results=Results.BELOW)
    internal = ("Received", "by 2002:a05:6000:1 with SMTP id x; Mon, 30 Nov 2026")

    def verdict(self, top: list[tuple[str, str]]) -> type[Authenticity]:
        """The verdict's class for a mail with these fields on top."""
        return type(authenticate(mail(top), self.own))

    def test_right_under_the_provider_s_own_line(self) -> None:
        """Internal hops and other traces may stand around it."""
        self.assertIs(
            self.verdict(
                [self.internal, ("X-Received", "by x"), HOP, ("Received-SPF", "pass"), GOOD, OLD_HOP]
            ),
            Authentic,
        )

    def test_elsewhere_it_is_nothing(self) -> None:
        """Above, below a foreign line, or below a forged line of the provider."""
        for top in (
            [GOOD, HOP],
            [OLD_HOP, GOOD],
            [OLD_HOP, HOP, GOOD],
            [HOP, OLD_HOP, GOOD],
            [self.internal, GOOD],
            [("Received", f"from e (by {AUTHSERV} [192.0.2.1]) by other.example; x"), GOOD],
            [("Received", f"from e (a (by {AUTHSERV} ) by {AUTHSERV} by other.example; x"), GOOD],
        ):
            self.assertIs(self.verdict(top), Unauthenticated, str(top))

    def test_two_of_them_are_refused(self) -> None:
        """The second one may have come with the mail."""
        self.assertIs(self.verdict([HOP, results("dkim=none"), GOOD]), Unauthenticated)


class SingleMailboxTests(SynchronousTestCase):
    """``single-mailbox``: the store must find the proof."""

    def test_the_proof_is_asked_for(self) -> None:
        """Neither good nor bad results count there."""
        for proof in SingleMailboxProof:
            own = evolve(OWN, authentication=Authentication.SINGLE_MAILBOX, single_mailbox_proof=proof)
            self.assertEqual(authenticate(mail([HOP]), own), NeedsProof(proof))
            self.assertEqual(authenticate(mail([GOOD, HOP]), own), NeedsProof(proof))
