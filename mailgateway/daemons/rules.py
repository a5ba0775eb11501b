"""What the settings mean to those who read mail and to those who write it.

Flows know no settings: they are handed values, and here these are made.  Nothing is read or decided here.
"""

import os
from datetime import UTC, timedelta, tzinfo
from functools import lru_cache
from pathlib import Path

from attrs import evolve

from mailgateway.domain.attention import Attention, QuietHours
from mailgateway.domain.identity import Identity
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.scan import ScanRules
from mailgateway.flows.submit import Sender as SendingAs
from mailgateway.flows.troubles import Writer
from mailgateway.mail.own import normalise_address, own_of
from mailgateway.providers import Results, of_imap
from mailgateway.settings import (
    Account,
    Authentication,
    Notify,
    Security,
    Settings,
    SingleMailboxProof,
)

LOCAL_TIME = Path("/etc/localtime")


def sending_as(settings: Settings) -> SendingAs:
    """The account that mail of ours leaves from, and what the settings say about sending."""
    account = settings.sending
    return SendingAs(
        account=account.tag,
        address=account.address,
        from_name=account.from_name,
        domain=account.domain,
        tag=settings.security.tag,
        recipient=settings.people.notify,
        budget_per_minute=settings.notify.budget_per_minute,
        route_ttl=timedelta(hours=settings.security.route_ttl_hours),
        attention=attention_of(settings.notify),
        plus=account.plus_address,
        one_tap=_believes_new_mails(settings.security),
        public_url=settings.daemon.public_url,
    )


def _believes_new_mails(security: Security) -> bool:
    """Whether a person's mail is believed that is no reply, as one that a link made."""
    return not (
        security.authentication is Authentication.SINGLE_MAILBOX
        and security.single_mailbox_proof is SingleMailboxProof.THREAD
    )


def attention_of(notify: Notify) -> Attention:
    """When people are written to."""
    span = notify.quiet_hours
    zone = zone_of(notify.time_zone, LOCAL_TIME) if notify.time_zone or span is not None else UTC
    return Attention(
        zone=zone,
        quiet=None if span is None else QuietHours(*span, zone),
        quiet_decisions=notify.quiet_decisions,
        bundle=timedelta(seconds=notify.bundle_seconds),
        remind_after=timedelta(hours=notify.remind_after_hours),
        escalate_after=timedelta(hours=notify.escalate_after_hours),
        escalate_to=normalise_address(notify.escalate_to) if notify.escalate_to else "",
    )


@lru_cache(maxsize=4)
def zone_of(name: str, local_time: Path) -> tzinfo:
    """The time zone of that name; ``""``: the one of ``$TZ``, else of the file ``local_time``, else UTC.

    tzset(3) tells how ``$TZ`` names one; a rule that is spelled out there is not read.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - only for those who have quiet hours

    if name:
        return ZoneInfo(name)
    try:
        return ZoneInfo(os.environ["TZ"].removeprefix(":"))
    except (
        KeyError,
        ValueError,
        OSError,
    ):  # OSError: it is not known here (ZoneInfoNotFoundError is a KeyError)
        pass
    try:
        with local_time.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC


def rules_of(settings: Settings, token_key: str, identity: Identity) -> ScanRules:
    """What a scan goes by; ``token_key`` is what tokens were signed with."""
    filing = FilingRules(
        identity,
        own_of(settings),
        token_key,
        header_threading=settings.security.header_threading,
        writer=Writer(identity, sending_as(settings), os.urandom),
        may_command=frozenset(map(normalise_address, settings.people.may_command)),
        may_approve=frozenset(map(normalise_address, settings.people.may_approve)),
    )
    return ScanRules(filing, timedelta(hours=settings.security.route_ttl_hours))


def rules_for(rules: ScanRules, account: Account) -> ScanRules:
    """The same for one account: where its provider is known to write its results is believed first."""
    results = of_imap(account.imap.host).results
    if results is Results.ABOVE:
        return rules  # the usual place, and what is assumed of a stranger: the settings know better
    own = evolve(rules.filing.own, results=results)
    return evolve(rules, filing=evolve(rules.filing, own=own))
