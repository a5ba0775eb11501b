"""The public key of a DKIM signature, as its domain publishes it in DNS (RFC 6376, section 3.6.1; RFC 8463).

A key that is revoked, being tested, for other purposes, too small or too large signs nothing here.
"""

import binascii
from collections.abc import Sequence

from attrs import field, frozen
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from mailgateway.mail.tag_list import parse_tag_list

SMALLEST_RSA, LARGEST_RSA = 1024, 4096
"""Bits (RFC 8301, section 3.2); a larger key only costs time."""

RECORD_LIMIT = 4096
"""Octets of a key record."""


@frozen
class KeyTexts:
    """What DNS has under the key's name: one text for each TXT record, maybe none."""

    texts: tuple[bytes, ...] = ()


@frozen
class KeyTrouble:
    """DNS does not tell at present; ``reason`` is a sentence without a name in it."""

    reason: str


KeyAnswer = KeyTexts | KeyTrouble


@frozen
class Key:
    """A key that may sign mail; ``whole_domain_only`` (``t=s``): not for a subdomain in ``i=``."""

    algorithm: str
    whole_domain_only: bool
    public: RSAPublicKey | Ed25519PublicKey = field(repr=False)

    def verifies(self, signature: bytes, digest: bytes) -> bool:
        """Whether it signed this SHA-256 digest."""
        try:
            if isinstance(self.public, RSAPublicKey):
                self.public.verify(signature, digest, PKCS1v15(), Prehashed(SHA256()))
            else:
                self.public.verify(
                    signature, digest
                )  # the digest is what Ed25519 signs (RFC 8463, section 3)
        except InvalidSignature:
            return False
        return True


@frozen
class NoKey:
    """There is no key that may sign mail."""

    reason: str


def read_key(texts: Sequence[bytes]) -> Key | NoKey:
    """The one key in the texts under a name; several are ambiguous (RFC 6376, section 3.6.2.2)."""
    if len(texts) != 1:
        return NoKey("several keys stand under its name" if texts else "its key is not published")
    if len(texts[0]) > RECORD_LIMIT:
        return NoKey("its key is too long")
    tags = parse_tag_list(texts[0])
    if tags is None or tags.get("v", "DKIM1") != "DKIM1" or "p" not in tags:
        return NoKey("its key cannot be read")
    if not tags["p"]:
        return NoKey("its key was revoked")
    flags = tags.get("t", "").lower().split(":")
    if "y" in flags:
        return NoKey("its domain only tries signatures out")
    if not {"*", "email"} & set(tags.get("s", "*").lower().split(":")):
        return NoKey("its key is not for mail")
    if "sha256" not in tags.get("h", "sha256").lower().split(":"):
        return NoKey("its key is for other digests")
    algorithm = tags.get("k", "rsa").lower()
    public = _public(algorithm, tags["p"])
    return public if isinstance(public, NoKey) else Key(algorithm, "s" in flags, public)


def _public(algorithm: str, text: str) -> RSAPublicKey | Ed25519PublicKey | NoKey:
    try:
        data = binascii.a2b_base64(text.encode("ascii"), strict_mode=True)
        match algorithm:
            case "rsa":
                public = load_der_public_key(data)
            case "ed25519":
                return Ed25519PublicKey.from_public_bytes(data)
            case _:
                return NoKey("its key is of an unknown kind")
    except (ValueError, UnsupportedAlgorithm):
        return NoKey("its key cannot be read")
    if not isinstance(public, RSAPublicKey):
        return NoKey("its key is of another kind than it says")
    if not SMALLEST_RSA <= public.key_size <= LARGEST_RSA:
        return NoKey("its key is too small" if public.key_size < SMALLEST_RSA else "its key is too large")
    return public
