"""The Sent folder of an account, looked into over a connection of its own.

Policy.  The watched connection is left alone: EXAMINE there would end its IDLE, lose what is announced
meanwhile and the folder that is selected, and a failed way back would blind the watching.  So a second
connection is made when somebody asks, serves whoever asks within the next minute, and says goodbye; one
login serves all the looks that a read-back takes.  It never dials while the account's IMAP door waits after
a failure, shares the credential state (``Logins``), and rests by itself after failures of its own.  Looks
come one after another.

Nothing here decides whether a copy is to be kept (``daemons.copies``) or what a found one proves (``flows``).
"""

from collections.abc import Awaitable, Callable
from itertools import islice
from random import random
from typing import Any, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.defer import TimeoutError as DeadlineReached
from twisted.internet.interfaces import IDelayedCall

from mailgateway.daemons.folders import folders_of
from mailgateway.daemons.line import IDENTITY
from mailgateway.daemons.logins import Door, Logins
from mailgateway.daemons.tasks import Tasks
from mailgateway.daemons.watching import IMPATIENT, Held
from mailgateway.domain.reconnect import FailureClass, delay_seconds, failure_class
from mailgateway.domain.special_use import Folder, find_sent
from mailgateway.errors import CommandRefused, LoginUnavailable, PeerError, Throttled, Unreachable
from mailgateway.flows.ports import SentFolder
from mailgateway.ids import MessageId, OutboxId
from mailgateway.mail.compose import ID_HEADER
from mailgateway.mail.decode import parse_fields_kindly, split_message
from mailgateway.protocols.imap import ImapConnection
from mailgateway.protocols.servers import peer_of
from mailgateway.providers import folder_names

T = TypeVar("T")

REST_SECONDS = 60.0
"""How long the connection waits for the next look before it takes leave."""

LOOK_SECONDS = 120.0
"""How long one look may take in all, the login and the looks before it included."""

KEEP_SECONDS = 900.0
"""How long it may take to put a copy there: a mail may be large and a line slow."""

MOST_FOUND = 20
"""So many mails that a search found are read: servers search for parts of words."""

HEADER_OCTETS = 65_536
"""Octets of a mail that surely hold its header."""

LONGEST_ID = 500
"""Octets of a Message-ID; the line of a search has its bound."""

LEAVE_SECONDS = 6.0

NO_FOLDER = "NOSENT"
"""The code of the ``CommandRefused`` for an account whose Sent folder cannot be found."""


