"""What people and sessions want of mails on their way: see them, have them tried now, or tried no more.

The sender may be faster at any time, so each order is a compare-and-set on the row as it was seen.  A mail
that is being sent cannot be stopped: its end has to be waited for.  A mail that may have arrived goes once
more at once only by an explicit word, since the person may get it twice.
"""

from collections.abc import Collection

from attrs import evolve, field, frozen

from mailgateway.domain.envelope import Envelope, EnvelopeKind, Trust
from mailgateway.domain.identity import Identity
from mailgateway.domain.outbox import (
    MailKind,
    OutboxEvent,
    OutboxRow,
    OutboxState,
    RecipientState,
)
from mailgateway.domain.question import QuestionEvent, QuestionStatus
from mailgateway.errors import Refusal
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.letters import Mint
from mailgateway.ids import EnvelopeId, OutboxId, SessionId
from mailgateway.store import envelopes, outbox, questions, routes
from mailgateway.store.database import Database, Tx

MOST_ON_PAGE = 200

DROPPED = "it was dropped on request"

_REFUSED = frozenset({RecipientState.REJECTED, RecipientState.BOUNCED, RecipientState.LOST})
"""Recipients whom a failed mail has not reached, as far as is known."""


@frozen
class Page:
    """Some mails, the last submitted first; ``cursor`` leads to more, ``None``: there are no more."""

    mails: tuple[OutboxRow, ...]
    cursor: str | None


@frozen
class Whose:
    """For which sessions somebody may speak; none named: for all, and for the machine's own mails."""

    sessions: frozenset[SessionId] = field(default=frozenset())

    def require(self, mail: OutboxRow) -> None:
        """Refuse (``not_yours``) the mail of another session."""
        if self.sessions and mail.session_id not in self.sessions:
            raise Refusal("not_yours", "this key does not speak for the session of that mail")


async def listing(
    database: Database,
    identity: Identity,
    whose: Whose,
    states: Collection[OutboxState],
    cursor: str | None,
    limit: int,
) -> Page:
    """The mails of this machine in these states (none: in all).

    Refuses (``invalid``) a cursor that is none of ours.
    """
    before = None
    if cursor is not None:
        if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
            raise Refusal("invalid", "`cursor` is not one that this list gave", {"field": "cursor"})
        before = int(cursor)

    def work(tx: Tx) -> Page:
        found = outbox.page(tx, identity.machine_id, states, whose.sessions, before, limit + 1)
        shown, more = found[:limit], found[limit:]
        return Page(tuple(mail for _, mail in shown), str(shown[-1][0]) if more else None)

    return await database.read(work)


async def retry(
    database: Database,
    bell: Bell,
    identity: Identity,
    whose: Whose,
    outbox_id: OutboxId,
    *,
    though_it_may_have_arrived: bool = False,
) -> OutboxRow:
    """Have a mail tried now: one that waits, is held back, or has failed.

    Refusals: ``unknown``, ``not_yours``, ``being_sent``, ``settled`` (nothing is to be tried), and
    ``may_have_arrived`` without the word that it is to be sent all the same.
    """

    def work(tx: Tx) -> OutboxRow:
        mail = _own(tx, identity, whose, outbox_id)
        if mail.state not in {OutboxState.QUEUED, OutboxState.UNCLEAR, OutboxState.FAILED}:
            raise Refusal("settled", f"the mail is {mail.state}: there is nothing to try")
        if (mail.state is OutboxState.UNCLEAR or mail.doubtful) and not though_it_may_have_arrived:
            raise Refusal(
                "may_have_arrived",
                "nobody knows whether the mail arrived, and the person may get it twice; "
                "say that it is to be sent all the same, or drop it",
            )
        _still_wanted(tx, mail)
        if mail.state is OutboxState.FAILED:
            again = [
                evolve(one, state=RecipientState.WAITING) for one in mail.recipients if one.state in _REFUSED
            ]
            outbox.write_recipients(tx, mail.id, again)
        outbox.move(tx, mail, OutboxEvent.RETRY, next_attempt_at=tx.now, held_until=None, settled_at=None)
        return _read(tx, outbox_id)

    mail = await database.run(work)
    bell.ring(Event(EventKind.OUTBOX, mail.id, mail.session_id))
    return mail


