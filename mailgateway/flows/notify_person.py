"""What the gateway itself says to a person: never silence when a mail of theirs could not be used.

Only to a person whose mail was authenticated, only to the verified From, only in the thread of that mail, and
marked as automatic.  One answer a day for each address and reason.  What is said by ourselves is bounded for
each thread and each person, so that a program that answers back cannot make a loop of it: over the bound
nothing more is said for a while, and ``status`` tells.

All of it happens inside the transaction that decides about the mail: the answer is queued if and only if the
decision is written, so that a crash repeats nothing.
"""

from datetime import timedelta
from enum import StrEnum, unique
from typing import assert_never

from attrs import evolve, field, frozen

from mailgateway.domain.identity import Identity
from mailgateway.domain.question import Question, QuestionStatus
from mailgateway.domain.route import Purpose, Route
from mailgateway.errors import Refusal
from mailgateway.flows.letters import Answer, Chance, Mint, Sender
from mailgateway.flows.submit import place_answer
from mailgateway.ids import MessageId, OutboxId, RouteId
from mailgateway.mail.tag import format_tag
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

QUESTIONS_LISTED = 10
"""Open questions that an answer names at most."""


@unique
class Trouble(StrEnum):
    """Why a person's mail could not be used; the names are those of the scan verdicts where they fit."""

    EMPTY = "empty"
    ENCRYPTED = "encrypted"
    EXPIRED = "expired-token"
    AMBIGUOUS = "ambiguous"
    NO_COMMANDS = "no-commands"
    NOT_ASKED = "not-asked"


@frozen
class Writer:
    """Who writes the gateway's own answers: the account, and where random bytes come from."""

    identity: Identity
    sender: Sender
    mint: Mint


@frozen(kw_only=True)
class PersonsMail:
    """A mail of an allowed person that was authenticated, as far as an answer to it needs it.

    ``address`` is the verified From; ``route`` what the mail named or answered, living or over, if anything.
    """

    address: str = field(repr=False)
    subject: str = field(repr=False)
    message_id: MessageId | None
    references: tuple[MessageId, ...]
    route: Route | None = None


def tell_trouble(tx: Tx, writer: Writer, mail: PersonsMail, trouble: Trouble) -> OutboxId | None:
    """Say why the mail could not be used, unless that was said within a day; ``None``: nothing is said."""
    before = told.last(tx, mail.address, trouble)
    if before is not None and before > tx.now - ONCE_IN:
        return None
    told.remember(tx, mail.address, trouble)
    return answer(tx, writer, mail, _words(tx, writer, mail, trouble))


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


# --- words ------------------------------------------------------------------------------------------------


def _words(tx: Tx, writer: Writer, mail: PersonsMail, trouble: Trouble) -> str:
    """What happened, and what to do."""
    match trouble:
        case Trouble.EMPTY:
            text = (
                "There were no words of yours in your mail, only what it quotes or a signature, so nothing "
                f"was handed on{_still_open(tx, mail)}. Please reply once more, with your words above the "
                "quoted text."
            )
        case Trouble.ENCRYPTED:
            text = (
                "Your mail is encrypted, and this gateway has no key to read it, so nothing was handed on"
                f"{_still_open(tx, mail)}. Please send it again without encryption."
            )
        case Trouble.EXPIRED:
            hours = int(writer.sender.route_ttl.total_seconds() // 3600)
            text = (
                "The conversation that your mail belongs to is over, so nobody has received it. Replies "
                f"arrive for {_hours(hours)} after our mail. To reach a session, reply to its newest mail."
                f"{_open_questions(tx, writer, mail)}"
            )
        case Trouble.AMBIGUOUS:
            text = (
                "Your mail names two conversations: its subject (or its address) one, and the mail that it "
                "replies to another. So that no answer goes to the wrong question, nobody has received it. "
                "Please reply directly to the mail that you mean, or write a new mail with its tag in the "
                "subject."
                f"{_open_questions(tx, writer, mail)}"
            )
        case Trouble.NO_COMMANDS:
            text = (
                "Your mail is a command to the gateway, and your address is not among those that may give "
                "commands (`people.may_command` in its settings). Nothing was done, and nothing handed on."
            )
        case Trouble.NOT_ASKED:
            text = (
                "Your mail replies to a question that was put to somebody else, and your address is not "
                "among those that may answer for others (`people.may_approve` in the settings), so nothing "
                "was handed on; the question is still open."
            )
        case _:
            assert_never(trouble)
    return text


def _still_open(tx: Tx, mail: PersonsMail) -> str:
    route = mail.route
    if route is None or route.purpose is not Purpose.QUESTION or route.question_id is None:
        return ""
    question = questions.find(tx, route.question_id)
    return (
        "; the question is still open"
        if question is not None and question.status is QuestionStatus.OPEN
        else ""
    )


def _hours(hours: int) -> str:
    return f"{hours // 24} days" if hours % 24 == 0 and hours > 24 else f"{hours} hours"


def _open_questions(tx: Tx, writer: Writer, mail: PersonsMail) -> str:
    """The open questions that were mailed to this person, with the tags to use."""
    machine = writer.identity.machine_id
    found = questions.open_for(tx, machine, mail.address, QUESTIONS_LISTED)
    if not found:
        return ""
    return "\n\n".join(["", "Open questions:", list_of(writer, found)])


def list_of(writer: Writer, found: tuple[Question, ...]) -> str:
    """Questions as a Markdown list, each with its tag."""
    return "\n".join(f"- {_tag(writer, each)} {on_one_line(each.subject)}" for each in found)


def _tag(writer: Writer, question: Question) -> str:
    return format_tag(writer.sender.tag, question.route_id) if question.route_id else ""


def on_one_line(text: str, limit: int = 120) -> str:
    """Words of a session on one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
