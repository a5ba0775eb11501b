"""Mail that leaves: files for it, the mail itself, and how far it has come."""

from urllib.parse import unquote

from twisted.internet.defer import Deferred

from mailgateway.domain.outbox import OPEN_STATES, OutboxState
from mailgateway.errors import Refusal
from mailgateway.flows import outbox as outboxes
from mailgateway.flows import outbox_orders as orders
from mailgateway.flows import uploads
from mailgateway.flows.outbox_orders import Whose
from mailgateway.flows.submit import first_attempt, submit
from mailgateway.http import shapes_of
from mailgateway.http.doors import Doors
from mailgateway.http.routes import Call, Reply
from mailgateway.ids import OutboxId
from mailgateway.shapes import OPEN, OutboxQuery, RetryRequest, SendBody, UploadHeaders

FIRST_ATTEMPT_SECONDS = 60.0
"""How long a decision's caller waits for the mail server's first word."""


async def upload(doors: Doors, call: Call) -> Reply:
    """Keep a file for a mail to come; it is forgotten after an hour."""
    asked = call.headers(UploadHeaders)
    call.bearer.require(asked.x_session_id)
    request = call.request
    path = request.keep_upload()
    if path is None:
        raise Refusal("invalid", "send the file as the body of the request")
    try:
        attachment = await uploads.add(
            doors.database,
            doors.identity,
            asked.x_session_id,
            uploads.attachment_id_of(doors.mint(12)),
            unquote(asked.x_filename),
            request.received,
            str(path),
        )
    except BaseException:
        doors.folder.remove(path)
        raise
    return Reply({"attachmentId": attachment})


async def send(doors: Doors, call: Call) -> Reply:
    """Send a mail to the person; a decision waits for the mail server's first word, if there is a place."""
    asked = call.body(SendBody)
    submitted = await submit(
        doors.database,
        doors.bell,
        doors.identity,
        doors.sender(),
        shapes_of.send_request(asked, call.bearer.name),
        mint=doors.mint,
        read_upload=doors.folder.read,
    )
    if asked.kind == "decision" and submitted.state == "queued" and doors.waiting.take(call.bearer):
        try:
            attempt = first_attempt(
                doors.database, doors.bell, doors.reactor, submitted.outbox_id, seconds=FIRST_ATTEMPT_SECONDS
            )
            submitted = await doors.unless_closed(Deferred.fromCoroutine(attempt), submitted)
        finally:
            doors.waiting.give_back(call.bearer)
    return Reply(shapes_of.sent(submitted))


async def outbox(doors: Doors, call: Call) -> Reply:
    """Tell how far a mail has come."""
    row = await outboxes.row(doors.database, OutboxId(call.parameters["id"]))
    call.bearer.require(row.session_id or None)
    return Reply(shapes_of.outbox_row(row))


async def outbox_list(doors: Doors, call: Call) -> Reply:
    """List the mails that the key may see."""
    asked = call.query(OutboxQuery)
    states = OPEN_STATES if asked.state == OPEN else {OutboxState(asked.state)} if asked.state else set()
    page = await orders.listing(
        doors.database, doors.identity, _whose(call), states, asked.cursor, asked.limit
    )
    return Reply(shapes_of.outbox_page(page))


async def outbox_retry(doors: Doors, call: Call) -> Reply:
    """Have a mail tried now."""
    asked = call.body(RetryRequest)
    mail = await orders.retry(
        doors.database,
        doors.bell,
        doors.identity,
        _whose(call),
        OutboxId(call.parameters["id"]),
        though_it_may_have_arrived=asked.unclear,
    )
    return Reply(shapes_of.outbox_row(mail))


async def outbox_drop(doors: Doors, call: Call) -> Reply:
    """Have a mail tried no more."""
    mail = await orders.drop(
        doors.database,
        doors.bell,
        doors.identity,
        _whose(call),
        OutboxId(call.parameters["id"]),
        mint=doors.mint,
    )
    return Reply(shapes_of.outbox_row(mail))


def _whose(call: Call) -> Whose:
    return Whose(call.bearer.sessions)
