"""What can be said of the TLS of a connection that stands: its version, and the certificate's facts."""

from datetime import UTC, datetime
from typing import Any

from attrs import frozen
from cryptography import x509
from cryptography.x509.oid import NameOID
from OpenSSL import SSL


@frozen
class TlsFacts:
    """``version`` is as ``TLSv1.3``; ``until`` is when the certificate ends; ``issuer`` may be empty."""

    version: str
    until: datetime
    issuer: str

    def days_left(self, now: datetime) -> int:
        """Whole days until the certificate ends."""
        return (self.until - now).days


def tls_facts(transport: Any) -> TlsFacts | None:
    """The facts of a connected transport; ``None`` if it does not speak TLS."""
    handle = getattr(transport, "getHandle", lambda: None)()
    if not isinstance(handle, SSL.Connection):
        return None
    certificate = handle.get_peer_certificate()
    if certificate is None:
        return None
    return _facts(handle.get_protocol_version_name(), certificate.to_cryptography())


def _facts(version: str, certificate: x509.Certificate) -> TlsFacts:
    names = [
        *certificate.issuer.get_attributes_for_oid(NameOID.ORGANIZATION_NAME),
        *certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME),
    ]
    issuer = str(names[0].value) if names else ""
    return TlsFacts(version, certificate.not_valid_after_utc.astimezone(UTC), issuer)
