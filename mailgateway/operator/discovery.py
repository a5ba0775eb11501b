"""Looking for the servers of an address: asks the sources of ``domain.discovery``, hands over what they say.

Policy: explicit servers and the built-in table cost no network, and end the search.  Otherwise all sources
are asked at once, each for five seconds at most.  Mozilla's directory is asked only when a person allowed it,
since it learns the domain; nobody learns the part before the @.  Whoever is asked sees no password: guesses
are probed by TLS and a greeting, and no login follows from here.
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from mailgateway.domain.discovery import (
    DOORS,
    SERVICES,
    Candidate,
    Choice,
    Door,
    Found,
    Rank,
    ServiceRecord,
    choose,
    guesses,
    of_exchanger,
    of_guesses,
    of_services,
)
from mailgateway.errors import PeerError, ProtocolViolation, Unreachable
from mailgateway.mail.alignment import organization
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.https import Https
from mailgateway.protocols.lookup import Lookup
from mailgateway.providers import Offer, Server, offer_of_domain, offer_of_exchanger
from mailgateway.settings import Tls
from mailgateway.wire import autoconfig, pacc
from mailgateway.wire.host_name import host_name

SECONDS: Final = 5.0
"""How long each source may take, all in all."""

INNER_SECONDS: Final = 4.5
"""How long each of several questions to one source may take, so that one that hangs spoils not all."""

ISPDB: Final = "https://autoconfig.thunderbird.net/v1.1/"


@frozen
class Asked:
    """What became of asking one source: ``offer`` is what it says, else ``why`` it says nothing."""

    rank: Rank
    offer: Offer | None = None
    why: str = ""


@define(eq=False)
class Search:
    """The sources, and what is told of them while they are asked.

    ``probe`` connects to a server by TLS and reads its greeting; it raises a ``PeerError`` when the server is
    not there, or its certificate is not for that name.
    """

    reactor: Any
    https: Https
    lookup: Lookup
    probe: Callable[[Door, Server], Awaitable[None]]
    tell: Callable[[Asked], None]
    asked: list[Asked] = field(factory=list, init=False)

    async def find(self, domain: str, given: Offer | None = None, *, ispdb: bool = False) -> Choice:
        """The servers of a domain; what ``given`` names is not looked for.  ``ispdb``: ask Mozilla."""
        known = [Candidate(Rank.GIVEN, given)] if given is not None else []
        table = offer_of_domain(domain)
        if table is not None:
            self._note(Asked(Rank.TABLE, table))
            known.append(Candidate(Rank.TABLE, table))
        choice = choose(known, domain)
        if choice.complete or (table is not None and choice.closed):
            return choice
        sources = {
            Rank.PACC: self._pacc(domain),
            Rank.AUTOCONFIG: self._autoconfig(domain),
            Rank.SRV: self._services(domain),
            Rank.MX: self._exchangers(domain, ispdb=ispdb),
            Rank.GUESS: self._guesses(domain),
        }
        if ispdb:
            sources[Rank.ISPDB] = self._ispdb(domain, Rank.ISPDB)
        return choose([*known, *await self._all(sources)], domain)

    async def find_in_directory(self, domain: str, choice: Choice) -> Choice:
        """Ask Mozilla's directory as well, since a person has allowed it now; better ranked servers stay."""
        candidates = await self._all({Rank.ISPDB: self._ispdb(domain, Rank.ISPDB)})
        theirs = choose(candidates, domain)

        def better(ours: Found | None, other: Found | None) -> Found | None:
            return other if ours is None or (other is not None and other.rank < ours.rank) else ours

        imap, smtp = better(choice.imap, theirs.imap), better(choice.smtp, theirs.smtp)
        facts = theirs.facts if imap is theirs.imap else choice.facts
        return Choice(imap, smtp, facts)

    async def refusals(self, choice: Choice) -> dict[Door, PeerError]:
        """What is wrong with the chosen servers: not there, or not by TLS under the name that is shown."""
        found = {door: each for door, each in zip(DOORS, (choice.imap, choice.smtp), strict=True) if each}
        outcomes = await self._answers((door, each.server) for door, each in found.items())
        return {door: error for (door, _), error in outcomes.items() if error is not None}

    # The sources: each gives a candidate, or None, or fails with a PeerError that says why.

    async def _pacc(self, domain: str) -> Candidate | None:
        texts = await self.lookup.texts(pacc.digest_name(domain))
        if not texts:
            return None
        url = pacc.document_url(domain)
        data = await self.https.get(url, limit=pacc.LARGEST, seconds=SECONDS)
        if not pacc.vouched_for(data, texts):
            raise ProtocolViolation(
                "the document is not the one whose digest stands in DNS, so it does not count"
            )
        return Candidate(Rank.PACC, pacc.read(data, url))

    async def _autoconfig(self, domain: str) -> Candidate | None:
        urls = (
            f"https://autoconfig.{domain}/mail/config-v1.1.xml",
            f"https://{domain}/.well-known/autoconfig/mail/config-v1.1.xml",
        )
        failures = []
        for offer in await self._each(self._document(url, domain) for url in urls):
            if isinstance(offer, Offer):
                return Candidate(Rank.AUTOCONFIG, offer)
            failures.append(offer)
        raise next((each for each in failures if not isinstance(each, Unreachable)), failures[0])

    async def _ispdb(self, domain: str, rank: Rank) -> Candidate | None:
        offer = await self._document(ISPDB + domain, domain)
        return Candidate(rank, offer, vouched=rank is Rank.ISPDB)

    async def _document(self, url: str, domain: str) -> Offer:
        data = await self.https.get(url, limit=autoconfig.LARGEST, seconds=SECONDS)
        return autoconfig.read(data, domain, url)

    async def _services(self, domain: str) -> Candidate | None:
        answers = await self._each(self.lookup.services(f"{name}.{domain}") for name in SERVICES)
        records = {}
        for name, answer in zip(SERVICES, answers, strict=True):
            if not isinstance(answer, PeerError):
                told = (ServiceRecord(*each) for each in answer)
                records[name] = [each for each in told if host_name(each.target) is not None]
        if not records:
            raise Unreachable("DNS does not answer")
        return of_services(domain, records)

    async def _exchangers(self, domain: str, *, ispdb: bool) -> Candidate | None:
        hosts = await self.lookup.exchangers(domain)
        for host in hosts:
            if (offer := offer_of_exchanger(host)) is not None:
                return of_exchanger(host, offer, ours=True)
        parent = organization(hosts[0]) if hosts else None
        if not ispdb or parent is None or parent == domain or host_name(parent) is None:
            return None
        found = await self._document(ISPDB + parent, domain)
        return of_exchanger(hosts[0], found, ours=False)

    async def _guesses(self, domain: str) -> Candidate | None:
        wanted = [(door, server) for door in DOORS for server in guesses(domain)[door]]
        outcomes = await self._answers(wanted)
        return of_guesses(domain, [server for (_, server), error in outcomes.items() if error is None])

    # How they are asked.

    async def _answers(
        self, wanted: Iterable[tuple[Door, Server]]
    ) -> dict[tuple[Door, Server], PeerError | None]:
        """Probe servers, all at once; what was wrong with each."""
        pairs = list(wanted)
        outcomes = await self._each(self._probed(door, server) for door, server in pairs)
        return {
            pair: outcome if isinstance(outcome, PeerError) else None
            for pair, outcome in zip(pairs, outcomes, strict=True)
        }

    async def _probed(self, door: Door, server: Server) -> None:
        await self.probe(door, server)

    async def _all(self, sources: dict[Rank, Coroutine[Any, Any, Candidate | None]]) -> list[Candidate]:
        """Ask all, and tell of each when it has answered."""
        watched = [self._told(rank, source) for rank, source in sources.items()]
        return [each for each in await self._each(watched, 2 * SECONDS) if isinstance(each, Candidate)]

    async def _told(self, rank: Rank, source: Coroutine[Any, Any, Candidate | None]) -> Candidate | None:
        outcome: Candidate | PeerError | None
        [outcome] = await self._each([source], SECONDS)
        if isinstance(outcome, PeerError):
            self._note(Asked(rank, why=outcome.text))
            return None
        self._note(Asked(rank, outcome.offer if outcome is not None else None, "" if outcome else "nothing"))
        return outcome

    async def _each(
        self, coroutines: Iterable[Coroutine[Any, Any, Any]], seconds: float = INNER_SECONDS
    ) -> list[Any]:
        """The results of all, in order, each within its time; a ``PeerError`` is a result."""
        running = [
            Deferred.fromCoroutine(each).addTimeout(seconds, self.reactor, _too_late) for each in coroutines
        ]
        results = []
        for good, result in await DeferredList(running, consumeErrors=True):
            if good:
                results.append(result)
            elif isinstance(result, Failure) and isinstance(result.value, PeerError):
                results.append(result.value)
            else:
                result.raiseException()
        return results

    def _note(self, asked: Asked) -> None:
        self.asked.append(asked)
        self.tell(asked)


def _too_late(_: object, seconds: float) -> Failure:
    return Failure(Unreachable(f"no answer within {seconds:g} s"))


def prober(reactor: Any, trust: bytes | None, hostname: str) -> Callable[[Door, Server], Awaitable[None]]:
    """What connects to a mail server up to where a login would be, and leaves.

    ``trust`` is PEM text of trust anchors instead of the system's, or one pinned certificate.
    """

    async def probe(door: Door, server: Server) -> None:
        # Imported here: only who looks for servers pays for both dialogues.
        from mailgateway.protocols import smtp  # noqa: PLC0415
        from mailgateway.protocols.imap import ImapConnection  # noqa: PLC0415

        tls = Tls.STARTTLS if server.starttls else Tls.IMPLICIT
        peer = Peer(server.host, server.port, tls, trust)
        if door == "imap":
            connection = await ImapConnection.connect(reactor, peer)
            connection.abort()
        else:
            session = await smtp.connect(reactor, peer, None, hostname, SECONDS)
            session.abort()

    return probe
