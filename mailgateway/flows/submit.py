"""Submitting a mail: composed first, then route, thread, question and outbox row in one transaction.

A submission that is repeated under its idempotency key finds the mail of the first time, before anything
else is asked: neither the mode nor the budget makes a retry look like a refusal.  A decision reserves its
session's one blocking question in the same transaction, and its caller waits for the first attempt.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from attrs import evolve, field, frozen

from mailgateway.domain import policy
from mailgateway.domain.choice import Option
from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.domain.outbox import MailKind, OutboxRow, OutboxState
from mailgateway.domain.question import QuestionStatus
from mailgateway.domain.route import Purpose, Route
from mailgateway.errors import PeerError, Refusal, StaleWrite
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.letters import (
    Answer,
    Chance,
    Mint,
    ReadUpload,
    Ready,
    Sender,
    SendRequest,
    prepare,
    prepare_answer,
)
from mailgateway.flows.outbox import reading
from mailgateway.flows.sessions import make_room, outstanding, register
from mailgateway.flows.waiting import Timers, wait_until
from mailgateway.ids import MessageId, OutboxId, QuestionId, RouteId, SessionId
from mailgateway.store import held_mails, modes, outbox, questions, routes, settles, threads
from mailgateway.store.database import Database, Tx

__all__ = [
    "SendRequest",
    "Sender",
    "SmtpFailed",
    "Submitted",
    "first_attempt",
    "place",
    "place_answer",
    "rings",
    "submit",
]

TRIES = 5
"""How often a route id may turn out to be taken by somebody else in the same moment."""


class SmtpFailed(PeerError):
    """The mail server (or what lies before it) refused a mail whose caller was waiting; nothing is reserved.

    ``smtp_code`` is the server's reply code, ``None`` when there was no reply; ``temporary`` tells whether
    the same mail may be taken later.
    """

    def __init__(self, text: str, *, smtp_code: int | None, temporary: bool) -> None:
        super().__init__(text, code="" if smtp_code is None else str(smtp_code))
        self.smtp_code = smtp_code
        self.temporary = temporary


@frozen
class Submitted:
    """A mail in the outbox; ``subject`` is the whole one with its tag."""

    outbox_id: OutboxId
    message_id: MessageId
    route_id: RouteId
    subject: str = field(repr=False)
    question_id: QuestionId | None
    state: Literal["queued", "sent"]
    held_until: datetime | None = None
    """Until when it is held back, as far as is known; ``None``: it is not."""


async def submit(
    database: Database,
    bell: Bell,
    identity: Identity,
    sender: Sender,
    request: SendRequest,
    *,
    mint: Mint,
    read_upload: ReadUpload,
) -> Submitted:
    """Queue a mail; the same answer again for the same idempotency key.

    Refusals: ``key_reused`` (the key said something else), ``mode_off``, ``send_budget`` (with
    ``retryAfter`` in seconds), ``decision_outstanding``, ``registry_full``, ``unknown`` and ``too_large``
    (of attachments), ``invalid`` (an address that cannot stand in a header).
    """
    for _ in range(TRIES):
        chance = Chance.draw(mint)
        submitted = await _try(database, bell, identity, sender, request, chance, read_upload)
        if submitted is not None:
            return submitted
    raise StaleWrite("no free route id could be found")


async def _try(
    database: Database,
    bell: Bell,
    identity: Identity,
    sender: Sender,
    request: SendRequest,
    chance: Chance,
    read_upload: ReadUpload,
) -> Submitted | None:
    """One try; ``None`` when the route id was taken between composing and placing."""

    def compose(tx: Tx) -> Submitted | Ready:
        before = _repeated(tx, request)
        if before is not None:
            return before
        _may_send(tx, identity, sender, request)  # a refusal should not cost a rendering
        return prepare(tx, identity, sender, request, chance, read_upload)

    ready = await database.read(compose)
    if isinstance(ready, Submitted):
        return ready
    try:
        submitted = await database.run(lambda tx: place(tx, identity, sender, request, ready))
    except StaleWrite:
        return None
    bell.ring(*rings(submitted, request))
    return submitted


def place(tx: Tx, identity: Identity, sender: Sender, request: SendRequest, ready: Ready) -> Submitted:
    """Write a composed mail with its route, thread and question, inside the caller's transaction.

    The caller rings ``rings`` after the commit.  Refuses as ``submit``; ``StaleWrite`` when the route id
    was issued meanwhile.
    """
    before = _repeated(tx, request)
    if before is not None:
        return before
    _may_send(tx, identity, sender, request)
    register(tx, identity, request.session)
    if request.kind is MailKind.SETTLE:
        settles.cancel(tx, request.session)  # this one says it
    question_id = _reserve(tx, identity, request, ready) if request.kind is MailKind.DECISION else None
    route = Route(
        id=ready.route_id,
        purpose=Purpose.SESSION if question_id is None else Purpose.QUESTION,
        session_id=request.session,
        machine_id=identity.machine_id,
        recipient=sender.recipient,
        expires_at=ready.expires_at,
        question_id=question_id,
        revision=None if question_id is None else 1,
    )
    if not routes.add(tx, route):
        raise StaleWrite(f"the route {ready.route_id} was issued meanwhile")
    queue(
        tx, identity, sender, ready, request.kind, request.session, question_id=question_id, request=request
    )
    submitted = Submitted(
        ready.outbox_id, ready.message_id, ready.route_id, ready.subject, question_id, state="queued"
    )
    begun = held_mails.bundle_until(tx, request.session) if sender.attention.bundle else None
    hold = sender.attention.hold(request.kind, tx.now, begun)
    if hold is None:
        return submitted
    held_mails.add(
        tx,
        submitted.outbox_id,
        identity.machine_id,
        hold,
        alone=request.kind is MailKind.DECISION or bool(request.attachments),
        subject=request.subject,
        words=request.text,
    )
    return evolve(submitted, held_until=hold.until)


def place_answer(tx: Tx, identity: Identity, sender: Sender, answer: Answer, chance: Chance) -> OutboxId:
    """Write what the gateway itself says to a person, inside the caller's transaction.

    It leaves also while the mode is off, and no budget counts it: the caller has bounded it.  The caller
    rings after the commit.  Refuses as ``prepare_answer``.
    """
    ready = prepare_answer(tx, identity, sender, answer, chance)
    route_id = answer.route_id or RouteId("")
    to = evolve(sender, recipient=answer.recipient)
    queue(tx, identity, to, evolve(ready, route_id=route_id), MailKind.NOTICE, SessionId(""))
    return ready.outbox_id


def queue(
    tx: Tx,
    identity: Identity,
    sender: Sender,
    ready: Ready,
    kind: MailKind,
    session: SessionId,
    *,
    question_id: QuestionId | None = None,
    request: SendRequest | None = None,
) -> None:
    """Write the outbox row of a composed mail to ``sender.recipient``, and its thread where it has a route.

    ``request`` is what asked for it, if a session did; ``question_id`` the question that fails with it.
    """
    outbox.add(
        tx,
        outbox.NewMail(
            id=ready.outbox_id,
            kind=kind,
            account=sender.account,
            machine_id=identity.machine_id,
            session_id=session,
            question_id=question_id,
            route_id=ready.route_id,
            message_id=ready.message_id,
            subject=ready.subject,
            sender=sender.address,
            recipients=(sender.recipient,),
            raw=ready.raw,
            idempotency_key=None if request is None else request.idempotency_key,
            content_digest="" if request is None else request.digest,
            submitted_by="" if request is None else request.by,
        ),
    )
    if ready.route_id:
        threads.add(
            tx,
            ready.message_id,
            ready.route_id,
            ready.outbox_id,
            sent_text=ready.text,
            expires_at=ready.expires_at,
        )


def rings(submitted: Submitted, request: SendRequest) -> tuple[Event, ...]:
    """What to ring after a mail was placed."""
    events = [Event(EventKind.OUTBOX, submitted.outbox_id, request.session)]
    if submitted.held_until is not None:
        events.append(Event(EventKind.HELD, submitted.outbox_id, request.session))
    if submitted.question_id is not None:
        events.append(Event(EventKind.QUESTION, submitted.question_id, request.session))
    return tuple(events)


def _repeated(tx: Tx, request: SendRequest) -> Submitted | None:
    """The mail that this key has already sent; ``key_reused`` when it said something else."""
    if request.idempotency_key is None:
        return None
    found = outbox.by_key(tx, request.session, request.idempotency_key)
    if found is None:
        return None
    mail, digest = found
    if digest != request.digest:
        raise Refusal(
            "key_reused", "this idempotencyKey was used for another content; take a new key for a new mail"
        )
    return _submitted(mail, None if mail.carried_by is None else outbox.find(tx, mail.carried_by))


def _may_send(tx: Tx, identity: Identity, sender: Sender, request: SendRequest) -> None:
    """Refuse what must not leave now."""
    if modes.current(tx, identity.machine_id) is Mode.OFF:
        raise Refusal("mode_off", "mail is switched off on this machine; ask in the terminal instead")
    match request.kind:
        case MailKind.NOTIFICATION:
            since = tx.now - policy.WINDOW
            sent = outbox.submitted_since(tx, identity.machine_id, request.kind, since, by=request.by)
            _spend(sent, tx.now, sender.budget_per_minute, "notifications of one key")
        case MailKind.DECISION:
            _spend_key(tx, identity, request, "decisions of one key")
            found = questions.blocking(tx, request.session)
            if found is not None and found.status is not QuestionStatus.RESERVED:
                outstanding(found)
        case MailKind.SETTLE:
            since = tx.now - policy.WINDOW
            sent = outbox.submitted_since(
                tx, identity.machine_id, request.kind, since, session=request.session
            )
            _spend(sent, tx.now, policy.SETTLES_PER_MINUTE, "settled turns of one session")
            _spend_key(tx, identity, request, "settled turns of one key")
        case MailKind.NOTICE:
            pass


def _spend_key(tx: Tx, identity: Identity, request: SendRequest, what: str) -> None:
    """Bound what one key sends for whatever sessions; settled turns that were debounced share one bound."""
    since = tx.now - policy.WINDOW
    sent = outbox.submitted_since(tx, identity.machine_id, request.kind, since, by=request.by)
    _spend(sent, tx.now, policy.OF_ONE_KEY_PER_MINUTE, what)


def _spend(sent: Iterable[datetime], now: datetime, per_minute: int, what: str) -> None:
    """Refuse with ``send_budget`` what does not fit any more."""
    wait = policy.retry_after(sent, now, per_minute)
    if wait is not None:
        raise Refusal(
            "send_budget",
            f"{per_minute} {what} may leave in a minute; try again in {wait} s",
            {"retryAfter": wait},
        )


def _reserve(tx: Tx, identity: Identity, request: SendRequest, ready: Ready) -> QuestionId:
    """Turn the session's own reservation, or a new one, into the open question of this mail."""
    reserved = questions.blocking(tx, request.session)
    if reserved is None:
        make_room(tx, identity)
        questions.reserve(tx, ready.question_id, request.session, identity.machine_id)
    question_id = ready.question_id if reserved is None else reserved.id
    questions.ask(
        tx,
        question_id,
        subject=request.subject,
        prompt=request.text,
        options=[Option(option, option) for option in request.options],
        recommendation=request.recommendation,
        route_id=ready.route_id,
        expires_at=ready.expires_at,
    )
    return question_id


