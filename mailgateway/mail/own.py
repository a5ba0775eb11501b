"""What the gateway knows about itself and its rules, as far as the reading of a mail needs it.

Made of the settings; a value, so that one set of rules holds for a whole scan and a reload simply makes
another.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property

from attrs import field, frozen

from mailgateway.providers import Results
from mailgateway.settings import Alignment, Authentication, Settings, SingleMailboxProof

MARKER_HEADER = "X-Mailgateway-Instance"
"""Stands on all mail that leaves a gateway; whatever carries it is never a person's."""


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
    back to it; ``marker_header`` makes any mail a gateway's, whoever wrote it; ``message_ids`` are further
    Message-IDs of its own that do not have the usual shape.
    """

    addresses: frozenset[str] = field(default=frozenset(), converter=_addresses)
    names: frozenset[str] = field(default=frozenset(), converter=_strings)
    allowed: frozenset[str] = field(default=frozenset(), converter=_addresses)
    accepted_tags: frozenset[str] = field(default=frozenset({"mg", "pi"}), converter=_lower)
    marker_header: str = MARKER_HEADER
    plus_addresses: Mapping[str, bool] = field(factory=dict, converter=_plus)
    authentication: Authentication = Authentication.REQUIRED
    single_mailbox_proof: SingleMailboxProof = SingleMailboxProof.SENT_COPY
    trusted_authserv_ids: frozenset[str] = field(default=frozenset(), converter=_lower)
    results: Results = Results.ABOVE
    alignment: Alignment = Alignment.STRICT
    message_ids: frozenset[str] = field(default=frozenset(), converter=_strings)

    @cached_property
    def trace(self) -> tuple[bytes, ...]:
        """What a header block (in lower case) must contain one of, unless its subject is encoded.

        A few substring searches, these and those of `tag_trace`, decide nearly every stranger's mail; they
        may say too much, never too little.
        """
        words = {address.lower().encode() for address in self.allowed}
        words |= {message_id.lower().encode() for message_id in self.message_ids}
        words |= {
            f"{address.rpartition('@')[0].lower()}+".encode()
            for address, on in self.plus_addresses.items()
            if on
        }
        words |= {b"<mg.", b"mailer-daemon", b"postmaster", self.marker_header.lower().encode()}
        return tuple(sorted(words))

    @cached_property
    def tag_trace(self) -> tuple[bytes, ...]:
        """How our tags begin, in lower case; only where there is a ``[`` at all."""
        return tuple(sorted(f"[{tag}:".encode() for tag in self.accepted_tags))


def own_of(settings: Settings) -> Own:
    """What the settings say of the gateway itself and of whom it hears."""
    accounts = settings.accounts.values()
    security = settings.security
    return Own(
        addresses=[account.address for account in accounts],
        names=[account.from_name for account in accounts],
        allowed=settings.people.allowed,
        accepted_tags=security.accepted_tags,
        plus_addresses={account.address: account.plus_address for account in accounts},
        authentication=security.authentication,
        single_mailbox_proof=security.single_mailbox_proof,
        trusted_authserv_ids=security.trusted_authserv_ids,
        results=Results.BELOW if security.results_below_received else Results.ABOVE,
        alignment=security.alignment,
    )
