"""Signing mail as a domain does (RFC 6376), straight from the words of the RFC, for the product to verify.

The canonical forms here know nothing of those of the product; they are slow and easy to check.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

from attrs import field, frozen
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

NAMES = (
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "mime-version",
    "content-type",
)


@lru_cache(maxsize=8)
def rsa_key(bits: int = 1024, number: int = 0) -> rsa.RSAPrivateKey:
    """A key, made once; small ones are made fast.  ``number`` tells several of a size apart."""
    del number
    return rsa.generate_private_key(65537, bits)


@frozen
class Signer:
    """A domain that signs, with one key."""

    domain: str = "example.org"
    selector: str = "s1"
    private: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey = field(factory=rsa_key, repr=False)

    @property
    def key_name(self) -> str:
        """Where its key is published."""
        return f"{self.selector}._domainkey.{self.domain}"

    def record(self, more: str = "") -> bytes:
        """The key record."""
        public = self.private.public_key()
        if isinstance(public, rsa.RSAPublicKey):
            data, kind = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo), "rsa"
        else:
            data, kind = public.public_bytes(Encoding.Raw, PublicFormat.Raw), "ed25519"
        return f"v=DKIM1; k={kind}; {more}p={base64.b64encode(data).decode()}".encode()

    def sign(
        self, mail: bytes, *, names: Sequence[str] = NAMES, form: str = "relaxed/relaxed", more: str = ""
    ) -> bytes:
        """The mail with a signature on top; ``more`` are tags with a semicolon behind each."""
        header, _, body = mail.partition(b"\r\n\r\n")
        header_form, _, body_form = form.partition("/")
        digest = base64.b64encode(
            hashlib.sha256(canonical_body(body, body_form or "simple")).digest()
        ).decode()
        kind = "rsa" if isinstance(self.private, rsa.RSAPrivateKey) else "ed25519"
        value = (
            f" v=1; a={kind}-sha256; c={form}; d={self.domain}; s={self.selector};\r\n\t{more}"
            f"h={':'.join(names)};\r\n bh={digest};\r\n b="
        ).encode()
        data = signed_data(header, b"DKIM-Signature:" + value, names, header_form)
        if isinstance(self.private, rsa.RSAPrivateKey):
            made = self.private.sign(data, PKCS1v15(), SHA256())
        else:
            made = self.private.sign(hashlib.sha256(data).digest())
        encoded = base64.b64encode(made)
        folded = b"\r\n ".join(encoded[at : at + 60] for at in range(0, len(encoded), 60))
        return b"DKIM-Signature:" + value + folded + b"\r\n" + mail


def signed_data(header: bytes, signature: bytes, names: Sequence[str], form: str) -> bytes:
    """What is signed: the named fields from the bottom up, then the signature's field without its value."""
    fields = re.split(rb"\r\n(?![ \t])", header)
    out = b""
    for name in names:
        for at in range(len(fields) - 1, -1, -1):
            if fields[at].partition(b":")[0].strip().lower() == name.lower().encode():
                out += canonical_field(fields.pop(at), form) + b"\r\n"
                break
    return out + canonical_field(signature, form)


def canonical_field(raw: bytes, form: str) -> bytes:
    """RFC 6376, sections 3.4.1 and 3.4.2."""
    if form == "simple":
        return raw
    name, _, value = raw.partition(b":")
    return name.strip().lower() + b":" + re.sub(rb"[ \t]+", b" ", value.replace(b"\r\n", b"")).strip()


def canonical_body(body: bytes, form: str) -> bytes:
    """RFC 6376, sections 3.4.3 and 3.4.4."""
    if form == "relaxed":
        body = b"\r\n".join(re.sub(rb"[ \t]+", b" ", line).rstrip(b" ") for line in body.split(b"\r\n"))
    body = re.sub(rb"(?:\r\n)+\Z", b"", body)
    if not body and form == "relaxed":
        return b""
    return body + b"\r\n"
