"""The API: the table of routes, served behind guards and limits.

``make_site`` gives the factory to listen with.  Routes never touch a request: they read a ``Call`` and
return a ``Reply``, and what they raise becomes a ``Problem`` here.
"""

from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred

from mailgateway import shapes
from mailgateway.errors import Refusal
from mailgateway.http.dispatch import Dispatch
from mailgateway.http.doors import Doors
from mailgateway.http.guards import Guards
from mailgateway.http.keys import Bearer
from mailgateway.http.pages import Pages
from mailgateway.http.problems import problem_of
from mailgateway.http.request import LimitedRequest, LimitedSite
from mailgateway.http.routes import Call, Reply, Route, Streamed
from mailgateway.http.table import ROUTES
from mailgateway.settings import Role
from mailgateway.shapes import printed

T = TypeVar("T")


def make_site(doors: Doors) -> LimitedSite:
    """Make the factory that a port or a unix socket listens with; one for each, of the same ``doors``."""
    site = LimitedSite(
        _dispatch(doors).answer,
        doors.reactor,
        Guards(doors.settings, doors.keys),
        doors.connections,
        doors.folder.begin,
        doors.bodies,
    )
    doors.add(site)
    return site


def _dispatch(doors: Doors) -> Dispatch:
    def answer(route: Route, request: LimitedRequest, parameters: dict[str, str]) -> "Deferred[bytes | None]":
        work = Deferred.fromCoroutine(_answer(doors, route, request, parameters))
        return work if route.waits else outliving(work)

    def astray(request: LimitedRequest, refusal: Refusal) -> bytes:
        """Answer a path or a method that is not in the table."""
        problem = problem_of(refusal, "")
        doors.requests["other", problem.status] += 1
        return request.set_problem(problem)

    return Dispatch(ROUTES, answer, astray, Pages(doors).answer)


def outliving(work: Deferred[T]) -> Deferred[T]:
    """Let a client that hangs up give up only its waiting: a change that has begun is finished.

    Cancelling it in the middle would leave a commit that nobody rings the bell for.
    """
    listening: Deferred[T] = Deferred()

    def done(result: Any) -> None:
        if not listening.called:
            listening.callback(result)

    work.addBoth(done)
    return listening


async def _answer(
    doors: Doors, route: Route, request: LimitedRequest, parameters: dict[str, str]
) -> bytes | None:
    """Answer one request; what is written when somebody still listens."""
    try:
        bearer = request.verdict
        assert isinstance(bearer, Bearer)  # noqa: S101 (for the type checker: refused requests never come here)
        if route.role is Role.PERSON and bearer.role is not Role.PERSON:
            raise Refusal("person_required", "this is for people, who use `person.key` or answer by mail")
        if route.whole_machine and bearer.sessions:
            raise Refusal(
                "not_yours",
                "this concerns the whole machine, and this key speaks for some sessions; use `secret.key`",
            )
        call = Call(route, request, bearer, parameters)
        _nothing_more(call)
        reply = await route.answer(doors, call)
    except CancelledError:
        raise
    except Exception as error:  # noqa: BLE001 (the last place: whatever it is, the client gets an answer)
        problem = problem_of(error, route.name)
        request.discard_upload()
        doors.requests[route.name, problem.status] += 1
        return None if request.is_gone() else request.set_problem(problem)
    if isinstance(reply, Streamed):
        doors.requests[route.name, 200] += 1
        return None
    doors.requests[route.name, reply.status] += 1
    if reply.after is not None:
        doors.reactor.callLater(0, reply.after)
    return None if request.is_gone() else _written(request, reply)


def _nothing_more(call: Call) -> None:
    """Refuse what a route has no use for, where it does not look itself."""
    if call.route.query is shapes.NoQuery:
        call.query(shapes.NoQuery)
    if call.route.body is shapes.Nothing and call.route.method != "GET" and not call.route.takes_file:
        call.body(shapes.Nothing)


def _written(request: LimitedRequest, reply: Reply) -> bytes:
    content = printed(reply.value) if reply.content is None else reply.content
    request.setResponseCode(reply.status)
    request.set_field(b"Content-Type", reply.content_type.encode())
    request.set_field(b"Content-Length", b"%d" % len(content))
    for name, value in reply.headers.items():
        request.set_field(name.encode(), value.encode())
    return content
