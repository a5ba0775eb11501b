"""Guards in front of routing: for us, from a page of ours, with a key of ours, in our version.

They look at the header only and at every request, so a new route cannot forget them, and a body is not
worth storing before they agree.  The order is that of trust: a wrong Host (DNS rebinding) or a foreign
Origin learns nothing, not even whether its key is right.  On a unix socket the file's mode guards the door,
and any Host will do.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from urllib.parse import unquote_to_bytes, urlsplit

from attrs import define
from twisted.internet.address import UNIXAddress
from twisted.web.http import Request

from mailgateway.contract import API_VERSION
from mailgateway.errors import Refusal
from mailgateway.http.keys import NOBODY, VISITOR, Bearer, Keys
from mailgateway.settings import Settings
from mailgateway.shapes.kinds import CONTROL

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
PAGES = (b"/inbox", b"/login", b"/static")
"""Where people's pages are."""

FORWARDING = (
    b"forwarded",
    b"via",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-real-ip",
)

MISDIRECTED = Refusal(
    "misdirected", "this is not the host that was asked for; use the address of the settings"
)
FORBIDDEN_ORIGIN = Refusal("forbidden_origin", "pages of other sites may not use this service")
UNAUTHORIZED = Refusal(
    "unauthorized",
    "send the key as `Authorization: Bearer <key>`; `mailgateway secret path` says where it is",
)
INCOMPATIBLE = Refusal(
    "incompatible",
    f"this service speaks version {API_VERSION} of the API; use a client of the same version, or restart it",
    {"apiVersion": API_VERSION},
)
NOT_A_PATH = Refusal("unknown", "there is nothing at this path; GET /openapi.json lists all routes")


@define(eq=False)
class Guards:
    """What every request has to pass, by the settings and keys in force."""

    _settings: Callable[[], Settings]
    _keys: Callable[[], Keys]

    def admit(self, request: Request, method: bytes, path: bytes) -> Bearer | Refusal:
        """Say who is there, or why nobody comes in; called when the header is complete."""
        return (
            self._misdirected(request, path)
            or self._foreign_page(request)
            or self._admitted(request, method, path)
        )

    def _misdirected(self, request: Request, path: bytes) -> Refusal | None:
        if not path.startswith(b"/"):  # an absolute address, as proxies are asked, or "*"
            return MISDIRECTED
        if isinstance(request.host, UNIXAddress):
            return None
        hosts = request.requestHeaders.getRawHeaders(b"host", [])
        if len(hosts) != 1 or hosts[0].strip().lower() not in self._names(request)[0]:
            return MISDIRECTED
        return None

    def _foreign_page(self, request: Request) -> Refusal | None:
        origins = request.requestHeaders.getRawHeaders(b"origin")
        if origins and not {origin.strip().lower() for origin in origins} <= self._names(request)[1]:
            return FORBIDDEN_ORIGIN
        return None

    def _names(self, request: Request) -> tuple[frozenset[bytes], frozenset[bytes]]:
        daemon = self._settings().daemon
        port = daemon.port if isinstance(request.host, UNIXAddress) else request.host.port
        return names_of(port, daemon.public_url)

    def _admitted(self, request: Request, method: bytes, path: bytes) -> Bearer | Refusal:
        route = path.split(b"?", 1)[0]
        headers = request.requestHeaders
        bearer: Bearer | None
        if is_page(route):
            bearer = VISITOR
        elif route == b"/health" or (route == b"/metrics" and self._settings().daemon.metrics_open):
            bearer = NOBODY
        else:
            bearer = self._bearer(headers.getRawHeaders(b"authorization", []))
            if bearer is None:
                return UNAUTHORIZED
        versions = headers.getRawHeaders(b"mailgateway-api")
        if versions and versions != [b"%d" % API_VERSION]:
            return INCOMPATIBLE
        if not _is_readable(route):
            return NOT_A_PATH
        if not method.isalpha():
            return Refusal("method_not_allowed", "there is no such method")
        return bearer

    def _bearer(self, given: Sequence[bytes]) -> Bearer | None:
        scheme, _, token = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
        return self._keys().bearer(token.strip()) if scheme.lower() == b"bearer" and token else None


def is_page(path: bytes) -> bool:
    """Whether a path is one of people's pages; those have a login of their own, and know no keys."""
    return any(path == place or path.startswith(place + b"/") for place in PAGES)


def _is_readable(path: bytes) -> bool:
    """Whether a path is text without control characters: no id has any, and PostgreSQL cannot hold NUL."""
    try:
        return CONTROL.search(unquote_to_bytes(path).decode("utf-8")) is None
    except UnicodeDecodeError:
        return False


@lru_cache(maxsize=16)
def names_of(port: int, public_url: str) -> tuple[frozenset[bytes], frozenset[bytes]]:
    """Hosts and origins that are ours, in lower case: loopback with our port, and the public address."""
    hosts = {f"{name}:{port}" for name in LOOPBACK_NAMES}
    if port == 80:
        hosts |= set(LOOPBACK_NAMES)
    origins = {f"http://{host}" for host in hosts}
    public = urlsplit(public_url.lower())
    if public.netloc:
        host = public.netloc.rpartition("@")[2]
        bare = host.removesuffix(":443" if public.scheme == "https" else ":80")
        hosts |= {host, bare}
        origins |= {f"{public.scheme}://{host}", f"{public.scheme}://{bare}"}
    return frozenset(name.encode() for name in hosts), frozenset(name.encode() for name in origins)


def is_local(request: Request) -> bool:
    """Whether the request comes from this machine and was not passed on by a proxy."""
    if any(request.requestHeaders.hasHeader(name) for name in FORWARDING):
        return False
    peer = request.client
    if isinstance(peer, UNIXAddress):
        return True
    host: str = getattr(peer, "host", "").removeprefix("::ffff:")
    return host.startswith("127.") or host == "::1"
