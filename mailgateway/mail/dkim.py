"""Verifying the signature of the sender's domain ourselves (RFC 6376, RFC 8463), by keys that were looked up.

Stricter than the RFC where a command gateway has to be: SHA-256 only, no ``l=``, at most five signatures, all
of them of a domain that may speak for From; what an expired, future, testing or revoked signature says is
nothing.  The outcome says whether the mail is what its sender's domain signed, was changed or forged, or
whether nobody can tell, now or at all.

Nothing is fetched here, and no clock is read: keys and the time of arrival come as arguments.
"""

import binascii
import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import assert_never

from attrs import define, field, frozen

from mailgateway.mail.alignment import aligned
from mailgateway.mail.decode import Field
from mailgateway.mail.dkim_canonical import (
    body_digest,
    canonical_field,
    has_bare_line_ends,
    raw_fields,
    without_signature,
)
from mailgateway.mail.dkim_key import KeyAnswer, KeyTexts, KeyTrouble, NoKey, read_key
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.tag_list import parse_tag_list
from mailgateway.settings import Alignment

MOST_SIGNATURES = 5
"""Signatures that are looked at, the topmost first."""

CLOCK_GRACE = 3600
"""Seconds that the clock of whoever signed may be ahead of the server that took the mail in."""

_ALGORITHMS = {"rsa-sha256": "rsa", "ed25519-sha256": "ed25519"}
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*")
_TIME = re.compile(r"[0-9]{1,12}")
_FORMS = {
    "": (False, False),
    "simple": (False, False),
    "relaxed": (True, False),
    "simple/simple": (False, False),
    "relaxed/simple": (True, False),
    "simple/relaxed": (False, True),
    "relaxed/relaxed": (True, True),
}


@frozen
class Signature:
    """What one DKIM-Signature field says, as far as it can be used."""

    domain: str
    selector: str
    identity_domain: str
    algorithm: str
    relaxed_header: bool
    relaxed_body: bool
    names: tuple[str, ...]
    body_sha256: bytes = field(repr=False)
    value: bytes = field(repr=False)
    signed_at: int | None = None
    expires_at: int | None = None

    @property
    def key_name(self) -> str:
        """Where in DNS its key is."""
        return f"{self.selector}._domainkey.{self.domain}"


@frozen
class Valid:
    """The mail is what the domain signed; ``names`` are the fields that the signature covers."""

    names: frozenset[str]


@frozen
class Broken:
    """A signature does not fit the mail: it was changed on its way, or is forged."""

    reason: str


@frozen
class Unanswered:
    """DNS does not tell a key at present."""

    reason: str


@frozen
class Nothing:
    """No signature that says anything."""

    reason: str


Checked = Valid | Broken | Unanswered | Nothing


def read_signature(value: bytes) -> Signature | Nothing:
    """Read one unfolded field value."""
    tags = parse_tag_list(value)
    if tags is None or tags.get("v") != "1":
        return Nothing("a signature cannot be read")
    if "l" in tags:
        return Nothing("a signature covers only a part of the text")
    algorithm = _ALGORITHMS.get(tags.get("a", "").lower())
    form = _FORMS.get(tags.get("c", "").lower())
    if algorithm is None or form is None or tags.get("q", "dns/txt").lower() != "dns/txt":
        return Nothing("a signature is made in a way that is not accepted")
    domain, selector = tags.get("d", "").lower().removesuffix("."), tags.get("s", "").lower()
    identity = tags.get("i", f"@{domain}").lower().rpartition("@")[2].removesuffix(".")
    names = tuple(tags.get("h", "").lower().split(":"))
    times = [tags[each] for each in ("t", "x") if each in tags]
    if (
        _NAME.fullmatch(f"{selector}._domainkey.{domain}") is None
        or "from" not in names
        or not all(map(_TIME.fullmatch, times))
        or not (identity == domain or identity.endswith(f".{domain}"))
    ):
        return Nothing("a signature cannot be read")
    try:
        digest = binascii.a2b_base64(tags.get("bh", "").encode("ascii"), strict_mode=True)
        signed = binascii.a2b_base64(tags.get("b", "").encode("ascii"), strict_mode=True)
    except binascii.Error:
        return Nothing("a signature cannot be read")
    return Signature(
        domain=domain,
        selector=selector,
        identity_domain=identity,
        algorithm=algorithm,
        relaxed_header=form[0],
        relaxed_body=form[1],
        names=names,
        body_sha256=digest,
        value=signed,
        signed_at=int(tags["t"]) if "t" in tags else None,
        expires_at=int(tags["x"]) if "x" in tags else None,
    )


