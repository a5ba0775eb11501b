"""Everything that runs for one account: its Sent folder, its sender, a watcher for each watched folder."""

import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from attrs import define, evolve, field
from twisted.application.service import IService, MultiService
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.task import LoopingCall, deferLater
from twisted.logger import Logger

from mailgateway.daemons.copies import Copies, keeps_copies
from mailgateway.daemons.health import DoorHealth
from mailgateway.daemons.junk import JunkCount
from mailgateway.daemons.logins import Logins, ignored
from mailgateway.daemons.openings import Openings
from mailgateway.daemons.rules import rules_for
from mailgateway.daemons.sender import Sender
from mailgateway.daemons.sent import ImapSentFolder
from mailgateway.daemons.tasks import Tasks
from mailgateway.daemons.watcher import Watcher
from mailgateway.errors import StoreError
from mailgateway.flows.bell import Bell
from mailgateway.flows.evidence import Witnesses
from mailgateway.flows.ports import AccountStatus, Database, KeyLookup, ScanSummary
from mailgateway.flows.scan import Scanned, ScanRules
from mailgateway.ids import AccountName
from mailgateway.protocols.grants import Grants
from mailgateway.secrets import OAuthGrant
from mailgateway.settings import Account
from mailgateway.wire.sasl import Credential

STORE_PAUSE_SECONDS = 2.0

SIGN_IN_SECONDS = 10.0
"""How often it is looked whether somebody has signed in, while an account waits for that."""

SCANS_PER_SECOND = 1.0
"""How often all folders together are scanned without news: 0.5 % of a core, at nearly 5 ms each."""


def stretched(scan_interval: float, folders: int) -> float:
    """The seconds between two scans of a folder, more where there are hundreds; 0, for none, stays 0."""
    return max(scan_interval, folders / SCANS_PER_SECOND) if scan_interval else 0.0


@define(eq=False)
class ScanBoard:
    """The last scan that examined a mail, of whatever folder."""

    summary: ScanSummary | None = None

    def scanned(self, scanned: Scanned) -> None:
        """Hear of a scan; an empty one only moves the time."""
        now = datetime.now(UTC)
        if scanned.examined or self.summary is None:
            self.summary = ScanSummary(now, scanned.examined, scanned.routed, scanned.refused)
        else:
            known = self.summary
            self.summary = ScanSummary(now, known.examined, known.routed, known.refused)


