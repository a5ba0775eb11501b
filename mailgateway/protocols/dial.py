"""Connections to mail servers: resolve, connect, verify, and notice when the other side is gone.

Policy: TLS is what the settings say and never what the server offers.  A certificate is verified against the
system's trust anchors, or against those of ``Peer.trust``; if that is exactly one certificate and the server
presents this very certificate, it is *pinned*: its name is not looked at, since a local bridge signs its own.
Verification cannot be switched off.

An implicit TLS handshake goes on after ``dial`` has fired: a bad certificate shows as the reason of
``connectionLost``, before any greeting.  ``failure_of`` turns such reasons into the error tree.  This module
knows no mail protocol.
"""

import socket
from enum import StrEnum
from functools import lru_cache
from ipaddress import ip_address
from typing import Any, Final

from attrs import define, field, frozen
from cryptography import x509
from OpenSSL import SSL
from OpenSSL.crypto import X509, X509StoreFlags
from service_identity import CertificateError, VerificationError
from service_identity.hazmat import DNS_ID, IPAddress_ID, ServiceID, verify_service_identity
from service_identity.pyopenssl import extract_patterns
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import HostnameEndpoint, wrapClientTLS
from twisted.internet.error import ConnectingCancelledError
from twisted.internet.error import ConnectionRefusedError as NobodyListens
from twisted.internet.error import TimeoutError as ConnectTimeoutError
from twisted.internet.interfaces import (
    IOpenSSLClientConnectionCreator,
    IProtocol,
    IProtocolFactory,
    IStreamClientEndpoint,
)
from twisted.internet.ssl import Certificate, CertificateOptions, platformTrust, trustRootFromCertificates
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from mailgateway.errors import ConfigError, PeerError, Problem, TlsRefused, Unreachable
from mailgateway.settings import Tls

KEEPALIVE_IDLE: Final = 60
"""Seconds of silence before the kernel probes the other side."""

KEEPALIVE_INTERVAL: Final = 15
"""Seconds between two probes."""

KEEPALIVE_PROBES: Final = 4
"""Unanswered probes after which the kernel gives the connection up."""

USER_TIMEOUT_MILLISECONDS: Final = 60_000
"""How long sent bytes may stay unacknowledged; the kernel's own answer is about 15 minutes."""

REFUSED: Final = "REFUSED"
"""The code of an ``Unreachable`` at whose address nobody listens on the port."""

TOO_LATE: Final = "TOO-LATE"
"""The code of an ``Unreachable`` from whose address no answer came in time."""


class TlsTrouble(StrEnum):
    """The code of a ``TlsRefused``, where it is known what is wrong."""

    EXPIRED = "EXPIRED"
    TOO_EARLY = "TOO-EARLY"
    SELF_SIGNED = "SELF-SIGNED"
    UNKNOWN_AUTHORITY = "UNKNOWN-AUTHORITY"
    REVOKED = "REVOKED"
    NAME = "NAME"
    NO_TLS = "NO-TLS"
    """What answered was no TLS, or none that both sides know."""
    NOT_OFFERED = "NOT-OFFERED"
    """STARTTLS is not offered."""


_UNKNOWN = TlsTrouble.UNKNOWN_AUTHORITY, "comes from an unknown authority"
_WHY: Final = {
    SSL.X509VerificationCodes.ERR_CERT_HAS_EXPIRED: (TlsTrouble.EXPIRED, "has expired"),
    SSL.X509VerificationCodes.ERR_CERT_NOT_YET_VALID: (
        TlsTrouble.TOO_EARLY,
        "is not valid yet (is the clock right?)",
    ),
    SSL.X509VerificationCodes.ERR_DEPTH_ZERO_SELF_SIGNED_CERT: (
        TlsTrouble.SELF_SIGNED,
        "is self-signed and not the pinned one",
    ),
    SSL.X509VerificationCodes.ERR_SELF_SIGNED_CERT_IN_CHAIN: _UNKNOWN,
    SSL.X509VerificationCodes.ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY: _UNKNOWN,
    SSL.X509VerificationCodes.ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: _UNKNOWN,
    SSL.X509VerificationCodes.ERR_CERT_REVOKED: (TlsTrouble.REVOKED, "is revoked"),
}


@frozen
class Peer:
    """A mail server to dial.

    ``trust`` is PEM text: trust anchors instead of the system's, or one pinned certificate.
    """

    host: str
    port: int
    tls: Tls
    trust: bytes | None = field(default=None, repr=False)

    @property
    def loopback(self) -> bool:
        """Whether the name can mean this machine only."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        """Render as ``host:port``, for people."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether a host name or an address literal means this machine, by its spelling alone."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@lru_cache(maxsize=64)
def _context(trust: bytes | None) -> SSL.Context:
    """The TLS context of some trust anchors; shared, for the system's anchors cost 1 MB and 20 ms a time."""
    if trust is None:
        return CertificateOptions(trustRoot=platformTrust()).getContext()
    anchors = trustRootFromCertificates(
        [Certificate(X509.from_cryptography(certificate)) for certificate in _certificates(trust)]
    )
    context = CertificateOptions(trustRoot=anchors).getContext()
    store = context.get_cert_store()
    if store is not None:  # None is for contexts that were never given a store
        store.set_flags(X509StoreFlags.PARTIAL_CHAIN)  # so that a pinned leaf is an anchor itself
    return context


@lru_cache(maxsize=64)
def _certificates(trust: bytes) -> tuple[x509.Certificate, ...]:
    """The certificates of PEM text; ``ConfigError`` if it holds none or is broken."""
    try:
        return tuple(x509.load_pem_x509_certificates(trust))
    except ValueError as error:
        message = "the trust file holds no readable certificate: give PEM certificates"
        raise ConfigError([Problem("", message)]) from error


