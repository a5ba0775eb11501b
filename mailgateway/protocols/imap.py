"""The IMAP client: a connection whose coroutines say what one command or a few of them achieve.

It moves bytes and decides nothing: when to look for mail, what to do with it and when to try again is a
daemon's business.  Every coroutine has its own deadline, which ends in ``abortConnection``; cancelling one
ends the connection too, since its answer is still on the way.  One command runs at a time, a second one is
a ``Misuse``; but in IDLE mail may be fetched, searched and flagged, which ends IDLE in the same segment.

Failures are types of ``mailgateway.errors``: an answer NO or BAD leaves the connection in order, everything
else ends it, and each later call raises the first cause again.  Credentials travel over TLS only, or over
loopback to a peer that is configured without TLS.
"""

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any, Self

from attrs import frozen
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Factory

from mailgateway.errors import PeerError, ProtocolViolation
from mailgateway.protocols.dial import Peer, dial
from mailgateway.protocols.imap_channel import (
    DONE_SECONDS,
    Alert,
    ConnectionEvent,
    Disconnected,
    Expunged,
    IdleEnded,
    Leaving,
)
from mailgateway.protocols.imap_opening import COMMAND_SECONDS, ImapOpening, into
from mailgateway.wire import Misuse, imap_command, imap_outcome
from mailgateway.wire.imap_command import Command, Text
from mailgateway.wire.imap_event import CountChanged, Event
from mailgateway.wire.imap_fetch import Fetched, Unreadable
from mailgateway.wire.imap_headers import BodyCollector, FetchedHeaders, HeaderCollector
from mailgateway.wire.imap_lexer import MAX_LITERAL
from mailgateway.wire.imap_response import (
    Condition,
    Found,
    Listed,
    MailboxStatus,
)
from mailgateway.wire.uid_set import UidSet

__all__ = [
    "Alert",
    "ConnectionEvent",
    "CountChanged",
    "Disconnected",
    "Expunged",
    "FetchedHeaders",
    "FolderStatus",
    "IdleEnded",
    "ImapConnection",
    "Leaving",
    "Listed",
    "Selected",
    "UidSet",
    "Unreadable",
]

CONNECT_SECONDS = 30.0
FETCH_SILENCE_SECONDS = 60.0
"""How long a FETCH or a SEARCH may bring no byte at all."""
FETCH_SECONDS = 600.0
"""How long a FETCH may last in all, pauses included."""
APPEND_SECONDS = 600.0
LOGOUT_SECONDS = 5.0

MAX_LISTED = 10_000
"""How many mailboxes a LIST may have."""


@frozen
class Selected:
    """The facts of a mailbox at SELECT; None where the server did not tell (unknown is not changed)."""

    uid_validity: int | None
    uid_next: int | None
    exists: int
    read_only: bool


@frozen
class FolderStatus:
    """The answer to STATUS; None where the server did not tell."""

    messages: int | None
    uid_next: int | None
    uid_validity: int | None


