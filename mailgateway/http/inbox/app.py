"""The table of pages, served by Klein, each behind the same checks.

Who is not logged in gets the login in place of the page.  A form is believed only with the token of its
login, so a page of somebody else cannot send one.  Whatever comes of it, the answer forbids the browser all
that our pages do not need.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote_to_bytes

from attrs import evolve, frozen
from klein import Klein
from klein.interfaces import IKleinRequest
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.components import registerAdapter

from mailgateway.errors import Refusal
from mailgateway.http.api import outliving
from mailgateway.http.doors import Doors
from mailgateway.http.inbox import around, asked, assets, entering, live
from mailgateway.http.inbox.house import House
from mailgateway.http.inbox.visit import Page, Visit
from mailgateway.http.problems import Problem, problem_of
from mailgateway.http.request import LimitedRequest

FIELDS = {
    b"Content-Security-Policy": (
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    b"Cross-Origin-Opener-Policy": b"same-origin",
    b"Cross-Origin-Resource-Policy": b"same-origin",
    # with "no-referrer" browsers send `Origin: null` with our own forms, and nobody could tell them apart
    b"Referrer-Policy": b"same-origin",
    b"X-Frame-Options": b"DENY",
}
"""On every page; ``nosniff`` and ``no-store`` are on every answer anyway."""

HEADINGS = {404: "Nothing is here", 429: "Too many at once", 503: "Not now"}


@frozen
class Route:
    """One page: ``open`` to everybody, or for who is logged in."""

    method: str
    rule: str
    view: Callable[[House, Visit], Awaitable[Page | None]]
    open: bool = False
    waits: bool = False
    """Whether it means nothing to somebody who has gone."""


ROUTES = (
    Route("GET", "/login", entering.show_login, open=True),
    Route("POST", "/login", entering.log_in, open=True),
    Route("GET", "/static/<name>", assets.static, open=True),
    Route("GET", "/inbox", asked.queue),
    Route("GET", "/inbox/", asked.to_queue),
    Route("GET", "/inbox/rows/<id>", asked.row),
    Route("GET", "/inbox/questions/<id>", asked.card),
    Route("POST", "/inbox/questions/<id>", asked.answer),
    Route("GET", "/inbox/history", asked.history),
    Route("GET", "/inbox/sessions", around.sessions),
    Route("POST", "/inbox/sessions", around.name_session),
    Route("GET", "/inbox/mail", around.mails),
    Route("GET", "/inbox/settings", around.settings),
    Route("POST", "/inbox/mode", around.switch),
    Route("POST", "/inbox/devices", entering.log_out),
    Route("GET", "/inbox/events", live.events, waits=True),
)


class PageRequest:
    """What Klein keeps of a request beside the request itself."""

    def __init__(self, request: LimitedRequest) -> None:
        self.request = request
        self.mapper: Any = None


registerAdapter(PageRequest, LimitedRequest, IKleinRequest)


def serve_with(doors: Doors) -> Callable[[LimitedRequest], None]:
    """Make what answers a request to one of people's pages."""
    house = House(doors)
    app = Klein()
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    for route in ROUTES:
        methods = [route.method, *(["HEAD"] if route.method == "GET" else [])]
        app.route(route.rule, methods=methods, endpoint=f"{route.method} {route.rule}")(
            _serving(house, route)
        )
    app.handle_errors(Exception)(_astray(house))
    resource = app.resource()

    def serve(request: LimitedRequest) -> None:
        pieces: Any = request
        pieces.prepath = []
        pieces.postpath = [*_segments(request)]
        resource.render(pieces)

    return serve


def _segments(request: LimitedRequest) -> list[bytes]:
    return [unquote_to_bytes(each) for each in request.path.split(b"/")[1:]]


def _serving(house: House, route: Route) -> Callable[..., Deferred[bytes]]:
    def serving(request: LimitedRequest, **parts: str) -> Deferred[bytes]:
        work = Deferred.fromCoroutine(_answer(house, route, Visit(house.doors, request, parts)))
        return work if route.waits else outliving(work)

    return serving


def _astray(house: House) -> Callable[..., bytes]:
    def astray(request: LimitedRequest, failure: Any) -> bytes:
        """Answer a path or a method that is in no table."""
        known = getattr(failure.value, "valid_methods", None)
        page = _message(house, 404 if known is None else 405, "There is no such page.")
        if known is not None:
            page = evolve(page, headers={"Allow": ", ".join(sorted(known))})
        return _write(Visit(house.doors, request), page)

    return astray


async def _answer(house: House, route: Route, visit: Visit) -> bytes:
    """Answer one request; what is written when somebody still listens."""
    try:
        page = await _page(house, route, visit)
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 (the last place: whatever it is, the person gets an answer)
        problem = problem_of(error, f"{route.method} {route.rule}")
        page = _message(house, problem.status, _sentence(problem))
    if page is None:
        house.doors.requests["pages", 200] += 1
        return b""
    return _write(visit, page)


async def _page(house: House, route: Route, visit: Visit) -> Page | None:
    if route.method == "POST" and visit.header("Sec-Fetch-Site") in {"cross-site", "same-site"}:
        raise Refusal("forbidden_origin", "pages of other sites may not use this service")
    if route.open:
        return await route.view(house, visit)
    if await house.know(visit) is None:
        return _outside(house, route, visit)
    if route.method == "POST" and not hmac.compare_digest(
        visit.field("token").encode(), visit.token.encode()
    ):
        raise Refusal("forbidden_origin", "the form is not of this login; load the page anew and try again")
    return await route.view(house, visit)


def _outside(house: House, route: Route, visit: Visit) -> Page:
    """Nobody is logged in, or the browser does not say so.

    Whoever follows a link of another site, such as a mail on the web, comes without the cookie, for it is
    strict; once a page of ours sends them here again, they have it.
    """
    there = entering.within(visit.request.path.decode("ascii", "replace"))
    if route.method == "GET" and visit.header("Sec-Fetch-Site") == "cross-site":
        return house.page("opening.html", to=there)
    if route.method == "POST":
        notice = "You are not logged in on this device any more, and nothing was changed."
        return house.login_page(entering.INBOX, notice, 401)
    return house.login_page(there, "", 401)


def _message(house: House, status: int, words: str) -> Page:
    return house.page(
        "message.html", status=status, heading=HEADINGS.get(status, "That did not work"), words=words
    )


def _sentence(problem: Problem) -> str:
    text = problem.message
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _write(visit: Visit, page: Page) -> bytes:
    request = visit.request
    visit.doors.requests["pages", page.status] += 1
    if request.is_gone():
        return b""
    request.setResponseCode(page.status)
    for name, value in FIELDS.items():
        request.set_field(name, value)
    request.set_field(b"Content-Type", page.content_type.encode())
    request.set_field(b"Content-Length", b"%d" % len(page.content))
    for name_, value_ in page.headers.items():
        request.set_field(name_.encode(), value_.encode())
    cookie = visit.set_cookie(visit.cookie) if page.cookie is None and visit.prolonged else page.cookie
    if cookie is not None:
        request.set_field(b"Set-Cookie", cookie.encode())
    return page.content
