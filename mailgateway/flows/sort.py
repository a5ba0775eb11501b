"""One judged mail against the tables: what it becomes.

Runs inside the transaction of ``receive``.  The mail was judged before by its bytes alone; here come the
steps that need rows, in the order of trust: the proof of a single mailbox, the route, the typed words.
Writes nothing.
"""

from datetime import datetime
from typing import assert_never

from attrs import evolve, field, frozen

from mailgateway.domain.command import Command, parse_command
from mailgateway.domain.envelope import AttachmentInfo, Envelope, EnvelopeKind, Source, Trust
from mailgateway.domain.identity import Identity
from mailgateway.domain.judge import BounceOf, FromPerson, Judged, Refused, Waits
from mailgateway.domain.outbox import MailKind
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
    claims_of,
    resolve,
)
from mailgateway.flows.attachments import kept_for
from mailgateway.flows.bounces import Reported, read_report
from mailgateway.flows.facts import facts_of, named, with_settled_as_threads
from mailgateway.flows.held import verdict_of
from mailgateway.flows.notify_person import PersonsMail, Trouble, Writer
from mailgateway.flows.said import said_digest
from mailgateway.ids import EnvelopeId, MachineId, MessageId, QuestionId, SessionId
from mailgateway.mail.attachments import Reason
from mailgateway.mail.authenticity import NeedsProof
from mailgateway.mail.decode import visible
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own, normalise_address
from mailgateway.mail.reply import TextType, typed_words
from mailgateway.mail.sender import OneMailbox
from mailgateway.mail.tag import strip_tags
from mailgateway.mail.verdict import Verdict
from mailgateway.settings import SingleMailboxProof
from mailgateway.store import machines, questions, routes, sessions, threads
from mailgateway.store.database import Tx
from mailgateway.store.threads import Thread

SUBJECT_LIMIT = 500
"""Characters of a subject that are kept."""

NOT_ASKED = "the question was put to somebody else, and this address may not answer it (people.may_approve)"
NO_COMMANDS = "the words are a command, and this address may give none (people.may_command)"
HTML_READ = "its HTML was read, since its plain text says nothing"
ENCRYPTED = "the mail is encrypted, and the gateway has no key"

CUT = "[mailgateway: the mail is longer than what is read of it; the rest is in the mailbox]"
"""Our last line in the words of a mail that was cut, so that nobody takes its beginning for all of it."""


@frozen
class FilingRules:
    """What a mail is judged by beside the rows: who we are, what the settings say."""

    identity: Identity
    own: Own
    token_key: str | None = field(repr=False)
    """The text of the key that signed tokens are verified with; ``None``: none is believed."""
    header_threading: bool = True
    """Off disables routing by the reply chain."""
    writer: Writer | None = field(default=None, repr=False)
    """Who writes our own answers to people; ``None``: nobody is answered."""
    may_command: frozenset[str] = field(default=frozenset(), repr=False)
    """The addresses of people whose commands are obeyed."""
    may_approve: frozenset[str] = field(default=frozenset(), repr=False)
    """The addresses of people who may answer a question that another person was asked."""


@frozen
class Turned:
    """The mail is not delivered; ``concerns`` says whether it is kept among the fates."""

    verdict: Verdict
    concerns: bool
    from_address: str = ""
    subject: str = field(default="", repr=False)
    mail: PersonsMail | None = None
    """The mail of an authenticated person that could not be used; the person is told why."""
    trouble: Trouble | None = None
    reason: str = ""
    """Why, in our words; ``""``: the verdict says it all."""
    reported: Reported | None = None


@frozen
class Commanded:
    """The mail is a command to the gateway of ``machine``."""

    command: Command
    machine: MachineId
    session: SessionId
    mail: PersonsMail
    said: str


@frozen
class Asked:
    """A question, and the revision of it that was mailed."""

    question_id: QuestionId
    revision: int


@frozen
class Deliver:
    """The mail becomes an envelope.

    ``asked`` is the question that it may answer; ``verdict`` is set for a notice about a mail that is
    counted as refused.  ``said`` is a digest of who said what when, by which a person's mail is known again
    that comes another time with another header around it; ``""`` for a notice.  ``reported`` is what a
    delivery report tells of a mail of ours, ``note`` what the fate of a delivered mail says of it.
    """

    envelope: Envelope
    parts: tuple[tuple[AttachmentInfo, bytes], ...] = field(repr=False)
    asked: Asked | None = None
    verdict: Verdict | None = None
    said: str = ""
    reported: Reported | None = None
    note: str = ""


Sorted = Turned | Commanded | Deliver


@frozen
class Mail:
    """One judged mail with its place and the id that its envelope would get."""

    id: EnvelopeId
    place: Source
    received_at: datetime
    judged: Judged


