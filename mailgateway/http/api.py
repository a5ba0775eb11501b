"""The API: one table of routes, served by Klein behind guards and limits.

``make_site`` gives the factory to listen with.  Routes never touch a request: they read a ``Call`` and
return a ``Reply``, and what they raise becomes a ``Problem`` here.
"""

from collections.abc import Callable
from typing import Any

from klein import Klein
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure
from twisted.web.resource import IResource
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from mailgateway import shapes
from mailgateway.errors import Refusal
from mailgateway.http import deliveries, process, sending, sessions
from mailgateway.http.doors import Doors
from mailgateway.http.events import events
from mailgateway.http.guards import NOT_A_PATH, Guards
from mailgateway.http.keys import Bearer
from mailgateway.http.limits import LimitedRequest, LimitedSite
from mailgateway.http.openapi import describe
from mailgateway.http.problems import problem_of
from mailgateway.http.routes import Call, Reply, Route, Streamed
from mailgateway.settings import Role
from mailgateway.shapes import printed

WHOSE = ("unknown", "ambiguous_id", "stale-space", "foreign-device", "not_yours")


async def openapi(doors: Doors, call: Call) -> Reply:  # noqa: ARG001 (every route has the same signature)
    """Describe the API."""
    return Reply(describe(ROUTES))


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/health",
        process.health,
        "How the service is; asks for no key.",
        query=shapes.HealthQuery,
        reply=shapes.Health,
        open=True,
    ),
    Route(
        "POST",
        "/ping",
        sessions.ping,
        "A session says that it lives.",
        body=shapes.PingRequest,
        reply=shapes.PresenceShape,
        codes=("not_yours", "registry_full"),
    ),
    Route(
        "POST",
        "/bye",
        sessions.bye,
        "A session's instance ends.",
        body=shapes.SessionRequest,
        codes=("not_yours",),
    ),
    Route(
        "GET",
        "/pending",
        deliveries.pending,
        "What waits, oldest first.",
        query=shapes.PendingQuery,
        reply=shapes.Pending,
        codes=("not_yours",),
        waits=True,
    ),
    Route(
        "POST",
        "/claim",
        deliveries.claim,
        "Claim a delivery, or renew the claim.",
        body=shapes.TargetRequest,
        reply=shapes.DeliveryShape,
        codes=(*WHOSE, "already_claimed", "acked", "mode_off"),
    ),
    Route(
        "POST",
        "/release",
        deliveries.release,
        "Give a claimed delivery back.",
        body=shapes.TargetRequest,
        reply=shapes.DeliveryShape,
        codes=(*WHOSE, "not_claimant", "acked"),
    ),
    Route(
        "POST",
        "/ack",
        deliveries.ack,
        "The session has the delivery.",
        body=shapes.TargetRequest,
        codes=(*WHOSE, "not_claimant"),
    ),
    Route(
        "GET",
        "/deliveries/{id}/attachments/{aid}",
        deliveries.attachment,
        "The bytes of an attachment, for the claimant.",
        headers=shapes.ClaimantHeaders,
        content_type="application/octet-stream",
        codes=(*WHOSE, "not_claimant"),
    ),
    Route(
        "POST",
        "/attachments",
        sending.upload,
        "Upload a file of at most 25 MB for a mail to come.",
        headers=shapes.UploadHeaders,
        takes_file=True,
        codes=("not_yours", "registry_full"),
    ),
    Route(
        "POST",
        "/register",
        sessions.reserve,
        "Reserve the session's one blocking decision.",
        body=shapes.SessionRequest,
        codes=("not_yours", "decision_outstanding", "registry_full"),
    ),
    Route(
        "DELETE",
        "/register",
        sessions.free,
        "Free the reservation.",
        body=shapes.SessionRequest,
        codes=("not_yours",),
    ),
    Route("GET", "/mode", sessions.show_mode, "The mode of this machine.", reply=shapes.Mode),
    Route(
        "POST",
        "/mode",
        sessions.change_mode,
        "Switch this machine on or off.",
        body=shapes.ModeRequest,
        reply=shapes.Mode,
        codes=("person_required",),
    ),
    Route(
        "GET",
        "/events",
        events,
        "What changes, as server-sent events.",
        query=shapes.EventsQuery,
        content_type="text/event-stream",
        codes=("not_yours", "too_many_subscribers", "stopping"),
        waits=True,
    ),
    Route(
        "POST",
        "/send",
        sending.send,
        "Send a mail to the person.",
        body=shapes.SendBody,
        reply=shapes.Sent,
        codes=(
            "not_yours",
            "unknown",
            "mode_off",
            "decision_outstanding",
            "key_reused",
            "send_budget",
            "smtp_failed",
            "registry_full",
            "stale_write",
        ),
    ),
    Route(
        "POST",
        "/settle",
        sessions.settle,
        "A session's turn is over.",
        body=shapes.SettleRequest,
        codes=("not_yours", "registry_full"),
    ),
    Route(
        "GET",
        "/outbox/{id}",
        sending.outbox,
        "How far a mail has come.",
        reply=shapes.OutboxRow,
        codes=("unknown", "not_yours"),
    ),
    Route(
        "GET",
        "/inbound",
        process.inbound,
        "What became of mail that concerns us, newest first; for people.",
        query=shapes.InboundQuery,
        reply=shapes.Fates,
        role=Role.PERSON,
    ),
    Route("POST", "/reload", process.reload, "Read the settings again.", reply=shapes.Reloaded),
    Route("POST", "/prime", process.prime, "Watch from now on."),
    Route(
        "POST",
        "/shutdown",
        process.shutdown,
        "Stop the service; from this machine only.",
        status=202,
        codes=("not_local",),
    ),
    Route("GET", "/metrics", process.metrics, "Prometheus text.", content_type="text/plain"),
    Route("GET", "/openapi.json", openapi, "This description."),
)
"""Every route of the core."""


