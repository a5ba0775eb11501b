"""Decisions that nobody has answered: brought to mind, and in the end sent to a second person.

A reminder stands in the thread of the first mail, under its route, and is answered like it.  Whether the
decision is still open, and was brought to mind no more often than was seen, is checked in the transaction
that queues the mail: a crash, a second gateway or an answer in the same moment make no mail too many.
"""

from datetime import datetime
from enum import StrEnum, unique

from attrs import evolve, frozen
from twisted.logger import Logger

from mailgateway.domain.attention import REMINDERS_TO_A_PERSON, Attention
from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import MailKind
from mailgateway.domain.question import Question
from mailgateway.domain.route import Purpose, Route
from mailgateway.errors import Refusal, StaleWrite
from mailgateway.flows.attention_letters import prepare_reminder
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.letters import Chance, Mint, Ready, Sender
from mailgateway.flows.notify_person import IN_A_THREAD, TO_A_PERSON
from mailgateway.flows.submit import queue
from mailgateway.ids import OutboxId, RouteId
from mailgateway.store import modes, questions, reminders, routes, told
from mailgateway.store.database import Database, Tx
from mailgateway.store.reminders import Unanswered

AT_ONCE = 1_000
"""So many decisions are looked at in one go, those asked first."""

_log = Logger()


@unique
class Nudge(StrEnum):
    """What is done about a decision that nobody has answered."""

    REMIND = "remind"
    ESCALATE = "escalate"


@frozen
class Due:
    """Something is to be done about a decision."""

    found: Unanswered
    nudge: Nudge
    recipient: str


async def due(
    database: Database, bell: Bell, identity: Identity, sender: Sender, *, mint: Mint
) -> tuple[OutboxId, ...]:
    """Queue what is due: reminders, and decisions for the second address; the outbox ids.

    Nothing leaves in quiet hours or while the mode is off.  A person who has got enough waits.
    """
    attention = sender.attention
    waits = [wait for wait in (attention.remind_after, attention.escalate_after) if wait]
    if not waits:
        return ()

    def look(tx: Tx) -> tuple[Due, ...]:
        if not _may_write(tx, identity, attention):
            return ()
        found = reminders.unanswered(tx, identity.machine_id, asked_before=tx.now - min(waits), limit=AT_ONCE)
        return tuple(nudge for each in found for nudge in _nudges(each, sender, tx.now))

    queued = []
    for each in await database.read(look):
        outbox_id = await _nudge(database, bell, identity, sender, each, Chance.draw(mint))
        if outbox_id is not None:
            queued.append(outbox_id)
    return tuple(queued)


def _nudges(found: Unanswered, sender: Sender, now: datetime) -> tuple[Due, ...]:
    """What is due for one decision; the second address first, and not both in one look."""
    attention = sender.attention
    at = attention.escalates_at(found.asked_at)
    if (
        at is not None
        and at <= now
        and found.escalated_at is None
        and attention.escalate_to != found.recipient
    ):
        return (Due(found, Nudge.ESCALATE, attention.escalate_to),)
    at = attention.reminds_at(found.asked_at, found.reminded_at)
    reachable = not found.bounced and found.recipient == sender.recipient  # who is told today
    if at is not None and at <= now and reachable:
        return (Due(found, Nudge.REMIND, found.recipient),)
    return ()


def _may_write(tx: Tx, identity: Identity, attention: Attention) -> bool:
    """Whether the gateway may write by itself now."""
    return modes.current(tx, identity.machine_id) is not Mode.OFF and attention.quiet_until(tx.now) is None


async def _nudge(
    database: Database, bell: Bell, identity: Identity, sender: Sender, due: Due, chance: Chance
) -> OutboxId | None:
    """Queue one mail; ``None`` when it is not wanted any more, or has to wait."""
    found = due.found
    to = evolve(sender, recipient=due.recipient)
    again = due.nudge is Nudge.REMIND

    def compose(tx: Tx) -> tuple[Question, Ready] | None:
        question = questions.find(tx, found.question_id)
        if question is None or question.route_id is None or question.expires_at is None:
            return None
        if not reminders.same(tx, found) or _enough(tx, to.recipient, question.route_id):
            return None
        return question, prepare_reminder(tx, identity, to, question, found, chance, again=again)

    def work(tx: Tx, question: Question, ready: Ready) -> bool:
        if not _may_write(tx, identity, sender.attention) or not reminders.same(tx, found):
            return False
        if _enough(tx, to.recipient, ready.route_id):
            return False
        if not again and not routes.add(tx, _second_route(question, ready, to.recipient)):
            raise StaleWrite(f"the route {ready.route_id} was issued meanwhile")
        queue(tx, identity, to, ready, MailKind.REMINDER, question.session_id)
        reminders.remember(tx, found, reminded=again, escalated=not again)
        return True

    def pass_over(tx: Tx) -> None:
        if reminders.same(tx, found):
            reminders.remember(tx, found, reminded=again, escalated=not again)

    try:
        composed = await database.read(compose)
        if composed is None:
            return None
        question, ready = composed
        if not await database.run(lambda tx: work(tx, question, ready)):
            return None
    except StaleWrite:
        return None  # rolled back: the next look draws another route id
    except Refusal as refusal:  # it will be no better in a minute
        await database.run(pass_over)
        _log.warn("a decision is not brought to mind: {why}", why=refusal.message)
        return None
    bell.ring(Event(EventKind.OUTBOX, ready.outbox_id, question.session_id))
    return ready.outbox_id


def _second_route(question: Question, ready: Ready, recipient: str) -> Route:
    """By which the second person answers."""
    return Route(
        id=ready.route_id,
        purpose=Purpose.QUESTION,
        session_id=question.session_id,
        machine_id=question.machine_id,
        recipient=recipient,
        expires_at=ready.expires_at,
        question_id=question.id,
        revision=question.revision,
    )


def _enough(tx: Tx, address: str, route_id: RouteId) -> bool:
    """Whether the person has heard enough from us for now; it mutes nobody, it only waits."""
    if told.is_muted(tx, f"person:{address}") or told.is_muted(tx, f"thread:{route_id}"):
        return True
    most, within = REMINDERS_TO_A_PERSON
    if told.sent_to(tx, address, tx.now - within, frozenset({MailKind.REMINDER})) >= most:
        return True
    most, within = TO_A_PERSON
    if told.sent_to(tx, address, tx.now - within) >= most:
        return True
    most, within = IN_A_THREAD
    return told.sent_in_thread(tx, route_id, tx.now - within) >= most