class ImapConnection(ImapOpening):
    """A connection to an IMAP server; ``connect`` makes one.

    ``on_event`` is called with every ``ConnectionEvent``, and last with ``Disconnected``.
    """

    @classmethod
    async def connect(
        cls,
        reactor: Any,
        peer: Peer,
        *,
        on_event: Callable[[ConnectionEvent], None] | None = None,
        max_literal: int = MAX_LITERAL,
    ) -> Self:
        """A connection that is greeted, encrypted as ``peer`` says, and knows the server's capabilities.

        ``max_literal`` bounds the bytes of one message that the server may send.  Errors: ``Unreachable``,
        ``TlsRefused``, ``Throttled`` or another ``PeerError`` by what the server said in its greeting.
        """
        connection: Any = await dial(
            reactor, peer, _Connections(lambda: cls(reactor, peer, max_literal)), CONNECT_SECONDS
        )
        if on_event is not None:
            connection.on_event = on_event
        await connection.open()
        return connection  # type: ignore[no-any-return]  # dial gives what the factory built

    @property
    def exists(self) -> int:
        """How many messages the selected mailbox holds, as far as the server told; 0 if none is selected."""
        return self._dialogue.mailbox.exists if self._dialogue.mailbox else 0

    @property
    def uid_next(self) -> int | None:
        """UIDNEXT as last told for the selected mailbox; few servers tell it again after SELECT."""
        return self._dialogue.mailbox.uid_next if self._dialogue.mailbox else None

    @property
    def idling(self) -> bool:
        """Whether the server is in IDLE."""
        return self._dialogue.idling

    @property
    def busy(self) -> bool:
        """Whether a command runs, IDLE included."""
        return self._dialogue.running is not None

    async def select(self, folder: bytes | str, *, read_only: bool = False) -> Selected:
        """Select a mailbox: bytes as LIST gave them, or its name as people write it.

        ``CommandRefused`` leaves none selected.  ``LoginUnavailable`` with code ``NOTCONNECTED`` means that
        the login was worth nothing (Exchange).  IDLE is ended first.
        """
        await self.done()
        await self._must(imap_command.select(folder, read_only=read_only))
        facts = self._dialogue.mailbox
        if facts is None:
            raise Misuse("SELECT succeeded and selected nothing")
        return Selected(facts.uid_validity, facts.uid_next, facts.exists, facts.read_only)

    async def fetch_headers(
        self,
        first_uid: int,
        last_uid: int | None,
        fields: Iterable[str],
        on_message: Callable[[FetchedHeaders], None],
        *,
        small_body: int = 0,
        wanted: Callable[[int, bytes], bool] | None = None,
    ) -> tuple[Unreadable, ...]:
        """Hand the messages with ``first_uid <= UID <= last_uid`` (None: the newest) to ``on_message``.

        Each comes once, as soon as it is complete, in the server's order.  With ``small_body`` above 0, those
        of at most so many octets bring their whole text along, in the same command.  ``wanted`` hears of each
        first, by UID and header fields, and passes over those to which it says no.  Returns when the server
        has answered in full; what could not be read is returned, so that it can be fetched by itself, with
        ``uid`` None if not even that was readable.  A UID that did not come is gone, or not given now.

        Errors: ``CommandRefused``, ``Throttled`` (both leave the connection in order), or its end; then
        nothing may be concluded from what has not come.  Whatever ``wanted`` or ``on_message`` raises ends
        the connection and comes out here.
        """
        if self.exists == 0:
            return ()
        collector = HeaderCollector(first_uid, last_uid, small_body, on_message, wanted)
        command = imap_command.fetch_headers(first_uid, last_uid, fields, small_body=small_body)
        await self._fetch(command, collector.take)
        return collector.finish()

    async def fetch_message(self, uid: int, limit: int) -> bytes | None:
        r"""The first ``limit`` octets of one message, without setting ``\Seen``.

        None if it has vanished or the server gave no text.  As many as ``limit`` octets mean that there may
        be more.  ``ProtocolViolation`` if the answer cannot be read; the connection is closed then.
        """
        collector = BodyCollector(uid)
        await self._fetch(imap_command.fetch_message(uid, limit), collector.take)
        return collector.body

    async def highest_uid(self) -> int | None:
        """The highest UID of the selected mailbox, None if it is empty: for servers that tell no UIDNEXT."""
        if self.exists == 0:
            return None
        highest: int | None = None

        def take(event: Event) -> None:
            nonlocal highest
            if isinstance(event, Fetched) and event.uid is not None:
                highest = max(event.uid, highest or 0)

        await self._fetch(imap_command.fetch_highest(), take)
        return highest

    async def add_seen(self, uids: Iterable[int]) -> None:
        r"""Set ``\Seen`` on these messages; those that are gone are passed over."""
        for batch in UidSet.of(uids).batches():
            await self._must(imap_command.add_seen(batch), gaps=True)

    async def search_since(self, day: date) -> UidSet:
        """The UIDs of the messages that the server received on ``day`` or later (by its own calendar)."""
        return await self._search(imap_command.since(day))

    async def search_uid(self, uids: Iterable[int]) -> UidSet:
        """Those of these UIDs that are there."""
        found = UidSet()
        for batch in UidSet.of(uids).batches():
            found |= await self._search(b"UID " + bytes(batch))
        return found

    async def search_header(self, name: str, text: str) -> UidSet:
        """The UIDs of the messages with a header field ``name`` that holds ``text``."""
        return await self._search(*imap_command.header_holds(name, text))

    async def list_folders(self) -> tuple[Listed, ...]:
        """Every mailbox of the account, names as raw bytes, with its purpose where the server tells it."""
        if self.supports("XLIST") and not self.supports("SPECIAL-USE"):
            command = imap_command.xlist()
        else:
            extended = self.supports("SPECIAL-USE") and self.supports("LIST-EXTENDED")
            command = imap_command.list_mailboxes(purposes=extended)
        listed: list[Listed] = []
        await self._must(command, take=into(listed, MAX_LISTED))
        return tuple(listed)

    async def append(self, folder: bytes | str, message: bytes) -> None:
        r"""Put a whole mail (CRLF line ends, no NUL) into a mailbox, as one that is ``\Seen``.

        ``CommandRefused`` with code ``TRYCREATE`` if there is no such mailbox; the connection stays in order.
        """
        status = await self._run(imap_command.append(folder, message), APPEND_SECONDS)
        if status.condition is not Condition.OK:
            raise imap_outcome.command_failure(b"APPEND", status)

    async def status(self, folder: bytes | str) -> FolderStatus:
        """The state of a mailbox that is not selected; some servers show new mail in no other way."""
        answers: list[MailboxStatus] = []
        await self._must(imap_command.status(folder), take=into(answers, 100))
        items = dict(pair for answer in answers for pair in answer.items)
        return FolderStatus(
            items.get(b"MESSAGES"), items.get(b"UIDNEXT") or None, items.get(b"UIDVALIDITY") or None
        )

    async def noop(self) -> None:
        """Give the server the occasion to tell news; returns when it has."""
        await self._must(imap_command.NOOP)

    async def idle(self) -> None:
        """Enter IDLE; returns when the server is in it, or when ``done`` was called meanwhile.

        News comes as ``on_event``.  IDLE lasts until ``done`` or the next command; if the server ends it,
        ``IdleEnded`` tells.
        ``CommandRefused`` if the server refuses to idle.
        """
        status = await self._until_end(self._start(imap_command.IDLE), COMMAND_SECONDS)
        if status is not None and status.condition is not Condition.OK:
            raise imap_outcome.command_failure(b"IDLE", status)

    async def done(self) -> None:
        """End IDLE and wait for its end, for at most 15 s; returns at once if there is no IDLE."""
        wait = self._wait
        if wait is None or wait.what != "IDLE":
            return
        data = self._dialogue.done()
        if data:
            self._wire.write(data)
        await self._until_end(wait, DONE_SECONDS)

    async def logout(self) -> None:
        """Say goodbye if nothing else runs, and close; never fails and takes at most 20 s."""
        self._asked = True
        try:
            await self.done()
            if self.alive and not self.busy:
                await self._run(imap_command.LOGOUT, LOGOUT_SECONDS)
        except PeerError:
            pass  # the aim is a closed connection
        self.abort()

    async def _fetch(self, command: Command, take: Callable[[Event], None]) -> None:
        """Run a command whose answer may be long: silence counts, and the whole."""
        status = await self._run(command, FETCH_SECONDS, take=take, silence=FETCH_SILENCE_SECONDS)
        if status.condition is not Condition.OK and not imap_outcome.is_gap(status):
            raise imap_outcome.command_failure(command.verb, status)

    async def _search(self, *criteria: bytes | Text) -> UidSet:
        """The UIDs that fit; a search whose answer cannot be read has found nothing out."""
        found = UidSet()

        def take(event: Event) -> None:
            nonlocal found
            if isinstance(event, Found):
                found |= event.uids
            elif isinstance(event, Unreadable) and event.keyword in {b"SEARCH", b"ESEARCH"}:
                raise ProtocolViolation(f"UID SEARCH: {event.reason}")

        await self._fetch(imap_command.search(*criteria, extended=self.supports("ESEARCH")), take)
        return found


class _Connections(Factory):
    """Builds the protocol that ``dial`` connects."""

    noisy = False

    def __init__(self, build: Callable[[], ImapConnection]) -> None:
        self._build = build

    def buildProtocol(self, addr: IAddress | None) -> ImapConnection:  # noqa: ARG002 - any address will do
        """A new connection."""
        return self._build()
