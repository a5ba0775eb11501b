"""Which servers belong to an address: the sources by rank, how far each is trusted, and the choice.

Policy: whoever answers first has no advantage.  For each door, IMAP and submission, the best ranked source
that names a server is taken, and a failure further on does not fall back to a source that is trusted less,
since an attacker can make anything fail.  A server without TLS cannot even be said (``providers.Server``).
DNS is not signed as far as we can see: where it leads out of the domain to a name that nothing else vouches
for, a person has to say yes (``Found.doubtful``).  And nobody logs in anywhere before a person has seen the
names.

Rank 7, Microsoft's Autodiscover, is left out: most of its hosts want the password first.  This module asks
nobody anything; it is told what others found.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Literal

from attrs import evolve, frozen

from mailgateway.mail.alignment import aligned
from mailgateway.providers import Offer, Server, offers
from mailgateway.settings import Alignment

Door = Literal["imap", "smtp"]
DOORS: tuple[Door, Door] = ("imap", "smtp")


class Rank(IntEnum):
    """Where a candidate comes from; the smaller wins."""

    GIVEN = 0
    TABLE = 1
    PACC = 2
    AUTOCONFIG = 3
    ISPDB = 4
    SRV = 5
    MX = 6
    GUESS = 8

    @property
    def words(self) -> str:
        """The source, for people."""
        return _WORDS[self]


_WORDS = {
    Rank.GIVEN: "as you said",
    Rank.TABLE: "known provider",
    Rank.PACC: "told by the domain (PACC)",
    Rank.AUTOCONFIG: "told by the domain (autoconfig)",
    Rank.ISPDB: "told by Mozilla's directory",
    Rank.SRV: "told by DNS (SRV)",
    Rank.MX: "by the domain's mail exchanger",
    Rank.GUESS: "guessed, and it answers there",
}


@frozen
class Candidate:
    """What one source says.  ``vouched``: its names are signed for, or are in our own table."""

    rank: Rank
    offer: Offer
    vouched: bool = True


@frozen
class Found:
    """A server that was chosen for a door, and why."""

    server: Server
    rank: Rank
    source: str
    doubtful: bool = False
    """Only DNS leads there, and out of the domain: a person has to agree to this very name."""


@frozen
class Choice:
    """The servers of an address; a door without one stays open.

    ``facts`` is what is known of the provider whose IMAP server was chosen.  Where the provider is known to
    have no IMAP, ``facts`` is that offer, and nothing else was chosen.
    """

    imap: Found | None = None
    smtp: Found | None = None
    facts: Offer | None = None

    @property
    def complete(self) -> bool:
        """Whether both doors have a server."""
        return self.imap is not None and self.smtp is not None

    @property
    def closed(self) -> bool:
        """Whether the provider lets no mail program in."""
        return self.facts is not None and self.facts.imap is None


@frozen
class ServiceRecord:
    """One SRV record (RFC 2782); the target ``.`` says that there is no such service."""

    target: str
    port: int
    priority: int = 0
    weight: int = 0


SERVICES: Mapping[str, tuple[Door, bool]] = {
    "_imaps._tcp": ("imap", False),
    "_imap._tcp": ("imap", True),
    "_submissions._tcp": ("smtp", False),
    "_submission._tcp": ("smtp", True),
}
"""Names of SRV records (RFC 6186, RFC 8314): the door, and whether it is by STARTTLS; the best ones first."""

IMPLICIT = {"imap": 993, "smtp": 465}
"""Ports of TLS from the first byte, under whatever name they are told."""


def choose(candidates: Iterable[Candidate], domain: str) -> Choice:
    """The best ranked server of each door; of candidates of one rank, the first."""
    ranked = sorted(candidates, key=lambda each: each.rank)
    best = ranked[0] if ranked else None
    if best is not None and best.rank is Rank.TABLE and best.offer.imap is None:
        return Choice(facts=best.offer)
    imap, smtp = (_best(ranked, door, domain) for door in DOORS)
    return Choice(imap, smtp, facts_of(imap.server.host) if imap is not None else None)


def facts_of(imap_host: str) -> Offer | None:
    """What is known of the provider with this IMAP server, whoever has led to it."""
    wanted = imap_host.lower().rstrip(".")
    return next((each for each in offers() if each.imap is not None and each.imap.host == wanted), None)


def _best(ranked: Iterable[Candidate], door: Door, domain: str) -> Found | None:
    for each in ranked:
        server = each.offer.imap if door == "imap" else each.offer.smtp
        if server is not None:
            doubtful = not each.vouched and not aligned(server.host, domain, Alignment.RELAXED)
            return Found(server, each.rank, each.offer.source, doubtful)
    return None


def of_services(domain: str, records: Mapping[str, Sequence[ServiceRecord]]) -> Candidate | None:
    """The candidate that SRV records tell, by their names without the domain.

    Implicit TLS goes before STARTTLS; then the lowest priority, the highest weight, and the name, so that the
    choice is the same each time.
    """
    servers: dict[Door, Server] = {}
    for name, (door, starttls) in SERVICES.items():
        told = [each for each in records.get(name, ()) if each.target.strip(".")]
        if told and door not in servers:
            first = min(told, key=lambda each: (each.priority, -each.weight, each.target, each.port))
            servers[door] = Server(
                first.target.lower().rstrip("."), first.port, starttls and first.port != IMPLICIT[door]
            )
    if not servers:
        return None
    source = f"SRV records of {domain}"
    offer = Offer(name="", imap=servers.get("imap"), smtp=servers.get("smtp"), source=source)
    return Candidate(Rank.SRV, offer, vouched=False)


def of_exchanger(host: str, offer: Offer, *, ours: bool) -> Candidate:
    """The candidate by a domain's mail exchanger; ``ours``: the offer is in our table."""
    return Candidate(Rank.MX, evolve(offer, source=f"mail exchanger {host}"), vouched=ours)


def guesses(domain: str) -> dict[Door, tuple[Server, ...]]:
    """Where servers usually are, the likeliest first; each has to answer by TLS before it counts."""
    return {
        "imap": (
            Server(f"imap.{domain}", 993),
            Server(f"mail.{domain}", 993),
        ),
        "smtp": (
            Server(f"smtp.{domain}", 465),
            Server(f"mail.{domain}", 465),
            Server(f"smtp.{domain}", 587, starttls=True),
            Server(f"mail.{domain}", 587, starttls=True),
        ),
    }


def of_guesses(domain: str, answering: Iterable[Server]) -> Candidate | None:
    """The candidate of those guesses that answer: of each door the likeliest."""
    there = set(answering)
    imap, smtp = (next((each for each in guesses(domain)[door] if each in there), None) for door in DOORS)
    if imap is None and smtp is None:
        return None
    return Candidate(Rank.GUESS, Offer(name="", imap=imap, smtp=smtp, source="the usual names"))
