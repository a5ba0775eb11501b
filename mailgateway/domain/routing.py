"""Which session a mail belongs to: what the mail claims, and how claims resolve against what we know.

The rules in their order: the plus-address, the short id in the subject, the signed token in the subject, the
reply chain (In-Reply-To, then References newest first).  What resolves to nothing falls through to the next
rule.  None of it says anything about who may speak: that is decided before.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum, unique

from attrs import Factory, field, frozen

from mailgateway.domain import token
from mailgateway.domain.route import Purpose, Route
from mailgateway.ids import MachineId, MessageId, RouteId, SessionId
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own
from mailgateway.mail.tag import ShortTag, SignedTag, find_tag, parse_own_message_id, plus_route


@frozen(kw_only=True)
class Claims:
    """What a mail says about where it belongs; nothing of it is believed yet.

    ``chain`` are Message-IDs: those of In-Reply-To, then of References newest first, each once.
    """

    plus: RouteId | None = None
    short: RouteId | None = None
    signed: str | None = field(default=None, repr=False)
    chain: tuple[MessageId, ...] = ()

    @property
    def routes(self) -> tuple[RouteId, ...]:
        """The short ids to look up."""
        return tuple(dict.fromkeys(each for each in (self.plus, self.short) if each is not None))


def claims_of(inbound: Inbound, own: Own) -> Claims:
    """Extract the claims of a mail."""
    plus = next(
        (
            route
            for account, on in own.plus_addresses.items()
            if on
            for recipient in inbound.recipients
            if (route := plus_route(recipient, account)) is not None
        ),
        None,
    )
    chain = tuple(dict.fromkeys((*inbound.in_reply_to, *reversed(inbound.references))))
    match find_tag(inbound.subject, own.accepted_tags):
        case ShortTag(route=route):
            return Claims(plus=plus, short=route, chain=chain)
        case SignedTag(token=text):
            return Claims(plus=plus, signed=text, chain=chain)
        case None:
            return Claims(plus=plus, chain=chain)


@unique
class Via(StrEnum):
    """The rule by which a mail found its route."""

    PLUS = "plus"
    SHORT_ID = "short-id"
    TOKEN = "token"  # noqa: S105 - a rule's name, not a secret
    CHAIN = "chain"


@frozen
class TokenFact:
    """What became of the signed token: the check, and the session with that digest if it is known here."""

    checked: token.Checked
    session_id: SessionId | None = None


@frozen(kw_only=True)
class Facts:
    """What the caller looked up for the claims, all in one transaction.

    ``routes`` holds the rows for `Claims.routes`, ``chain`` those for the Message-IDs of `Claims.chain` that
    are threads of ours; expired rows included.  ``machine8`` is this machine's digest as in Message-IDs.
    """

    now: datetime
    machine_id: MachineId
    machine8: str
    routes: Mapping[RouteId, Route] = Factory(dict)
    chain: Mapping[MessageId, Route] = Factory(dict)
    token: TokenFact | None = None
    header_threading: bool = True


@frozen
class Routed:
    """The mail belongs to this route; a route by token has no id and is a session's."""

    route: Route
    via: Via


@frozen
class NoToken:
    """Nothing in the mail resolves."""


@frozen
class ExpiredToken:
    """Something in the mail was ours, but its time is over, and nothing else resolves."""


@frozen
class OtherDevice:
    """The mail answers what another machine sent."""


@frozen
class Ambiguous:
    """For a question or approval, the tag and the chain name different routes."""


Resolution = Routed | NoToken | ExpiredToken | OtherDevice | Ambiguous


def resolve(claims: Claims, facts: Facts) -> Resolution:
    """Apply the rules in their order."""
    foreign = _foreign(claims, facts)
    by_tag = _by_tag(claims, facts)
    by_chain = _by_chain(claims, facts) if facts.header_threading else NoToken()
    if isinstance(by_tag, Routed) and by_tag.route.id in foreign:
        return OtherDevice()
    match by_tag, by_chain:
        case Routed(route=tagged), Routed(route=threaded) if _disagree(tagged, threaded):
            return Ambiguous()
        case Routed(), _:
            return by_tag
        case _, Routed():
            return by_chain
    for missed in (by_tag, OtherDevice() if foreign else NoToken(), by_chain):
        if not isinstance(missed, NoToken):
            return missed
    return NoToken()


def _disagree(tagged: Route, threaded: Route) -> bool:
    """Consent must not be steered to another question than the one under the person's eyes."""
    return tagged.id != threaded.id and (
        tagged.purpose is not Purpose.SESSION or threaded.purpose is not Purpose.SESSION
    )


def _by_tag(claims: Claims, facts: Facts) -> Resolution:
    """The plus-address, the short id, the signed token: the first that resolves, else the first reason."""
    missed: Resolution = NoToken()
    for claim, via in ((claims.plus, Via.PLUS), (claims.short, Via.SHORT_ID)):
        found = facts.routes.get(claim) if claim is not None else None
        if found is not None and found.expires_at > facts.now:
            return Routed(found, via)
        if found is not None and isinstance(missed, NoToken):
            missed = ExpiredToken()
    by_token = _by_token(facts) if claims.signed is not None else NoToken()
    return by_token if isinstance(by_token, Routed) or isinstance(missed, NoToken) else missed


def _by_token(facts: Facts) -> Resolution:
    match facts.token:
        case TokenFact(checked=token.Valid(expires_at=seconds), session_id=session) if session is not None:
            route = Route(
                id=RouteId(""),
                purpose=Purpose.SESSION,
                session_id=session,
                machine_id=facts.machine_id,
                recipient="",
                expires_at=datetime.fromtimestamp(seconds, UTC),
            )
            return Routed(route, Via.TOKEN)
        case TokenFact(checked=token.Expired()):
            return ExpiredToken()
        case TokenFact(checked=token.OtherDevice()):
            return OtherDevice()
        case _:
            return NoToken()


def _by_chain(claims: Claims, facts: Facts) -> Resolution:
    missed: Resolution = NoToken()
    for message_id in claims.chain:
        found = facts.chain.get(message_id)
        if found is None:
            continue
        if found.expires_at > facts.now:
            return Routed(found, Via.CHAIN)
        missed = ExpiredToken()
    return missed


def _foreign(claims: Claims, facts: Facts) -> frozenset[RouteId]:
    """The routes in Message-IDs of our shape that another machine wrote and our tables do not know."""
    parsed = (parse_own_message_id(each) for each in claims.chain if each not in facts.chain)
    return frozenset(own.route for own in parsed if own is not None and own.machine8 != facts.machine8)
