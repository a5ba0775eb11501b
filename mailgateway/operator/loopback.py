"""A port of this machine that waits for a browser to come back (RFC 8252 section 7.3), once.

Policy: bound to the loopback interface only.  A request counts when it is for the one path, by the name of
this machine, and whoever listens says that it is the right one; then the port is closed.  Everything else
is turned away, at most ``MOST`` times.  The page says that the window can be closed, and nothing else: no
script, no link, no word of what came.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from attrs import define, field
from twisted.internet.error import CannotListenError
from twisted.web.http import BAD_REQUEST, NOT_FOUND, OK
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from mailgateway.errors import Unreachable

MOST: Final = 50
PATH: Final = "/"
USUAL_PORT: Final = 80
_PAGE: Final = (
    b'<!doctype html><html lang="en"><meta charset="utf-8">'
    b'<meta name="viewport" content="width=device-width">'
    b'<meta name="color-scheme" content="light dark"><title>mailgateway</title>'
    b"<style>body{font:17px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:34em;padding:0 1em}</style>"
    b"<h1>%s</h1><p>%s</p></html>"
)
_DONE: Final = _PAGE % (b"You can close this window.", b"mailgateway goes on in the terminal.")
_OTHER: Final = _PAGE % (b"This is not it.", b"Begin in the terminal again, with the address it shows.")


@define(eq=False)
class Listener:
    """An open port, and the address that a browser is to come back to."""

    uri: str
    _ports: list[Any]
    _resource: "_Back"

    def hear(self, judge: Callable[[str], bool]) -> None:
        """From now on hand whole addresses to ``judge``; the first that it takes closes the port."""

        def taken(address: str) -> bool:
            right = judge(address)
            if right:
                self.close()
            return right

        self._resource.judge = taken

    def close(self) -> None:
        """Close the port; connections that are open end by themselves."""
        ports, self._ports = self._ports, []
        for port in ports:
            port.stopListening()


@define(eq=False, slots=False)
class _Back(Resource):
    """Everything on the port."""

    hosts: frozenset[bytes] = frozenset()
    uri: str = ""
    judge: Callable[[str], bool] | None = None
    _asked: int = field(default=0, init=False)
    isLeaf = True  # noqa: N815 - twisted.web's name

    def __attrs_post_init__(self) -> None:
        Resource.__init__(self)

    def render_GET(self, request: Request) -> bytes:  # noqa: N802 - twisted.web's name
        """Look whether this is the browser that comes back."""
        for name, value in (
            ("content-type", "text/html; charset=utf-8"),
            ("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("connection", "close"),
        ):
            request.setHeader(name, value)
        self._asked += 1
        host = (request.getHeader(b"host") or b"").lower()
        path, _, query = request.uri.partition(b"?")
        if self._asked > MOST or path != PATH.encode() or host not in self.hosts or self.judge is None:
            request.setResponseCode(NOT_FOUND)
            return _OTHER
        right = self.judge(f"{self.uri}{PATH}?{query.decode('ascii', 'replace')}")
        request.setResponseCode(OK if right else BAD_REQUEST)
        return _DONE if right else _OTHER


class _Silent(Site):
    """Addresses hold codes: nothing of them is logged."""

    def log(self, request: Any) -> None:
        """Log nothing."""


def listen(reactor: Any, host: str, port: int) -> Listener:
    """Open a port of the loopback interface, any for 0; ``Unreachable`` when it is taken.

    ``host`` is the name in the address, ``127.0.0.1`` or ``localhost``, as the registration has it.
    """
    resource = _Back()
    make: Any = _Silent  # whose own signature has no types
    site = make(resource, timeout=30)
    site.noisy = False
    site.displayTracebacks = False
    try:
        first = reactor.listenTCP(port, site, interface="127.0.0.1")
    except CannotListenError:
        raise Unreachable(f"port {port} of this machine is taken; name another one with --port") from None
    number = first.getHost().port
    ports = [first]
    if host == "localhost":
        with suppress(CannotListenError):  # a browser may take the name for ::1
            ports.append(reactor.listenTCP(number, site, interface="::1"))
    usual = {host} if number == USUAL_PORT else set()  # where browsers leave the number away
    resource.hosts = frozenset(each.encode() for each in {f"{host}:{number}", *usual})
    resource.uri = f"http://{host}:{number}"  # registrations have no path
    return Listener(resource.uri, ports, resource)
