"""Questions to name servers, asked of one on loopback."""

from typing import Any

from attrs import define
from twisted.internet.defer import Deferred, fail, succeed
from twisted.names import dns, server
from twisted.names.error import DomainError
from twisted.trial.unittest import TestCase

from mailgateway.errors import Unreachable
from mailgateway.protocols.lookup import Lookup

RECORDS: dict[tuple[str, int], list[Any]] = {
    ("example.org", dns.MX): [dns.Record_MX(20, b"b.example.org"), dns.Record_MX(10, b"A.example.org")],
    ("none.example.org", dns.MX): [dns.Record_MX(0, b"")],
    ("_imaps._tcp.example.org", dns.SRV): [dns.Record_SRV(10, 5, 993, b"imap.example.org")],
    ("_x.example.org", dns.TXT): [dns.Record_TXT(b"one ", b"and two"), dns.Record_TXT(b"three")],
}


@define(eq=False)
class Zone:
    """Answers from the table."""

    def query(self, query: Any, timeout: object = None) -> "Deferred[Any]":
        """Answer one question, or not."""
        del timeout
        name = query.name.name.decode().lower()
        if name.startswith("silent."):
            return Deferred()
        if name.startswith("broken."):
            return fail(RuntimeError(name))
        found = RECORDS.get((name, query.type))
        if found is None:
            return fail(DomainError())
        answers = [dns.RRHeader(query.name.name, query.type, payload=each, auth=True) for each in found]
        return succeed((answers, [], []))


class LookupTests(TestCase):
    """Each kind of question."""

    def setUp(self) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - the one of the test

        net: Any = reactor
        protocol = dns.DNSDatagramProtocol(controller=server.DNSServerFactory(clients=[Zone()]), reactor=net)
        port = net.listenUDP(0, protocol, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        self.lookup = Lookup(net, lambda: [("127.0.0.1", port.getHost().port)])

    async def test_records(self) -> None:
        """Texts put together, services complete, exchangers by preference; the root is no exchanger."""
        self.assertEqual(await self.lookup.texts("_x.example.org"), (b"one and two", b"three"))
        self.assertEqual(
            await self.lookup.services("_imaps._tcp.example.org"), (("imap.example.org", 993, 10, 5),)
        )
        self.assertEqual(await self.lookup.exchangers("example.org"), ("a.example.org", "b.example.org"))
        self.assertEqual(await self.lookup.exchangers("none.example.org"), ())

    async def test_nothing_and_trouble(self) -> None:
        """No such name is an empty answer; a server that fails or is silent is not."""
        self.assertEqual(await self.lookup.texts("missing.example.org"), ())
        for name in ("broken.example.org", "silent.example.org"):
            await self.assertFailure(Deferred.fromCoroutine(self.lookup.texts(name)), Unreachable)
        self.flushLoggedErrors(RuntimeError)  # of the server
