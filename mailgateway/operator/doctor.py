"""``doctor``: every part that the work depends on, one after the other, each with what to do about it.

Policy: it looks and changes nothing, but for a mail from each account to itself (``operator.smoke``), which
may be left out.  What belongs to this machine comes first, for it explains much of what follows; then both
servers of each account (``operator.check``), and what others see of us: DNS, and the public address.  With
the running service or without it; the service's own connections are not touched.  ``offline`` asks nobody
outside this machine.
"""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from attrs import define

from mailgateway.domain.special_use import find_junk, find_sent
from mailgateway.errors import PeerError
from mailgateway.operator.check import look
from mailgateway.operator.domain_records import look_at_domain
from mailgateway.operator.findings import Finding, Record, State, Tell
from mailgateway.operator.folders import folders_of
from mailgateway.operator.smoke import smoke
from mailgateway.operator.surroundings import (
    look_at_clock,
    look_at_disk,
    look_at_files,
    look_at_manager,
    look_at_people,
    look_at_service,
)
from mailgateway.protocols.https import Https
from mailgateway.protocols.imap import FetchedHeaders, ImapConnection
from mailgateway.protocols.lookup import Lookup
from mailgateway.providers import folder_names
from mailgateway.settings import Account, Authentication, Settings, SingleMailboxProof
from mailgateway.wire.modified_utf7 import decode

CLOCK_SECONDS: Final = 60.0
"""By which two clocks may differ without harm."""
PUBLIC_SECONDS: Final = 15.0
LARGEST_ANSWER: Final = 64 * 1024


@define(eq=False)
class Doctor:
    """One look at everything."""

    reactor: Any
    settings: Settings
    tell: Tell
    home: Path
    """The folder of the person, where a unit of the user manager may be."""
    offline: bool = False
    mail: bool = True
    """Whether to send a mail from each account to itself."""
    again: bool = False
    """Whether to log in although the service was refused."""

    async def run(self) -> tuple[Finding, ...]:
        """Look; what was found."""
        record = Record(self.tell, self.reactor.seconds)
        look_at_files(self.settings, record)
        look_at_disk(self.settings, record)
        look_at_people(self.settings, record)
        look_at_clock(record)
        look_at_manager(record, self.home)
        runs = look_at_service(self.settings, record)
        if self.offline:
            record.skip("network", "nobody outside this machine was asked (--offline)")
            return tuple(record.findings)
        await look(self.reactor, self.settings, record, again=self.again, more=self._mailbox)
        if self.mail:
            for account in self.settings.watched:
                await self._mail(account, record)
        lookup = Lookup(self.reactor)
        for account in self.settings.watched:
            await look_at_domain(lookup, account, record)
        await self._public(record, runs=runs)
        return tuple(record.findings)

    async def _mailbox(self, connection: ImapConnection, account: Account, record: Record) -> None:
        """What is to be seen on a connection that is logged in."""
        await self._clock(connection, account, record)
        await self._folders(connection, account, record)

    async def _clock(self, connection: ImapConnection, account: Account, record: Record) -> None:
        """Whether the server took its newest mail before now: no protocol tells its time in another way."""
        if (newest := await connection.highest_uid()) is None:
            return
        seen: list[FetchedHeaders] = []
        await connection.fetch_headers(newest, newest, ("Date",), seen.append)
        taken = seen[0].internal_date if seen else None
        if taken is None:
            return
        step = f"{account.tag} imap clock"
        ahead = (taken - datetime.now(UTC)).total_seconds()
        if ahead > CLOCK_SECONDS:
            what = f"the server took its newest mail {ahead:.0f} s from now, by the clock of this machine"
            record.warn(
                step, what, "The clock of this machine may be slow: look at it, and set it by the network."
            )
        else:
            record.ok(step, "by the clock of this machine the newest mail is not from the future")

    async def _folders(self, connection: ImapConnection, account: Account, record: Record) -> None:
        """Where what was sent lies, and what the server took for junk."""
        step = f"{account.tag} imap folders"
        record.begin(step, "listing them")
        listed = await folders_of(connection)
        names = folder_names()
        sent = find_sent(listed, account.sent_folder, names.sent)
        junk = find_junk(listed, names.junk)
        if sent is not None:
            record.ok(step, f"what is sent lies in {decode(sent)}")
        else:
            self._no_sent(account, record, step)
        if junk is not None:
            record.ok(step, f"answers that were taken for junk are looked for in {decode(junk)}")
        else:
            record.note(
                step, "no folder for junk is known, so answers that the server takes for junk are missed"
            )

    def _no_sent(self, account: Account, record: Record, step: str) -> None:
        security = self.settings.security
        what = (
            f"there is no folder {account.sent_folder}" if account.sent_folder else "no Sent folder is known"
        )
        advice = f"Name it as `sent_folder` in [accounts.{account.tag}], or make one that is called Sent."
        proof = security.single_mailbox_proof is SingleMailboxProof.SENT_COPY
        if security.authentication is Authentication.SINGLE_MAILBOX and proof:
            record.fail(step, f"{what}: without it no reply of yours can be believed", advice)
        else:
            record.warn(step, f"{what}: no copies of what is sent are kept", advice)

    async def _mail(self, account: Account, record: Record) -> None:
        """Send a mail to ourselves, where both servers let us in."""
        let_in = {each.step for each in record.findings if each.state is State.OK}
        step = f"{account.tag} mail"
        if not {f"{account.tag} imap login", f"{account.tag} smtp login"} <= let_in:
            record.skip(step, "no mail was sent, since not both servers let us in")
            return
        smoked = await smoke(
            self.reactor, self.settings, account, record.tell, plus=account.plus_address, again=self.again
        )
        record.findings.extend(smoked.findings)

    async def _public(self, record: Record, *, runs: bool) -> None:
        """Whether the public address leads to the service."""
        address = self.settings.daemon.public_url.rstrip("/")
        if not address:
            return
        step = "public address"
        if not runs:
            record.skip(step, "the service does not run, so it was not asked")
            return
        record.begin(step, f"asking {address}")
        try:
            answer = await Https(self.reactor).get(
                f"{address}/health", limit=LARGEST_ANSWER, seconds=PUBLIC_SECONDS
            )
        except PeerError as error:
            advice = "Look at the proxy in front of it, its certificate, and `daemon.public_url`."
            record.fail(step, f"{address} cannot be reached from here: {error.text}", advice)
            return
        if _is_health(answer):
            record.ok(step, f"{address} leads to mailgateway")
        else:
            record.fail(
                step, f"{address} leads to something else", "Look at where the proxy in front leads to."
            )


def _is_health(answer: bytes) -> bool:
    """Whether a document is what ``/health`` of a mailgateway tells."""
    try:
        told = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    return isinstance(told, dict) and isinstance(told.get("apiVersion"), int)