def _submitted(mail: OutboxRow, fate: OutboxRow | None = None) -> Submitted:
    """The mail as its submission is answered; ``fate`` is the mail that it left within, if not itself."""
    state: Literal["queued", "sent"] = "sent" if (fate or mail).state is OutboxState.SENT else "queued"
    return Submitted(
        mail.id, mail.message_id, mail.route_id, mail.subject, mail.question_id, state, mail.held_until
    )


async def first_attempt(
    database: Database, bell: Bell, timers: Timers, outbox_id: OutboxId, *, seconds: float = 60
) -> Submitted:
    """Wait for the outcome of the first attempt, at most ``seconds``; then the mail stays ``queued``.

    A mail that is held back is not waited for.
    Raises ``SmtpFailed`` when the mail was refused: it will not be sent, and nothing is reserved any more.
    """
    mail = await wait_until(
        timers,
        bell,
        database,
        lambda event: event.kind is EventKind.OUTBOX and event.id == outbox_id,
        reading(outbox_id),
        seconds=seconds,
        enough=_attempted,
    )
    if mail.state in {OutboxState.CANCELLED, OutboxState.FAILED}:
        raise SmtpFailed(
            mail.last_error or "the mail server refused it",
            smtp_code=mail.last_code,
            temporary=mail.temporary,
        )
    return _submitted(mail)


def _attempted(mail: OutboxRow) -> bool:
    untried = mail.state is OutboxState.QUEUED and mail.attempts == 0
    return mail.held_until is not None or (not untried and mail.state is not OutboxState.SENDING)
