"""The route table: every route, what it takes, gives, and may refuse."""

from mailgateway import shapes
from mailgateway.http import deliveries, process, sending, sessions
from mailgateway.http.doors import Doors
from mailgateway.http.events import events
from mailgateway.http.openapi import describe
from mailgateway.http.question_table import QUESTION_ROUTES
from mailgateway.http.routes import Call, Reply, Route
from mailgateway.settings import Role

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
        codes=("not_yours", "registry_full", "upload_quota"),
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
        whole_machine=True,
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
            "secret_in_text",
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
        whole_machine=True,
    ),
    Route(
        "POST",
        "/reload",
        process.reload,
        "Read the settings again.",
        reply=shapes.Reloaded,
        whole_machine=True,
    ),
    Route("POST", "/prime", process.prime, "Watch from now on.", whole_machine=True),
    Route(
        "POST",
        "/shutdown",
        process.shutdown,
        "Stop the service; from this machine only.",
        status=202,
        codes=("not_local",),
        whole_machine=True,
    ),
    Route(
        "GET",
        "/metrics",
        process.metrics,
        "Prometheus text.",
        content_type="text/plain",
        whole_machine=True,
    ),
    Route("GET", "/openapi.json", openapi, "This description."),
    *QUESTION_ROUTES,
)
"""Every route."""
