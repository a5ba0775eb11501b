"""The rows behind what a mail claims about where it belongs: all that routing decides by.

Runs inside the transaction that files the mail, and writes nothing.
"""

from collections.abc import Mapping
from typing import assert_never

from attrs import evolve

from mailgateway.domain import token
from mailgateway.domain.identity import Identity
from mailgateway.domain.question import QuestionStatus
from mailgateway.domain.route import Purpose, Route
from mailgateway.domain.routing import Claims, Facts, TokenFact
from mailgateway.ids import MachineId, MessageId, machine_digest
from mailgateway.store import machines, questions, routes, sessions
from mailgateway.store.database import Tx
from mailgateway.store.threads import Thread


def facts_of(
    tx: Tx,
    identity: Identity,
    claims: Claims,
    known: Mapping[MessageId, Thread],
    *,
    token_key: str | None,
    header_threading: bool,
) -> Facts:
    """The rows behind the claims of a mail.

    ``known`` are the threads of the chain; ``token_key`` is what signed tokens are verified with, ``None``:
    none is believed.
    """
    machine = identity.machine_id
    found = {each: route for each in claims.routes if (route := routes.find(tx, each)) is not None}
    return Facts(
        now=tx.now,
        machine_id=machine,
        machine8=machine_digest(machine),
        routes=found,
        chain={each: _route_of(thread) for each, thread in known.items()},
        token=_token(tx, machine, claims.signed, token_key),
        header_threading=header_threading,
    )


def with_settled_as_threads(tx: Tx, facts: Facts) -> Facts:
    """The facts, with the routes of settled questions as what they are by now: threads of their sessions.

    Where nothing is open any more, no consent can be steered to another question, and a reply that names two
    old mails goes by the order of the rules like any other.
    """

    def today(route: Route) -> Route:
        if route.purpose is not Purpose.QUESTION or route.question_id is None:
            return route
        question = questions.find(tx, route.question_id)
        is_open = question is None or question.status is QuestionStatus.OPEN
        return route if is_open else evolve(route, purpose=Purpose.SESSION)

    return evolve(
        facts,
        routes={each: today(route) for each, route in facts.routes.items()},
        chain={each: today(route) for each, route in facts.chain.items()},
    )


def _route_of(thread: Thread) -> Route:
    """A reply chain lasts as long as both the mail that is answered and its route."""
    return evolve(thread.route, expires_at=min(thread.expires_at, thread.route.expires_at))


def _token(tx: Tx, machine: MachineId, signed: str | None, key: str | None) -> TokenFact | None:
    if signed is None or not key:
        return None
    devices = [bytes.fromhex(each) for each in sorted(machines.digests(tx, machine))]
    checked = token.verify(signed, key, tx.now, devices)
    match checked:
        case token.Valid(session_digest=digest):
            known = sessions.by_digest(tx, digest.hex())
            return TokenFact(checked, known[0] if len(known) == 1 else None)
        case token.Expired() | token.OtherDevice() | token.Invalid():
            return TokenFact(checked)
        case _:
            assert_never(checked)


def named(facts: Facts) -> Route | None:
    """A route that the mail names or answers, living or over."""
    return next(iter((*facts.routes.values(), *facts.chain.values())), None)
