"""Finds the route for a path and a method, and writes what it gives.

As small as the table of routes allows: segments that are names in braces match any one segment, and HEAD is
answered as GET.  What a route does, and what its failures mean, is the caller's; here is only known that a
client may hang up before the answer is there.
"""

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from mailgateway.errors import Refusal
from mailgateway.http.guards import NOT_A_PATH
from mailgateway.http.keys import VISITOR
from mailgateway.http.request import LimitedRequest
from mailgateway.http.routes import Route

Answer = Callable[[Route, LimitedRequest, dict[str, str]], "Deferred[bytes | None]"]
"""Answers a request with the parameters in its path: the body to write, or None when all is written."""

Astray = Callable[[LimitedRequest, Refusal], bytes]
"""Makes the answer to a path or a method that is in no table; the body to write."""


class Dispatch:
    """All that a site has."""

    def __init__(
        self,
        routes: Iterable[Route],
        answer: Answer,
        astray: Astray,
        pages: Callable[[LimitedRequest], None],
    ) -> None:
        self._answer = answer
        self._pages = pages
        self._astray = astray
        self._plain: dict[str, dict[str, Route]] = {}
        self._patterns: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in routes:
            if "{" in route.path:
                known = self._patterns.setdefault(tuple(route.path.split("/")), {})
            else:
                known = self._plain.setdefault(route.path, {})
            known[route.method] = route
            if route.method == "GET":
                known["HEAD"] = route

    def answer(self, request: LimitedRequest) -> None:
        """Begin to answer; people's pages have routes of their own."""
        if request.verdict is VISITOR:
            self._pages(request)
            return
        try:
            route, parameters = self._find(request)
        except Refusal as refusal:
            self._write(request, self._astray(request, refusal))
            return
        working = self._answer(route, request, parameters)
        request.notifyFinish().addErrback(lambda _: working.cancel())
        working.addCallback(lambda body: self._write(request, body))
        working.addErrback(self._failed, request)

    def _find(self, request: LimitedRequest) -> tuple[Route, dict[str, str]]:
        """The route and the parameters in the path; ``Refusal`` when there is none."""
        try:
            path = unquote_to_bytes(request.path).decode("utf-8")
        except UnicodeDecodeError:
            raise NOT_A_PATH from None
        known = self._plain.get(path)
        parameters: dict[str, str] = {}
        if known is None:
            known, parameters = self._match(path.split("/"))
        route = known.get(request.method.decode("ascii", "replace"))
        if route is None:
            allowed = ", ".join(sorted(known))
            request.set_field(b"Allow", allowed.encode())
            raise Refusal("method_not_allowed", f"this path knows {allowed}")
        return route, parameters

    def _match(self, segments: list[str]) -> tuple[dict[str, Route], dict[str, str]]:
        """The first pattern that fits, by methods, and what stands in place of its names."""
        for pattern, known in self._patterns.items():
            if len(pattern) != len(segments):
                continue
            pairs = [*zip(pattern, segments, strict=True)]
            if all(given if name.startswith("{") else name == given for name, given in pairs):
                return known, {name[1:-1]: given for name, given in pairs if name.startswith("{")}
        raise NOT_A_PATH

    def _write(self, request: Any, body: bytes | None) -> None:
        """Write the body and be done, when somebody still listens."""
        if request.is_gone():
            return
        if body is not None:
            request.write(body)
        request.finish()

    def _failed(self, failure: Failure, request: LimitedRequest) -> Any:
        """A defect, or the end of a wait whose client has gone."""
        if not request.is_gone():
            request.processingFailed(failure)
        elif not failure.check(CancelledError):
            return failure
        return None