def sort(tx: Tx, rules: FilingRules, mail: Mail) -> Sorted:
    """Decide what a mail becomes; reads rows and writes none."""
    match mail.judged:
        case Refused(verdict=Verdict.TOO_LARGE, inbound=Inbound() as inbound) as refused:
            return _too_large(tx, rules, mail, inbound, refused.address)
        case Refused(verdict=verdict, inbound=inbound) as refused:
            concerns = inbound is not None and _concerns(tx, rules, inbound, refused.address)
            return Turned(verdict, concerns, *sender_and_subject(refused, rules), reason=refused.reason)
        case BounceOf() as bounce:
            return _bounce(tx, rules, mail, bounce)
        case FromPerson() as judged:
            return _from_person(tx, rules, mail, judged)
        case Waits(awaits=awaits, reason=reason) as waits:
            return Turned(verdict_of(awaits), True, *sender_and_subject(waits, rules), reason=reason)
        case _:
            assert_never(mail.judged)


def _from_person(tx: Tx, rules: FilingRules, mail: Mail, judged: FromPerson) -> Sorted:
    inbound = judged.inbound
    known = threads.find(tx, judged.claims.chain)

    def turned(verdict: Verdict, trouble: Trouble | None = None, route: Route | None = None) -> Turned:
        subject = _subject(inbound, rules)
        told = None if trouble is None else _persons_mail(judged, subject, route)
        return Turned(verdict, True, judged.sender.address, subject, told, trouble)

    match judged.authenticity:
        case NeedsProof(kind=kind) if not _proven(kind, known, tx.now):
            return turned(Verdict.PROOF_REQUIRED)
    facts = _facts(tx, rules, judged.claims, known)
    resolution = resolve(judged.claims, facts)
    if isinstance(resolution, Ambiguous):
        resolution = resolve(judged.claims, with_settled_as_threads(tx, facts))
    match resolution:
        case Routed(route=route):
            pass
        case NoToken():
            return turned(Verdict.NO_TOKEN)
        case ExpiredToken():
            return turned(Verdict.EXPIRED_TOKEN, Trouble.EXPIRED, named(facts))
        case OtherDevice():
            return turned(Verdict.OTHER_DEVICE)
        case Ambiguous():
            return turned(Verdict.AMBIGUOUS, Trouble.AMBIGUOUS)
        case other:
            assert_never(other)
    sent_text = _sent_text(tx, judged.claims, known, route)
    words = typed_words(inbound, rules.own, sent_text)
    parts = kept_for(tx, route.session_id, inbound, rules.own, sent_text)
    if not words.text.strip() and inbound.unreadable:
        return evolve(turned(Verdict.MALFORMED, Trouble.ENCRYPTED, route), reason=ENCRYPTED)
    worth_saying = any(info.left_out != Reason.DECORATION for info, _ in parts)
    if not words.text.strip() and not worth_saying:
        return turned(Verdict.EMPTY, Trouble.EMPTY, route)
    cut = words.shortened or inbound.tree.truncated
    envelope = evolve(
        _envelope(tx, rules, mail, route, inbound),
        kind=EnvelopeKind.USER,
        trust=Trust.OWNER,
        subject=_subject(inbound, rules),
        body=f"{words.text.rstrip()}\n\n{CUT}".lstrip() if cut else words.text,
        quoted=words.quoted,
        from_address=judged.sender.address,
        from_name=judged.sender.name,
        attachments=tuple(info for info, _ in parts),
    )
    said = said_digest(envelope, inbound, rules.own, parts)
    command = None if worth_saying else parse_command(words.text)
    if command is None:
        if _asked_of_another(tx, rules, route, judged.sender.address):
            return evolve(turned(Verdict.NOT_ALLOWED, Trouble.NOT_ASKED, route), reason=NOT_ASKED)
        html = bool(words.text) and words.text_type is TextType.HTML
        return Deliver(envelope, parts, _asked(route), said=said, note=HTML_READ if html else "")
    if judged.sender.address not in rules.may_command:
        return evolve(turned(Verdict.NOT_ALLOWED, Trouble.NO_COMMANDS, route), reason=NO_COMMANDS)
    mail_of = _persons_mail(judged, envelope.subject, route)
    machine = envelope.machine_id or rules.identity.machine_id
    return Commanded(command, machine, route.session_id, mail_of, said)


def _asked_of_another(tx: Tx, rules: FilingRules, route: Route, address: str) -> bool:
    """Whether a question is open that another person was asked, and this one may not answer for others."""
    if route.purpose is not Purpose.QUESTION or route.question_id is None:
        return False
    if address in rules.may_approve or address == normalise_address(route.recipient):
        return False
    question = questions.find(tx, route.question_id)
    return question is not None and question.status is QuestionStatus.OPEN


def _persons_mail(judged: FromPerson, subject: str, route: Route | None) -> PersonsMail:
    return PersonsMail(
        address=judged.sender.address,
        subject=subject,
        message_id=judged.inbound.message_id,
        references=judged.inbound.references,
        route=route,
    )


def _sent_text(tx: Tx, claims: Claims, known: dict[MessageId, Thread], route: Route) -> str | None:
    """The text that is answered and may be quoted; an unsigned Message-ID may name it, but route nothing."""
    for each in claims.chain:
        if each in known:
            return known[each].sent_text
    for thread in threads.find(tx, claims.unsigned).values() if claims.unsigned else ():
        if thread.route.id == route.id:
            return thread.sent_text
    return None