@implementer(IOpenSSLClientConnectionCreator)
@define(eq=False)
class _VerifyingClient:
    """Makes verified client connections to one peer.

    Does what ``optionsForClientTLS`` does, with a shared context, with the pin, and with words for what is
    wrong with a certificate.
    """

    _peer: Peer
    _context: SSL.Context
    _pinned: x509.Certificate | None

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        """A client connection that hands a refusal of the certificate to ``tlsProtocol``."""
        connection = SSL.Connection(self._context, None)
        identity = _identity(self._peer.host)
        if isinstance(identity, DNS_ID):
            connection.set_tlsext_host_name(identity.hostname)

        def verify(_: SSL.Connection, certificate: X509, error: int, depth: int, good: int) -> bool:
            # An exception in here would vanish inside OpenSSL: every way out is a value.
            try:
                code, why = _WHY.get(error, ("", f"cannot be verified (code {error})"))
                if good:
                    code, why = TlsTrouble.NAME, "" if depth else self._misnamed(certificate, identity)
            except Exception as broken:  # noqa: BLE001 - as said above; the certificate counts as bad
                code, why = "", f"cannot be read ({type(broken).__name__})"
            if why:
                refused = TlsRefused(f"the certificate of {self._peer} {why}", code=code)
                tlsProtocol.failVerification(Failure(refused))
            return not why

        connection.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, verify)
        return connection

    def _misnamed(self, certificate: X509, identity: ServiceID) -> str:
        """Why the leaf certificate does not speak for the peer, ``""`` if it does."""
        if self._pinned is not None and certificate.to_cryptography() == self._pinned:
            return ""
        try:
            verify_service_identity(extract_patterns(certificate), [identity], [])
        except (VerificationError, CertificateError):
            return "is for another name"
        return ""


def _identity(host: str) -> ServiceID:
    """What the certificate has to name."""
    try:
        ip_address(host)
    except ValueError:
        return DNS_ID(host.rstrip("."))
    return IPAddress_ID(host)


def client_tls(peer: Peer) -> IOpenSSLClientConnectionCreator:
    """What verifies ``peer``, for ``transport.startTLS``; ``ConfigError`` if its trust file is unreadable."""
    only = _certificates(peer.trust) if peer.trust is not None else ()
    return _VerifyingClient(peer, _context(peer.trust), only[0] if len(only) == 1 else None)


@implementer(IStreamClientEndpoint)
@define(eq=False)
class _Tuned:
    """An endpoint whose connections notice a dead path within about two minutes, also when idle."""

    _endpoint: IStreamClientEndpoint

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """Connect, then set the options of the socket."""

        def tune(protocol: Any) -> Any:
            handle = getattr(protocol.transport, "getHandle", lambda: None)()
            if isinstance(handle, socket.socket):  # transports in memory have none
                tune_socket(handle)
            return protocol

        connected: Deferred[IProtocol] = self._endpoint.connect(protocolFactory)
        return connected.addCallback(tune)


def tune_socket(connection: socket.socket) -> None:
    """No delay, keepalive probes, and a bound on unacknowledged bytes, as far as the system has them."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE),
        ("TCP_KEEPINTVL", KEEPALIVE_INTERVAL),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", USER_TIMEOUT_MILLISECONDS),
    ):
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def dial(reactor: Any, peer: Peer, factory: IProtocolFactory, timeout: float = 30) -> Deferred[IProtocol]:
    """Connect to a peer by its fastest address; fires with the protocol that ``factory`` built.

    With implicit TLS the handshake may still be going on: wait for the greeting.  Fails with ``Unreachable``
    after ``timeout`` seconds at the latest, name resolution included, and with ``ConfigError`` if the trust
    file is unreadable.  Cancelling it ends the attempt.
    """
    endpoint: IStreamClientEndpoint = _Tuned(HostnameEndpoint(reactor, peer.host, peer.port, timeout=timeout))
    if peer.tls is Tls.IMPLICIT:
        endpoint = wrapClientTLS(client_tls(peer), endpoint, reactor)
    connecting: Deferred[IProtocol] = endpoint.connect(factory)

    def too_late(_: object, seconds: float) -> Failure:
        return Failure(Unreachable(f"no connection to {peer} within {seconds:g} s", code=TOO_LATE))

    def explain(reason: Failure) -> Failure:
        if reason.check(CancelledError, ConnectingCancelledError):
            return Failure(CancelledError())
        return Failure(failure_of(reason.value, peer))

    connecting.addTimeout(timeout, reactor, too_late)
    return connecting.addErrback(explain)


def failure_of(reason: BaseException | None, peer: Peer) -> PeerError:
    """Why a connection could not be made or was lost, in the words of the error tree.

    A ``PeerError`` stays what it is; TLS errors are ``TlsRefused``; everything else is ``Unreachable``.
    """
    match reason:
        case PeerError():
            return reason
        case SSL.Error():
            return TlsRefused(f"no TLS with {peer}: {_words(reason)}", code=TlsTrouble.NO_TLS)
        case ConnectTimeoutError():
            return Unreachable(f"no connection to {peer} in time", code=TOO_LATE)
        case NobodyListens():
            return Unreachable(f"{peer} refuses connections", code=REFUSED)
        case _:
            return Unreachable(f"{peer}: {str(reason).rstrip('.') or type(reason).__name__}")


def _words(error: SSL.Error) -> str:
    """The reasons in an OpenSSL error queue."""
    queue = error.args[0] if error.args else ()
    if not isinstance(queue, (list, tuple)):
        return type(error).__name__
    return "; ".join(str(entry[-1]) for entry in queue) or type(error).__name__
