"""Errors to answers: the only place that knows which status belongs to which error.

4xx: the caller must change something; 5xx: we or the mail server failed.  Every problem has one shape,
``{"error": code, "message": what happened and what to do, ...}``.  What is unexpected is told as
``internal`` and logged with the place where it happened, but without the error's own text: that may hold a
statement's parameters, which are people's mail.
"""

from types import MappingProxyType
from typing import Any

from attrs import Factory, frozen
from twisted.logger import Logger

from mailgateway.errors import PeerError, Refusal, StaleWrite, StoreError, place_of
from mailgateway.shapes import printed

log = Logger()

STATUS = MappingProxyType(
    {
        "invalid": 400,
        "invalid_selection": 400,
        "malformed": 400,
        "secret_in_text": 400,
        "unauthorized": 401,
        "person_required": 403,
        "forbidden_origin": 403,
        "not_yours": 403,
        "not_local": 403,
        "wrong_owner": 403,
        "unknown": 404,
        "method_not_allowed": 405,
        "timeout": 408,
        "acked": 409,
        "already_claimed": 409,
        "being_sent": 409,
        "already_resolved": 409,
        "ambiguous_id": 409,
        "batch_aborted": 409,
        "child_limit_reached": 409,
        "decision_outstanding": 409,
        "depth_limit_reached": 409,
        "foreign-device": 409,
        "forward_parent_reference": 409,
        "key_reused": 409,
        "may_have_arrived": 409,
        "mode_off": 409,
        "not_claimant": 409,
        "owner_not_offline": 409,
        "parent_cycle": 409,
        "question_mailed": 409,
        "question_terminal": 409,
        "settled": 409,
        "stale-space": 409,
        "stale_owner_revision": 409,
        "stale_revision": 409,
        "stale_write": 409,
        "wait_already_active": 409,
        "too_large": 413,
        "misdirected": 421,
        "incompatible": 426,
        "send_budget": 429,
        "too_many_subscribers": 429,
        "too_many_waiting": 429,
        "upload_quota": 429,
        "internal": 500,
        "smtp_failed": 502,
        "registry_full": 503,
        "stopping": 503,
        "store_unavailable": 503,
    }
)
"""Every code of the API with its status; a code that is missing here is a refusal that nobody planned."""


@frozen
class Problem:
    """One answer that is not what was asked for."""

    code: str
    message: str
    details: dict[str, Any] = Factory(dict)

    @property
    def status(self) -> int:
        """The HTTP status of this problem."""
        return STATUS.get(self.code, 409)

    def body(self) -> bytes:
        """Write the answer's body."""
        return printed({"error": self.code, "message": self.message, **self.details})

    def headers(self) -> dict[bytes, bytes]:
        """What the answer's header says beside the body."""
        headers = {}
        if self.code == "unauthorized":
            headers[b"WWW-Authenticate"] = b"Bearer"
        if (seconds := self.details.get("retryAfter")) is not None:
            headers[b"Retry-After"] = b"%d" % max(1, -(-int(seconds * 1000) // 1000))
        return headers


def problem_of(error: Exception, asked: str) -> Problem:
    """Say what went wrong; ``asked`` names the route, for the log."""
    match error:
        case Refusal(code=code, message=message, details=details):
            return Problem(code, message, dict(details))
        case PeerError():
            return Problem(
                "smtp_failed",
                f"the mail server did not take the mail: {error.text}",
                {
                    "smtpCode": getattr(error, "smtp_code", None),
                    "temporary": getattr(error, "temporary", type(error).transient),
                },
            )
        case StaleWrite():
            return Problem(
                "stale_write", "somebody else changed this at the same moment; read it and try again"
            )
        case StoreError():
            log.error("{asked}: {reason}", asked=asked, reason=str(error))
            return Problem(
                "store_unavailable", "the database cannot be used now; nothing was changed, so try again soon"
            )
        case _:
            log.error("{asked} failed: {place}", asked=asked, place=place_of(error))
            return Problem("internal", "the service failed; its log says where, and trying again is safe")
