"""Host names as strangers write them: in documents, DNS records and redirects.

Policy: what is to be dialled because a stranger says so is a proper name with a domain (RFC 952, RFC 1123),
in lower case.  An address literal, ``localhost`` and its like are none: they would turn us against
machines that only we can reach.
"""

import re

_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
_LOCAL = ("localhost", "localdomain", "local", "internal", "home.arpa")
"""Names under which nobody answers whom a stranger may send us to (RFC 6761, RFC 6762, RFC 8375)."""


def host_name(text: str) -> str | None:
    """The name in lower case without a last dot; ``None`` for what is no public host name."""
    name = text.strip().lower().removesuffix(".")
    if not _NAME.fullmatch(name):
        return None
    if any(name == each or name.endswith(f".{each}") for each in _LOCAL):
        return None
    return name
