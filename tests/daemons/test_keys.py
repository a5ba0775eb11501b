"""Keys from DNS: a name server of ``twisted.names`` on the loopback interface, and none at all."""

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from attrs import define, field
from twisted.internet import reactor
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import CannotListenError
from twisted.names import dns, server
from twisted.names.error import DomainError
from twisted.trial.unittest import TestCase

from mailgateway.daemons import keys
from mailgateway.daemons.keys import DnsKeys
from mailgateway.flows.held import FIRST
from mailgateway.mail.dkim_key import KeyTexts, KeyTrouble
from mailgateway.mail.evidence import Awaited
from mailgateway.protocols.lookup import system_servers

NAME = "s1._domainkey.example.org"


@define(eq=False)
class Zone:
    """What a name server answers; a name without an entry does not exist."""

    records: dict[str, Iterable[Any] | Exception] = field(factory=dict)
    asked: list[str] = field(factory=list)

    def query(self, query: Any, timeout: object = None) -> Deferred[Any]:
        """Answer one question."""
        del timeout
        name = query.name.name.decode()
        self.asked.append(name)
        found = self.records.get(name)
        if isinstance(found, Exception):
            return fail(found)
        if found is None:
            return fail(DomainError())
        return succeed((list(found), [], []))


def txt(name: str, *texts: bytes, ttl: int = 600) -> Any:
    """One TXT record."""
    return dns.RRHeader(name.encode(), dns.TXT, ttl=ttl, payload=dns.Record_TXT(*texts))


def _on_one_port(factory: Any, protocol: Any) -> tuple[Any, Any]:
    """Listening for both on a port that is free for both, as name servers do."""
    net = cast("Any", reactor)
    while True:
        tcp = net.listenTCP(0, factory, interface="127.0.0.1")
        try:
            return tcp, net.listenUDP(tcp.getHost().port, protocol, "127.0.0.1")
        except CannotListenError:
            tcp.stopListening()


class DnsTests(TestCase):
    """A server that answers."""

    def setUp(self) -> None:
        self.zone = Zone()
        factory = server.DNSServerFactory(clients=[self.zone])
        factory.noisy = False
        protocol = dns.DNSDatagramProtocol(controller=factory)
        self.tcp, self.udp = _on_one_port(factory, protocol)
        port = self.udp.getHost().port
        self.addCleanup(self.udp.stopListening)
        self.addCleanup(self.tcp.stopListening)
        self.lookup = DnsKeys(reactor, lambda: [("127.0.0.1", port)])

    async def test_a_key_in_pieces(self) -> None:
        """A long key is one record of several strings."""
        self.zone.records[NAME] = [txt(NAME, b"v=DKIM1; p=AA", b"BB")]
        self.assertEqual(await self.lookup.find([NAME]), {NAME: KeyTexts((b"v=DKIM1; p=AABB",))})

    async def test_a_key_behind_another_name(self) -> None:
        """Many domains point to their provider's key."""
        there = "key.provider.example"
        alias = dns.RRHeader(NAME.encode(), dns.CNAME, ttl=60, payload=dns.Record_CNAME(there.encode()))
        self.zone.records[NAME] = [alias, txt(there, b"p=AABB")]
        self.assertEqual(await self.lookup.find([NAME]), {NAME: KeyTexts((b"p=AABB",))})

    async def test_no_key_and_several(self) -> None:
        """A name that does not exist, one with other records, one with two keys: all answers."""
        self.zone.records["b.example"] = []
        self.zone.records["c.example"] = [txt("c.example", b"p=1"), txt("c.example", b"p=2")]
        self.assertEqual(
            await self.lookup.find([NAME, "b.example", "c.example"]),
            {NAME: KeyTexts(), "b.example": KeyTexts(), "c.example": KeyTexts((b"p=1", b"p=2"))},
        )

    async def test_a_large_answer_comes_by_tcp(self) -> None:
        """What does not fit into a datagram is asked for again, and the connection is let go."""
        self.zone.records[NAME] = [txt(NAME, *[b"x" * 250] * 8)]
        found = (await self.lookup.find([NAME]))[NAME]
        assert isinstance(found, KeyTexts)
        self.assertEqual(len(found.texts[0]), 2000)

    async def test_answers_are_kept(self) -> None:
        """For as long as they say; and no more than a number of them."""
        self.patch(keys, "MOST", 2)
        for name in ("a.example", "b.example", "c.example"):
            self.zone.records[name] = [txt(name, b"p=")]
        await self.lookup.find(["a.example"])
        await self.lookup.find(["a.example", "b.example"])
        self.assertEqual(self.zone.asked, ["a.example", "b.example"])
        await self.lookup.find(["c.example"])
        await self.lookup.find(["a.example"])
        self.assertEqual(self.zone.asked[2:], ["c.example", "a.example"])
        self.zone.records["d.example"] = [txt("d.example", b"p=", ttl=0)]
        await self.lookup.find(["d.example"])
        await self.lookup.find(["d.example"])
        self.assertEqual(self.zone.asked[4:], ["d.example", "d.example"])

    async def test_a_key_that_is_not_there_yet(self) -> None:
        """No record is an answer for a short time, whether the name exists or not."""
        self.patch(keys, "TROUBLE_SECONDS", 0.0)
        self.zone.records["b.example"] = []
        for name in (NAME, "b.example"):
            await self.lookup.find([name])
            self.zone.records[name] = [txt(name, b"p=AABB")]
            self.assertEqual(await self.lookup.find([name]), {name: KeyTexts((b"p=AABB",))})

    async def test_a_server_that_fails(self) -> None:
        """That is no answer; it is not asked again at once."""
        self.zone.records[NAME] = RuntimeError()
        found = await self.lookup.find([NAME])
        self.assertIsInstance(found[NAME], KeyTrouble)
        self.flushLoggedErrors(RuntimeError)  # the server's own words about it
        asked = len(self.zone.asked)
        await self.lookup.find([NAME])
        self.assertEqual(len(self.zone.asked), asked)

    def test_trouble_is_forgotten_in_time(self) -> None:
        """A mail that is held for a key has DNS asked anew the first time it is tried again."""
        self.assertLess(keys.TROUBLE_SECONDS, FIRST[Awaited.KEY].total_seconds())


class SilentTests(TestCase):
    """No server."""

    async def test_nobody_answers(self) -> None:
        """The deadline ends it, for all names at once."""
        self.patch(keys, "TRIES", (0.02, 0.03))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            lookup = DnsKeys(reactor, lambda: [silent.getsockname()])
            found = await lookup.find([f"{number}.example" for number in range(5)])
        self.assertEqual(len(found), 5)
        for answer in found.values():
            self.assertIsInstance(answer, KeyTrouble)


class ServersTests(TestCase):
    """The system's name servers."""

    def test_resolv_conf(self) -> None:
        """Those that are named, in their order; without any, the one of this machine."""
        path = Path(self.mktemp())
        self.assertEqual(system_servers(path), [("127.0.0.1", 53)])
        path.write_text("#\nsearch example.org\nnameserver 192.0.2.1\nnameserver\nnameserver 2001:db8::1\n")
        self.assertEqual(system_servers(path), [("192.0.2.1", 53), ("2001:db8::1", 53)])
