"""Documents by https, from a web server on loopback with certificates of our own."""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.trial.unittest import TestCase
from twisted.web.http import HTTPFactory, Request

from mailgateway.errors import PeerError, ProtocolViolation, TlsRefused, Unreachable
from mailgateway.protocols.https import MOST_REDIRECTS, Https
from tests.fakes.certificates import Authority, server_side

HOST = "autoconfig.example.org"


class Page(Request):
    """Answers by the path."""

    def process(self) -> None:
        """Give the answer."""
        channel: Any = self.channel
        seen: list[str] = channel.factory.seen
        path = (self.uri or b"").decode()
        seen.append(path)
        if path.startswith("/raw/"):
            self.setResponseCode(302)
            self.responseHeaders.addRawHeader(b"location", bytes.fromhex(path.removeprefix("/raw/")))
        elif path.startswith("/to/"):
            self.setResponseCode(302)
            self.setHeader("location", path.removeprefix("/to/"))
        elif path == "/round":
            self.setResponseCode(301)
            self.setHeader("location", "/round")
        elif path == "/none":
            self.setResponseCode(404)
        elif path == "/large":
            self.write(b"x" * 1_000_000)
        elif path == "/silent":
            return
        elif path == "/cut":
            self.setHeader("content-length", "100")
            self.write(b"half")
            self.loseConnection()
            return
        else:
            self.write(b"<document/>")
        self.finish()


class HttpsTests(TestCase):
    """Each way in which it goes well or not."""

    def setUp(self) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - the one of the test

        self.net: Any = reactor
        self.authority = Authority()
        self.seen: list[str] = []
        self.port = self.listen(self.authority.issue(HOST, "other.example.net"))

    def listen(self, certificate: bytes) -> int:
        """A web server with a certificate."""
        factory: Any = HTTPFactory(reactor=self.net)
        factory.log = lambda _: None
        factory.seen = self.seen
        build = factory.buildProtocol

        def with_pages(address: object) -> Any:
            channel: Any = build(address)
            channel.requestFactory = Page
            return channel

        factory.buildProtocol = with_pages
        port = self.net.listenSSL(0, factory, server_side(certificate), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        number: int = port.getHost().port
        return number

    def https(self) -> Https:
        """Every host is on loopback here, on the port of the server."""

        def connect(reactor: Any, host: str, port: int) -> IStreamClientEndpoint:
            del host, port
            return HostnameEndpoint(reactor, "127.0.0.1", self.port)

        return Https(self.net, self.authority.pem, connect)

    async def get(self, path: str, seconds: float = 5) -> bytes:
        """Fetch from the host."""
        return await self.https().get(f"https://{HOST}{path}", limit=64 * 1024, seconds=seconds)

    async def refused(self, path: str, kind: type[PeerError], seconds: float = 5) -> str:
        """Why it is not to be had."""
        error = await self.assertFailure(Deferred.fromCoroutine(self.get(path, seconds)), kind)
        return str(error)

    async def test_a_document(self) -> None:
        """Also behind a redirect to another host with a certificate of its own."""
        self.assertEqual(await self.get("/"), b"<document/>")
        self.assertEqual(await self.get("/to/https://other.example.net/x"), b"<document/>")
        self.assertEqual(await self.get("/to//x"), b"<document/>")

    async def test_redirects_that_lead_astray(self) -> None:
        """To http, to this machine, to an address with a name in it, and round and round."""
        self.assertIn("without https", await self.refused(f"/to/http://{HOST}/x", TlsRefused))
        for place in ("https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", f"https://u@{HOST}/x"):
            self.assertIn("public host", await self.refused(f"/to/{place}", ProtocolViolation))
        await self.refused("/to/ftp://x.example.org/", TlsRefused)
        self.seen.clear()
        self.assertIn("moved", await self.refused("/round", ProtocolViolation))
        self.assertEqual(len(self.seen), MOST_REDIRECTS + 1)

    async def test_redirects_to_what_is_no_address(self) -> None:
        """Whatever bytes a stranger's server writes there are refused, and nothing else happens."""
        for place in (
            b"https://[x/",
            b"https://h.example.org:99999/",
            b"https://h.example.org:0/",
            b"https://h.example.org:x/",
            b"\xff\xfe",
            "https://h\u2100.example.org/".encode(),
            b"https://h.example.org/\x1b[2J",
        ):
            await self.refused(f"/raw/{place.hex()}", ProtocolViolation)

    async def test_size_and_time(self) -> None:
        """A megabyte is not read, silence ends in time, half an answer is none."""
        self.assertIn("64 KiB", await self.refused("/large", ProtocolViolation))
        self.assertIn("no answer", await self.refused("/silent", Unreachable, 0.3))
        self.assertIn("cut off", await self.refused("/cut", Unreachable))
        self.assertIn("404", await self.refused("/none", Unreachable))

    async def test_certificates(self) -> None:
        """One for another name, and one of an unknown authority, are refused before anything is asked."""
        self.port = self.listen(self.authority.issue("imap.example.org"))
        self.assertIn("another name", await self.refused("/", TlsRefused))
        self.port = self.listen(Authority().issue(HOST))
        self.assertIn("authority", await self.refused("/", TlsRefused))
        self.assertEqual(self.seen, [])

    async def test_nobody_is_there(self) -> None:
        """A closed port."""
        self.port = 1
        await self.refused("/", Unreachable)
