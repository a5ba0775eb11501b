"""Deliveries: look, wait, claim, give back, ack, and fetch what hangs on them."""

import re
from contextlib import nullcontext
from urllib.parse import quote

from mailgateway.domain.delivery import DeliveryState
from mailgateway.domain.envelope import EnvelopeKind
from mailgateway.errors import Refusal
from mailgateway.flows import deliver
from mailgateway.flows.bell import Event, EventKind
from mailgateway.flows.waiting import wait_until
from mailgateway.http import shapes_of
from mailgateway.http.doors import Doors
from mailgateway.http.routes import Call, Reply
from mailgateway.shapes import ClaimantHeaders, Pending, PendingQuery, TargetRequest

SAFE_TYPE = re.compile(r"[a-z0-9][a-z0-9.+-]{0,63}/[a-z0-9][a-z0-9.+-]{0,127}", re.ASCII)

TOO_MANY = Refusal(
    "too_many_waiting",
    "as many requests as may wait, of this key or in all, do so already; ask without wait, or later",
    {"retryAfter": 5},
)


async def pending(doors: Doors, call: Call) -> Reply:
    """List what waits, oldest first; with ``wait``, wait until something can be claimed.

    What others have claimed is listed too, but is nothing to come back for at once, again and again.
    """
    asked = call.query(PendingQuery)
    if asked.session is not None:
        call.bearer.require(asked.session)
    kind = None if asked.kind is None else EnvelopeKind(asked.kind)

    def concerns(event: Event) -> bool:
        if doors.closed or event.kind is EventKind.MODE:
            return True
        return event.kind is EventKind.DELIVERY and (
            event.session is None
            or (asked.session in {None, event.session} and call.bearer.speaks_for(event.session))
        )

    with doors.waiting.place(call.bearer, TOO_MANY) if asked.wait else nullcontext():
        found = await wait_until(
            doors.reactor,
            doors.bell,
            doors.database,
            concerns,
            deliver.waiting(doors.identity, session=asked.session, kind=kind, among=call.bearer.sessions),
            seconds=asked.wait,
            enough=lambda waiting: doors.closed or any(each.state is DeliveryState.NEW for each in waiting),
        )
    return Reply(Pending(tuple(shapes_of.delivery(envelope) for envelope in found)))


async def claim(doors: Doors, call: Call) -> Reply:
    """Claim a delivery, or renew the claim by repeating it."""
    asked = call.body(TargetRequest)
    claimed = await deliver.claim(
        doors.database,
        doors.bell,
        doors.identity,
        shapes_of.target(asked),
        shapes_of.claimant(doors.identity, asked, call.bearer.sessions),
    )
    return Reply(shapes_of.delivery(claimed))


async def release(doors: Doors, call: Call) -> Reply:
    """Give a claimed delivery back."""
    asked = call.body(TargetRequest)
    released = await deliver.release(
        doors.database,
        doors.bell,
        doors.identity,
        shapes_of.target(asked),
        shapes_of.claimant(doors.identity, asked, call.bearer.sessions),
    )
    return Reply(shapes_of.delivery(released))


async def ack(doors: Doors, call: Call) -> Reply:
    """Say that the session has the delivery; the same answer however often."""
    asked = call.body(TargetRequest)
    await deliver.ack(
        doors.database,
        doors.bell,
        doors.identity,
        shapes_of.target(asked),
        shapes_of.claimant(doors.identity, asked, call.bearer.sessions),
    )
    return Reply({"acked": True})


async def attachment(doors: Doors, call: Call) -> Reply:
    """Give the bytes of one part to the claimant, never to be shown in place."""
    asked = call.headers(ClaimantHeaders)
    info, data = await deliver.attachment(
        doors.database,
        doors.identity,
        call.parameters["id"],
        call.parameters["aid"],
        deliver.Claimant(asked.x_instance_id, doors.identity.machine_id, sessions=call.bearer.sessions),
    )
    declared = info.content_type.lower()
    return Reply(
        content=data,
        content_type=declared if SAFE_TYPE.fullmatch(declared) else "application/octet-stream",
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{_quoted(info.filename)}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
        },
    )


def _quoted(filename: str) -> str:
    """Write a file name as RFC 8187 wants it, without any path."""
    name = filename.replace("\\", "/").rpartition("/")[2]
    return quote(name or "attachment", safe="", errors="replace")
