"""The search: all sources at once, each within its time, and what becomes of their answers."""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.discovery import Choice, Door, Rank
from mailgateway.errors import TlsRefused, Unreachable
from mailgateway.operator.discovery import ISPDB, SECONDS, Asked, Search
from mailgateway.providers import Offer, Server
from tests.wire.test_autoconfig import IMAP, SMTP, document

PACC = b"""{"protocols": {"imap": {"host": "pacc.example.org"}, "submit": {"host": "pacc.example.org"}}}"""
PACC_URL = "https://ua-auto-config.example.org/.well-known/user-agent-configuration.json"
DIGEST = b"v=UAAC1; a=sha256; d=" + b64encode(sha256(PACC).digest())
FIRST = "https://autoconfig.example.org/mail/config-v1.1.xml"
SECOND = "https://example.org/.well-known/autoconfig/mail/config-v1.1.xml"
DOCUMENT = document(IMAP, SMTP)


@define(eq=False)
class World:
    """Web, DNS and mail servers: what is not named in it does not exist, ``None`` never answers."""

    pages: Mapping[str, bytes | None] = field(factory=dict)
    dns: Mapping[str, Any] = field(factory=dict)
    there: tuple[str, ...] = ()
    asked: list[str] = field(factory=list)

    async def get(self, url: str, *, limit: int, seconds: float) -> bytes:
        """Fetch a page."""
        del limit, seconds
        self.asked.append(url)
        return cast("bytes", await self._known(self.pages, url))

    async def texts(self, name: str) -> Any:
        """TXT records."""
        return await self._records(name)

    async def services(self, name: str) -> Any:
        """SRV records."""
        return await self._records(name)

    async def exchangers(self, domain: str) -> Any:
        """MX records."""
        return await self._records(f"MX {domain}")

    async def probe(self, door: Door, server: Server) -> None:
        """Connect by TLS."""
        self.asked.append(f"{door} {server}")
        if str(server) not in self.there:
            raise TlsRefused("the certificate is for another name")

    async def _records(self, name: str) -> Any:
        return await self._known(self.dns, name) if name in self.dns else ()

    async def _known(self, table: Mapping[str, Any], key: str) -> Any:
        if key not in table:
            raise Unreachable("there is nobody")
        if table[key] is None:
            return await Deferred()
        return table[key]


