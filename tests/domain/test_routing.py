"""Where a mail belongs: the rules in their order, and what falls through."""

from datetime import UTC, datetime, timedelta

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain import token
from mailgateway.domain.route import Purpose, Route
from mailgateway.domain.routing import (
    Ambiguous,
    Claims,
    ExpiredToken,
    Facts,
    NoToken,
    OtherDevice,
    Routed,
    TokenFact,
    Via,
    claims_of,
    resolve,
)
from mailgateway.ids import MachineId, MessageId, RouteId, SessionId, machine_digest, session_digest
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.own import Own
from tests.mail.mails import AGENT, OWN, PERSON, lay

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
MACHINE = MachineId("machine-1")
HERE = machine_digest(MACHINE)


def route(name: str, purpose: Purpose = Purpose.SESSION, hours: int = 1) -> Route:
    """A route that lives for some hours from now."""
    return Route(
        id=RouteId(name),
        purpose=purpose,
        session_id=SessionId(f"s-{name}"),
        machine_id=MACHINE,
        recipient=PERSON,
        expires_at=NOW + timedelta(hours=hours),
    )


A, B, C = route("aaaaaa"), route("bbbbbb"), route("cccccc")
OLD = route("dddddd", hours=-1)
QUESTION, APPROVAL = route("eeeeee", Purpose.QUESTION), route("ffffff", Purpose.APPROVAL)
ALL = (A, B, C, OLD, QUESTION, APPROVAL)


def own_id(name: str, machine8: str = HERE) -> MessageId:
    """The Message-ID of a mail that was sent for a route."""
    return MessageId(f"<mg.{name}.0011223344556677.{machine8}@example.org>")


FACTS = Facts(
    now=NOW,
    machine_id=MACHINE,
    machine8=HERE,
    routes={each.id: each for each in ALL},
    chain={own_id(each.id): each for each in ALL},
    token=TokenFact(token.Valid(session_digest(C.session_id), int(C.expires_at.timestamp())), C.session_id),
)
UNKNOWN = RouteId("000000")


def chain(*names: str) -> tuple[MessageId, ...]:
    """A reply chain, newest first, of our Message-IDs."""
    return tuple(own_id(name) for name in names)


