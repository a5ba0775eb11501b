"""The pages beside questions: sessions, mails, settings."""

from mailgateway.domain.account import is_well
from mailgateway.domain.mode import Mode
from mailgateway.errors import Refusal
from mailgateway.flows import inbox as inbox_flow
from mailgateway.flows import inbox_places as flow
from mailgateway.flows import logins_of_people as logins
from mailgateway.flows import mode as modes
from mailgateway.http.inbox.house import House, me
from mailgateway.http.inbox.visit import Page, Visit, see_other
from mailgateway.ids import SessionId

LONGEST_NAME = 100


async def sessions(house: House, visit: Visit) -> Page:
    """Which sessions there are, and what they do."""
    found = await flow.all_sessions(house.doors.database, house.waits)
    return house.page(
        "sessions.html", here="/inbox/sessions", found=found, now=found.now, token=visit.token, notice=""
    )


async def name_session(house: House, visit: Visit) -> Page:
    """Call a session by a name of the person's own."""
    name = " ".join(visit.field("name").split())
    if len(name) > LONGEST_NAME:
        raise Refusal("invalid", f"a name has at most {LONGEST_NAME} characters")
    await inbox_flow.call_session(house.doors.database, SessionId(visit.field("session")), name)
    return see_other("/inbox/sessions")


async def mails(house: House, visit: Visit) -> Page:  # noqa: ARG001 (every page has the same signature)
    """What waits for sessions, what became of mail that came, and mail from sessions."""
    doors = house.doors
    found = await flow.mails(doors.database, doors.identity, house.waits)
    return house.page("mail.html", here="/inbox/mail", found=found, now=found.now)


async def settings(house: House, visit: Visit) -> Page:
    """The mode, the accounts, the devices."""
    doors = house.doors
    found = await flow.service(doors.database, doors.identity)
    devices, _ = await logins.logins(doors.database)
    return house.page(
        "settings.html",
        here="/inbox/settings",
        found=found,
        well={each.account: is_well(each.state, each.failure) for each in found.accounts},
        logins=devices,
        me=me(visit),
        machine=doors.identity.name,
        now=found.now,
        token=visit.token,
        notice="",
    )


async def switch(house: House, visit: Visit) -> Page:
    """Switch the gateway on or off, as a person: only a person undoes that off."""
    doors = house.doors
    wanted = next((each for each in Mode if each.value == visit.field("mode")), None)
    if wanted is None:
        raise Refusal("invalid", "the mode is on or off")
    await modes.change(doors.database, doors.bell, doors.identity, wanted, by="person")
    return see_other("/inbox/settings")
