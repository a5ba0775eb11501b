"""One IMAP connection as the watching machine sees it: log in, catch up, rest, take leave."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from attrs import define, field
from twisted.logger import Logger

from mailgateway.daemons.habits import Habits
from mailgateway.daemons.junk import JunkCount
from mailgateway.daemons.logins import Door, Logins
from mailgateway.daemons.mailbox import ImapMailbox, select_folder
from mailgateway.errors import ENDED, CommandRefused, PeerError, Unreachable
from mailgateway.flows import flag
from mailgateway.flows.ports import Database
from mailgateway.flows.scan import Scanned, Scanner
from mailgateway.protocols.imap import (
    Alert,
    ConnectionEvent,
    CountChanged,
    Disconnected,
    Expunged,
    IdleEnded,
    ImapConnection,
    Leaving,
)
from mailgateway.protocols.servers import peer_of
from mailgateway.wire.sasl import BearerToken, Credential

IDLE_REFUSALS = 2
"""After so many refusals of IDLE a connection polls."""

EARLIEST_RENEWAL, LATEST_RENEWAL = 120.0, 300.0
"""Seconds before its token ends a session is made anew."""

SHORTEST_LIFE = 600.0
"""A token that lives shorter is not worth the plan: the server's word is waited for."""

IDENTITY = {"name": "mailgateway", "vendor": "mailgateway"}
"""What ID (RFC 2971) tells: enough for servers that want one, nothing of the machine."""