async def drop(
    database: Database, bell: Bell, identity: Identity, whose: Whose, outbox_id: OutboxId, *, mint: Mint
) -> OutboxRow:
    """Have a mail tried no more; the question in it is over, and its session is told by a notice.

    When the mail may have arrived, its question stays answerable and only blocks its session no longer.
    Refusals as ``retry``.
    """
    notice_id = EnvelopeId("m-" + mint(12).hex())

    def work(tx: Tx) -> tuple[OutboxRow, tuple[Event, ...]]:
        mail = _own(tx, identity, whose, outbox_id)
        if mail.state not in {OutboxState.QUEUED, OutboxState.UNCLEAR}:
            raise Refusal("settled", f"the mail is {mail.state}: there is nothing to drop")
        somebody_has_it = any(one.state is RecipientState.ACCEPTED for one in mail.recipients)
        if somebody_has_it:  # it was sent, to those who have it
            outbox.move(tx, mail, OutboxEvent.ARRIVED, last_error=DROPPED)
            return _read(tx, outbox_id), ()
        outbox.move(tx, mail, OutboxEvent.DROP, last_error=DROPPED, held_until=None, idempotency_key=None)
        return _read(tx, outbox_id), _free_question(tx, identity, mail, notice_id)

    mail, events = await database.run(work)
    bell.ring(Event(EventKind.OUTBOX, mail.id, mail.session_id), *events)
    return mail


def _own(tx: Tx, identity: Identity, whose: Whose, outbox_id: OutboxId) -> OutboxRow:
    mail = outbox.of_machine(tx, outbox_id, identity.machine_id)
    if mail is None:
        raise Refusal("unknown", f"this machine has no mail {outbox_id} in its outbox")
    whose.require(mail)
    if mail.state is OutboxState.SENDING:
        raise Refusal("being_sent", "the mail is being sent right now; look again in a moment")
    return mail


def _read(tx: Tx, outbox_id: OutboxId) -> OutboxRow:
    mail = outbox.find(tx, outbox_id)
    assert mail is not None  # noqa: S101 (for the type checker: it was moved in this transaction)
    return mail


def _still_wanted(tx: Tx, mail: OutboxRow) -> None:
    """Refuse (``settled``) a mail whose answer would reach nobody any more."""
    question = None if mail.question_id is None else questions.find(tx, mail.question_id)
    if question is not None and question.status is not QuestionStatus.OPEN:
        raise Refusal("settled", "the question of this mail is over; ask anew")
    route = routes.find(tx, mail.route_id) if mail.route_id else None
    if mail.kind is not MailKind.NOTICE and route is not None and route.expires_at <= tx.now:
        raise Refusal("settled", "replies to this mail would not arrive any more; send it anew")


def _free_question(tx: Tx, identity: Identity, mail: OutboxRow, notice_id: EnvelopeId) -> tuple[Event, ...]:
    """A question whose mail nobody will get must not block its session, which may wait for the answer."""
    question = None if mail.question_id is None else questions.find(tx, mail.question_id)
    if question is None or question.status is not QuestionStatus.OPEN:
        return ()
    if mail.doubtful:
        questions.unblock(tx, question.id)
        words = "If it arrived before, an answer to it still comes."
    else:
        questions.settle(tx, question, QuestionEvent.CANCEL)
        words = "No answer will come by mail; the session may ask anew."
    envelopes.add(
        tx,
        Envelope(
            id=notice_id,
            kind=EnvelopeKind.NOTICE,
            trust=Trust.SYSTEM,
            session_id=mail.session_id,
            machine_id=identity.machine_id,
            subject=mail.subject,
            body=f'The mail "{mail.subject}" was dropped from the outbox. {words}',
            quoted="",
            from_address="",
            from_name="",
            received_at=tx.now,
            route_id=mail.route_id or None,
            device=identity.name,
            in_reply_to=mail.message_id,
            question_id=question.id,
        ),
    )
    return (
        Event(EventKind.QUESTION, question.id, mail.session_id),
        Event(EventKind.DELIVERY, notice_id, mail.session_id),
    )
