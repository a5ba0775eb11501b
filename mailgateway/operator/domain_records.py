"""What the domain of an address publishes about its mail: SPF (RFC 7208) and DMARC (RFC 7489), read only.

Policy: whether a mail of ours is believed is decided by those who get it, so nothing here is a failure but an
answer that breaks the rules.  Reading of the records is pure; ``look_at_domain`` asks.
"""

import re
from collections.abc import Sequence

from mailgateway.errors import Unreachable
from mailgateway.operator.findings import Record, State
from mailgateway.protocols.lookup import Lookup
from mailgateway.settings import Account
from mailgateway.wire.host_name import host_name

_SPF = re.compile(rb"v=spf1(?: |$)", re.IGNORECASE)
_DMARC = re.compile(rb"v=DMARC1\s*(?:;|$)")
_POLICY = re.compile(rb";\s*p\s*=\s*(none|quarantine|reject)\s*(?:;|$)", re.IGNORECASE)

_DNS = "Whoever runs the DNS of the domain does this; your provider tells the record."


async def look_at_domain(lookup: Lookup, account: Account, record: Record) -> None:
    """Ask for both records of the domain of an account's address."""
    domain = host_name(account.domain)
    if domain is None:
        record.skip(f"{account.tag} dns", f"{account.domain} is no public domain, so DNS was not asked")
        return
    for word, name, told in (("spf", domain, tell_spf), ("dmarc", f"_dmarc.{domain}", tell_dmarc)):
        step = f"{account.tag} dns {word}"
        record.begin(step, f"asking for {name}")
        try:
            texts = await lookup.texts(name)
        except Unreachable as error:
            record.add(step, State.WARNING, f"{error.text}", "Is this machine online? Look at its DNS.")
            return
        state, what, advice = told(domain, texts)
        record.add(step, state, what, advice)


def tell_spf(domain: str, texts: Sequence[bytes]) -> tuple[State, str, str]:
    """What the TXT records of a domain say of who sends for it: the state, the fact, and what to do."""
    found = [each for each in texts if _SPF.match(each)]
    if not found:
        what = f"{domain} does not say who sends for it (no SPF), so its mail may be taken for junk"
        return State.WARNING, what, f"Publish one SPF record. {_DNS}"
    if len(found) > 1:
        what = f"{domain} has {len(found)} SPF records, which count for none"
        return State.FAILED, what, f"Leave one of them. {_DNS}"
    if re.search(rb"\+all\b| all\b", found[0], re.IGNORECASE):
        what = f"the SPF record of {domain} lets everybody send for it (+all)"
        return State.WARNING, what, f"End it with -all or ~all. {_DNS}"
    return State.OK, f"{domain} says who sends for it (SPF)", ""


def tell_dmarc(domain: str, texts: Sequence[bytes]) -> tuple[State, str, str]:
    """The same of what is done with mail that only pretends to come from the domain."""
    found = [each for each in texts if _DMARC.match(each)]
    if not found:
        what = f"{domain} has no DMARC record of its own; one of the domain above counts, if there is one"
        return State.NOTE, what, f"Publish one, p=none for a start. {_DNS}"
    if len(found) > 1:
        what = f"{domain} has {len(found)} DMARC records, which count for none"
        return State.FAILED, what, f"Leave one of them. {_DNS}"
    policy = _POLICY.search(found[0])
    if policy is None:
        return State.FAILED, f"the DMARC record of {domain} has no policy (p=)", f"Write p=none. {_DNS}"
    return State.OK, f"{domain} has a DMARC record, its policy is {policy[1].decode().lower()}", ""
