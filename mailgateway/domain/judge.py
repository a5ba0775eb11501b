"""One mail, judged outside of the transaction: everything that needs no row of the database.

The order of trust: own mail and loops, automatic mail, the sender, its authentication, and only then what
the mail claims about where it belongs.  No layer stands in for an earlier one.  All of it is read from the
header: the parts of a mail are looked at when it is a report, or from a person whom we believe.  Routing,
the proof of a single mailbox and what is typed in reply to the sent text need rows, and are the caller's
next steps.
"""

from typing import assert_never

from attrs import frozen

from mailgateway.domain.routing import Claims, claims_of
from mailgateway.ids import MessageId
from mailgateway.mail.authenticity import (
    Authentic,
    Forged,
    NeedsProof,
    Unauthenticated,
    Undecided,
    authenticate,
    wanted,
)
from mailgateway.mail.automatic import (
    Automatic,
    OwnMail,
    Person,
    classify_header,
    classify_parts,
    from_list,
)
from mailgateway.mail.bounce import Bounce, RecipientReport
from mailgateway.mail.decode import Malformed
from mailgateway.mail.evidence import NO_EVIDENCE, Awaited, Evidence, Wanted
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.own import Own
from mailgateway.mail.sender import OddSender, OneMailbox
from mailgateway.mail.signature import coverage_for
from mailgateway.mail.signed_reading import as_signed
from mailgateway.mail.verdict import Verdict


@frozen(kw_only=True)
class Refused:
    """The mail is not a person's words for us.

    ``reason`` is a sentence for the operator that quotes nothing of the mail; ``inbound`` is None for a mail
    that could not be read.  ``authentic`` says that it is an allowed person's all the same.
    """

    verdict: Verdict
    reason: str
    inbound: Inbound | None = None
    authentic: bool = False

    @property
    def address(self) -> str:
        """The address in From, '' where it cannot be read strictly."""
        sender = self.inbound.sender if self.inbound is not None else None
        return sender.address if isinstance(sender, OneMailbox) else ""


@frozen(kw_only=True)
class BounceOf:
    """A report about mail of ours: ``message_ids`` as found in the returned copy, maybe none.

    The other fields are those of `Bounce`.
    """

    message_ids: tuple[MessageId, ...]
    failed: bool
    inbound: Inbound
    recipients: tuple[RecipientReport, ...] = ()


@frozen(kw_only=True)
class FromPerson:
    """An allowed person wrote this, and it is authentic, or the store has yet to find the proof."""

    inbound: Inbound
    sender: OneMailbox
    authenticity: Authentic | NeedsProof
    claims: Claims


@frozen(kw_only=True)
class Waits:
    """It says that an allowed person wrote it, and the evidence for that may come yet."""

    inbound: Inbound
    awaits: Awaited
    reason: str


Judged = Refused | BounceOf | FromPerson | Waits


def judge(raw: bytes, own: Own, evidence: Evidence = NO_EVIDENCE) -> Judged:
    """Judge the whole bytes of one mail."""
    inbound = read(raw)
    if isinstance(inbound, Malformed):
        return Refused(verdict=Verdict.MALFORMED, reason=inbound.reason)
    return judge_inbound(inbound, own, evidence)


def judge_large(header: bytes, size: int, own: Own) -> Refused:
    """Judge a mail that is too large to be read, by its header block alone.

    Who wrote it can be proven only by what the receiving server has found out; a signature cannot be checked
    without the text, and what is not whole in ``header`` proves nothing.
    """
    inbound = read(header)
    reason = f"it has {size} octets"
    if isinstance(inbound, Malformed):
        return Refused(verdict=Verdict.TOO_LARGE, reason=reason)
    judged = judge_inbound(inbound, own)
    proven = isinstance(judged, FromPerson) and isinstance(judged.authenticity, Authentic)
    return Refused(verdict=Verdict.TOO_LARGE, reason=reason, inbound=inbound, authentic=proven)


def evidence_wanted(inbound: Inbound, own: Own) -> Wanted:
    """What to find out before a mail is judged: nothing for what no evidence will help."""
    found = wanted(inbound, own)
    return found if found and isinstance(classify_header(inbound, own), Person) else Wanted()


def judge_inbound(inbound: Inbound, own: Own, evidence: Evidence = NO_EVIDENCE) -> Judged:
    """Judge a mail that was read already."""
    match classify_header(inbound, own):
        case OwnMail(reason=reason):
            return Refused(verdict=Verdict.OWN_MAIL, reason=reason, inbound=inbound)
        case Bounce(message_ids=message_ids, failed=failed, recipients=recipients):
            return BounceOf(message_ids=message_ids, failed=failed, inbound=inbound, recipients=recipients)
        case Automatic(reason=reason):
            return Refused(verdict=Verdict.AUTOMATIC, reason=reason, inbound=inbound)
        case Person():
            return _judge_sender(inbound, own, evidence)
        case other:
            assert_never(other)


def _judge_sender(inbound: Inbound, own: Own, evidence: Evidence) -> Judged:
    sender = inbound.sender
    if isinstance(sender, OddSender):
        return Refused(verdict=Verdict.NOT_ALLOWED, reason=sender.reason, inbound=inbound)
    if sender.address not in own.allowed:
        return Refused(verdict=Verdict.NOT_ALLOWED, reason="From is not in people.allowed", inbound=inbound)
    if from_list(inbound):
        return Refused(verdict=Verdict.AUTOMATIC, reason="a mailing list distributed it", inbound=inbound)
    match authenticate(inbound, own, evidence):
        case Forged(reason=reason):
            return Refused(verdict=Verdict.FORGED, reason=reason, inbound=inbound)
        case Unauthenticated(reason=reason):
            return Refused(verdict=Verdict.UNAUTHENTICATED, reason=reason, inbound=inbound)
        case Undecided(awaits=awaits, reason=reason):
            return Waits(inbound=inbound, awaits=awaits, reason=reason)
        case Authentic() | NeedsProof() as authenticity:
            if isinstance(authenticity, Authentic) and authenticity.sent is not None:
                inbound = authenticity.sent
            inbound = as_signed(inbound, coverage_for(inbound, own))
            match classify_parts(inbound):
                case Automatic(reason=reason):
                    return Refused(verdict=Verdict.AUTOMATIC, reason=reason, inbound=inbound)
                case Person():
                    pass
                case parts:
                    assert_never(parts)
            return FromPerson(
                inbound=inbound, sender=sender, authenticity=authenticity, claims=claims_of(inbound, own)
            )
        case other:
            assert_never(other)
