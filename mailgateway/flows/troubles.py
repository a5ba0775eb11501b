"""Why a person's mail came to nothing, in words for that person.

Each text says what happened, what has become of the words, and what to do next.  Whether it is said, and how
often, is decided in ``notify_person``.
"""

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import assert_never

from attrs import field, frozen

from mailgateway.domain.identity import Identity
from mailgateway.domain.question import AnswerMode, Question, QuestionStatus
from mailgateway.domain.route import Purpose, Route
from mailgateway.flows.letters import Mint, Sender
from mailgateway.ids import MessageId
from mailgateway.mail.tag import format_tag
from mailgateway.store import held_mails, questions
from mailgateway.store.database import Tx

QUESTIONS_LISTED = 10
"""Open questions that an answer names at most."""

PIECES_LISTED = 20
"""Pieces of a digest that an answer names at most."""

OPTIONS_LISTED = 20
"""Options of a question that are said again at most."""

PROMPT_LIMIT = 2_000
"""Characters of a question that are said again."""


@unique
class Trouble(StrEnum):
    """Why a person's mail could not be used; the names are those of the scan verdicts where they fit."""

    EMPTY = "empty"
    ENCRYPTED = "encrypted"
    EXPIRED = "expired-token"
    AMBIGUOUS = "ambiguous"
    TOO_LARGE = "too-large"
    NO_COMMANDS = "no-commands"
    NOT_ASKED = "not-asked"
    DIGEST = "digest"
    """The words belong to none of the sessions that have written in a digest."""
    LATE = "late"
    """The question was answered before, or is over."""
    STALE = "stale"
    """The question says something else by now."""
    UNCLEAR = "unclear"
    """No option is chosen beyond doubt; the words were handed on, and the question is still open."""


ABOUT_QUESTION = frozenset({Trouble.LATE, Trouble.STALE, Trouble.UNCLEAR})
"""What is said once for each question, and not once for all."""


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


