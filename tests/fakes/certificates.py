"""Certificates for servers on loopback, made anew in each run of the tests."""

from datetime import UTC, datetime, timedelta

import trustme
from attrs import define, field
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from twisted.internet.ssl import CertificateOptions, PrivateCertificate


@define(eq=False)
class Authority:
    """A certificate authority of our own."""

    _ca: trustme.CA = field(factory=trustme.CA)

    @property
    def pem(self) -> bytes:
        """Its certificate, for ``Peer.trust``."""
        return bytes(self._ca.cert_pem.bytes())

    def issue(self, *names: str, expired: bool = False) -> bytes:
        """PEM of a key and a certificate for these names."""
        until = datetime.now(UTC) - timedelta(days=1) if expired else None
        leaf = self._ca.issue_cert(*names, not_after=until)
        return bytes(leaf.private_key_pem.bytes() + leaf.cert_chain_pems[0].bytes())


def self_signed(name: str) -> tuple[bytes, bytes]:
    """PEM of key and certificate, and of the certificate alone, as a local bridge makes it: without names."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + public, public


def server_side(pem: bytes) -> CertificateOptions:
    """What a listening port takes."""
    options: CertificateOptions = PrivateCertificate.loadPEM(pem).options()
    return options
