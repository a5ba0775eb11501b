"""Small documents by https: verified like a mail server's certificate, bounded in size, time and redirects.

Policy: there is no http here, also not behind a redirect, and no address literal or local name: what a
stranger's document or redirect names is public, or is not asked.  Nothing of the person's goes along, no
cookie is kept, and no compression taken.  A failure is told in the words of the error tree and never quotes
the answer.

This module knows nothing of what is in the documents.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import URI, Agent, ResponseDone, ResponseFailed, ResponseNeverReceived
from twisted.web.http import PotentialDataLoss
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IResponse
from zope.interface import implementer

from mailgateway.errors import PeerError, ProtocolViolation, TlsRefused, Unreachable
from mailgateway.protocols.dial import Peer, client_tls, failure_of
from mailgateway.settings import Tls
from mailgateway.wire.host_name import host_name

MOST_REDIRECTS: Final = 3
PORT: Final = 443
_HEADERS: Final = Headers({"user-agent": ["mailgateway"], "accept": ["*/*"]})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

Connect = Callable[[Any, str, int], IStreamClientEndpoint]


def checked(url: str) -> str:
    """The address again; ``TlsRefused`` or ``ProtocolViolation`` for one that must not be asked."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _no_address() from None
    if parts.scheme != "https":
        raise TlsRefused("it leads to an address without https")
    if host_name(parts.hostname or "") is None or "@" in parts.netloc or port == 0:
        raise ProtocolViolation("it leads to an address that names no public host")
    return url


def _no_address() -> ProtocolViolation:
    return ProtocolViolation("it leads to an address that is none")


def _moved(url: str, response: IResponse) -> str:
    """Where a redirect leads; what stands there is whatever a stranger wrote."""
    places = response.headers.getRawHeaders(b"location") or [b""]
    try:
        place = urljoin(url, places[0].decode("ascii"))
    except ValueError:
        raise _no_address() from None
    if not place.isprintable() or " " in place:
        raise _no_address()
    return str(place)


@define(eq=False)
class Https:
    """Asks for documents.

    ``trust`` is PEM text of trust anchors instead of the system's; ``connect`` makes the way to a host.
    """

    reactor: Any
    trust: bytes | None = None
    connect: Connect = HostnameEndpoint

    async def get(self, url: str, *, limit: int, seconds: float) -> bytes:
        """Fetch the document, of at most ``limit`` bytes, within ``seconds`` all in all.

        ``Unreachable`` when there is none (also for 404), ``TlsRefused`` when it is not to be had safely,
        ``ProtocolViolation`` when it is too long or is moved around too often.
        """
        asked = Deferred.fromCoroutine(self._followed(url, limit))

        def too_late(_: object, after: float) -> Failure:
            return Failure(Unreachable(f"no answer within {after:g} s"))

        return await asked.addTimeout(seconds, self.reactor, too_late)

    async def _followed(self, url: str, limit: int) -> bytes:
        """Follow redirects, each of which is checked like the first address."""
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._ask(checked(url))
            if response.code not in _REDIRECTS:
                return await _body(response, limit)
            _drop(response)
            url = _moved(url, response)
        raise ProtocolViolation(f"it is moved more than {MOST_REDIRECTS} times")

    async def _ask(self, url: str) -> IResponse:
        parts = urlsplit(url)
        peer = Peer(parts.hostname or "", parts.port or PORT, Tls.IMPLICIT, self.trust)
        ways = _Ways(self.reactor, peer, self.connect)
        agent = Agent.usingEndpointFactory(self.reactor, ways)
        try:
            response: IResponse = await agent.request(b"GET", url.encode("ascii"), _HEADERS)
        except (CancelledError, PeerError):
            raise
        except UnicodeEncodeError:
            raise _no_address() from None
        except Exception as error:  # noqa: BLE001 - whatever the library makes of whatever a server says
            raise _why(error, peer) from None
        return response


@implementer(IAgentEndpointFactory)
@define(eq=False)
class _Ways:
    """The way to the one host that is asked, with our own verification."""

    _reactor: Any
    _peer: Peer
    _connect: Connect

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:  # noqa: ARG002 - it was checked before
        """The way, by TLS."""
        way = self._connect(self._reactor, self._peer.host, self._peer.port)
        secured: IStreamClientEndpoint = wrapClientTLS(client_tls(self._peer), way, self._reactor)
        return secured


@define(eq=False)
class _Body(Protocol):
    """Collects a body up to a limit; the end, or what is wrong with it, ends the connection as well."""

    limit: int
    whole: "Deferred[bytes]"
    _data: bytearray = field(factory=bytearray)

    def connectionMade(self) -> None:
        """A body that nobody wants is not waited for."""
        if self.whole.called:
            self._drop()

    def dataReceived(self, data: bytes) -> None:
        """Keep what comes."""
        self._data += data
        if len(self._data) > self.limit and not self.whole.called:
            self.whole.errback(ProtocolViolation(f"the document is longer than {self.limit // 1024} KiB"))
        if self.whole.called:
            self._data.clear()
            self._drop()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The body is complete, or was cut off."""
        if self.whole.called:
            return
        if reason.check(ResponseDone, PotentialDataLoss):
            self.whole.callback(bytes(self._data))
        else:
            self.whole.errback(Unreachable(f"the answer was cut off ({type(reason.value).__name__})"))

    def _drop(self) -> None:
        transport: Any = self.transport
        transport.loseConnection()


async def _body(response: IResponse, limit: int) -> bytes:
    """Read the body of a good answer."""
    if response.code != HTTPStatus.OK:
        _drop(response)
        raise Unreachable(f"the web server answers {response.code}")
    whole: Deferred[bytes] = Deferred(lambda _: body._drop())  # noqa: SLF001 - its own
    body = _Body(limit, whole)
    response.deliverBody(body)
    return await whole


def _drop(response: IResponse) -> None:
    """End the connection of an answer that nobody will read."""
    unwanted: Deferred[bytes] = Deferred()
    unwanted.callback(b"")
    response.deliverBody(_Body(0, unwanted))


def _why(error: Exception, peer: Peer) -> PeerError:
    """What kept the answer away, in the words of the error tree."""
    if isinstance(error, ResponseFailed | ResponseNeverReceived):
        reasons = [reason.value for reason in error.reasons if not reason.check(ResponseDone)]
        told = next((each for each in reasons if isinstance(each, PeerError)), None)
        return told or (failure_of(reasons[0], peer) if reasons else Unreachable(f"{peer} closed at once"))
    return failure_of(error, peer)
