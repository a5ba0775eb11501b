"""Puts copies of what was sent into the Sent folder, at providers that do not do it by themselves.

Policy.  Whether an account needs this is decided by its submission server (``providers.toml``); even then a
copy is put there only after a search has found none.  It happens after the mail has gone and never holds one
up; that it cannot be done is no failure of the mail.  What is to be copied is a row: a restart forgets none.
"""

from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from mailgateway.daemons.logins import Logins
from mailgateway.daemons.sent import NO_FOLDER
from mailgateway.daemons.tasks import Tasks
from mailgateway.domain.identity import Identity
from mailgateway.errors import CommandRefused, PeerError, StoreError
from mailgateway.flows import copies
from mailgateway.flows.bell import Bell, EventKind, Numbered
from mailgateway.flows.copies import DueCopy
from mailgateway.flows.ports import Database, SentFolder
from mailgateway.providers import of_imap, of_smtp
from mailgateway.settings import Account

LOOK_SECONDS = 300.0
"""How often the rows are looked at without a ring."""

SOONEST_SECONDS = 1.0

FINAL_CODES = frozenset(
    {NO_FOLDER, "NONEXISTENT", "TRYCREATE", "NOPERM", "CANNOT", "OVERQUOTA", "TOOBIG", "BAD"}
)
"""Response codes (RFC 5530) of refusals that another try would only meet again."""


def keeps_copies(account: Account) -> bool:
    """Whether copies of the account's mails have to be put into its Sent folder."""
    submission = of_smtp(account.smtp.host)
    return not submission.saves_sent and submission.append_sent and of_imap(account.imap.host).append_sent


@define(eq=False)
class Copies(Service):
    """The copies of one account."""

    reactor: Any
    database: Database
    bell: Bell
    identity: Identity
    logins: Logins
    sent: SentFolder
    _tasks: Tasks = field(factory=Tasks, init=False)
    _timer: IDelayedCall | None = field(default=None, init=False)
    _unsubscribe: Any = field(default=None, init=False)
    _working: bool = field(default=False, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def startService(self) -> None:
        """Begin."""
        Service.startService(self)
        self._unsubscribe = self.bell.subscribe(self._heard)
        self._look()

    def stopService(self) -> Deferred[None]:
        """Stop; a copy that is under way is looked for first the next time."""
        Service.stopService(self)
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        return self._tasks.stop()

    def _heard(self, numbered: Numbered) -> None:
        if numbered.event.kind is EventKind.OUTBOX:
            self._look()

    def _look(self) -> None:
        """Work through what is due, unless that goes on already: it looks for more at its end."""
        if not self._working and self.running:
            self._working = True
            self._tasks.start(self._work(), "putting copies into the Sent folder")

    async def _work(self) -> None:
        account = self.logins.account.tag
        wait = LOOK_SECONDS
        try:
            while self.running and (copy := await copies.due(self.database, self.identity, account)):
                await self._keep(copy)
            due = await copies.next_due(self.database, self.identity, account)
            if due is not None:
                wait = min(wait, max(SOONEST_SECONDS, (due - self.logins.now()).total_seconds()))
        except StoreError as error:
            self._log.warn("copies cannot be looked up now: {error}", error=str(error))
        finally:
            self._working = False
            self._look_in(wait)

    def _look_in(self, seconds: float) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        if self.running:
            self._timer = self.reactor.callLater(seconds, self._look)

    async def _keep(self, copy: DueCopy) -> None:
        """One copy, or a note of why there is none."""
        try:
            await self.sent.keep(copy.raw, copy.message_id)
        except PeerError as error:
            final = isinstance(error, CommandRefused) and error.code in FINAL_CODES
            if not final and await copies.put_off(self.database, copy):
                return
            self._log.warn("mail {id}: no copy in the Sent folder: {why}", id=copy.outbox_id, why=error.text)
        await copies.done(self.database, copy.outbox_id)
