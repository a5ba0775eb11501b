"""The settled event: a session's turn is over, and a person is told when it stays so.

It waits in the database, so that a restart loses none.  A newer one replaces it, a ``working`` ping cancels
it, and so does a mail in which the session says itself that it is done.  When its time has come, it leaves
the table in the transaction that queues its mail: never two mails, never none.  A summary that holds a
secret is not mailed at all, and ``status`` says so.
"""

import re
from datetime import timedelta

from attrs import evolve
from twisted.logger import Logger

from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import MailKind
from mailgateway.errors import Refusal, StaleWrite
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.letters import Chance, Mint, Ready, Sender, SendRequest, prepare
from mailgateway.flows.secret_text import SECRET_IN_TEXT
from mailgateway.flows.sessions import register
from mailgateway.flows.submit import Submitted, place, rings
from mailgateway.ids import InstanceId, OutboxId, SessionId
from mailgateway.mail.subject import settle_subject
from mailgateway.store import modes, sessions, settles
from mailgateway.store.database import Database, Tx
from mailgateway.store.settles import Settle

REFUSED_SECONDS = 600
"""When what could not be mailed is tried again."""

WITHHELD_FOR = timedelta(days=1)
"""How long ``status`` speaks of a summary that was not mailed."""

_log = Logger()

AT_ONCE = 100
"""So many are sent in one go."""


async def note(
    database: Database,
    bell: Bell,
    identity: Identity,
    session: SessionId,
    instance: InstanceId,
    summary: str,
    aborted: bool,
    *,
    delay: timedelta,
    on_aborted: bool = False,
) -> None:
    """The session's turn is over; mail ``summary`` (Markdown) after ``delay``, unless it works again.

    It replaces the one that waits.  An aborted turn is not mailed unless ``on_aborted``, and it still takes
    away the one that waited, which it has made untrue.
    """

    def work(tx: Tx) -> None:
        register(tx, identity, session)
        if aborted and not on_aborted:
            settles.cancel(tx, session)
        else:
            due_at = tx.now + delay
            settles.put(tx, Settle(session, instance, identity.machine_id, summary, aborted, due_at))

    await database.run(work)
    bell.ring(Event(EventKind.SETTLE, session, session))


async def due(
    database: Database, bell: Bell, identity: Identity, sender: Sender, *, mint: Mint
) -> tuple[OutboxId, ...]:
    """Queue the mail of each settle whose time has come; the outbox ids.

    While the mode is off they are forgotten: by the time it is on again, they are no news.
    """
    waiting = await database.read(lambda tx: settles.due(tx, identity.machine_id, AT_ONCE))
    sent = []
    for settle in waiting:
        outbox_id = await _send(database, bell, identity, sender, settle, Chance.draw(mint))
        if outbox_id is not None:
            sent.append(outbox_id)
    return tuple(sent)


async def _send(
    database: Database, bell: Bell, identity: Identity, sender: Sender, settle: Settle, chance: Chance
) -> OutboxId | None:
    """Turn one settle into its mail; ``None`` when there is nothing to send any more."""

    def compose(tx: Tx) -> tuple[SendRequest, Ready]:
        request = SendRequest(
            kind=MailKind.SETTLE,
            session=settle.session_id,
            subject=_subject(tx, identity, settle),
            text=settle.summary,
        )
        return request, prepare(tx, identity, sender, request, chance, _no_uploads)

    def work(tx: Tx) -> Submitted | None:
        if not settles.take(tx, settle) or modes.current(tx, identity.machine_id) is Mode.OFF:
            return None
        return place(tx, identity, sender, request, ready)

    def withhold(tx: Tx) -> None:
        if settles.take(tx, settle):
            settles.withhold(tx, settle, SECRET_IN_TEXT)

    def put_off(tx: Tx) -> None:
        if settles.take(tx, settle):  # unless another one has replaced it meanwhile
            settles.put(tx, evolve(settle, due_at=tx.now + wait))

    try:
        request, ready = await database.read(compose)
        submitted = await database.run(work)
    except StaleWrite:
        return None  # rolled back: the settle still waits, and the next round draws another route id
    except Refusal as refusal:  # rolled back, too
        if refusal.code == SECRET_IN_TEXT:  # it will be no better later
            await database.run(withhold)
            _log.warn("the summary of a settled turn is not mailed: {why}", why=refusal.message)
            return None
        wait = timedelta(seconds=refusal.details.get("retryAfter", REFUSED_SECONDS))
        await database.run(put_off)
        if refusal.code != "send_budget":
            _log.warn("a settled turn is not mailed now: {why}", why=refusal.message)
        return None
    if submitted is None:
        return None
    bell.ring(*rings(submitted, request))
    return submitted.outbox_id


def _no_uploads(path: str) -> bytes:
    raise FileNotFoundError(path)


def _subject(tx: Tx, identity: Identity, settle: Settle) -> str:
    """What is over, and where: the first sentence of the summary, else the session's title."""
    session = sessions.find(tx, settle.session_id)
    title, project = ("", "") if session is None else (session.title, session.project)
    what = _first_sentence(settle.summary) or title or "the turn is over"
    return settle_subject(what, project, identity.name, aborted=settle.aborted)


_SENTENCE = re.compile(r".+?[.!?](?=\s|$)")


def _first_sentence(summary: str) -> str:
    """The first words of the Markdown, without its marks, and without a full stop at their end."""
    lines = (" ".join(line.strip(" #*_`>-").split()) for line in summary.splitlines())
    line = next((line for line in lines if line), "")
    found = _SENTENCE.match(line)
    sentence = line if found is None else found[0]
    return sentence.replace("**", "").replace("`", "").removesuffix(".")
