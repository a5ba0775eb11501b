"""Logging in and out.

A link's code comes by a form, never by an address, and looking at the page changes nothing: what looks at
links before a person does (a mail scanner, a preview) uses nothing up.
"""

import re

from mailgateway.domain.people import (
    COOKIE_BYTES,
    LOGIN_ID_BYTES,
    cookie_of,
    device_name,
    digest_of,
)
from mailgateway.errors import Refusal
from mailgateway.flows import logins_of_people as flow
from mailgateway.http.inbox.house import House, me
from mailgateway.http.inbox.visit import Page, Visit, see_other

INBOX = "/inbox"
WRONG = "This link is not known, too old, or was used already. Ask for a new one."
TOO_OFTEN = "There were too many wrong links in the last minute. Wait a moment, or use the link as it is."

_WITHIN = re.compile(r"/inbox(?:/[A-Za-z0-9_/-]*)?")


def within(path: str) -> str:
    """Where to go after the login: a page of ours, whatever was asked for."""
    return path if _WITHIN.fullmatch(path) else INBOX


async def show_login(house: House, visit: Visit) -> Page:
    """The page on which a person logs in."""
    return house.login_page(within(visit.asked("to")))


async def log_in(house: House, visit: Visit) -> Page:
    """Use a code up; the browser gets a cookie of its own, whatever it came with."""
    code = visit.field("code").strip().rpartition("#")[2]
    to = within(visit.field("to"))
    now = house.doors.reactor.seconds()
    if not house.is_of_ours(code):
        wait = house.attempts.wait(visit.address, now)
        if wait > 0:
            page = house.login_page(to, TOO_OFTEN, 429)
            return Page(page.content, 429, headers={"Retry-After": str(int(wait) + 1)})
        house.attempts.failed(visit.address, now)
        return house.login_page(to, WRONG, 403)
    mint = house.doors.mint
    cookie = cookie_of(mint(COOKIE_BYTES))
    before = visit.cookie
    entered = await flow.log_in(
        house.doors.database,
        digest_of(code),
        mint(LOGIN_ID_BYTES).hex(),
        digest_of(cookie),
        device_name(visit.header("User-Agent")),
        digest_of(before) if before else None,
    )
    if entered is None:
        return house.login_page(to, WRONG, 403)
    if entered.ended is not None:
        house.end_streams(entered.ended)
    return see_other(to, visit.set_cookie(cookie))


async def log_out(house: House, visit: Visit) -> Page:
    """Log a device out, this one or another."""
    wanted = visit.field("login")
    if not await flow.log_out(house.doors.database, wanted):
        raise Refusal("unknown", "that device is logged out already")
    house.end_streams(wanted)
    if wanted == me(visit).id:
        return see_other("/login", visit.set_cookie(""))
    return see_other("/inbox/settings")
