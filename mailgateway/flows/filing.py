"""The values by which mail is filed: what it is judged by, where it lies, and what it becomes.

No step is taken here; ``sort`` and ``from_person`` decide, ``receive`` writes.
"""

from datetime import datetime

from attrs import evolve, field, frozen

from mailgateway.domain.command import Command
from mailgateway.domain.envelope import AttachmentInfo, Envelope, EnvelopeKind, Source, Trust
from mailgateway.domain.identity import Identity
from mailgateway.domain.judge import Judged
from mailgateway.domain.route import Route
from mailgateway.flows.bounces import Reported
from mailgateway.flows.troubles import PersonsMail, Trouble, Writer
from mailgateway.ids import EnvelopeId, MachineId, QuestionId, SessionId
from mailgateway.mail.decode import visible
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own
from mailgateway.mail.sender import OneMailbox
from mailgateway.mail.tag import strip_tags
from mailgateway.mail.verdict import Verdict
from mailgateway.store import machines, sessions
from mailgateway.store.database import Tx

SUBJECT_LIMIT = 500
"""Characters of a subject that are kept."""


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
class Mail:
    """One judged mail with its place and the id that its envelope would get."""

    id: EnvelopeId
    place: Source
    received_at: datetime
    judged: Judged


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
    """A question, the revision of it that was mailed, and the mail that may answer it."""

    question_id: QuestionId
    revision: int
    mail: PersonsMail


@frozen
class Deliver:
    """The mail becomes an envelope.

    ``asked`` is the question that it may answer; ``verdict`` is set for a notice about a mail that is
    counted as refused.  ``said`` is a digest of who said what when, by which a person's mail is known again
    that comes another time with another header around it; ``""`` for a notice.  ``reported`` is what a
    delivery report tells of a mail of ours, ``note`` what the fate of a delivered mail says of it.
    ``mail`` and ``trouble`` are set where its sender is told of it as well.
    """

    envelope: Envelope
    parts: tuple[tuple[AttachmentInfo, bytes], ...] = field(repr=False)
    asked: Asked | None = None
    verdict: Verdict | None = None
    said: str = ""
    reported: Reported | None = None
    note: str = ""
    mail: PersonsMail | None = None
    trouble: Trouble | None = None


Sorted = Turned | Commanded | Deliver


def empty_envelope(tx: Tx, rules: FilingRules, mail: Mail, route: Route, inbound: Inbound) -> Envelope:
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


def persons_mail(inbound: Inbound, address: str, subject: str, route: Route | None) -> PersonsMail:
    """What an answer to a mail needs of it."""
    return PersonsMail(
        address=address,
        subject=subject,
        message_id=inbound.message_id,
        references=inbound.references,
        route=route,
    )


def told_of(turned: Turned, mail: PersonsMail, trouble: Trouble, reason: str = "") -> Turned:
    """The same end of a mail, of which its sender is told."""
    return evolve(turned, mail=mail, trouble=trouble, reason=reason)


def sender_and_subject(judged: Judged, rules: FilingRules) -> tuple[str, str]:
    """The address in From (``""`` where it cannot be read strictly) and the human subject of a mail."""
    inbound = judged.inbound
    if inbound is None:
        return "", ""
    sender = inbound.sender
    return sender.address if isinstance(sender, OneMailbox) else "", subject_of(inbound, rules)


def subject_of(inbound: Inbound, rules: FilingRules) -> str:
    """The human subject: without tags of ours, cut."""
    return strip_tags(visible(inbound.subject), rules.own.accepted_tags)[:SUBJECT_LIMIT]
