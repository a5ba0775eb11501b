"""A person's mail against the tables: to whom it goes, what was typed in it, and what that asks for.

Runs inside the transaction of ``receive`` and writes nothing.  The steps are those that need rows, in the
order of trust: the proof of a single mailbox, the route, the typed words, whether they are a command, and
whether this person may answer the question.
"""

from datetime import datetime
from typing import assert_never

from attrs import evolve, field, frozen

from mailgateway.domain.command import Command, parse_command
from mailgateway.domain.envelope import AttachmentInfo, Envelope, EnvelopeKind, Trust
from mailgateway.domain.judge import FromPerson
from mailgateway.domain.question import QuestionStatus
from mailgateway.domain.route import Purpose, Route
from mailgateway.domain.routing import (
    Ambiguous,
    Claims,
    ExpiredToken,
    Facts,
    NoToken,
    OtherDevice,
    Routed,
    resolve,
)
from mailgateway.flows.attachments import kept_for
from mailgateway.flows.facts import facts_of, named, with_settled_as_threads
from mailgateway.flows.filing import (
    Asked,
    Commanded,
    Deliver,
    FilingRules,
    Mail,
    Sorted,
    Turned,
    empty_envelope,
    persons_mail,
    subject_of,
    told_of,
)
from mailgateway.flows.said import said_digest
from mailgateway.flows.troubles import PersonsMail, Trouble
from mailgateway.ids import MessageId
from mailgateway.mail.attachments import Reason
from mailgateway.mail.authenticity import NeedsProof
from mailgateway.mail.own import normalise_address
from mailgateway.mail.reply import Reply, TextType, typed_words
from mailgateway.mail.verdict import Verdict
from mailgateway.settings import SingleMailboxProof
from mailgateway.store import questions, threads
from mailgateway.store.database import Tx
from mailgateway.store.threads import Thread

NOT_ASKED = "the question was put to somebody else, and this address may not answer it (people.may_approve)"
NO_COMMANDS = "the words are a command, and this address may give none (people.may_command)"
TO_A_DIGEST = "it replies to a digest as a whole, which belongs to no single session"
HTML_READ = "its HTML was read, since its plain text says nothing"
ENCRYPTED = "the mail is encrypted, and the gateway has no key"

CUT = "[mailgateway: the mail is longer than what is read of it; the rest is in the mailbox]"
"""Our last line in the words of a mail that was cut, so that nobody takes its beginning for all of it."""


def sort_person(tx: Tx, rules: FilingRules, mail: Mail, judged: FromPerson) -> Sorted:
    """Decide what the mail of a person becomes."""
    known = threads.find(tx, judged.claims.chain)
    found = _route(tx, rules, judged, known)
    if isinstance(found, Turned):
        return found
    typed = _typed(tx, rules, judged, known, found)
    letter = persons_mail(judged.inbound, judged.sender.address, subject_of(judged.inbound, rules), found)
    envelope = _filled(tx, rules, mail, judged, found, typed)
    said = said_digest(envelope, judged.inbound, rules.own, typed.parts)
    if typed.command is not None:
        if judged.sender.address not in rules.may_command:
            turned = _turned(rules, judged, Verdict.NOT_ALLOWED)
            return told_of(turned, letter, Trouble.NO_COMMANDS, NO_COMMANDS)
        machine = envelope.machine_id or rules.identity.machine_id
        return Commanded(typed.command, machine, found.session_id, letter, said)
    # before what is wrong with the words: who may not answer at all should not be asked for better ones
    if _asked_of_another(tx, rules, found, judged.sender.address):
        turned = _turned(rules, judged, Verdict.NOT_ALLOWED)
        return told_of(turned, letter, Trouble.NOT_ASKED, NOT_ASKED)
    if found.purpose is Purpose.DIGEST:
        return told_of(_turned(rules, judged, Verdict.NO_TOKEN), letter, Trouble.DIGEST, TO_A_DIGEST)
    if typed.sealed:
        return told_of(_turned(rules, judged, Verdict.MALFORMED), letter, Trouble.ENCRYPTED, ENCRYPTED)
    if not typed.says_something:
        return told_of(_turned(rules, judged, Verdict.EMPTY), letter, Trouble.EMPTY)
    html = bool(typed.words.text) and typed.words.text_type is TextType.HTML
    return Deliver(
        envelope, typed.parts, asked_by(found, letter), said=said, note=HTML_READ if html else "", mail=letter
    )


def asked_by(route: Route, letter: PersonsMail) -> Asked | None:
    """The question behind a route, if there is one."""
    if route.purpose is not Purpose.QUESTION or route.question_id is None:
        return None
    return Asked(route.question_id, route.revision or 1, letter)


def _turned(rules: FilingRules, judged: FromPerson, verdict: Verdict) -> Turned:
    return Turned(verdict, True, judged.sender.address, subject_of(judged.inbound, rules))


# --- to whom ----------------------------------------------------------------------------------------------


