"""What the gateway knows about itself and its rules, as far as the reading of a mail needs it.

Built from the settings by others; a value, so that one set of rules holds for a whole scan and a reload
simply makes another.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum, unique
from functools import cached_property

from attrs import field, frozen

MARKER_HEADER = "X-Mailgateway-Instance"
"""Stands on all mail that leaves a gateway; whatever carries it is never a person's."""


@unique
class Authentication(StrEnum):
    """How a mail proves that its From is true (``security.authentication``)."""

    REQUIRED = "required"
    SINGLE_MAILBOX = "single-mailbox"


@unique
class Proof(StrEnum):
    """What stands in for authentication where agent and person share a mailbox."""

    SENT_COPY = "sent-copy"
    THREAD = "thread"


@unique
class Alignment(StrEnum):
    """How closely the domain of a signature must fit the domain of From (RFC 7489, section 3.1)."""

    STRICT = "strict"
    RELAXED = "relaxed"


def normalise_address(address: str) -> str:
    """The address with its domain as lower-case A-labels; the local part is left byte for byte as it is."""
    local, at, domain = address.strip().rpartition("@")
    if not domain.isascii():
        try:
            domain = domain.encode("idna").decode("ascii")
        except UnicodeError:  # no such domain can be in a From that is read strictly: it will match nothing
            return f"{local}{at}{domain}"
    return f"{local}{at}{domain.lower()}"


def _addresses(values: Iterable[str]) -> frozenset[str]:
    return frozenset(normalise_address(value) for value in values)


def _strings(values: Iterable[str]) -> frozenset[str]:
    return frozenset(values)


def _lower(values: Iterable[str]) -> frozenset[str]:
    return frozenset(value.lower() for value in values)


def _plus(values: Mapping[str, bool]) -> Mapping[str, bool]:
    return {normalise_address(address): on for address, on in values.items()}


@frozen(kw_only=True)
class Own:
    """The gateway's own identity and rules.

    ``addresses`` are those of its accounts, ``names`` the display names it writes under, ``allowed`` the
    people's addresses; ``plus_addresses`` says for an account's address whether ``local+route@domain`` comes
    back to it; ``instances`` are ids that this gateway wrote into its marker header (any marker counts as a
    gateway's mail, whoever wrote it); ``message_ids`` are further Message-IDs of its own that do not have
    the usual shape.
    """

    addresses: frozenset[str] = field(default=frozenset(), converter=_addresses)
    names: frozenset[str] = field(default=frozenset(), converter=_strings)
    allowed: frozenset[str] = field(default=frozenset(), converter=_addresses)
    accepted_tags: frozenset[str] = field(default=frozenset({"mg", "pi"}), converter=_lower)
    marker_header: str = MARKER_HEADER
    instances: frozenset[str] = field(default=frozenset(), converter=_strings)
    plus_addresses: Mapping[str, bool] = field(factory=dict, converter=_plus)
    authentication: Authentication = field(default=Authentication.REQUIRED, converter=Authentication)
    single_mailbox_proof: Proof = field(default=Proof.SENT_COPY, converter=Proof)
    trusted_authserv_ids: frozenset[str] = field(default=frozenset(), converter=_lower)
    results_below_received: bool = False
    alignment: Alignment = field(default=Alignment.STRICT, converter=Alignment)
    message_ids: frozenset[str] = field(default=frozenset(), converter=_strings)

    @cached_property
    def trace(self) -> tuple[bytes, ...]:
        """What a header block (in lower case) must contain one of, unless its subject is encoded.

        A few substring searches decide nearly every stranger's mail; they may say too much, never too little.
        """
        words = {address.lower().encode() for address in self.allowed}
        words |= {message_id.lower().encode() for message_id in self.message_ids}
        words |= {f"[{tag}:".encode() for tag in self.accepted_tags}
        words |= {
            f"{address.rpartition('@')[0].lower()}+".encode()
            for address, on in self.plus_addresses.items()
            if on
        }
        words |= {b"<mg.", b"mailer-daemon", b"postmaster", self.marker_header.lower().encode()}
        return tuple(sorted(words))