@define(eq=False)
class AccountService(MultiService):
    """One account at work."""

    reactor: Any
    database: Database
    bell: Bell
    rules: ScanRules
    account: Account
    key: str = field(repr=False)
    scan_interval_seconds: float
    board: ScanBoard
    sends: bool
    keys: KeyLookup | None = None
    openings: Openings = field(factory=Openings)
    noted: Callable[[str, Credential], None] = ignored
    """Hears of every credential that the account logs in with."""
    grants: Grants | None = None
    _tasks: Tasks = field(factory=Tasks, init=False)
    _imap: DoorHealth = field(init=False)
    _smtp: DoorHealth = field(init=False)
    _watchers: list[Watcher] = field(factory=list, init=False)
    _sent: ImapSentFolder | None = field(default=None, init=False)
    _keeping: ImapSentFolder | None = field(default=None, init=False)
    """The way of copies into the Sent folder: a large one must not keep a look waiting."""
    _sender: Sender | None = field(default=None, init=False)
    _logins: Logins | None = field(default=None, init=False)
    _looking: LoopingCall | None = field(default=None, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def __attrs_post_init__(self) -> None:
        MultiService.__init__(self)
        self._imap = self._health(self.account.tag)
        self._smtp = self._health(f"{self.account.tag}:smtp")

    def _health(self, name: str) -> DoorHealth:
        return DoorHealth(AccountName(name), self.database, self._tasks)

    def startService(self) -> None:
        """Take up what is remembered of the account, then begin."""
        MultiService.startService(self)
        self._tasks.start(self._begin(), "beginning with an account")

    def stopService(self) -> Any:
        """End all parts."""
        ending = MultiService.stopService(self)
        return ending.addCallback(lambda _: self._end())

    def _end(self) -> Deferred[Any]:
        if self._looking is not None and self._looking.running:
            self._looking.stop()
        parts = [self._tasks.stop()]
        parts += [sent.close() for sent in (self._sent, self._keeping) if sent is not None]
        if self.grants is not None:
            parts.append(Deferred.fromCoroutine(self.grants.settled()))
        return DeferredList(parts, consumeErrors=True)

    async def _begin(self) -> None:
        await self._remember(self._imap)
        await self._remember(self._smtp)
        logins = Logins(
            self.reactor,
            self.account,
            self.key,
            self._imap,
            self._smtp,
            openings=self.openings,
            noted=self.noted,
            grants=self.grants,
        )
        self._logins = logins
        self._sent = ImapSentFolder(self.reactor, logins, self.account.sent_folder)
        for number, folder in enumerate(self.account.watch):
            health = self._imap
            if number > 0:
                health = self._health(f"{self.account.tag}/{folder}")
                await self._remember(health)
            watcher = Watcher(
                self.reactor,
                self.database,
                self.bell,
                rules_for(self.rules, self.account),
                logins,
                folder,
                health,
                self.scan_interval_seconds,
                self.board.scanned,
                Witnesses(self.keys, self._sent),
                junk=JunkCount(self.reactor.seconds) if number == 0 else None,
            )
            self._watchers.append(watcher)
            self._adopt(watcher)
        if self.sends:
            identity, host = self.rules.filing.identity, socket.gethostname()
            keeps = keeps_copies(self.account)
            what = (self.reactor, self.database, self.bell, identity, logins)
            self._sender = Sender(*what, host, self._sent, keeps_copies=keeps)
            self._adopt(self._sender)
            self._keeping = ImapSentFolder(self.reactor, logins, self.account.sent_folder)
            self._adopt(Copies(*what, self._keeping))
        servers = (self.account.imap, self.account.smtp)
        if self.running and any(isinstance(server.secret, OAuthGrant) for server in servers):
            self._looking = LoopingCall(self._look_for_sign_in)
            self._looking.clock = self.reactor
            self._looking.start(SIGN_IN_SECONDS, now=False)

    def _look_for_sign_in(self) -> None:
        """Begin again when somebody has signed in: nobody has to tell us."""
        if self._logins is None or not self._logins.somebody_signed_in():
            return
        for part in (*self._watchers, self._sender, self._sent, self._keeping):
            if part is not None:
                part.signed_in()

    async def _remember(self, health: DoorHealth) -> None:
        """Take up what is remembered of one door; an account does not begin without it."""
        while True:
            try:
                await health.load()
            except StoreError as error:
                self._log.warn("account {tag} cannot begin: {error}", tag=self.account.tag, error=str(error))
                await deferLater(self.reactor, STORE_PAUSE_SECONDS)
            else:
                return

    def _adopt(self, part: IService) -> None:
        """Run a part as long as the account does; a stop that came first begins nothing any more."""
        if self.running:
            part.setServiceParent(self)

    def woke(self) -> None:
        """The machine slept: no connection is believed in any more."""
        for part in (*self._watchers, self._sender, self._sent, self._keeping):
            if part is not None:
                part.woke()

    def prime(self) -> int:
        """Move cursors from which nothing was ever filed to now, at the next look; how many folders."""
        for watcher in self._watchers:
            watcher.prime()
        return len(self._watchers)

    @property
    def status(self) -> AccountStatus:
        """How the watching goes, for ``/health``."""
        remarks = tuple(remark for watcher in self._watchers for remark in watcher.remarks)
        needed = () if self._logins is None else self._logins.remarks
        return evolve(self._imap.status, remarks=(*needed, *remarks))
