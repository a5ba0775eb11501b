"""How the gateway would treat a mail, told without a service: the substance of ``mailgateway explain``."""

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import Any, assert_never

from attrs import evolve, field, frozen

from mailgateway.domain.command import parse_command
from mailgateway.domain.judge import BounceOf, FromPerson, Refused, Waits, judge_inbound
from mailgateway.domain.routing import Claims, claims_of
from mailgateway.mail.attachments import Part, Reason, attachments_of
from mailgateway.mail.authenticity import Authentic, NeedsProof
from mailgateway.mail.automatic import Automatic, OwnMail, Person, classify
from mailgateway.mail.bounce import Bounce, RecipientReport
from mailgateway.mail.decode import Malformed, visible
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.own import Own
from mailgateway.mail.reply import Reply, typed_words
from mailgateway.mail.sender import OneMailbox
from mailgateway.mail.verdict import Verdict


@unique
class Kind(StrEnum):
    """What a mail is, whoever sent it."""

    REPLY = "reply"
    AUTO_REPLY = "auto_reply"
    BOUNCE = "bounce"
    LOOP = "loop"
    EMPTY = "empty"
    COMMAND = "command"
    MALFORMED = "malformed"


@frozen(kw_only=True)
class Context:
    """What a gateway knows about itself and about the mail that is answered, from a JSON file."""

    own_addresses: tuple[str, ...] = ()
    own_names: tuple[str, ...] = ()
    own_message_ids: tuple[str, ...] = ()
    own_header: str = ""
    person: str = ""
    sent_text: str | None = field(default=None, repr=False)

    @classmethod
    def from_json(cls, value: object) -> "Context":
        """Take the JSON object of a context file; what is missing or of another type is left out."""
        given: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        texts = [_string(given.get("original_text")), *_strings(given.get("inline_originals"))]
        sent = "\n".join(text for text in texts if text)
        return cls(
            own_addresses=_strings(given.get("own_addresses")),
            own_names=_strings(given.get("own_names")),
            own_message_ids=_strings(given.get("own_message_ids")),
            own_header=_string(given.get("own_header")),
            person=_string(given.get("person")),
            sent_text=sent or None,
        )

    def applied_to(self, own: Own) -> Own:
        """The settings' knowledge, widened by this context."""
        return evolve(
            own,
            addresses=own.addresses.union(self.own_addresses),
            names=own.names.union(self.own_names),
            message_ids=own.message_ids.union(self.own_message_ids),
            marker_header=self.own_header or own.marker_header,
            allowed=own.allowed.union([self.person] if self.person else []),
        )


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _strings(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


@unique
class Vouched(StrEnum):
    """What is known of From: see ``authentication`` of the answer."""

    AUTHENTIC = "authentic"
    FORGED = "forged"
    UNAUTHENTICATED = "unauthenticated"
    UNDECIDED = "undecided"
    """The evidence may come yet (an answer of the DNS, a copy in the Sent folder)."""
    NEEDS_PROOF = "needs-proof"
    """The store decides: whether the thread names mail that was sent."""
    NOT_ASKED = "not-asked"
    """Something earlier decided."""


@frozen(kw_only=True)
class Explanation:
    """The answer for one mail."""

    kind: Kind
    text: str = field(default="", repr=False)
    quoted: str = field(default="", repr=False)
    read: str = ""
    """The type of the part that the words were read from; '' where there are none."""
    address: str = ""
    subject: str = field(default="", repr=False)
    accepted: bool = False
    reason: str = ""
    why: str = ""
    """A sentence about the reason that quotes nothing of the mail."""
    vouched: Vouched = Vouched.NOT_ASKED
    method: str = ""
    route: Mapping[str, Any] = field(factory=dict)
    attachments: tuple[Part, ...] = field(default=(), repr=False)
    recipients: tuple[RecipientReport, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of the command's line, without the file's name."""
        fields: dict[str, Any] = {
            "kind": str(self.kind),
            "text": self.text,
            "quoted": self.quoted,
            "read": self.read,
            "from": self.address,
            "subject": self.subject,
            "sender": {
                "verdict": "accept" if self.accepted else "refuse",
                "reason": self.reason,
                "message": self.why,
            },
            "authentication": {"verdict": str(self.vouched), "method": self.method},
            "route": dict(self.route),
            "attachments": [
                {
                    "filename": part.filename,
                    "contentType": part.content_type,
                    "size": len(part.data),
                    "leftOut": str(part.left_out or ""),
                }
                for part in self.attachments
            ],
        }
        if self.kind is Kind.BOUNCE:
            fields["recipients"] = [
                {
                    "address": each.recipient,
                    "outcome": str(each.outcome),
                    "status": each.status,
                    "permanent": each.permanent,
                    "diagnostic": each.diagnostic,
                }
                for each in self.recipients
            ]
        return fields


def explain(raw: bytes, own: Own, context: Context | None = None) -> Explanation:
    """Explain the whole bytes of one mail.

    ``reason`` is the scan verdict: '' for an accepted mail, and for one that only the store could prove
    (its proof is named in the route as ``needsProof``).  What the mail is and says is told whether its sender
    is believed or not; of a believed one the same is read that the service reads.
    """
    context = context or Context()
    own = context.applied_to(own)
    inbound = read(raw)
    if isinstance(inbound, Malformed):
        return Explanation(kind=Kind.MALFORMED, reason=Verdict.MALFORMED, why=inbound.reason)
    judged = judge_inbound(inbound, own)
    inbound = judged.inbound or inbound
    kind, reply = _kind(inbound, own, context.sent_text)
    told = Explanation(
        kind=kind,
        text=reply.text,
        quoted=reply.quoted,
        read=str(reply.text_type) if reply.text else "",
        address=inbound.sender.address if isinstance(inbound.sender, OneMailbox) else "",
        subject=visible(inbound.subject),
        route=_route(claims_of(inbound, own)),
    )
    if kind in _PERSONS:
        told = evolve(told, attachments=attachments_of(inbound, own, context.sent_text))
    match judged:
        case Refused(verdict=verdict, reason=why):
            return evolve(told, reason=verdict, why=why, vouched=_REFUSED.get(verdict, Vouched.NOT_ASKED))
        case BounceOf(recipients=recipients):
            return evolve(told, reason=Verdict.BOUNCE, recipients=recipients)
        case Waits(reason=why):
            return evolve(told, reason=Verdict.UNAUTHENTICATED, why=why, vouched=Vouched.UNDECIDED)
        case FromPerson(authenticity=authenticity):
            vouched, method = _vouched(authenticity)
            return evolve(
                told, accepted=True, reason=_nothing_said(inbound, told), vouched=vouched, method=method
            )
        case other:
            assert_never(other)


def _nothing_said(inbound: Inbound, told: Explanation) -> str:
    """The verdict on a mail without words: its files may be worth something, unless it is sealed."""
    if told.text:
        return ""
    if inbound.unreadable:
        return Verdict.MALFORMED
    decoration = all(part.left_out is Reason.DECORATION for part in told.attachments)
    return Verdict.EMPTY if decoration else ""


_PERSONS = frozenset({Kind.REPLY, Kind.COMMAND, Kind.EMPTY, Kind.MALFORMED})
_REFUSED = {Verdict.FORGED: Vouched.FORGED, Verdict.UNAUTHENTICATED: Vouched.UNAUTHENTICATED}


def _vouched(authenticity: Authentic | NeedsProof) -> tuple[Vouched, str]:
    match authenticity:
        case Authentic(method=method):
            return Vouched.AUTHENTIC, method
        case NeedsProof(kind=kind):
            return Vouched.NEEDS_PROOF, str(kind)
        case other:
            assert_never(other)


def _route(claims: Claims) -> dict[str, Any]:
    """What the mail claims; a signed token is only said to be there."""
    return {
        "plus": claims.plus,
        "shortId": claims.short,
        "signedToken": claims.signed is not None,
        "chain": list(claims.chain),
    }


def _kind(inbound: Inbound, own: Own, sent_text: str | None) -> tuple[Kind, Reply]:
    match classify(inbound, own):
        case OwnMail():
            return Kind.LOOP, Reply("", "")
        case Bounce():
            return Kind.BOUNCE, Reply("", "")
        case Automatic():
            return Kind.AUTO_REPLY, Reply("", "")
        case Person():
            reply = typed_words(inbound, own, sent_text)
        case other:
            assert_never(other)
    if not reply.text:
        return (Kind.MALFORMED if inbound.unreadable else Kind.EMPTY), reply
    if parse_command(reply.text) is not None:
        return Kind.COMMAND, reply
    return Kind.REPLY, reply