def make_site(doors: Doors) -> LimitedSite:
    """Make the factory that a port or a unix socket listens with; one for each, of the same ``doors``."""
    site = LimitedSite(
        _resource(doors),
        doors.reactor,
        Guards(doors.settings, doors.keys),
        doors.connections,
        doors.new_upload,
    )
    doors.add(site)
    return site


def _resource(doors: Doors) -> IResource:
    app = Klein()
    app.url_map.merge_slashes = False
    for route in ROUTES:
        klein_path = route.path.replace("{", "<").replace("}", ">")
        app.route(klein_path, methods=[route.method], endpoint=route.name)(_serve(doors, route))

    @app.handle_errors(HTTPException)
    def astray(request: Any, failure: Failure) -> bytes:
        """Answer a path or a method that is not in the table."""
        refusal = NOT_A_PATH
        if isinstance(failure.value, MethodNotAllowed):
            allowed = ", ".join(sorted(failure.value.valid_methods or ()))
            request.setHeader(b"Allow", allowed.encode())
            refusal = Refusal("method_not_allowed", f"this path knows {allowed}")
        problem = problem_of(refusal, "")
        doors.requests["other", problem.status] += 1
        body: bytes = request.set_problem(problem)
        return body

    resource: IResource = app.resource()
    return resource


def _serve(doors: Doors, route: Route) -> Callable[..., Deferred[bytes | None]]:
    """Make what Klein calls for a route."""

    def answer(request: LimitedRequest, **parameters: str) -> Deferred[bytes | None]:
        work = Deferred.fromCoroutine(_answer(doors, route, request, parameters))
        return work if route.waits else _outliving(work)

    return answer


def _outliving(work: Deferred[bytes | None]) -> Deferred[bytes | None]:
    """Let a client that hangs up give up only its waiting: a change that has begun is finished.

    Cancelling it in the middle would leave a commit that nobody rings the bell for.
    """
    listening: Deferred[bytes | None] = Deferred()

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
            raise Refusal("person_required", "this is for people; use `person.key`, mail or the web inbox")
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
    request.setHeader(b"Content-Type", reply.content_type.encode())
    request.setHeader(b"Content-Length", b"%d" % len(content))
    for name, value in reply.headers.items():
        request.setHeader(name.encode(), value.encode())
    return content
