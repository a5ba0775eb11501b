"""The letters that leave by the passing of time: what waited, and what was not answered.

What a session said stays as it said it; around it stands when, and how to answer each piece.
"""

from collections.abc import Sequence
from datetime import datetime

from mailgateway.domain.choice import Option
from mailgateway.domain.identity import Identity
from mailgateway.domain.question import AnswerMode, Question
from mailgateway.flows.letters import ANCESTORS, Chance, Ready, Sender, free_route, who_of
from mailgateway.flows.secret_text import refuse_secrets
from mailgateway.ids import MessageId, RouteId, SessionId, machine_digest
from mailgateway.mail.compose import compose
from mailgateway.mail.letter import Item, Letter, LetterKind, Offer, Who
from mailgateway.mail.tag import own_message_id
from mailgateway.store import threads
from mailgateway.store.database import Tx
from mailgateway.store.held_mails import HeldMail
from mailgateway.store.reminders import Unanswered


def prepare_digest(
    tx: Tx,
    identity: Identity,
    sender: Sender,
    session: SessionId | None,
    parcel: Sequence[HeldMail],
    chance: Chance,
) -> Ready:
    """Compose one mail of several, for ``sender.recipient``: all of ``session``, or of several (``None``).

    Each piece names the route by which it is answered.  The mail of one session has a tag, by which a reply
    reaches it; that of several has none, and its route is known by its Message-ID alone.
    """
    route_id = free_route(tx, chance)
    message_id = _message_id(identity, sender, route_id, chance)
    before: tuple[MessageId, ...] = ()
    if session is not None:
        before = threads.of_session(tx, session, sender.recipient, ANCESTORS)
    zone = sender.attention.zone
    count = len(parcel)
    sessions = len({held.session_id for held in parcel})
    what = f"{count} messages from {sessions} sessions · {identity.name}"
    expires_at = tx.now + sender.route_ttl
    letter = Letter(
        kind=LetterKind.DIGEST,
        sender_address=sender.address,
        sender_name=sender.from_name,
        recipient=sender.recipient,
        tag=sender.tag,
        route=RouteId("") if session is None else route_id,
        subject=what if session is None else f"{count} messages: {parcel[-1].subject}",
        text="",
        message_id=message_id,
        date=tx.now.replace(microsecond=0),
        instance=identity.instance,
        outbox_id=chance.outbox_id,
        who=Who(device=identity.name) if session is None else who_of(tx, identity, session),
        items=tuple(
            Item(
                subject=held.subject,
                text=held.words,
                who=who_of(tx, identity, held.session_id) if session is None else Who(),
                at=held.created_at.astimezone(zone),
                route=held.route_id if session is None else RouteId(""),
            )
            for held in parcel
        ),
        in_reply_to=before[-1] if before else None,
        references=before,
        reply_address=sender.reply_address(route_id),
        one_tap=sender.one_tap,
        expires_at=expires_at.astimezone(zone),
    )
    return _composed(sender, letter, chance, route_id, expires_at)


def prepare_reminder(
    tx: Tx,
    identity: Identity,
    sender: Sender,
    question: Question,
    found: Unanswered,
    chance: Chance,
    *,
    again: bool,
) -> Ready:
    """Compose a decision once more, whole, for ``sender.recipient``.

    ``again``: in the thread of the mail that was ``found``, under its route, for who was asked; else under
    a route of its own, for somebody who was not.  The question must be open.
    """
    route_id = question.route_id if again and question.route_id is not None else free_route(tx, chance)
    message_id = _message_id(identity, sender, route_id, chance)
    references = _up_to(tx, question, sender.recipient, found.message_id) if again else ()
    zone = sender.attention.zone
    expires_at = question.expires_at or tx.now + sender.route_ttl
    letter = Letter(
        kind=LetterKind.REMINDER,
        sender_address=sender.address,
        sender_name=sender.from_name,
        recipient=sender.recipient,
        tag=sender.tag,
        route=route_id,
        subject=question.subject,
        text=question.prompt,
        message_id=message_id,
        date=tx.now.replace(microsecond=0),
        instance=identity.instance,
        outbox_id=chance.outbox_id,
        who=who_of(tx, identity, question.session_id),
        ambiguity=question.ambiguity,
        options=tuple(_offer(option) for option in question.options),
        multi=question.mode is AnswerMode.MULTI,
        recommendation=question.recommendation or None,
        in_reply_to=references[-1] if references else None,
        references=references,
        reply_address=sender.reply_address(route_id),
        one_tap=sender.one_tap,
        card_url=sender.card_url(question.id),
        asked_at=found.asked_at.astimezone(zone),
        expires_at=expires_at.astimezone(zone),
    )
    return _composed(sender, letter, chance, route_id, expires_at)


def _composed(
    sender: Sender, letter: Letter, chance: Chance, route_id: RouteId, expires_at: datetime
) -> Ready:
    """The letter as it leaves; what sessions call themselves may be newer than what they submitted."""
    titles = [letter.who.line, *(item.who.line for item in letter.items)]
    refuse_secrets(sender.guard, [("session's title", title) for title in titles])
    return Ready.of(compose(letter), chance, route_id, letter.message_id, expires_at)


def _offer(option: Option) -> Offer:
    return Offer(label=option.label, value=option.value, description=option.description, impact=option.impact)


def _message_id(identity: Identity, sender: Sender, route_id: RouteId, chance: Chance) -> MessageId:
    return own_message_id(route_id, chance.message, machine_digest(identity.machine_id), sender.domain)


def _up_to(tx: Tx, question: Question, recipient: str, first: MessageId) -> tuple[MessageId, ...]:
    """The thread as far as the question's first mail, the oldest first."""
    thread = threads.of_session(tx, question.session_id, recipient, ANCESTORS)
    return thread[: thread.index(first) + 1] if first in thread else (first,)
