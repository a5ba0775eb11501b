"""One judged mail against the tables: what it becomes.

Runs inside the transaction of ``receive`` and writes nothing.  The mail was judged before by its bytes alone.
What a person wrote goes on to ``from_person``; here is all the rest: mail that is refused or waits, reports
of mail servers, and mail too large to be read.
"""

from typing import assert_never

from attrs import evolve

from mailgateway.domain.judge import BounceOf, FromPerson, Refused, Waits
from mailgateway.domain.outbox import MailKind
from mailgateway.domain.route import Purpose
from mailgateway.domain.routing import Routed, claims_of, resolve
from mailgateway.flows.bounces import read_report
from mailgateway.flows.filing import (
    Deliver,
    FilingRules,
    Mail,
    Sorted,
    Turned,
    empty_envelope,
    persons_mail,
    sender_and_subject,
    subject_of,
)
from mailgateway.flows.from_person import route_facts, sort_person
from mailgateway.flows.held import verdict_of
from mailgateway.flows.troubles import Trouble
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.verdict import Verdict
from mailgateway.store import routes, threads
from mailgateway.store.database import Tx


def sort(tx: Tx, rules: FilingRules, mail: Mail) -> Sorted:
    """Decide what a mail becomes; reads rows and writes none."""
    match mail.judged:
        case Refused(verdict=Verdict.TOO_LARGE, inbound=Inbound() as inbound) as refused:
            return _too_large(tx, rules, mail, inbound, refused)
        case Refused(verdict=verdict, inbound=inbound) as refused:
            concerns = inbound is not None and _concerns(tx, rules, inbound, refused.address)
            return Turned(verdict, concerns, *sender_and_subject(refused, rules), reason=refused.reason)
        case BounceOf() as bounce:
            return _bounce(tx, rules, mail, bounce)
        case FromPerson() as judged:
            return sort_person(tx, rules, mail, judged)
        case Waits(awaits=awaits, reason=reason) as waits:
            return Turned(verdict_of(awaits), True, *sender_and_subject(waits, rules), reason=reason)
        case _:
            assert_never(mail.judged)


def _too_large(tx: Tx, rules: FilingRules, mail: Mail, inbound: Inbound, refused: Refused) -> Sorted:
    """A mail too large to be read: its session is told in our words; nothing of it is believed or shown.

    Its sender is told as well, where the header alone proves who that is.
    """
    address, subject = refused.address, subject_of(inbound, rules)
    turned = Turned(Verdict.TOO_LARGE, _concerns(tx, rules, inbound, address), address, subject)
    if address not in rules.own.allowed:
        return turned
    claims = claims_of(inbound, rules.own)
    match resolve(claims, route_facts(tx, rules, claims, threads.find(tx, claims.chain))):
        case Routed(route=route) if route.purpose is not Purpose.DIGEST:
            text = (
                "A mail came for this session that is too large to be read, so nothing of it was checked. "
                "It lies in the mailbox; ask for a shorter one."
            )
            notice = evolve(
                empty_envelope(tx, rules, mail, route, inbound), subject="A mail is too large", body=text
            )
            if not refused.authentic:
                return Deliver(notice, (), verdict=Verdict.TOO_LARGE)
            letter = persons_mail(inbound, address, subject, route)
            return Deliver(notice, (), verdict=Verdict.TOO_LARGE, mail=letter, trouble=Trouble.TOO_LARGE)
        case _:
            return turned


def _bounce(tx: Tx, rules: FilingRules, mail: Mail, bounce: BounceOf) -> Sorted:
    """A report about a mail of ours: the session that sent it is told in our words, once for a recipient."""
    reported = read_report(tx, bounce)
    sender, subject = sender_and_subject(bounce, rules)
    if reported is None:
        return Turned(Verdict.BOUNCE, bool(threads.find(tx, bounce.message_ids)), sender, subject)
    thread = threads.find(tx, [reported.mail.message_id]).get(reported.mail.message_id)
    own = reported.mail.kind is MailKind.NOTICE
    if thread is None or thread.route.purpose is Purpose.DIGEST or own or not reported.failed:
        why = "a mail of ours could not be delivered" if reported.failed else "a mail of ours is delayed"
        return Turned(Verdict.BOUNCE, True, sender, subject, reason=why, reported=reported)
    notice = evolve(
        empty_envelope(tx, rules, mail, thread.route, bounce.inbound),
        subject="A mail could not be delivered",
        body=reported.words,
        in_reply_to=thread.message_id,
        question_id=reported.mail.question_id,
    )
    return Deliver(notice, (), verdict=Verdict.BOUNCE, reported=reported)


def _concerns(tx: Tx, rules: FilingRules, inbound: Inbound, address: str) -> bool:
    """Whether a mail is ours to tell about: from an allowed person, or it names a route or a mail of ours."""
    if address in rules.own.allowed:
        return True
    claims = claims_of(inbound, rules.own)
    return any(routes.taken(tx, each) for each in claims.routes) or bool(threads.find(tx, claims.chain))
