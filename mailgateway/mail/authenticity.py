"""Is the mail really from the address in its From.  Closed by default.

With ``required`` there are two kinds of evidence, both resting on a DKIM signature of the domain of From:
our own verification of it (`dkim`), and what the receiving server found (`pinned`).  Either suffices where
the other cannot tell; where both can and disagree, the mail is refused, since one of them was deceived.
SPF says nothing about From.  A signature that leaves room for somebody else's words is refused
(`signature`), and so is a mail that was not addressed to us, or is older than our memory of what was said
before.

With ``single-mailbox`` nobody checks a signature: the proof is the same mail in the Sent folder
(`sent_copy`), or, weaker, a thread that only the store knows.
"""

import re
from datetime import datetime, timedelta
from typing import assert_never

from attrs import field, frozen

from mailgateway.mail.decode import Malformed
from mailgateway.mail.dkim import Broken, Checked, Nothing, Unanswered, Valid, check_signatures, signatures_of
from mailgateway.mail.evidence import NO_EVIDENCE, Awaited, Copy, Evidence, NoCopy, Wanted
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own
from mailgateway.mail.pinned import Denied, Finding, Silent, Vouched, finding_of
from mailgateway.mail.sender import OneMailbox
from mailgateway.mail.sent_copy import moment, owner_s
from mailgateway.mail.signature import Coverage, Partial, coverage_of
from mailgateway.mail.tag import strip_tags
from mailgateway.providers import Results as Placement
from mailgateway.settings import Authentication, SingleMailboxProof

OLDEST = timedelta(days=90)
"""Mail older than this is not believed."""

AHEAD = timedelta(days=7)
"""How far the clock of whoever wrote a mail may be ahead; what was said is remembered for both times."""

DISAGREEMENT = (
    "our own check of the signature and the receiving server's results disagree: one of them was deceived, "
    "or something between the two rewrites mail"
)
"""The one refusal that speaks of a forgery which came far; it is logged."""

AGELESS = "the mail has no Date that can be read, so it could be sent again for ever"

RESULTS, OWN_CHECK, SENT_COPY = "authentication-results", "dkim", "sent-copy"
BOTH = f"{OWN_CHECK} and {RESULTS}"
"""The methods by which a mail is found authentic."""


@frozen
class Authentic:
    """From is true; ``method`` names the evidence.

    ``sent`` is the owner's own copy of the mail, where that is the evidence: it is what is to be read.
    """

    method: str
    sent: Inbound | None = field(default=None, repr=False, eq=False)


@frozen
class Unauthenticated:
    """There is no sufficient evidence for From."""

    reason: str


@frozen
class Forged:
    """The evidence says that From is not true."""

    reason: str


@frozen
class NeedsProof:
    """The store decides: whether the thread names mail that we sent.  ``sent-copy``: nobody has looked."""

    kind: SingleMailboxProof


@frozen
class Undecided:
    """The evidence may come yet: hold the mail and ask again; ``awaits`` says for what."""

    awaits: Awaited
    reason: str


Authenticity = Authentic | Unauthenticated | Forged | NeedsProof | Undecided

_SINGULAR = (
    "from",
    "subject",
    "date",
    "message-id",
    "to",
    "cc",
    "reply-to",
    "in-reply-to",
    "references",
    "content-type",
    "content-transfer-encoding",
    "mime-version",
)
"""Fields that a signed mail has once; a second one may be an attacker's (RFC 6376, section 8.15)."""

_FORWARDED = re.compile(r"\W*(?:fwd?|wg|tr|rv|enc|vs|vb|doorst|fs|i)\s*:", re.IGNORECASE)


def wanted(inbound: Inbound, own: Own) -> Wanted:
    """What there is to find out before a mail from an allowed person is judged; nothing for any other."""
    sender = inbound.sender
    if not isinstance(sender, OneMailbox) or sender.address not in own.allowed:
        return Wanted()
    match own.authentication:
        case Authentication.REQUIRED:
            found = signatures_of(inbound.fields, sender.domain, own.alignment)
            return Wanted(keys=tuple(dict.fromkeys(each.key_name for _, each in found)))
        case Authentication.SINGLE_MAILBOX if own.single_mailbox_proof is SingleMailboxProof.SENT_COPY:
            return Wanted(sent_copy=inbound.message_id)
        case Authentication.SINGLE_MAILBOX:
            return Wanted()
        case _:
            assert_never(own.authentication)


def authenticate(inbound: Inbound, own: Own, evidence: Evidence = NO_EVIDENCE) -> Authenticity:
    """Weigh the evidence for From; the address itself is compared with the allowed ones elsewhere."""
    if not isinstance(inbound.sender, OneMailbox):
        return Unauthenticated("From is not one plain mailbox")
    for name in _SINGULAR:
        if inbound.count(name) > 1:
            return Unauthenticated(f"{name} is there twice")
    if _is_old(inbound, evidence):
        return Unauthenticated(f"the mail is older than {OLDEST.days} days")
    if _is_ahead(inbound, evidence):
        return Unauthenticated(f"the Date of the mail is more than {AHEAD.days} days after its arrival")
    match own.authentication:
        case Authentication.SINGLE_MAILBOX:
            return _by_mailbox(inbound, own, evidence)
        case Authentication.REQUIRED:
            return _by_signature(inbound, inbound.sender.domain, own, evidence)
        case _:
            assert_never(own.authentication)


