"""What sessions say of themselves: ping, bye, the reservation of their one decision, settle, the mode."""

from datetime import timedelta

from mailgateway.domain.mode import By, Mode
from mailgateway.flows import mode as modes
from mailgateway.flows import sessions as flow
from mailgateway.flows import settle as settles
from mailgateway.http import shapes_of
from mailgateway.http.doors import Doors
from mailgateway.http.routes import Call, Reply
from mailgateway.settings import Role
from mailgateway.shapes import Mode as ModeShape
from mailgateway.shapes import ModeRequest, PingRequest, SessionRequest, SettleRequest


async def ping(doors: Doors, call: Call) -> Reply:
    """Register the session when it is new, and note what it is about."""
    asked = call.body(PingRequest)
    presence = await flow.ping(doors.database, doors.bell, doors.identity, shapes_of.ping(asked))
    return Reply(shapes_of.presence(presence))


async def bye(doors: Doors, call: Call) -> Reply:
    """Note that the session's instance ends."""
    asked = call.body(SessionRequest)
    await flow.bye(doors.database, doors.bell, asked.session_id, asked.instance_id)
    return Reply()


async def reserve(doors: Doors, call: Call) -> Reply:
    """Reserve the session's one blocking decision."""
    asked = call.body(SessionRequest)
    question = await flow.reserve(
        doors.database, doors.bell, doors.identity, asked.session_id, doors.mint(12)
    )
    return Reply({"questionId": question})


async def free(doors: Doors, call: Call) -> Reply:
    """Free the reservation; a question that was mailed stays answerable."""
    asked = call.body(SessionRequest)
    await flow.free(doors.database, doors.bell, asked.session_id)
    return Reply()


async def settle(doors: Doors, call: Call) -> Reply:
    """Note that the session's turn is over; it replaces the note that waits."""
    asked = call.body(SettleRequest)
    notify = doors.settings().notify
    await settles.note(
        doors.database,
        doors.bell,
        doors.identity,
        asked.session_id,
        asked.instance_id,
        asked.summary,
        asked.aborted,
        delay=timedelta(seconds=notify.settle_delay_seconds),
        on_aborted=notify.on_aborted,
    )
    return Reply()


async def show_mode(doors: Doors, call: Call) -> Reply:  # noqa: ARG001 (every route has the same signature)
    """Tell the mode of this machine."""
    return Reply(ModeShape(await modes.current(doors.database, doors.identity)))


async def change_mode(doors: Doors, call: Call) -> Reply:
    """Change the mode of this machine."""
    wanted = Mode(call.body(ModeRequest).mode)
    by: By = "person" if call.bearer.role is Role.PERSON else "session"
    return Reply(ModeShape(await modes.change(doors.database, doors.bell, doors.identity, wanted, by=by)))