def _asked(route: Route) -> Asked | None:
    if route.purpose is not Purpose.QUESTION or route.question_id is None:
        return None
    return Asked(route.question_id, route.revision or 1)


def _proven(kind: SingleMailboxProof, known: dict[MessageId, Thread], now: datetime) -> bool:
    match kind:
        case SingleMailboxProof.THREAD:
            return any(thread.expires_at > now for thread in known.values())
        case SingleMailboxProof.SENT_COPY:
            return False
        case _:
            assert_never(kind)


def _facts(tx: Tx, rules: FilingRules, claims: Claims, known: dict[MessageId, Thread]) -> Facts:
    return facts_of(
        tx,
        rules.identity,
        claims,
        known,
        token_key=rules.token_key,
        header_threading=rules.header_threading,
    )


# --- notices ----------------------------------------------------------------------------------------------


def _too_large(tx: Tx, rules: FilingRules, mail: Mail, inbound: Inbound, address: str) -> Sorted:
    """A mail too large to be read: its session is told in our words; nothing of it is believed or shown."""
    turned = Turned(
        Verdict.TOO_LARGE, _concerns(tx, rules, inbound, address), address, _subject(inbound, rules)
    )
    if address not in rules.own.allowed:
        return turned
    claims = claims_of(inbound, rules.own)
    match resolve(claims, _facts(tx, rules, claims, threads.find(tx, claims.chain))):
        case Routed(route=route):
            text = (
                "A mail came for this session that is too large to be read, so nothing of it was checked. "
                "It lies in the mailbox; ask for a shorter one."
            )
            notice = evolve(
                _envelope(tx, rules, mail, route, inbound), subject="A mail is too large", body=text
            )
            return Deliver(notice, (), verdict=Verdict.TOO_LARGE)
        case _:
            return turned


def _bounce(tx: Tx, rules: FilingRules, mail: Mail, bounce: BounceOf) -> Sorted:
    """A report about a mail of ours: the session that sent it is told in our words, once for a recipient."""
    reported = read_report(tx, bounce)
    sender, subject = sender_and_subject(bounce, rules)
    if reported is None:
        return Turned(Verdict.BOUNCE, bool(threads.find(tx, bounce.message_ids)), sender, subject)
    thread = threads.find(tx, [reported.mail.message_id]).get(reported.mail.message_id)
    if thread is None or not reported.failed or reported.mail.kind is MailKind.NOTICE:
        why = "a mail of ours could not be delivered" if reported.failed else "a mail of ours is delayed"
        return Turned(Verdict.BOUNCE, True, sender, subject, reason=why, reported=reported)
    notice = evolve(
        _envelope(tx, rules, mail, thread.route, bounce.inbound),
        subject="A mail could not be delivered",
        body=reported.words,
        in_reply_to=thread.message_id,
        question_id=reported.mail.question_id,
    )
    return Deliver(notice, (), verdict=Verdict.BOUNCE, reported=reported)


def sender_and_subject(judged: Judged, rules: FilingRules) -> tuple[str, str]:
    """The address in From (``""`` where it cannot be read strictly) and the human subject of a mail."""
    inbound = judged.inbound
    if inbound is None:
        return "", ""
    sender = inbound.sender
    return sender.address if isinstance(sender, OneMailbox) else "", _subject(inbound, rules)


# --- shared -----------------------------------------------------------------------------------------------


def _envelope(tx: Tx, rules: FilingRules, mail: Mail, route: Route, inbound: Inbound) -> Envelope:
    """What every envelope from a mail has, as an empty notice."""
    machine = sessions.machine_of(tx, route.session_id) or route.machine_id
    in_reply_to = inbound.in_reply_to
    ours = machine == rules.identity.machine_id
    return Envelope(
        id=mail.id,
        kind=EnvelopeKind.NOTICE,
        trust=Trust.SYSTEM,
        session_id=route.session_id,
        machine_id=machine,
        subject="",
        body="",
        quoted="",
        from_address="",
        from_name="",
        received_at=mail.received_at,
        route_id=route.id or None,
        device=rules.identity.name if ours else machines.name(tx, machine),
        source=mail.place,
        message_id=inbound.message_id or "",
        in_reply_to=in_reply_to[0] if in_reply_to else "",
    )


def _concerns(tx: Tx, rules: FilingRules, inbound: Inbound, address: str) -> bool:
    """Whether a mail is ours to tell about: from an allowed person, or it names a route or a mail of ours."""
    if address in rules.own.allowed:
        return True
    claims = claims_of(inbound, rules.own)
    return any(routes.taken(tx, each) for each in claims.routes) or bool(threads.find(tx, claims.chain))


def _subject(inbound: Inbound, rules: FilingRules) -> str:
    return strip_tags(visible(inbound.subject), rules.own.accepted_tags)[:SUBJECT_LIMIT]