def words_for(tx: Tx, writer: Writer, mail: PersonsMail, trouble: Trouble) -> str:
    """What happened, and what to do, as Markdown."""
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
        case Trouble.TOO_LARGE:
            text = (
                "Your mail is larger than 25 MB, so it was not read, and nothing was handed on"
                f"{_still_open(tx, mail)}. It is still in the mailbox. Please reply once more with less; "
                "large files can go by another way."
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
        case Trouble.DIGEST:
            text = (
                "Your mail replies to a digest in which several sessions have written, so nobody has "
                "received it. To write to one of them, use the link below its words, or send a mail with its "
                f"tag in the subject.{_pieces(tx, writer, mail)}"
            )
        case Trouble.LATE:
            text = (
                f"{_ended(tx, _question(tx, mail))} So your words have decided nothing, and they were not "
                "handed on. To tell the session all the same, reply to this mail: your reply goes to it as "
                "words."
            )
        case Trouble.STALE:
            text = (
                "The question was changed after the mail that you have answered, so your answer was not "
                "taken, and nothing was handed on. To answer it as it is now, reply to this mail."
                f"{_said_again(_question(tx, mail))}"
            )
        case Trouble.UNCLEAR:
            text = (
                "Your words were handed on to the session, but the question is still open: they do not "
                f"choose {_what(_question(tx, mail))} beyond doubt. To answer it, reply with the choice "
                f"first; what else you want to say goes below it.{_choices(_question(tx, mail))}"
            )
        case _:
            assert_never(trouble)
    return text


def list_of(writer: Writer, found: tuple[Question, ...]) -> str:
    """Questions as a Markdown list, each with its tag."""
    return "\n".join(f"- {_tag(writer, each)} {on_one_line(each.subject)}" for each in found)


def on_one_line(text: str, limit: int = 120) -> str:
    """Words of a session on one line, cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


# --- the question -----------------------------------------------------------------------------------------


def _question(tx: Tx, mail: PersonsMail) -> Question | None:
    route = mail.route
    if route is None or route.purpose is not Purpose.QUESTION or route.question_id is None:
        return None
    return questions.find(tx, route.question_id)


def _still_open(tx: Tx, mail: PersonsMail) -> str:
    question = _question(tx, mail)
    still = question is not None and question.status_at(tx.now) is QuestionStatus.OPEN
    return "; the question is still open" if still else ""


_DOORS: Mapping[str, str] = {"mail": "by mail", "web": "in the web inbox", "terminal": "at the terminal"}

_ENDS: Mapping[QuestionStatus, str] = {
    QuestionStatus.ANSWERED: "The question was answered before your mail arrived.",
    QuestionStatus.CANCELLED: "The question was withdrawn before your mail arrived",
    QuestionStatus.SUPERSEDED: "The session has asked another question in place of this one",
    QuestionStatus.EXPIRED: "The time to answer this question was over before your mail arrived",
}


def _ended(tx: Tx, question: Question | None) -> str:
    """Who was first, when, and by which door; or how else the question has ended."""
    if question is None:
        return "The question that your mail answers is not open any more."
    status = question.status_at(tx.now)
    won = questions.answer_of(tx, question.id) if status is QuestionStatus.ANSWERED else None
    if won is not None:
        door = _DOORS.get(won.door, f"by {won.door}")
        return f"{won.by} was first, and answered this question {door}, {won.at:%Y-%m-%d %H:%M} UTC."
    said = _ENDS.get(status, "The question is not open any more").rstrip(".")
    when = question.expires_at if status is QuestionStatus.EXPIRED else question.settled_at
    return f"{said}." if when is None else f"{said} ({when:%Y-%m-%d %H:%M} UTC)."


def _what(question: Question | None) -> str:
    several = question is not None and question.mode is AnswerMode.MULTI
    return "any of the options" if several else "one of the options"


def _choices(question: Question | None) -> str:
    """The options with their numbers, as the first mail had them."""
    if question is None or not question.options:
        return ""
    rows = [
        f"{number}. {_escaped(on_one_line(option.label))}"
        for number, option in enumerate(question.options[:OPTIONS_LISTED], start=1)
    ]
    several = question.mode is AnswerMode.MULTI
    how = "Several may be chosen, as in `1, 3`:" if several else "The options:"
    return "\n\n".join(["", how, "\n".join(rows)])


def _said_again(question: Question | None) -> str:
    if question is None:
        return ""
    prompt = question.prompt if len(question.prompt) <= PROMPT_LIMIT else f"{question.prompt[:PROMPT_LIMIT]}…"
    quoted = "\n".join(f"> {line}" for line in prompt.splitlines())
    return f"\n\n{quoted}{_choices(question)}"


def _escaped(text: str) -> str:
    """Words that stay words where Markdown is rendered."""
    return "".join(f"\\{each}" if each in "\\`*_[]<>#|" else each for each in text)


def _open_questions(tx: Tx, writer: Writer, mail: PersonsMail) -> str:
    """The open questions that were mailed to this person, with the tags to use."""
    machine = writer.identity.machine_id
    found = questions.open_for(tx, machine, mail.address, QUESTIONS_LISTED)
    if not found:
        return ""
    return "\n\n".join(["", "Open questions:", list_of(writer, found)])


def _pieces(tx: Tx, writer: Writer, mail: PersonsMail) -> str:
    """What stands in the digest, each with its tag."""
    found = () if mail.route is None else held_mails.carried(tx, mail.route.id, PIECES_LISTED)
    rows = [
        f"- {format_tag(writer.sender.tag, route_id)} {_escaped(on_one_line(subject.partition(' ')[2]))}"
        for route_id, subject in found
    ]
    return "\n\n".join(["", "\n".join(rows)]) if rows else ""


def _tag(writer: Writer, question: Question) -> str:
    return format_tag(writer.sender.tag, question.route_id) if question.route_id else ""


def _hours(hours: int) -> str:
    return f"{hours // 24} days" if hours % 24 == 0 and hours > 24 else f"{hours} hours"
