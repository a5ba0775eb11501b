"""Forms to a provider of OAuth by https: posted, bounded in size and time, and never sent on.

Policy: the certificate is verified with the system's trust; the trust file of a mail server is none for its
provider.  Without TLS only this machine is asked.  No redirect is followed, since what is posted is a secret,
and no cookie is kept.  A failure is told in the words of the error tree, and quotes neither form nor answer.

What the forms and answers mean is in ``wire.oauth`` and ``wire.oauth_answer``.
"""

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import define, field
from treq import collect
from treq.client import HTTPClient
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.interfaces import IConsumer, IProtocol, IStreamClientEndpoint
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, ResponseFailed, ResponseNeverReceived
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IBodyProducer
from zope.interface import implementer

from mailgateway.errors import PeerError, ProtocolViolation, TlsRefused, Unreachable
from mailgateway.protocols.dial import Peer, client_tls, failure_of, is_loopback
from mailgateway.settings import Tls
from mailgateway.wire.oauth import Request
from mailgateway.wire.oauth_answer import Answer

SECONDS: Final = 30.0
LARGEST_ANSWER: Final = 128 * 1024
HEADERS: Final = Headers(
    {
        "user-agent": ["mailgateway"],
        "accept": ["application/json"],
        "content-type": ["application/x-www-form-urlencoded"],
    }
)

Connect = Callable[[Any, str, int], IStreamClientEndpoint]


@define(eq=False)
class Forms:
    """Posts forms.

    ``trust`` is PEM text of trust anchors instead of the system's, ``connect`` makes the way to a host: both
    are for tests.
    """

    reactor: Any
    trust: bytes | None = field(default=None, repr=False)
    connect: Connect = HostnameEndpoint
    seconds: float = SECONDS

    async def post(self, request: Request) -> Answer:
        """Post a form; what is answered, whatever its status.

        ``Unreachable`` without an answer within ``seconds``, ``TlsRefused`` where it cannot be had safely,
        ``ProtocolViolation`` when it is too long or no HTTP.
        """
        asked = Deferred.fromCoroutine(self._post(request))

        def too_late(_: object, after: float) -> Failure:
            return Failure(Unreachable(f"{_host(request.url)} did not answer within {after:g} s"))

        return await asked.addTimeout(self.seconds, self.reactor, too_late)

    async def _post(self, request: Request) -> Answer:
        peer = _peer(request.url, self.trust)
        agent = Agent.usingEndpointFactory(self.reactor, _Way(self.reactor, peer, self.connect))
        client = HTTPClient(agent, data_to_body_producer=_Form)
        try:
            response = await client.post(
                request.url,
                data=request.body.encode("ascii"),
                headers=HEADERS.copy(),
                allow_redirects=False,
                unbuffered=True,
                reactor=self.reactor,
            )
            body = await _collected(response)
        except (CancelledError, PeerError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever the library makes of whatever a server says
            raise _why(error, peer) from None
        retry_after = response.headers.getRawHeaders(b"retry-after") or [b""]
        return Answer(
            response.code, body.decode("utf-8", "replace"), retry_after[0].decode("ascii", "replace").strip()
        )


def _peer(url: str, trust: bytes | None) -> Peer:
    """Where the address leads, once it is clear that it may be asked."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https":
        return Peer(host, parts.port or 443, Tls.IMPLICIT, trust)
    if parts.scheme == "http" and is_loopback(host):
        return Peer(host, parts.port or 80, Tls.NONE)
    raise TlsRefused(f"{host or 'the provider'} would be asked without https")


def _host(url: str) -> str:
    return urlsplit(url).hostname or "the provider"


@implementer(IAgentEndpointFactory)
@define(eq=False)
class _Way:
    """The way to the one host that is asked."""

    _reactor: Any
    _peer: Peer
    _connect: Connect

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:  # noqa: ARG002 - it was checked before
        """The way, by TLS unless it stays on this machine."""
        way = self._connect(self._reactor, self._peer.host, self._peer.port)
        if self._peer.tls is not Tls.NONE:
            way = wrapClientTLS(client_tls(self._peer), way, self._reactor)
        return _Quiet(way)


@implementer(IStreamClientEndpoint)
@define(eq=False)
class _Quiet:
    """A way whose factories are not worth a line of the log."""

    _way: IStreamClientEndpoint

    def connect(self, protocolFactory: Any) -> Deferred[IProtocol]:
        """Connect."""
        protocolFactory.noisy = False
        connected: Deferred[IProtocol] = self._way.connect(protocolFactory)
        return connected


@implementer(IBodyProducer)
class _Form:
    """A body that is written at once; the usual one needs a global reactor."""

    def __init__(self, data: bytes) -> None:
        self.length = len(data)
        self._data = data

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        """Write it."""
        consumer.write(self._data)
        return succeed(None)

    def pauseProducing(self) -> None:
        """Nothing is left to pause."""

    def resumeProducing(self) -> None:
        """Nothing is left to write."""

    def stopProducing(self) -> None:
        """Nothing is left to stop."""


async def _collected(response: Any) -> bytes:
    """The body, up to the limit; a longer one ends the connection."""
    body = bytearray()

    def keep(data: bytes) -> None:
        if len(body) + len(data) > LARGEST_ANSWER:
            raise ProtocolViolation(f"the answer is longer than {LARGEST_ANSWER // 1024} KiB")
        body.extend(data)

    await collect(response, keep)
    return bytes(body)


def _why(error: Exception, peer: Peer) -> PeerError | CancelledError:
    """What kept the answer away; who gave up waiting for it is told so."""
    if isinstance(error, ResponseFailed | ResponseNeverReceived):
        reasons = [reason.value for reason in error.reasons]
        told = next((each for each in reasons if isinstance(each, PeerError | CancelledError)), None)
        return told or (failure_of(reasons[0], peer) if reasons else Unreachable(f"{peer} closed at once"))
    return failure_of(error, peer)
