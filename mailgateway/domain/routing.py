"""Which session a mail belongs to: what the mail claims, and how claims resolve against what we know.

The rules in their order: the plus-address, the short id in the subject, the signed token in the subject, the
reply chain (In-Reply-To, then References newest first).  What resolves to nothing falls through to the next
rule; addresses and subject that resolve to different routes are no answer at all.  A claim counts only when
the sender's own signature covers the field that carries it.  None of it says anything about who may speak:
that is decided before.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum, unique

from attrs import Factory, evolve, field, frozen

from mailgateway.domain import token
from mailgateway.domain.route import Purpose, Route
from mailgateway.ids import MachineId, MessageId, RouteId, SessionId
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own
from mailgateway.mail.signature import coverage_for
from mailgateway.mail.tag import ShortTag, SignedTag, find_tag, parse_own_message_id, plus_route


@frozen(kw_only=True)
class Claims:
    """What a mail says about where it belongs; nothing of it is believed yet.

    ``chain`` are Message-IDs: those of In-Reply-To, then of References newest first, each once.
    ``other_plus`` are further plus-addresses, of other routes than the first.  What stands in a field that
    the sender's signature leaves out is no claim; Message-IDs from there are in ``unsigned``, and may tell
    which text of ours is quoted, but never where the mail belongs.
    """

    plus: RouteId | None = None
    other_plus: tuple[RouteId, ...] = ()
    short: RouteId | None = None
    signed: str | None = field(default=None, repr=False)
    chain: tuple[MessageId, ...] = ()
    unsigned: tuple[MessageId, ...] = ()

    @property
    def all_plus(self) -> tuple[RouteId, ...]:
        """The routes of all plus-addresses."""
        return (*((self.plus,) if self.plus is not None else ()), *self.other_plus)

    @property
    def routes(self) -> tuple[RouteId, ...]:
        """The short ids to look up."""
        return tuple(dict.fromkeys((*self.all_plus, *((self.short,) if self.short is not None else ()))))


def claims_of(inbound: Inbound, own: Own) -> Claims:
    """Extract the claims of a mail: from its own fields, as far as the sender signed them."""
    coverage = coverage_for(inbound, own)
    addressed = inbound.recipients_in(*(name for name in ("to", "cc") if coverage.covers(name)))
    plus = tuple(
        dict.fromkeys(
            route
            for account, on in own.plus_addresses.items()
            if on
            for recipient in addressed
            if (route := plus_route(recipient, account)) is not None
        )
    )
    signed: list[MessageId] = []
    unsigned: list[MessageId] = []
    for name, ids in (("in-reply-to", inbound.in_reply_to), ("references", inbound.references[::-1])):
        (signed if coverage.covers(name) else unsigned).extend(ids)
    claims = Claims(
        plus=plus[0] if plus else None,
        other_plus=plus[1:],
        chain=tuple(dict.fromkeys(signed)),
        unsigned=tuple(dict.fromkeys(unsigned)),
    )
    match find_tag(inbound.subject, own.accepted_tags) if coverage.covers("subject") else None:
        case ShortTag(route=route):
            return evolve(claims, short=route)
        case SignedTag(token=text):
            return evolve(claims, signed=text)
        case None:
            return claims


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
    """The mail names different routes: addresses and subject, or for a question the tag and the chain."""


Resolution = Routed | NoToken | ExpiredToken | OtherDevice | Ambiguous


def resolve(claims: Claims, facts: Facts) -> Resolution:
    """Apply the rules in their order."""
    foreign = _foreign(claims, facts)
    by_tag = _by_tag(claims, facts)
    if len(_addressed(claims, facts)) > 1 or _pulls_apart(claims, facts):
        return Ambiguous()
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


def _addressed(claims: Claims, facts: Facts) -> dict[RouteId, Route]:
    """The living routes that plus-addresses name."""
    living = ((each, facts.routes.get(each)) for each in claims.all_plus)
    return {each: found for each, found in living if found is not None and found.expires_at > facts.now}


def _pulls_apart(claims: Claims, facts: Facts) -> bool:
    """Whether the address and the subject name different living routes.

    Both are written by the same hand, and no person's program makes them differ.
    """
    by_subject = _by_tag(evolve(claims, plus=None, other_plus=()), facts)
    if not isinstance(by_subject, Routed):
        return False
    tagged = by_subject.route
    return any(
        addressed.id != tagged.id
        and not (
            by_subject.via is Via.TOKEN
            and addressed.purpose is Purpose.SESSION
            and addressed.session_id == tagged.session_id
        )
        for addressed in _addressed(claims, facts).values()
    )


def _disagree(tagged: Route, threaded: Route) -> bool:
    """Consent must not be steered to another question than the one under the person's eyes."""
    return tagged.id != threaded.id and (tagged.purpose in _CONSENT or threaded.purpose in _CONSENT)


_CONSENT = frozenset({Purpose.QUESTION, Purpose.APPROVAL})


def _by_tag(claims: Claims, facts: Facts) -> Resolution:
    """The plus-address, the short id, the signed token: the first that resolves, else the first reason."""
    missed: Resolution = NoToken()
    plus = ((each, Via.PLUS) for each in claims.all_plus)
    short = ((each, Via.SHORT_ID) for each in (claims.short,) if each is not None)
    for claim, via in (*plus, *short):
        found = facts.routes.get(claim)
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