def _is_old(inbound: Inbound, evidence: Evidence) -> bool:
    """Whether it was written, or arrived, longer ago than it would be known again."""
    if evidence.now is None:
        return False
    written = moment(inbound.date)
    times = [evidence.received_at, written if isinstance(written, datetime) else None]
    return any(evidence.now - _aware(time, evidence.now) > OLDEST for time in times if time is not None)


def _is_ageless(inbound: Inbound, evidence: Evidence) -> bool:
    """Whether nobody can tell from the mail when it was written."""
    return evidence.now is not None and not isinstance(moment(inbound.date), datetime)


def _is_ahead(inbound: Inbound, evidence: Evidence) -> bool:
    """Whether it could be sent again when it is forgotten, and would be no old mail yet."""
    written = moment(inbound.date)
    if evidence.received_at is None or not isinstance(written, datetime):
        return False
    return _aware(written, evidence.received_at) - evidence.received_at > AHEAD


def _aware(time: datetime, like: datetime) -> datetime:
    """The time; one without a zone (``-0000`` in a Date) is taken as UTC."""
    return time if time.tzinfo is not None else time.replace(tzinfo=like.tzinfo)


# --- one mailbox for person and agent ---------------------------------------------------------------------


def _by_mailbox(inbound: Inbound, own: Own, evidence: Evidence) -> Authenticity:
    proof = own.single_mailbox_proof
    match proof:
        case SingleMailboxProof.THREAD:
            return NeedsProof(proof)
        case SingleMailboxProof.SENT_COPY:
            pass
        case _:
            assert_never(proof)
    if inbound.message_id is None:
        return Unauthenticated("it has no Message-ID by which the Sent folder could know it")
    if _is_ageless(inbound, evidence):
        return Unauthenticated(AGELESS)
    if own.addresses and not _addressed_to(inbound, own, Coverage()):
        return Unauthenticated("the mail is not addressed to this gateway")
    match evidence.copy:
        case None:
            return NeedsProof(proof)
        case NoCopy(reason=reason):
            return Undecided(Awaited.SENT_COPY, reason)
        case Copy(raw=raw):
            found = owner_s(inbound, raw, own)
            return Forged(found) if isinstance(found, str) else Authentic(SENT_COPY, found)
        case _:
            assert_never(evidence.copy)


# --- the signature of the sender's domain -----------------------------------------------------------------


def _by_signature(inbound: Inbound, domain: str, own: Own, evidence: Evidence) -> Authenticity:
    coverage = coverage_of(inbound.fields, domain, own.alignment)
    match coverage:
        case Partial(reason=reason):
            return Forged(reason)
        case Malformed(reason=reason):
            return Unauthenticated(reason)
        case Coverage():
            pass
        case _:
            assert_never(coverage)
    if not coverage.covers("date"):  # whether there is one or not: it can be taken off
        return Unauthenticated("the signature does not cover Date, so the mail could be sent again for ever")
    if coverage.fields is not None and _is_ageless(inbound, evidence):
        return Unauthenticated(AGELESS)
    if own.addresses and not _addressed_to(inbound, own, coverage):
        return Unauthenticated("the mail is not addressed to this gateway")
    if evidence.received_at is None:
        checked: Checked = Nothing("no signature was checked")
    else:
        checked = check_signatures(inbound, domain, own.alignment, evidence.keys, evidence.received_at)
    return _together(finding_of(inbound.fields, domain, own), checked, own)


def _together(finding: Finding, checked: Checked, own: Own) -> Authenticity:
    """Both kinds of evidence in one decision."""
    match finding:
        case Denied(reason=reason):
            return Forged(DISAGREEMENT if isinstance(checked, Valid) else reason)
        case Vouched():
            # Microsoft's servers write other bytes than they checked, so our own check says little there
            if isinstance(checked, Broken) and own.results is not Placement.ANONYMOUS:
                return Forged(DISAGREEMENT)
            return Authentic(BOTH if isinstance(checked, Valid) else RESULTS)
        case Silent(reason=reason):
            pass
        case _:
            assert_never(finding)
    match checked:
        case Valid():
            return Authentic(OWN_CHECK)
        case Unanswered(reason=why):
            return Undecided(Awaited.KEY, why)
        case Broken(reason=why):
            return Unauthenticated(f"{why} (mailing lists and forwarders do that, too)")
        case Nothing(reason=why):
            return Unauthenticated(f"{reason}; {why}")
        case _:
            assert_never(checked)


def _addressed_to(inbound: Inbound, own: Own, coverage: Coverage) -> bool:
    """Whether To or Cc names one of our addresses, a plus-address of it included.

    A true mail of an allowed person to somebody else could else be handed to us by its receiver.  Where the
    signature covers To, a Cc that it does not cover was put on by somebody else; where it does not (Outlook),
    neither proves anything, and both are taken as they stand, unless the subject, which is signed, says that
    the mail was forwarded: a mail of ours that a person has passed on to others is the one that they hold.
    """
    ours = {address.lower() for address in own.addresses}
    if not coverage.covers("to") and _FORWARDED.match(strip_tags(inbound.subject, own.accepted_tags)):
        return False
    names = [name for name in ("to", "cc") if coverage.covers(name) or not coverage.covers("to")]
    for address in inbound.recipients_in(*names):
        local, _, domain = address.lower().rpartition("@")
        if f"{local}@{domain}" in ours or f"{local.partition('+')[0]}@{domain}" in ours:
            return True
    return False
