"""People come in: by a link that works once, into a login that lives as long as it is used.

A login is made anew by every link and never taken from what a browser brings along, so nobody can be given a
cookie that somebody else knows; what the browser was logged in with before ends with it.
"""

from datetime import datetime, timedelta

from attrs import evolve, frozen

from mailgateway.domain.identity import Identity
from mailgateway.domain.people import IDLE, LINK_LIFE, SEEN_EVERY, Login
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.letters import Answer, Chance, Mint, Sender
from mailgateway.flows.submit import place_answer
from mailgateway.ids import OutboxId
from mailgateway.store import people
from mailgateway.store.database import Database, Tx

MAILED_AT_A_TIME = 3
"""So many links that were mailed may be open: agents may ask for one, and must not flood their person."""

SUBJECT = "Log in to the web inbox"
WORDS = """\
Somebody on {machine} has asked for a link to the web inbox. It works once, for ten minutes:

<{link}>

If that was not you, delete this mail: without the link nobody comes in."""


async def make_link(database: Database, digest: str, person: str) -> datetime:
    """Keep a link for a person who is there; until when it may be used."""
    return await database.run(lambda tx: people.add_link(tx, digest, person))


async def mail_link(
    database: Database, bell: Bell, identity: Identity, sender: Sender, digest: str, link: str, mint: Mint
) -> datetime:
    """Mail a link to the person who is notified, and show it to nobody; until when it may be used.

    Refuses (``send_budget``) while as many as may be open have not been used.
    """
    chance = Chance.draw(mint)

    def work(tx: Tx) -> tuple[datetime, OutboxId]:
        if people.count_links(tx, tx.now - LINK_LIFE) >= MAILED_AT_A_TIME:
            raise Refusal(
                "send_budget",
                f"{MAILED_AT_A_TIME} links are on their way already; use one, or wait until they expire",
                {"retryAfter": int(LINK_LIFE / timedelta(seconds=1))},
            )
        expires_at = people.add_link(tx, digest, sender.recipient)
        said = Answer(
            recipient=sender.recipient,
            subject=SUBJECT,
            text=WORDS.format(machine=identity.name, link=link),
            tagged=False,
            expires_at=tx.now,
        )
        return expires_at, place_answer(tx, identity, sender, said, chance)

    expires_at, outbox_id = await database.run(work)
    bell.ring(Event(EventKind.OUTBOX, outbox_id))
    return expires_at


@frozen
class Entered:
    """Somebody is logged in; ``ended`` is the login that the browser had before."""

    login: Login
    ended: str | None


async def log_in(
    database: Database, code_digest: str, login_id: str, cookie_digest: str, name: str, before: str | None
) -> Entered | None:
    """Use a link up and log its browser in; ``None``: the link is unknown, too old, or used.

    ``before`` is the digest of the cookie that the browser has sent, if any.
    """

    def work(tx: Tx) -> Entered | None:
        person = people.use_link(tx, code_digest)
        if person is None:
            return None
        ended = None if before is None else people.log_out_by_digest(tx, before)
        login = Login(login_id, person, name, tx.now, tx.now)
        people.add_login(tx, login, cookie_digest)
        return Entered(login, ended)

    return await database.run(work)


async def who(database: Database, cookie_digest: str) -> tuple[Login | None, bool]:
    """Who has this cookie, and whether its login was prolonged by this visit.

    ``None``: nobody is logged in with it any more.
    """

    def reading(tx: Tx) -> tuple[Login | None, datetime]:
        return people.by_digest(tx, cookie_digest, tx.now - IDLE), tx.now

    login, now = await database.read(reading)
    if login is None or now - login.seen_at < SEEN_EVERY:
        return login, False
    await database.run(lambda tx: people.touch(tx, login.id))
    return evolve(login, seen_at=now), True


async def logins(database: Database) -> tuple[tuple[Login, ...], datetime]:
    """Every browser that is logged in, the last used first; and the time."""
    return await database.read(lambda tx: (people.logins(tx, tx.now - IDLE), tx.now))


async def log_out(database: Database, login_id: str) -> bool:
    """End a login; whether there was one."""
    return await database.run(lambda tx: people.log_out(tx, login_id))
