"""What is known of mail providers: read from ``data/providers.toml``, at the first question only.

Policy.  These are facts about the habits of servers that no protocol tells: how long IDLE may last, what
shows new mail, whether a copy of what is sent appears by itself.  They are defaults: what a server tells by
its capabilities, and what was learned of it while it was used, wins.  A host that is not in the table has
the defaults of ``Provider``.  Nothing here dials anybody.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from typing import Any

from attrs import field, fields, frozen


class Poll(StrEnum):
    """What makes a server show new mail where it does not tell by itself."""

    NOOP = "noop"
    STATUS = "status"
    """STATUS of the folder tells that there is something; then NOOP, or SELECT anew, shows it."""
    SELECT = "select"
    """Only selecting the folder anew."""


class Results(StrEnum):
    """Where a provider writes its ``Authentication-Results`` (RFC 8601)."""

    ABOVE = "above"
    """Above all ``Received`` fields, or at least above its own."""
    BELOW = "below"
    """Below its own ``Received`` field."""
    NONE = "none"
    """Not always: a forged one could be the only one."""
    ANONYMOUS = "anonymous"
    """Without an authserv-id."""


@frozen(kw_only=True)
class Provider:
    """One provider; the defaults are what is assumed of a host that nobody has heard of."""

    name: str = ""
    imap: tuple[str, ...] = ()
    smtp: tuple[str, ...] = ()
    idle: bool = True
    """Whether IDLE is worth using where it is offered."""
    idle_seconds: float = 540.0
    """How long IDLE may last before it is renewed."""
    poll: Poll = field(default=Poll.NOOP, converter=Poll)
    poll_seconds: float = 0.0
    """How often to ask where IDLE is not used; 0: as often as the settings say."""
    saves_sent: bool = False
    """Whether the submission server puts a copy into the Sent folder by itself."""
    append_sent: bool = True
    """Whether a copy may be put there at all."""
    results: Results = field(default=Results.ABOVE, converter=Results)
    refused_seconds: float = 0.0
    """How long a refused login rests before its one further try, where ten minutes are not enough."""
    refusals: str = ""
    """What a refused password may mean as well, for people."""
    source: str = ""
    """Where this is known from."""


@frozen
class FolderNames:
    """Names that folders of a purpose have, in lower case, the usual ones first."""

    sent: tuple[str, ...]
    junk: tuple[str, ...]


UNKNOWN = Provider()
"""A host that nobody has heard of."""


def of_imap(host: str) -> Provider:
    """The provider whose IMAP server this is, or ``UNKNOWN``."""
    return _matching(host, "imap")


def of_smtp(host: str) -> Provider:
    """The provider whose submission server this is, or ``UNKNOWN``."""
    return _matching(host, "smtp")


def folder_names() -> FolderNames:
    """The table of folder names."""
    table = _data()["folders"]
    return FolderNames(tuple(table["sent"]), tuple(table["junk"]))


@lru_cache(maxsize=1)
def providers() -> tuple[Provider, ...]:
    """All of them; ``ValueError`` for a table that is not as it should be."""
    known = {each.name for each in fields(Provider)}
    rows: list[Mapping[str, Any]] = _data()["provider"]
    for row in rows:
        if unknown := set(row) - known:
            raise ValueError(f"providers.toml: {row.get('name')}: unknown {sorted(unknown)}")
    return tuple(_provider(row) for row in rows)


def _provider(row: Mapping[str, Any]) -> Provider:
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return Provider(**values)


def _matching(host: str, door: str) -> Provider:
    """An exact name wins over a pattern, wherever the two stand."""
    wanted = host.lower().rstrip(".")
    exact = (each for each in providers() if wanted in getattr(each, door))
    patterns = (each for each in providers() if _fits(wanted, getattr(each, door)))
    return next(exact, None) or next(patterns, UNKNOWN)


def _fits(host: str, patterns: Iterable[str]) -> bool:
    return any(host.endswith(suffix) for suffix in _suffixes(patterns))


def _suffixes(patterns: Iterable[str]) -> Iterator[str]:
    return (pattern[1:] for pattern in patterns if pattern.startswith("*."))


@lru_cache(maxsize=1)
def _data() -> Mapping[str, Any]:
    return tomllib.loads(files("mailgateway").joinpath("data", "providers.toml").read_text("utf-8"))