@define(eq=False)
class ImapSentFolder:
    """The Sent folder of one account (``flows.ports.SentFolder``)."""

    reactor: Any
    logins: Logins
    wanted: str
    """The folder's name by the settings; ``""``: what the server says, or a usual name."""
    chance: Callable[[], float] = random
    _queue: DeferredLock = field(factory=DeferredLock, init=False)
    _tasks: Tasks = field(factory=Tasks, init=False)
    _connection: ImapConnection | None = field(default=None, init=False)
    _folders: tuple[Folder, ...] = field(default=(), init=False)
    _rest: IDelayedCall | None = field(default=None, init=False)
    _closed_until: float = field(default=0.0, init=False)
    _why: PeerError | None = field(default=None, init=False)
    _failure: FailureClass | None = field(default=None, init=False)
    _failures: int = field(default=0, init=False)
    _closed: bool = field(default=False, init=False)
    _leaving: Deferred[None] | None = field(default=None, init=False)

    async def find(self, message_id: MessageId, limit: int = 65_536) -> bytes | None:
        """The first octets of the mail with exactly this Message-ID."""

        async def look(connection: ImapConnection) -> bytes | None:
            await connection.select(self._sent(), read_only=True)
            return await _search(connection, "Message-ID", message_id, limit)

        return await self._use(look, LOOK_SECONDS)

    async def id_of(self, outbox_id: OutboxId) -> MessageId | None:
        """The Message-ID that a mail of our outbox has there, found by our own header alone."""

        async def look(connection: ImapConnection) -> MessageId | None:
            await connection.select(self._sent(), read_only=True)
            raw = await _search(connection, ID_HEADER, outbox_id, HEADER_OCTETS)
            return (
                None if raw is None else MessageId(_values(raw, "Message-ID")[0].decode("ascii", "replace"))
            )

        return await self._use(look, LOOK_SECONDS)

    async def keep(self, raw: bytes, message_id: MessageId) -> bool:
        """Put a mail there unless it is there; whether it was put there."""

        async def put(connection: ImapConnection) -> bool:
            folder = self._sent()
            await connection.select(folder, read_only=True)
            if await _search(connection, "Message-ID", message_id, HEADER_OCTETS) is not None:
                return False
            await connection.append(folder, raw)
            return True

        return await self._use(put, KEEP_SECONDS)

    def woke(self) -> None:
        """The machine slept: the connection is dead, and the network may be another one."""
        if self._connection is not None:
            self._connection.abort()
        if self._failure in IMPATIENT:
            self._closed_until = 0.0

    def signed_in(self) -> None:
        """A person has signed in anew: no login has to wait any more."""
        if self._failure is FailureClass.CREDENTIAL:
            self._closed_until = 0.0

    def close(self) -> Deferred[None]:
        """Take leave, whoever may be looking; fires within a few seconds."""
        self._closed = True
        self._take_leave()
        return Deferred.fromCoroutine(self._end())

    async def _end(self) -> None:
        if self._leaving is not None:
            self._leaving.addTimeout(
                LEAVE_SECONDS, self.reactor, onTimeoutCancel=lambda _result, _seconds: None
            )
            await self._leaving
        await self._tasks.stop()

    async def _use(self, work: Callable[[ImapConnection], Awaitable[T]], seconds: float) -> T:
        """Do some work on the connection when it is free; within so many seconds."""
        working = Deferred.fromCoroutine(self._in_turn(work))
        working.addTimeout(seconds, self.reactor)
        try:
            return await working
        except DeadlineReached:
            error = Unreachable(f"the Sent folder could not be looked into within {seconds:g} s")
            self._failed(error)  # those that follow must not each wait as long
            raise error from None

    async def _in_turn(self, work: Callable[[ImapConnection], Awaitable[T]]) -> T:
        locked: Deferred[DeferredLock] = self._queue.acquire()
        await locked
        try:
            connection = await self._open()
            try:
                result = await work(connection)
            except PeerError as error:
                if not connection.alive or isinstance(error, (Throttled, LoginUnavailable)):
                    self._take_leave()
                    self._failed(error)
                raise
            self._failure, self._failures = None, 0
            return result
        finally:
            self._rest_a_while()
            self._queue.release()

    async def _open(self) -> ImapConnection:
        """The connection, logged in."""
        if self._rest is not None and self._rest.active():
            self._rest.cancel()
        if self._connection is not None and self._connection.alive:
            return self._connection
        self._permit()
        try:
            self._connection = await self._connect()
        except Held as held:
            raise held.refusal or LoginUnavailable("the login was refused before and is not tried") from None
        except PeerError as error:
            self._failed(error)
            raise
        return self._connection

    def _permit(self) -> None:
        """Raise what stands in the way of dialling now."""
        if self._closed:
            raise Unreachable("the account is being left")
        if self._why is not None and self._closed_until > self.reactor.seconds():
            raise self._why
        if self.logins.imap.seconds_to_wait() > 0:
            raise Unreachable("the account's mail server is left alone for a while")

    async def _connect(self) -> ImapConnection:
        credential = await self.logins.credential(Door.IMAP)
        connection = await ImapConnection.connect(self.reactor, peer_of(self.logins.account.imap))
        try:
            await self.logins.log_in(Door.IMAP, credential, lambda: connection.login(credential))
            if connection.supports("ID"):
                await connection.identify(IDENTITY)
            self._folders = await folders_of(connection)
        except BaseException:
            connection.abort()
            raise
        return connection

    def _sent(self) -> bytes | str:
        """The folder, as the server is to be asked for it."""
        found = find_sent(self._folders, self.wanted, folder_names().sent) or self.wanted
        if not found:
            words = "no Sent folder was found: name it in the settings (sent_folder)"
            raise CommandRefused(words, code=NO_FOLDER)
        return found

    def _failed(self, error: PeerError) -> None:
        """Dial nobody for a while."""
        failure = failure_class(error)
        self._failures = self._failures + 1 if failure is self._failure else 1
        self._failure, self._why = failure, error
        seconds = delay_seconds(failure, self._failures, self.chance(), error.retry_after)
        self._closed_until = self.reactor.seconds() + seconds

    def _rest_a_while(self) -> None:
        if self._closed:
            self._take_leave()
        elif self._connection is not None and self._connection.alive:
            self._rest = self.reactor.callLater(REST_SECONDS, self._take_leave)

    def _take_leave(self) -> None:
        if self._rest is not None and self._rest.active():
            self._rest.cancel()
        connection, self._connection = self._connection, None
        if connection is not None:
            self._leaving = self._tasks.start(connection.logout(), "taking leave of the Sent folder")


async def _search(connection: ImapConnection, name: str, value: str, limit: int) -> bytes | None:
    """The mail whose field is exactly this, in the selected folder: a search finds parts of it as well."""
    if len(value.encode()) > LONGEST_ID:
        raise CommandRefused("the Message-ID is too long to be searched for", code="TOOLONG")
    found = await connection.search_header(name, value)
    newest = (uid for first, last in reversed(found.ranges) for uid in range(last, first - 1, -1))
    for uid in islice(newest, MOST_FOUND):
        raw = await connection.fetch_message(uid, limit)
        if raw is not None and value.encode() in _values(raw, name) and _values(raw, "Message-ID"):
            return raw
    return None


def _values(raw: bytes, name: str) -> list[bytes]:
    """What the mail's own header says in the field, and not what its text speaks of."""
    block, _ = split_message(raw)
    return [each.value.strip() for each in parse_fields_kindly(block) if each.name == name.lower()]


_proof: type[SentFolder] = ImapSentFolder
