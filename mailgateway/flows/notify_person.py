"""What the gateway itself says to a person: never silence when a mail of theirs could not be used.

Only to a person whose mail was authenticated, only to the verified From, only in the thread of that mail, and
marked as automatic.  One answer a day for each address and reason; for what concerns one question, one a day
for that question.  What is said by ourselves is bounded for each thread and each person, so that a program
that answers back cannot make a loop of it: over the bound nothing more is said for a while, and ``status``
tells.

All of it happens inside the transaction that decides about the mail: the answer is queued if and only if the
decision is written, so that a crash repeats nothing.
"""

import hashlib
from datetime import timedelta

from attrs import evolve

from mailgateway.domain.route import Purpose, Route
from mailgateway.errors import Refusal
from mailgateway.flows.letters import Answer, Chance
from mailgateway.flows.submit import place_answer
from mailgateway.flows.troubles import ABOUT_QUESTION, PersonsMail, Trouble, Writer, words_for
from mailgateway.ids import OutboxId, RouteId
from mailgateway.store import questions, routes, told
from mailgateway.store.database import Tx

ONCE_IN = timedelta(days=1)
"""How often one address is told about one kind of trouble."""

IN_A_THREAD = (6, timedelta(minutes=10))
TO_A_PERSON = (20, timedelta(hours=2))
"""How much the gateway says by itself at most, and in which time."""

MUTED_FOR = timedelta(hours=2)
"""How long it says nothing after that."""

ROUTE_SIZES = (3, 4, 4, 4)
"""Random bytes of a new route; the longer ones when the first is taken."""


def tell_trouble(tx: Tx, writer: Writer, mail: PersonsMail, trouble: Trouble) -> OutboxId | None:
    """Say why the mail could not be used, unless that was said within a day; ``None``: nothing is said.

    What could not be said, since too much was, counts as not said: the next mail is told again.
    """
    reason = _reason(mail, trouble)
    before = told.last(tx, mail.address, reason)
    if before is not None and before > tx.now - ONCE_IN:
        return None
    said = answer(tx, writer, _leading_on(tx, mail, trouble), words_for(tx, writer, mail, trouble))
    if said is not None:
        told.remember(tx, mail.address, reason)
    return said


def _reason(mail: PersonsMail, trouble: Trouble) -> str:
    """By what it is known that this was said already, in at most 32 characters."""
    route = mail.route
    if trouble not in ABOUT_QUESTION or route is None:
        return trouble
    about = hashlib.sha256(f"{route.question_id}\0{route.revision}".encode()).hexdigest()
    return f"{trouble}:{about[:16]}"


def _leading_on(tx: Tx, mail: PersonsMail, trouble: Trouble) -> PersonsMail:
    """The mail, with the route that a reply to our answer takes.

    What is late is answered from the thread of the session, where words are words; what is stale from that of
    the question as it is now.
    """
    route = mail.route
    if route is None or route.question_id is None:
        return mail
    match trouble:
        case Trouble.LATE:
            new = evolve(route, id=RouteId(""), purpose=Purpose.SESSION, question_id=None, revision=None)
            return evolve(mail, route=new)
        case Trouble.STALE:
            question = questions.find(tx, route.question_id)
            revision = route.revision if question is None else question.revision
            return evolve(mail, route=evolve(route, id=RouteId(""), revision=revision))
        case _:
            return mail


def answer(tx: Tx, writer: Writer, mail: PersonsMail, words: str) -> OutboxId | None:
    """Queue an answer in the thread of the mail; ``None`` when too much was said, or nothing can be."""
    if _muted(tx, mail):
        return None
    route = _way_back(tx, writer, mail)
    living = route is not None and route.expires_at > tx.now
    said = Answer(
        recipient=mail.address,
        subject=_reply_subject(mail.subject),
        text=words,
        route_id=None if route is None else route.id,
        tagged=living,
        in_reply_to=mail.message_id,
        references=mail.references,
        expires_at=tx.now if route is None else route.expires_at,
    )
    try:
        return place_answer(tx, writer.identity, writer.sender, said, Chance.draw(writer.mint))
    except Refusal:  # an address that we cannot write to: nothing was written
        return None


def _way_back(tx: Tx, writer: Writer, mail: PersonsMail) -> Route | None:
    """The route by which a reply to the answer goes; a new one where a signed token led to the session."""
    if mail.route is None or mail.route.id:
        return mail.route
    for size in ROUTE_SIZES:
        made = evolve(
            mail.route,
            id=RouteId(writer.mint(size).hex()),
            recipient=mail.address,
            expires_at=tx.now + writer.sender.route_ttl,
        )
        if routes.add(tx, made):
            return made
    return None


def _muted(tx: Tx, mail: PersonsMail) -> bool:
    """Whether we have said too much already; over the bound the silence begins, once."""
    if _silent(
        tx, f"person:{mail.address}", told.sent_to(tx, mail.address, tx.now - TO_A_PERSON[1]), TO_A_PERSON[0]
    ):
        return True
    route = mail.route
    if route is None or not route.id:
        return False
    most, within = IN_A_THREAD
    return _silent(tx, f"thread:{route.id}", told.sent_in_thread(tx, route.id, tx.now - within), most)


def _silent(tx: Tx, scope: str, sent: int, most: int) -> bool:
    if told.is_muted(tx, scope):
        return True
    if sent < most:
        return False
    told.mute(tx, scope, tx.now + MUTED_FOR)
    return True


def _reply_subject(subject: str) -> str:
    return subject if subject[:3].lower() == "re:" else f"Re: {subject}".strip()
