"""The scan verdicts: why a mail did not become a person's words.

The names are part of the outer contract: they are counted in ``/health``, shown by ``status``, ``/inbound``
and ``explain``.
"""

from enum import StrEnum, unique


@unique
class Verdict(StrEnum):
    """Why a mail was not delivered as a person's words (``too-large``: not whole)."""

    OWN_MAIL = "own-mail"
    AUTOMATIC = "automatic"
    BOUNCE = "bounce"
    NOT_ALLOWED = "not-allowed"
    UNAUTHENTICATED = "unauthenticated"
    FORGED = "forged"
    PROOF_REQUIRED = "proof-required"
    NO_TOKEN = "no-token"  # noqa: S105 - a verdict's name, not a secret
    EXPIRED_TOKEN = "expired-token"  # noqa: S105 - a verdict's name, not a secret
    AMBIGUOUS = "ambiguous"
    OTHER_DEVICE = "other-device"
    EMPTY = "empty"
    TOO_LARGE = "too-large"
    MALFORMED = "malformed"
    DUPLICATE = "duplicate"