@define(eq=False)
class ImapLine:
    """One connection to one folder; made by ``open_line``."""

    database: Database
    logins: Logins
    folder: str
    scanner: Scanner
    scanned: Callable[[Scanned], None]
    """Hears what each scan did."""
    fence: Callable[[], int | None]
    """The fence of the folder's lease, where there is one."""
    flags_due: Callable[[], bool]
    """Whether acks are known to have asked for flags."""
    connection: ImapConnection
    _credential: Credential = field(repr=False)
    habits: Habits = field(factory=Habits)
    """What is known of the server; outlives this line."""
    junk: JunkCount | None = None
    """Counts what the server takes for junk, where this line is to look there."""
    chance: float = 0.0
    """A number in [0, 1) by which lines whose tokens end together are renewed one after another."""
    _opened_at: datetime = field(init=False)
    _mailbox: ImapMailbox | None = field(default=None, init=False)
    _fresh: bool = field(default=False, init=False)
    _looked: bool = field(default=False, init=False)
    """Whether there was a scan since SELECT, which tells the state of that moment."""
    _announced: bool = field(default=False, init=False)
    """Whether the server told of mail in IDLE since the last look."""
    _idle_refused: int = field(default=0, init=False)
    _news: Callable[[], None] | None = field(default=None, init=False)
    _lost: Callable[[PeerError], None] | None = field(default=None, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def __attrs_post_init__(self) -> None:
        self._opened_at = self.logins.now()

    @property
    def idles(self) -> bool:
        """Whether the server tells news by itself."""
        offered = self.habits.provider.idle and self.connection.supports("IDLE")
        return offered and self._idle_refused < IDLE_REFUSALS

    @property
    def seconds_left(self) -> float | None:
        """How long the session may last: it is renewed 2 to 5 minutes before its token ends, where known."""
        token = self._credential
        if not isinstance(token, BearerToken) or token.expires_at is None:
            return None
        ends_at, begins_at = token.expires_at, token.issued_at or self._opened_at
        if (ends_at - begins_at).total_seconds() < SHORTEST_LIFE:
            return None
        margin = EARLIEST_RENEWAL + (LATEST_RENEWAL - EARLIEST_RENEWAL) * self.chance
        half = (ends_at - self._opened_at).total_seconds() / 2  # it was opened with a token that was not new
        return max(0.0, (ends_at - self.logins.now()).total_seconds() - min(margin, half))

    @property
    def usable(self) -> bool:
        """Whether the connection is in order."""
        return self.connection.alive

    def listen(self, news: Callable[[], None], lost: Callable[[PeerError], None]) -> None:
        """From now on tell."""
        self._news, self._lost = news, lost
        self.connection.on_event = self._heard

    async def prepare(self) -> None:
        """Log in, say who we are, select the folder."""
        credential = self._credential
        await self.logins.log_in(Door.IMAP, credential, lambda: self.connection.login(credential))
        if self.connection.supports("ID"):
            await self.connection.identify(IDENTITY)
        self._mailbox = await select_folder(self.connection, self.logins.account.tag, self.folder)

    async def catch_up(self) -> None:
        """Scan until nothing is new, and set the flags that are due.

        A server that told of nothing is asked: some push nothing in IDLE, or show a mail in no other way.
        """
        if self._looked and self.seconds_left == 0:
            await self._renew()
        silent = self._looked and not self._selected.unscanned
        deaf, self._announced = silent and self.connection.idling, False
        if silent:
            self._mailbox = await self.habits.ask(self._selected)
        flags_due, self._looked = silent or not self._looked, True
        while True:
            self._fresh = False
            # a mail that was announced is on its way to a session: do not get in its way for nothing
            flags_due |= self.flags_due()
            scanned = await self.scanner.scan(self._selected, self.fence())
            flags_due |= self.flags_due()  # a command that was just obeyed asks for its flag, too
            if deaf and scanned.examined and not self._announced:
                self.habits.missed()
            deaf = False
            self.scanned(scanned)
            if flags_due:
                await self._set_flags()
            flags_due = True
            if not self._fresh:
                break
        if silent and self.junk is not None:
            await self.junk.look(self.connection)

    async def _renew(self) -> None:
        """Leave before the token ends, which ends the session too; the next one begins with another token."""
        await self.say_goodbye()
        raise Unreachable("the token ends soon, so the session is made anew", code=ENDED)

    async def rest(self) -> None:
        """Enter IDLE; anew, where nothing has ended it."""
        try:
            await self.connection.done()
            await self.connection.idle()
        except CommandRefused:
            self._idle_refused += 1
            self._tell_news()

    def remind(self) -> None:
        """Look once more before this catching up is over."""
        self._fresh = True

    def hang_up(self) -> None:
        """Cut at once."""
        self._news = self._lost = None
        self.connection.abort()

    async def say_goodbye(self) -> None:
        """Log out, then cut."""
        self._news = self._lost = None
        await self.connection.logout()

    @property
    def _selected(self) -> ImapMailbox:
        if self._mailbox is None:
            raise Unreachable("the folder is not selected")
        return self._mailbox

    async def _set_flags(self) -> None:
        r"""Set ``\Seen`` where acks have asked for it; a refusal keeps the wish for later."""
        mailbox = self._selected
        while True:
            place = (mailbox.account, mailbox.folder, mailbox.uid_validity)
            uids = await flag.due(self.database, *place)
            if not uids:
                return
            try:
                await mailbox.add_seen(uids)
            except CommandRefused as error:
                self._log.warn("the server refused to set a flag: {error}", error=error.text)
                await flag.failed(self.database, *place, uids)
                return
            await flag.done(self.database, *place, uids)

    def _heard(self, event: ConnectionEvent) -> None:
        match event:
            case CountChanged(exists):
                if self._mailbox is not None and self._mailbox.count_changed(exists):
                    if self.connection.idling:
                        self._announced = True
                        self.habits.announced()
                    self._tell_news()
            case IdleEnded():
                self._tell_news()
            case Disconnected(cause):
                lost, self._lost = self._lost, None
                if lost is not None:
                    lost(cause)
            case Alert(text):
                self._log.warn("the mail server says: {text}", text=text)
            case Expunged():
                if self._mailbox is not None:
                    self._mailbox.expunged()
            case Leaving():
                pass

    def _tell_news(self) -> None:
        self._fresh = True
        if self._news is not None:
            self._news()


async def open_line(
    reactor: Any, logins: Logins, make: Callable[[ImapConnection, Credential], ImapLine]
) -> ImapLine:
    """Ask whether the credential may be tried, then connect; the greeting is read, TLS is up."""
    credential = await logins.credential(Door.IMAP)
    peer = peer_of(logins.account.imap)
    connection = await logins.openings.make(
        peer.host, peer.port, lambda: ImapConnection.connect(reactor, peer)
    )
    return make(connection, credential)
