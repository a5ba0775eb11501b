"""The marks by which a mail finds its way back: the tag in a subject, the plus-address, our Message-IDs.

A mark routes; it never authorizes.
"""

import re
from functools import lru_cache

from attrs import field, frozen

from mailgateway.ids import MessageId, RouteId

_SHORT = r"[0-9a-f]{8}|[0-9a-f]{6}"
_OWN_ID = re.compile(
    rf"<mg\.({_SHORT})\.([0-9a-z]{{4,64}})\.([0-9a-f]{{8}})@[A-Za-z0-9.-]{{1,253}}>", re.ASCII
)


@frozen
class ShortTag:
    """``[mg:f913c9]``: the short id of a route, in lower case."""

    tag: str
    route: RouteId


@frozen
class SignedTag:
    """``[mg:<payload>.<mac>]``: a signed token, not yet verified."""

    tag: str
    token: str = field(repr=False)


@frozen
class OwnId:
    """What one of our Message-IDs says: its route and the first 8 hex digits of its machine's digest."""

    route: RouteId
    machine8: str


@lru_cache(maxsize=64)
def _pattern(tags: frozenset[str]) -> re.Pattern[str]:
    names = "|".join(re.escape(tag) for tag in sorted(tags)) or r"(?!)"
    return re.compile(
        rf"\[({names}):(?:({_SHORT})|([A-Za-z0-9_-]{{22}}\.[A-Za-z0-9_-]{{16}}))\]", re.IGNORECASE | re.ASCII
    )


def find_tag(subject: str, accepted_tags: frozenset[str]) -> ShortTag | SignedTag | None:
    """The leftmost well-formed tag in a decoded subject, its letters in any case."""
    found = _pattern(accepted_tags).search(subject)
    if found is None:
        return None
    if found[2] is not None:
        return ShortTag(found[1].lower(), RouteId(found[2].lower()))
    return SignedTag(found[1].lower(), found[3])


def format_tag(tag: str, route: RouteId) -> str:
    """The tag as it stands first in a subject that we write."""
    return f"[{tag}:{route}]"


def strip_tags(subject: str, accepted_tags: frozenset[str]) -> str:
    """The human subject: without any tag of ours, blanks collapsed."""
    return " ".join(_pattern(accepted_tags).sub(" ", subject).split())


def without_tags(text: str, tags: frozenset[str]) -> str:
    """The text with a blank for each tag of ours; lines and other blanks stay as they are."""
    return _pattern(tags).sub(" ", text)


def plus_address(account_address: str, route: RouteId) -> str:
    """``local+route@domain``, by which a mail finds its way where the account has such addresses."""
    local, _, domain = account_address.rpartition("@")
    return f"{local}+{route}@{domain}"


def plus_route(address: str, account_address: str) -> RouteId | None:
    """The route in ``local+route@domain`` when the rest is the account's address; else None."""
    local, _, domain = account_address.rpartition("@")
    given_local, _, given_domain = address.rpartition("@")
    name, plus, route = given_local.rpartition("+")
    if not plus or given_domain.lower() != domain.lower() or name.lower() != local.lower():
        return None
    route = route.lower()
    return RouteId(route) if re.fullmatch(_SHORT, route, re.ASCII) else None


def own_message_id(route: RouteId, random: bytes, machine8: str, domain: str) -> MessageId:
    """The Message-ID of a mail that we send: ``<mg.<route>.<random>.<machine8>@<domain>>``.

    ``random`` are at least 8 random bytes; ``domain`` is that of the sending account.
    """
    return MessageId(f"<mg.{route}.{random.hex()}.{machine8}@{domain}>")


def parse_own_message_id(text: str) -> OwnId | None:
    """What a Message-ID of the shape of ours says, whichever machine wrote it; else None."""
    found = _OWN_ID.fullmatch(text)
    return OwnId(RouteId(found[1]), found[3]) if found is not None else None
