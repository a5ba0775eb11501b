"""Whether the domain that signed may speak for the domain of From (RFC 7489, section 3.1).

Strict is the default, since who may command agents is decided by it: subdomains of a large host are for rent.
Relaxed goes by the organisational domain, which only a list of public suffixes tells (RFC 7489, section 3.2);
the list is data of a package, never fetched, and read when somebody first asks.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from mailgateway.settings import Alignment

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


def aligned(signer: str, domain: str, alignment: Alignment) -> bool:
    """Equal domains, or when relaxed those of one organisation; both in lower case, without a last dot.

    Suffixes under which strangers may register (``github.io``) count as public ones, and a domain that is
    itself a public suffix belongs to nobody.
    """
    if not signer or not domain:
        return False
    match alignment:
        case Alignment.STRICT:
            return signer == domain
        case Alignment.RELAXED:
            ours = organization(domain)
            return signer == domain or (ours is not None and organization(signer) == ours)
        case _:
            assert_never(alignment)


def organization(domain: str) -> str | None:
    """The organisational domain (RFC 7489, section 3.2); ``None`` for one that is a public suffix itself."""
    return _suffixes().privatesuffix(domain)


@lru_cache(maxsize=1)
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415 (0.1 s and 2 MB that strict alignment saves)

    return PublicSuffixList()