def _route(tx: Tx, rules: FilingRules, judged: FromPerson, known: dict[MessageId, Thread]) -> Route | Turned:
    """The route that the mail takes, or why it takes none."""
    match judged.authenticity:
        case NeedsProof(kind=kind) if not _proven(kind, known, tx.now):
            return _turned(rules, judged, Verdict.PROOF_REQUIRED)
    facts = route_facts(tx, rules, judged.claims, known)
    resolution = resolve(judged.claims, facts)
    if isinstance(resolution, Ambiguous):
        resolution = resolve(judged.claims, with_settled_as_threads(tx, facts))

    def told(verdict: Verdict, trouble: Trouble, route: Route | None) -> Turned:
        subject = subject_of(judged.inbound, rules)
        letter = persons_mail(judged.inbound, judged.sender.address, subject, route)
        return told_of(_turned(rules, judged, verdict), letter, trouble)

    match resolution:
        case Routed(route=route):
            return route
        case NoToken():
            return _turned(rules, judged, Verdict.NO_TOKEN)
        case ExpiredToken():
            return told(Verdict.EXPIRED_TOKEN, Trouble.EXPIRED, named(facts))
        case OtherDevice():
            return _turned(rules, judged, Verdict.OTHER_DEVICE)
        case Ambiguous():
            return told(Verdict.AMBIGUOUS, Trouble.AMBIGUOUS, None)
        case other:
            assert_never(other)


def route_facts(tx: Tx, rules: FilingRules, claims: Claims, known: dict[MessageId, Thread]) -> Facts:
    """The rows behind the claims of a mail."""
    return facts_of(
        tx,
        rules.identity,
        claims,
        known,
        token_key=rules.token_key,
        header_threading=rules.header_threading,
    )


def _proven(kind: SingleMailboxProof, known: dict[MessageId, Thread], now: datetime) -> bool:
    match kind:
        case SingleMailboxProof.THREAD:
            return any(thread.expires_at > now for thread in known.values())
        case SingleMailboxProof.SENT_COPY:
            return False
        case _:
            assert_never(kind)


def _asked_of_another(tx: Tx, rules: FilingRules, route: Route, address: str) -> bool:
    """Whether a question is open that another person was asked, and this one may not answer for others."""
    if route.purpose is not Purpose.QUESTION or route.question_id is None:
        return False
    if address in rules.may_approve or address == normalise_address(route.recipient):
        return False
    question = questions.find(tx, route.question_id)
    return question is not None and question.status_at(tx.now) is QuestionStatus.OPEN


# --- what was typed ---------------------------------------------------------------------------------------


@frozen
class _Typed:
    """The words and files of a mail that are the person's own."""

    words: Reply = field(repr=False)
    parts: tuple[tuple[AttachmentInfo, bytes], ...] = field(repr=False)
    cut: bool
    """There is more than was read."""
    unreadable: bool

    @property
    def worth_saying(self) -> bool:
        """Whether there are files that a session should hear of."""
        return any(info.left_out != Reason.DECORATION for info, _ in self.parts)

    @property
    def says_something(self) -> bool:
        """Whether there is anything to hand on."""
        return bool(self.words.text.strip()) or self.worth_saying

    @property
    def sealed(self) -> bool:
        """Whether the words, if there are any, cannot be read."""
        return self.unreadable and not self.words.text.strip()

    @property
    def command(self) -> Command | None:
        """What is asked of the gateway itself."""
        return None if self.worth_saying else parse_command(self.words.text)


def _typed(
    tx: Tx, rules: FilingRules, judged: FromPerson, known: dict[MessageId, Thread], route: Route
) -> _Typed:
    inbound = judged.inbound
    sent_text = _sent_text(tx, judged.claims, known, route)
    words = typed_words(inbound, rules.own, sent_text)
    parts = kept_for(tx, route.session_id, inbound, rules.own, sent_text)
    return _Typed(words, tuple(parts), words.shortened or inbound.tree.truncated, bool(inbound.unreadable))


def _sent_text(tx: Tx, claims: Claims, known: dict[MessageId, Thread], route: Route) -> str | None:
    """The text that is answered and may be quoted; an unsigned Message-ID may name it, but route nothing."""
    for each in claims.chain:
        if each in known:
            return known[each].sent_text
    for thread in threads.find(tx, claims.unsigned).values() if claims.unsigned else ():
        if thread.route.id == route.id:
            return thread.sent_text
    return None


def _filled(
    tx: Tx, rules: FilingRules, mail: Mail, judged: FromPerson, route: Route, typed: _Typed
) -> Envelope:
    """The envelope with the person's words."""
    words = typed.words
    return evolve(
        empty_envelope(tx, rules, mail, route, judged.inbound),
        kind=EnvelopeKind.USER,
        trust=Trust.OWNER,
        subject=subject_of(judged.inbound, rules),
        body=f"{words.text.rstrip()}\n\n{CUT}".lstrip() if typed.cut else words.text,
        quoted=words.quoted,
        from_address=judged.sender.address,
        from_name=judged.sender.name,
        attachments=tuple(info for info, _ in typed.parts),
    )
