"""The service itself: health, settings, mail that came in, metrics, and its end."""

from mailgateway import __version__
from mailgateway.contract import API_VERSION
from mailgateway.domain.account import is_well
from mailgateway.errors import Refusal
from mailgateway.flows.counts import counts
from mailgateway.flows.fates import fates
from mailgateway.flows.ports import ProcessControl
from mailgateway.http import shapes_of
from mailgateway.http.doors import Doors
from mailgateway.http.guards import is_local
from mailgateway.http.routes import Call, Reply
from mailgateway.shapes import Fates, Health, HealthQuery, InboundQuery

CAPABILITIES = ("attachments", "decisions", "events", "notifications", "settle")
"""What a client may count on beside the version."""

MOST_FATES = 1_000
UNAVAILABLE = "store_unavailable"


async def health(doors: Doors, call: Call) -> Reply:
    """Tell how the service is, without an address, a name or a word of anybody.

    While the database cannot be read, or says nothing, the numbers and the mode are the last that were known.
    """
    asked = call.query(HealthQuery)
    answered = await doors.read_anew()
    numbers, mode = doors.last_read
    accounts = tuple(doors.control.accounts())
    scan = doors.control.last_scan()
    return Reply(
        Health(
            status=_status(doors.control) if answered else UNAVAILABLE,
            version=__version__,
            api_version=API_VERSION,
            capabilities=CAPABILITIES,
            instance=doors.identity.instance,
            mode=mode,
            pending=numbers.pending,
            registry=numbers.registry,
            sessions=numbers.registry,
            clients=numbers.clients,
            last_ping_at=numbers.last_ping_at,
            subscribers=len(doors.streams),
            config_loaded_at=doors.control.loaded_at,
            last_scan=None if scan is None else shapes_of.last_scan(scan),
            accounts=tuple(shapes_of.account_state(account) for account in accounts),
            muted=numbers.muted,
            held=numbers.held,
            held_until=numbers.held_until,
            withheld=numbers.withheld,
            proof=None if asked.challenge is None else doors.keys().proof(asked.challenge),
        )
    )


def _status(control: ProcessControl) -> str:
    if control.store_trouble:
        return UNAVAILABLE
    return "ok" if all(is_well(each.state, each.failure) for each in control.accounts()) else "degraded"


async def inbound(doors: Doors, call: Call) -> Reply:
    """Tell a person what became of mail that concerns us, newest first."""
    asked = call.query(InboundQuery)
    found = await fates(doors.database, since=asked.since, limit=MOST_FATES)
    return Reply(Fates(tuple(shapes_of.fate(each) for each in found)))


async def reload(doors: Doors, call: Call) -> Reply:  # noqa: ARG001 (every route has the same signature)
    """Read the settings again; on failure the old ones stay, and ``warning`` says why."""
    return Reply(shapes_of.reloaded(await doors.control.reload()))


async def prime(doors: Doors, call: Call) -> Reply:  # noqa: ARG001 (every route has the same signature)
    """Watch from now on: move every cursor that was never used to now."""
    return Reply({"moved": await doors.control.prime()})


async def shutdown(doors: Doors, call: Call) -> Reply:
    """Stop cleanly, when somebody at this machine says so."""
    if not is_local(call.request):
        raise Refusal(
            "not_local", "only a program on the same machine may stop the service, and not by a proxy"
        )
    return Reply(status=202, after=doors.control.shutdown)


async def metrics(doors: Doors, call: Call) -> Reply:  # noqa: ARG001 (every route has the same signature)
    """Tell the numbers as Prometheus text."""
    from mailgateway.http import metrics as exposition  # noqa: PLC0415 - most services are never scraped

    numbers = await counts(doors.database, doors.identity)
    return Reply(content=exposition.text(doors, numbers), content_type=exposition.CONTENT_TYPE)