class ResolveTests(SynchronousTestCase):
    """The pure resolution."""

    def test_the_order_of_the_rules(self) -> None:
        """Plus-address, short id, signed token, chain."""
        everything = Claims(plus=B.id, short=B.id, signed="t", chain=chain("dddddd", "bbbbbb"))
        self.assertEqual(resolve(everything, FACTS), Routed(B, Via.PLUS))
        self.assertEqual(resolve(evolve(everything, plus=None), FACTS), Routed(B, Via.SHORT_ID))
        by_token = resolve(evolve(everything, plus=None, short=None), FACTS)
        assert isinstance(by_token, Routed)
        self.assertEqual(
            (by_token.via, by_token.route.session_id, by_token.route.id), (Via.TOKEN, C.session_id, "")
        )
        self.assertEqual(resolve(Claims(chain=everything.chain), FACTS), Routed(B, Via.CHAIN))

    def test_what_resolves_to_nothing_falls_through(self) -> None:
        """Unknown, expired, invalid, of an unknown session: the next rule is asked."""
        for claims, facts in (
            (Claims(plus=UNKNOWN, short=UNKNOWN, chain=chain("aaaaaa")), FACTS),
            (Claims(plus=OLD.id, short=OLD.id, chain=chain("dddddd", "aaaaaa")), FACTS),
            (Claims(signed="t", chain=chain("aaaaaa")), evolve(FACTS, token=TokenFact(token.Invalid()))),
            (Claims(signed="t", chain=chain("aaaaaa")), evolve(FACTS, token=TokenFact(token.Expired()))),
            (Claims(signed="t", chain=chain("aaaaaa")), evolve(FACTS, token=TokenFact(token.OtherDevice()))),
            (
                Claims(signed="t", chain=chain("aaaaaa")),
                evolve(FACTS, token=TokenFact(token.Valid(b"x" * 8, 1))),
            ),
            (Claims(chain=(MessageId("<x@y>"), own_id("000000"), *chain("aaaaaa", "bbbbbb"))), FACTS),
        ):
            self.assertEqual(resolve(claims, facts), Routed(A, Via.CHAIN), claims)

    def test_nothing_resolves(self) -> None:
        """No token when there was nothing of ours; expired when something was, once."""
        for claims in (Claims(), Claims(short=UNKNOWN), Claims(chain=(MessageId("<x@y>"), own_id("000000")))):
            self.assertEqual(resolve(claims, FACTS), NoToken(), claims)
        for claims in (Claims(plus=OLD.id), Claims(short=OLD.id), Claims(chain=chain("dddddd"))):
            self.assertEqual(resolve(claims, FACTS), ExpiredToken(), claims)
        for checked, wanted in (
            (token.Expired(), ExpiredToken()),
            (token.OtherDevice(), OtherDevice()),
            (token.Invalid(), NoToken()),
            (token.Valid(b"x" * 8, 1), NoToken()),
        ):
            self.assertEqual(resolve(Claims(signed="t"), evolve(FACTS, token=TokenFact(checked))), wanted)

    def test_a_token_counts_only_when_the_mail_has_one(self) -> None:
        """Facts about a token are nothing without the claim."""
        self.assertEqual(resolve(Claims(), FACTS), NoToken())

    def test_consent_is_never_steered(self) -> None:
        """For questions and approvals a tag and a chain must agree; for sessions the tag wins."""
        self.assertEqual(resolve(Claims(short=A.id, chain=chain("bbbbbb")), FACTS), Routed(A, Via.SHORT_ID))
        for tagged in (QUESTION, APPROVAL):
            self.assertEqual(resolve(Claims(short=tagged.id, chain=chain("bbbbbb")), FACTS), Ambiguous())
            self.assertEqual(resolve(Claims(plus=tagged.id, chain=chain("bbbbbb")), FACTS), Ambiguous())
            self.assertEqual(resolve(Claims(short=B.id, chain=chain(tagged.id)), FACTS), Ambiguous())
            self.assertEqual(resolve(Claims(signed="t", chain=chain(tagged.id)), FACTS), Ambiguous())
            self.assertEqual(
                resolve(Claims(short=tagged.id, chain=chain(tagged.id, "bbbbbb")), FACTS),
                Routed(tagged, Via.SHORT_ID),
            )

    def test_addresses_and_subject_never_pull_apart(self) -> None:
        """Whatever the routes are for: two living ones are no answer; one that is over or unknown is none."""
        same_session = evolve(B, session_id=C.session_id)
        for named in (
            Claims(plus=A.id, short=B.id),
            Claims(plus=A.id, short=QUESTION.id),
            Claims(plus=A.id, other_plus=(B.id,)),
            Claims(plus=UNKNOWN, other_plus=(A.id,), short=B.id),
            Claims(plus=A.id, other_plus=(B.id,), short=B.id),
            Claims(plus=A.id, signed="t"),
            Claims(plus=QUESTION.id, signed="t"),
        ):
            self.assertEqual(resolve(named, FACTS), Ambiguous(), named)
        for named in (
            Claims(plus=A.id, short=A.id),
            Claims(plus=A.id, short=UNKNOWN),
            Claims(plus=A.id, short=OLD.id),
            Claims(plus=OLD.id, other_plus=(A.id,)),
            Claims(plus=C.id, signed="t"),
        ):
            self.assertIsInstance(resolve(named, FACTS), Routed, named)
        known = evolve(FACTS, routes={B.id: same_session})
        self.assertEqual(resolve(Claims(plus=B.id, signed="t"), known), Routed(same_session, Via.PLUS))

    def test_unsigned_ids_route_nothing(self) -> None:
        """Even when the caller has looked them up."""
        self.assertEqual(resolve(Claims(unsigned=chain("aaaaaa")), FACTS), NoToken())

    def test_another_machine_s_mail(self) -> None:
        """Is its own, unless our tables know it or another rule resolves; an equal short id does not."""
        foreign = own_id("aaaaaa", "12345678")
        self.assertEqual(resolve(Claims(chain=(foreign,)), FACTS), OtherDevice())
        self.assertEqual(resolve(Claims(short=UNKNOWN, chain=(foreign,)), FACTS), OtherDevice())
        self.assertEqual(resolve(Claims(short=A.id, chain=(foreign,)), FACTS), OtherDevice())
        self.assertEqual(resolve(Claims(short=B.id, chain=(foreign,)), FACTS), Routed(B, Via.SHORT_ID))
        shared = evolve(FACTS, chain={foreign: A})
        self.assertEqual(resolve(Claims(short=A.id, chain=(foreign,)), shared), Routed(A, Via.SHORT_ID))

    def test_threading_by_headers_can_be_turned_off(self) -> None:
        """Only the chain rule goes."""
        off = evolve(FACTS, header_threading=False)
        self.assertEqual(resolve(Claims(chain=chain("aaaaaa")), off), NoToken())
        self.assertEqual(resolve(Claims(short=A.id, chain=chain("eeeeee")), off), Routed(A, Via.SHORT_ID))

    @given(
        st.sampled_from([None, UNKNOWN, *(each.id for each in ALL)]),
        st.sampled_from([None, UNKNOWN, *(each.id for each in ALL)]),
        st.booleans(),
        st.lists(st.sampled_from([own_id("000000"), *(own_id(each.id) for each in ALL)]), max_size=3),
    )
    def test_an_expired_route_is_never_reached(
        self, plus: RouteId | None, short: RouteId | None, signed: bool, ids: list[MessageId]
    ) -> None:
        """Whatever the claims say, a routed mail goes to a living route that it named."""
        claims = Claims(plus=plus, short=short, signed="t" if signed else None, chain=tuple(ids))
        match resolve(claims, FACTS):
            case Routed(route=found):
                self.assertGreater(found.expires_at, NOW)
                self.assertTrue(
                    found.id in {plus, short} or own_id(found.id) in ids or (signed and found.id == "")
                )
            case ExpiredToken():
                self.assertTrue(OLD.id in {plus, short} or own_id(OLD.id) in ids)
            case NoToken() | Ambiguous() | OtherDevice():
                pass


