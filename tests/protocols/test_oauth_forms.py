"""Forms to a provider: verified by TLS, bounded, never sent on."""

from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import TestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from mailgateway.errors import PeerError, TlsRefused, Unreachable
from mailgateway.protocols.oauth import Forms
from mailgateway.wire.oauth import Request
from tests.fakes.certificates import Authority, server_side

reactor: Any = global_reactor


class Says(Resource):
    """Notes what is posted, and answers, or not."""

    isLeaf = True  # noqa: N815 - twisted.web's name

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[bytes] = []
        self.retry_after = b" 7 "
        self.answers = True

    def render_POST(self, request: Any) -> Any:
        self.heard.append(request.content.read())
        request.setHeader(b"retry-after", self.retry_after)
        return b'{"error": "slow_down"}' if self.answers else NOT_DONE_YET


class FormsTests(TestCase):
    """By TLS, on loopback."""

    def setUp(self) -> None:
        self.authority, self.resource = Authority(), Says()

    def listen(self, name: str) -> str:
        """A server whose certificate is for this name; its address."""
        site = Site(self.resource)
        site.noisy = False
        port = reactor.listenSSL(0, site, server_side(self.authority.issue(name)), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        return f"https://localhost:{port.getHost().port}/token"

    async def test_posted(self) -> None:
        """The form as it is, and what comes back."""
        request = Request(self.listen("localhost"), "refresh_token=secret")
        answer = await Forms(reactor, self.authority.pem).post(request)
        self.assertEqual(
            (answer.status, answer.body, answer.retry_after), (200, '{"error": "slow_down"}', "7")
        )
        self.assertEqual(self.resource.heard, [b"refresh_token=secret"])

    async def test_a_field_that_is_no_text(self) -> None:
        """Odd bytes in a field of the answer lose neither the answer nor the caller."""
        self.resource.retry_after = b"\xff7"
        answer = await Forms(reactor, self.authority.pem).post(Request(self.listen("localhost"), "a=b"))
        self.assertEqual(answer.status, 200)
        self.assertFalse(answer.retry_after.isdecimal())

    async def test_who_cannot_be_verified_hears_nothing(self) -> None:
        """An unknown authority, another name, no TLS: no form is sent, and no error quotes it."""
        unknown, other = self.listen("localhost"), self.listen("evil.example")
        for url, trust in (
            (unknown, None),
            (other, self.authority.pem),
            ("http://provider.example/token", None),
            ("http://127.0.0.1.evil.example/token", None),
            ("ftp://127.0.0.1/token", None),
        ):
            with self.assertRaises(TlsRefused) as caught:
                await Forms(reactor, trust).post(Request(url, "refresh_token=secret"))
            self.assertNotIn("secret", str(caught.exception))
        self.assertEqual(self.resource.heard, [])

    async def test_no_answer(self) -> None:
        """The deadline is kept, and nothing is left open."""
        self.resource.answers = False
        forms = Forms(reactor, self.authority.pem, seconds=0.3)
        with self.assertRaises(Unreachable) as caught:
            await forms.post(Request(self.listen("localhost"), "a=b"))
        self.assertIn("0.3 s", str(caught.exception))

    async def test_nobody_there(self) -> None:
        """A port that is closed."""
        with self.assertRaises(PeerError):
            await Forms(reactor).post(Request("http://127.0.0.1:1/token", "a=b"))

    async def test_given_up(self) -> None:
        """Cancelled while it waits: the connection goes."""
        self.resource.answers = False
        waiting = Deferred.fromCoroutine(
            Forms(reactor, self.authority.pem).post(Request(self.listen("localhost"), "a=b"))
        )
        reactor.callLater(0.1, waiting.cancel)
        with self.assertRaises(CancelledError):
            await waiting