def signatures_of(
    fields: Sequence[Field], domain: str, alignment: Alignment
) -> tuple[tuple[int, Signature], ...]:
    """The usable signatures that may speak for a domain, each with its number among all signatures."""
    found = []
    values = [each.value for each in fields if each.name == "dkim-signature"]
    for number, value in enumerate(values):
        signature = read_signature(value)
        if isinstance(signature, Signature) and aligned(signature.domain, domain, alignment):
            found.append((number, signature))
    return tuple(found[:MOST_SIGNATURES])


def check_signatures(
    inbound: Inbound,
    domain: str,
    alignment: Alignment,
    keys: Mapping[str, KeyAnswer],
    received_at: datetime,
) -> Checked:
    """Verify the signatures of a domain; one that is valid suffices.

    ``keys`` has an answer for the ``key_name`` of each signature that was looked up; ``received_at`` is when
    the mail arrived (INTERNALDATE): a signature has to be in force then.
    """
    signatures = signatures_of(inbound.fields, domain, alignment)
    if not signatures:
        return Nothing("no usable signature of the domain of From is on it")
    mail = _Mail(inbound.raw, inbound.body_start)
    checked = [
        _check(mail, number, signature, keys.get(signature.key_name), received_at)
        for number, signature in signatures
    ]
    for kind in (Valid, Unanswered, Broken):
        for each in checked:
            if isinstance(each, kind):
                return each
    return checked[0]


@define
class _Mail:
    """The bytes that signatures are made over, each form digested once."""

    raw: bytes
    body_start: int
    _digests: dict[bool, bytes | None] = field(factory=dict, init=False)

    @cached_property
    def fields(self) -> tuple[tuple[str, bytes], ...]:
        """Every field as it stands; none where line ends are not CRLF."""
        block = self.raw[: self.body_start].removesuffix(b"\r\n").removesuffix(b"\r\n")
        return () if has_bare_line_ends(block) else raw_fields(block)

    def body_sha256(self, *, relaxed: bool) -> bytes | None:
        """The digest of the canonical body."""
        if relaxed not in self._digests:
            self._digests[relaxed] = body_digest(self.raw, self.body_start, relaxed=relaxed)
        return self._digests[relaxed]

    def header_sha256(self, number: int, signature: Signature) -> bytes | None:
        """The digest that the signature with this number was made over; None when it is not there."""
        by_name: dict[str, list[bytes]] = {}
        for name, raw in self.fields:
            by_name.setdefault(name, []).append(raw)
        own = by_name.get("dkim-signature", [])
        if number >= len(own):
            return None
        relaxed = signature.relaxed_header
        itself = own.pop(number)
        digest = hashlib.sha256()
        for name in signature.names:
            if by_name.get(name):  # from the bottom; what is not there is signed as not being there
                digest.update(canonical_field(by_name[name].pop(), relaxed=relaxed) + b"\r\n")
        digest.update(canonical_field(without_signature(itself), relaxed=relaxed))
        return digest.digest()


def _check(
    mail: _Mail, number: int, signature: Signature, answer: KeyAnswer | None, received_at: datetime
) -> Checked:
    now = received_at.timestamp()
    if signature.signed_at is not None and signature.signed_at > now + CLOCK_GRACE:
        return Nothing("the signature is from the future")
    if signature.expires_at is not None and signature.expires_at < max(now, signature.signed_at or 0):
        return Nothing("the signature was over when the mail came")
    match answer:
        case None:
            return Nothing("the signature's key was not looked up")
        case KeyTrouble(reason=reason):
            return Unanswered(reason)
        case KeyTexts(texts=texts):
            key = read_key(texts)
        case _:
            assert_never(answer)
    if isinstance(key, NoKey):
        return Nothing(f"the signature says nothing: {key.reason}")
    if key.algorithm != signature.algorithm:
        return Nothing("the signature's key is of another kind")
    if key.whole_domain_only and signature.identity_domain != signature.domain:
        return Nothing("the signature's key is not for subdomains")
    header = mail.header_sha256(number, signature)
    if header is None or mail.body_sha256(relaxed=signature.relaxed_body) is None:
        return Broken("somebody rewrote the line ends of the mail")
    if mail.body_sha256(relaxed=signature.relaxed_body) != signature.body_sha256:
        return Broken("the text of the mail was changed after it was signed")
    if not key.verifies(signature.value, header):
        return Broken("the header of the mail was changed after it was signed, or the signature is forged")
    return Valid(frozenset(signature.names))