class SearchTests(SynchronousTestCase):
    """One search after the other."""

    def setUp(self) -> None:
        self.clock = Clock()
        self.told: list[Asked] = []

    def search(self, world: World) -> Search:
        """A search in a world."""
        return Search(self.clock, cast("Any", world), cast("Any", world), world.probe, self.told.append)

    def find(self, world: World, given: Offer | None = None, *, ispdb: bool = False) -> Choice:
        """What is found for example.org, once everything has had its time."""
        running = Deferred.fromCoroutine(self.search(world).find("example.org", given, ispdb=ispdb))
        for _ in range(30):
            self.clock.advance(SECONDS / 10)
        return self.successResultOf(running)

    def host(self, world: World, *, ispdb: bool = False) -> str | None:
        """The chosen IMAP server."""
        imap = self.find(world, ispdb=ispdb).imap
        return str(imap.server) if imap else None

    def why(self, rank: Rank) -> str:
        """Why a source said nothing."""
        return next(each.why for each in self.told if each.rank is rank)

    def test_each_source_alone(self) -> None:
        """Whatever is the only one that answers is taken."""
        worlds = {
            "pacc.example.org:993": World({PACC_URL: PACC}, {"_ua-auto-config.example.org": (DIGEST,)}),
            "imap.example.org:993": World({FIRST: DOCUMENT}),
            "srv.example.org:993": World(dns={"_imaps._tcp.example.org": (("srv.example.org", 993, 1, 1),)}),
            "imap.gmail.com:993": World(dns={"MX example.org": ("aspmx.l.google.com",)}),
            "mail.example.org:993": World(there=("mail.example.org:993",)),
        }
        for host, world in worlds.items():
            self.assertEqual(self.host(world), host)
        self.assertEqual(self.host(World({SECOND: DOCUMENT})), "imap.example.org:993")
        self.assertIsNone(self.host(World()))

    def test_rank_and_not_speed(self) -> None:
        """All answer: PACC wins; the sources of lower rank were asked all the same."""
        world = World(
            {PACC_URL: PACC, FIRST: DOCUMENT},
            {"_ua-auto-config.example.org": (DIGEST,), "MX example.org": ("aspmx.l.google.com",)},
            ("mail.example.org:993",),
        )
        self.assertEqual(self.host(world), "pacc.example.org:993")
        self.assertEqual(
            {each.rank for each in self.told if each.offer}, {Rank.PACC, Rank.AUTOCONFIG, Rank.MX, Rank.GUESS}
        )

    def test_a_silent_source_costs_five_seconds_at_most(self) -> None:
        """And spoils no other, not even the second address of the same source."""
        world = World(
            {FIRST: None, SECOND: DOCUMENT}, {"_ua-auto-config.example.org": None, "MX example.org": None}
        )
        running = Deferred.fromCoroutine(self.search(world).find("example.org"))
        self.clock.advance(SECONDS - 0.4)
        self.clock.advance(0.5)
        imap = self.successResultOf(running).imap
        self.assertEqual(imap and imap.rank, Rank.AUTOCONFIG)
        self.assertIn("no answer", self.why(Rank.PACC))

    def test_a_wrong_digest_does_not_count(self) -> None:
        """The document is not the one that DNS vouches for."""
        world = World({PACC_URL: PACC + b" "}, {"_ua-auto-config.example.org": (DIGEST,)})
        self.assertIsNone(self.host(world))
        self.assertIn("digest", self.why(Rank.PACC))

    def test_a_downgrade_does_not_count(self) -> None:
        """A document without TLS is discarded, and said so."""
        self.assertIsNone(self.host(World({FIRST: DOCUMENT.replace(b"SSL", b"plain")})))
        self.assertIn("without TLS", self.why(Rank.AUTOCONFIG))

    def test_mozilla_is_asked_with_leave_only(self) -> None:
        """It learns the domain, and that of the mail exchanger; nobody learns the part before the @."""
        world = World(
            {ISPDB + "example.org": DOCUMENT, ISPDB + "hoster.net": DOCUMENT},
            {"MX example.org": ("mx.hoster.net",)},
        )
        self.assertIsNone(self.host(world))
        self.assertEqual([each for each in world.asked if "thunderbird" in each], [])
        self.assertEqual(self.host(world, ispdb=True), "imap.example.org:993")
        self.assertEqual(
            sorted(each for each in world.asked if "thunderbird" in each),
            [ISPDB + "example.org", ISPDB + "hoster.net"],
        )
        running = Deferred.fromCoroutine(self.search(world).find_in_directory("example.org", Choice()))
        found = self.successResultOf(running)
        self.assertEqual(found.imap and found.imap.rank, Rank.ISPDB)

    def test_no_network_for_what_is_known(self) -> None:
        """Explicit servers, and providers of the table, ask nobody; half an answer asks for the rest."""
        world = World()
        given = Offer(name="", imap=Server("a.example", 993), smtp=Server("b.example", 465), source="flags")
        self.assertTrue(self.find(world, given).complete)
        running = Deferred.fromCoroutine(self.search(world).find("gmail.com"))
        self.assertTrue(self.successResultOf(running).complete)
        self.assertEqual(world.asked, [])
        half = Offer(name="", smtp=Server("b.example", 465), source="flags")
        choice = self.find(World({FIRST: DOCUMENT}), half)
        self.assertEqual(
            [each and each.rank for each in (choice.imap, choice.smtp)], [Rank.AUTOCONFIG, Rank.GIVEN]
        )

    def test_hostile_names_in_dns(self) -> None:
        """An address or a local name as the target of a service is not taken."""
        for target in ("127.0.0.1", "localhost", "router.local", "x"):
            world = World(dns={"_imaps._tcp.example.org": ((target, 993, 1, 1),)})
            self.assertIsNone(self.host(world), target)

    def test_refusals(self) -> None:
        """What is wrong with chosen servers is told by their doors."""
        world = World(there=("imap.gmail.com:993",))
        choice = self.successResultOf(Deferred.fromCoroutine(self.search(world).find("gmail.com")))
        refusals = self.successResultOf(Deferred.fromCoroutine(self.search(world).refusals(choice)))
        self.assertEqual(list(refusals), ["smtp"])
