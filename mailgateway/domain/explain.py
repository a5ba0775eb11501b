"""How the gateway would treat a mail, told without a service: the substance of ``mailgateway explain``."""

import re
from collections.abc import Mapping
from enum import StrEnum, unique
from typing import Any, assert_never

from attrs import evolve, field, frozen

from mailgateway.domain.judge import BounceOf, FromPerson, Refused, Waits, judge_inbound
from mailgateway.domain.routing import Claims, claims_of
from mailgateway.mail.automatic import Automatic, OwnMail, Person, classify
from mailgateway.mail.bounce import Bounce
from mailgateway.mail.decode import Malformed
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


@frozen(kw_only=True)
class Explanation:
    """The answer for one mail."""

    kind: Kind
    text: str = field(default="", repr=False)
    quoted: str = field(default="", repr=False)
    address: str = ""
    accepted: bool = False
    reason: str = ""
    why: str = ""
    """A sentence about the reason that quotes nothing of the mail."""
    route: Mapping[str, Any] = field(factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields of the command's line, without the file's name."""
        return {
            "kind": str(self.kind),
            "text": self.text,
            "quoted": self.quoted,
            "from": self.address,
            "sender": {
                "verdict": "accept" if self.accepted else "refuse",
                "reason": self.reason,
                "message": self.why,
            },
            "route": dict(self.route),
        }


def explain(raw: bytes, own: Own, context: Context | None = None) -> Explanation:
    """Explain the whole bytes of one mail.

    ``reason`` is the scan verdict: '' for an accepted mail, and for one that only the store could prove
    (its proof is named in the route as ``needsProof``).
    """
    context = context or Context()
    own = context.applied_to(own)
    inbound = read(raw)
    if isinstance(inbound, Malformed):
        return Explanation(kind=Kind.MALFORMED, reason=Verdict.MALFORMED, why=inbound.reason)
    kind, reply = _kind(inbound, own, context.sent_text)
    address = inbound.sender.address if isinstance(inbound.sender, OneMailbox) else ""
    told = Explanation(
        kind=kind,
        text=reply.text,
        quoted=reply.quoted,
        address=address,
        route=_route(claims_of(inbound, own)),
    )
    match judge_inbound(inbound, own):
        case Refused(verdict=verdict, reason=why):
            return evolve(told, reason=verdict, why=why)
        case BounceOf():
            return evolve(told, reason=Verdict.BOUNCE)
        case Waits(reason=why):
            return evolve(told, reason=Verdict.UNAUTHENTICATED, why=why)
        case FromPerson():
            return evolve(told, accepted=True, reason=Verdict.EMPTY if kind is Kind.EMPTY else "")
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


_COMMAND = re.compile(r"/[a-z]{2,20}(?:[ \t]+[^\n]{1,200})?", re.IGNORECASE)


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
    if _COMMAND.fullmatch(reply.text):
        return Kind.COMMAND, reply
    return Kind.REPLY, reply
