"""What is known of mail providers: read from ``data/providers.toml``, at the first question only.

Policy.  These are facts about the habits of servers that no protocol tells: how long IDLE may last, what
shows new mail, whether a copy of what is sent appears by itself.  They are defaults: what a server tells by
its capabilities, and what was learned of it while it was used, wins.  A host that is not in the table has
the defaults of ``Provider``.  Nothing here dials anybody.

The second half of the file is what providers offer to mail programs (``Offer``), by the domain of an address
or by its mail exchanger: where the search for servers begins.  A ``Server`` without TLS cannot be said.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve, field, fields, frozen


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
    rewrites_ids: bool = False
    """Whether the submission server gives mails another Message-ID, and does not say which."""
    results: Results = field(default=Results.ABOVE, converter=Results)
    refused_seconds: float = 0.0
    """How long a refused login rests before its one further try, where ten minutes are not enough."""
    refusals: str = ""
    """What a refused password may mean as well, for people."""
    source: str = ""
    """Where this is known from."""


class SecretKind(StrEnum):
    """What a provider takes as the proof that an account is ours."""

    PASSWORD = "password"  # noqa: S105 - the name of a kind
    APP_PASSWORD = "app-password"  # noqa: S105 - the name of a kind
    """A password made for this program alone; elsewhere "authorization code" or "device password"."""
    OAUTH = "oauth"


LOOPBACK = "127.0.0.1"

WHOLE_ADDRESS = "%EMAILADDRESS%"
"""The form of most user names; the placeholders are those of autoconfig documents."""


@frozen
class Server:
    """A mail server as somebody has told it: always by TLS, from the first byte unless ``starttls``.

    ``username`` may hold placeholders, ``secrets`` is empty where nothing was told of them.
    """

    host: str
    port: int
    starttls: bool = False
    username: str = WHOLE_ADDRESS
    secrets: tuple[SecretKind, ...] = ()

    def __str__(self) -> str:
        """Render as ``host:port``, for people."""
        return f"{self.host}:{self.port}"


@frozen(kw_only=True)
class Endpoints:
    """Where a provider lets programs sign in by OAuth; empty where there is no such way."""

    device_url: str = ""
    authorize_url: str = ""
    token_url: str
    scopes: tuple[str, ...] = ()
    authorize_parameters: tuple[str, ...] = field(default=(), converter=tuple)
    """Further ``name=value`` pairs for ``authorize_url``."""
    redirect_host: str = LOOPBACK
    """How the provider wants this machine to be named where a browser is sent back to."""


@frozen(kw_only=True)
class Offer:
    """What one provider offers to mail programs; without ``imap`` it cannot be used, and ``hints`` say so."""

    name: str
    domains: tuple[str, ...] = ()
    mx: tuple[str, ...] = ()
    imap: Server | None = None
    smtp: Server | None = None
    hints: tuple[str, ...] = ()
    """Sentences for people, told before a password is asked for."""
    page: str = ""
    authserv_ids: tuple[str, ...] = ()
    sent_folder: str = ""
    plus_address: bool = False
    needs_ca_file: bool = False
    oauth: Endpoints | None = None
    source: str

    @property
    def secrets(self) -> tuple[SecretKind, ...]:
        """What is taken as a secret, the usual one first."""
        return self.imap.secrets if self.imap is not None else ()


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


def username_of(form: str, address: str) -> str:
    """A user name of the form for the address."""
    local, _, domain = address.rpartition("@")
    known = {WHOLE_ADDRESS: address, "%EMAILLOCALPART%": local, "%EMAILDOMAIN%": domain}
    for placeholder, text in known.items():
        form = form.replace(placeholder, text)
    return form


def offer_of_domain(domain: str) -> Offer | None:
    """The offer to addresses of exactly this domain."""
    wanted = domain.lower().rstrip(".")
    return next((offer for offer in offers() if wanted in offer.domains), None)


def offer_of_exchanger(host: str) -> Offer | None:
    """The offer of whom this mail exchanger belongs to; the longest pattern decides.

    What a ``*`` stands for takes the place of a ``*`` in the names of the servers, where they have one.
    """
    wanted = host.lower().rstrip(".")
    patterns = sorted(
        ((each, offer) for offer in offers() for each in offer.mx), key=lambda pair: -len(pair[0])
    )
    for pattern, offer in patterns:
        before, _, behind = pattern.partition("*")
        inside = len(wanted) > len(before) + len(behind)
        if inside and wanted.startswith(before) and wanted.endswith(behind):
            return _filled(offer, wanted[len(before) : len(wanted) - len(behind)])
    return None


def endpoints_at(token_url: str) -> Endpoints | None:
    """What is known of the provider whose server this address leads to, whatever the tenant in its path."""
    host = urlsplit(token_url).hostname
    found = (offer.oauth for offer in offers() if offer.oauth is not None)
    return next((each for each in found if urlsplit(each.token_url).hostname == host), None)


def offers() -> tuple[Offer, ...]:
    """All of them; ``ValueError`` for a table that is not as it should be."""
    return tuple(_offer(row) for row in _data()["offer"])


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


def _offer(row: Mapping[str, Any]) -> Offer:
    """Read a row: the servers are one line of text each, and what is said of both goes into both."""
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    secrets = tuple(map(SecretKind, values.pop("secrets", ())))
    for door in ("imap", "smtp"):
        username = values.pop(f"{door}_username", WHOLE_ADDRESS)
        if door in values:
            values[door] = _server(values[door], username, secrets)
    if "oauth" in values:
        table = values["oauth"]
        values["oauth"] = Endpoints(**{**table, "scopes": tuple(table.get("scopes", ()))})
    try:
        return Offer(**values)
    except TypeError as error:
        raise ValueError(f"providers.toml: {row.get('name')}: {error}") from None


def _server(text: str, username: str, secrets: tuple[SecretKind, ...]) -> Server:
    place, _, how = text.partition(" ")
    host, _, port = place.rpartition(":")
    if not host or how not in {"", "starttls"}:
        raise ValueError(f"providers.toml: {text}: must be host:port, perhaps with starttls")
    return Server(host, int(port), bool(how), username, secrets)


def _filled(offer: Offer, text: str) -> Offer:
    """The offer with its servers' own ``*`` filled in."""

    def full(server: Server | None) -> Server | None:
        return None if server is None else evolve(server, host=server.host.replace("*", text))

    return evolve(offer, imap=full(offer.imap), smtp=full(offer.smtp))


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