def claims(own: Own, *fields: tuple[str, str]) -> Claims:
    """The claims of a mail with these fields."""
    inbound = read(lay([("From", PERSON), *fields]))
    assert isinstance(inbound, Inbound)
    return claims_of(inbound, own)


class ClaimsTests(SynchronousTestCase):
    """What a mail says."""

    def test_all_of_them(self) -> None:
        """In-Reply-To first, then References newest first, each once."""
        self.assertEqual(
            claims(
                OWN,
                ("To", f"x@y.example, Agent <{AGENT.replace('@', '+F913C9@')}>"),
                ("Subject", "Re: =?utf-8?Q?=5BMG=3Aaaaaaa=5D?= x"),
                ("References", "<1@x>\r\n <2@x> <3@x>"),
                ("In-Reply-To", "<2@x>"),
            ),
            Claims(
                plus=RouteId("f913c9"),
                short=RouteId("aaaaaa"),
                chain=(MessageId("<2@x>"), MessageId("<3@x>"), MessageId("<1@x>")),
            ),
        )

    def test_a_signed_token(self) -> None:
        """As it stands in the subject, across a fold."""
        text = "A" * 22 + "." + "b" * 16
        self.assertEqual(claims(OWN, ("Subject", f"Re:\r\n [mg:{text}]\r\n x")), Claims(signed=text))

    def test_what_servers_note_is_no_address(self) -> None:
        """Whoever hands a mail on can write it."""
        for name in ("Delivered-To", "X-Original-To", "Envelope-To", "Resent-To", "Reply-To", "Bcc"):
            self.assertEqual(claims(OWN, (name, "agent+f913c9@example.org")), Claims(), name)

    def test_several_plus_addresses(self) -> None:
        """All of them are told."""
        to = ("To", "agent+f913c9@example.org, agent+aaaaaa@example.org, agent+f913c9@example.org")
        self.assertEqual(claims(OWN, to), Claims(plus=RouteId("f913c9"), other_plus=(RouteId("aaaaaa"),)))

    def test_plus_addresses_are_off_by_default(self) -> None:
        """Where the account does not have them, they are somebody's choice of a name."""
        off = evolve(OWN, plus_addresses={AGENT: False})
        self.assertEqual(claims(off, ("To", "agent+f913c9@example.org")), Claims())
