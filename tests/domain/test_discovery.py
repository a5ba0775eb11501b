"""The choice among sources: by rank, never by speed, and never without TLS."""

from itertools import pairwise, permutations

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.discovery import (
    Candidate,
    Choice,
    Rank,
    ServiceRecord,
    choose,
    guesses,
    of_exchanger,
    of_guesses,
    of_services,
)
from mailgateway.providers import Offer, Server, offer_of_domain, offer_of_exchanger

RANKED = [rank for rank in Rank if rank is not Rank.TABLE]


def offer(name: str, *, imap: bool = True, smtp: bool = True) -> Offer:
    """An offer whose servers bear a name."""
    return Offer(
        name=name,
        imap=Server(f"imap.{name}.example", 993) if imap else None,
        smtp=Server(f"smtp.{name}.example", 465) if smtp else None,
        source=name,
    )


def hosts(choice: Choice) -> tuple[str | None, str | None]:
    """The chosen hosts."""
    return tuple(each and each.server.host for each in (choice.imap, choice.smtp))  # type: ignore[return-value]  # two


class RankTests(SynchronousTestCase):
    """Which source wins."""

    def test_the_better_rank_wins_in_any_order_of_arrival(self) -> None:
        """For each pair of ranks, whoever comes first."""
        for better, worse in pairwise(RANKED):
            pair = [Candidate(better, offer("good")), Candidate(worse, offer("bad"))]
            for order in permutations(pair):
                choice = choose(order, "example.org")
                self.assertEqual(hosts(choice), ("imap.good.example", "smtp.good.example"))
                self.assertEqual(choice.imap and choice.imap.rank, better)

    def test_doors_are_filled_one_by_one(self) -> None:
        """A source that knows one server only leaves the other to the next."""
        choice = choose(
            [
                Candidate(Rank.SRV, offer("srv")),
                Candidate(Rank.GIVEN, offer("given", imap=False)),
                Candidate(Rank.AUTOCONFIG, offer("doc", smtp=False)),
            ],
            "example.org",
        )
        self.assertEqual(hosts(choice), ("imap.doc.example", "smtp.given.example"))

    def test_ties(self) -> None:
        """Of one rank the first counts, and nothing found is no choice."""
        two = [Candidate(Rank.PACC, offer("one")), Candidate(Rank.PACC, offer("two"))]
        self.assertEqual(hosts(choose(two, "example.org"))[0], "imap.one.example")
        self.assertEqual(choose([], "example.org"), Choice())

    def test_closed_providers(self) -> None:
        """A provider without IMAP ends the search, unless a person names servers."""
        tuta = offer_of_domain("tuta.com")
        assert tuta is not None
        table = Candidate(Rank.TABLE, tuta)
        self.assertTrue(choose([table], "tuta.com").closed)
        self.assertFalse(choose([table, Candidate(Rank.GIVEN, offer("mine"))], "tuta.com").closed)

    def test_facts_go_with_the_server(self) -> None:
        """Whoever led to Gmail's server, what is known of Gmail holds; of a stranger nothing does."""
        gmail = offer_of_domain("gmail.com")
        assert gmail is not None
        choice = choose(
            [Candidate(Rank.AUTOCONFIG, Offer(name="", imap=gmail.imap, source="x"))], "example.org"
        )
        self.assertEqual(choice.facts and choice.facts.authserv_ids, ("mx.google.com",))
        self.assertIsNone(choose([Candidate(Rank.GUESS, offer("x"))], "x.example").facts)


class DnsTests(SynchronousTestCase):
    """What DNS tells, and how far it is believed."""

    def test_services(self) -> None:
        """Implicit TLS first; priority, then weight, then the name; 465 is never STARTTLS; `.` is none."""
        records = {
            "_imaps._tcp": [
                ServiceRecord("b.example.org", 993, 10, 5),
                ServiceRecord("a.example.org", 993, 10, 50),
                ServiceRecord("c.example.org", 993, 20, 90),
            ],
            "_imap._tcp": [ServiceRecord("plain.example.org", 143)],
            "_submissions._tcp": [ServiceRecord(".", 0)],
            "_submission._tcp": [ServiceRecord("smtp.example.org", 465)],
        }
        found = of_services("example.org", records)
        assert found is not None
        self.assertEqual(found.offer.imap, Server("a.example.org", 993))
        self.assertEqual(found.offer.smtp, Server("smtp.example.org", 465))
        with_starttls = {"_submission._tcp": [ServiceRecord("smtp.example.org.", 587)]}
        found = of_services("example.org", with_starttls)
        self.assertEqual(found and found.offer.smtp, Server("smtp.example.org", 587, starttls=True))
        self.assertIsNone(of_services("example.org", {"_imaps._tcp": [ServiceRecord(".", 0)]}))

    def test_targets_outside_the_domain_are_doubtful(self) -> None:
        """Only what DNS alone tells, and only out of the organization."""
        for host, doubtful in (
            ("imap.example.org", False),
            ("mail.of.example.org", False),
            ("imap.example.net", True),
            ("imap.example.org.evil.net", True),
        ):
            candidate = of_services("example.org", {"_imaps._tcp": [ServiceRecord(host, 993)]})
            assert candidate is not None
            found = choose([candidate], "example.org").imap
            self.assertEqual(found and found.doubtful, doubtful, host)

    def test_mail_exchangers(self) -> None:
        """A row of our own table is no stranger; another's word about it is."""
        ours = offer_of_exchanger("aspmx.l.google.com")
        assert ours is not None
        for known in (True, False):
            found = choose([of_exchanger("aspmx.l.google.com", ours, ours=known)], "example.org").imap
            self.assertEqual(found and (found.rank, found.doubtful), (Rank.MX, not known))

    def test_guesses(self) -> None:
        """Of those that answer the likeliest, and none without TLS."""
        wanted = guesses("example.org")
        self.assertIsNone(of_guesses("example.org", []))
        found = of_guesses("example.org", [*reversed(wanted["smtp"]), wanted["imap"][1]])
        assert found is not None
        self.assertEqual((found.offer.imap, found.offer.smtp), (wanted["imap"][1], wanted["smtp"][0]))
