"""Mail of ours that comes into a mailbox: in which folder, when, and what its header shows of its way.

Policy: folders are opened read-only, and of other mail that comes meanwhile one header field is read, by
which ours is known.  The first folder is watched by IDLE where that is offered; the others are looked at
every few seconds.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from attrs import define, field, frozen
from twisted.internet.defer import Deferred

from mailgateway.domain.special_use import find_junk
from mailgateway.errors import CommandRefused
from mailgateway.mail.compose import ID_HEADER
from mailgateway.mail.decode import parse_fields_kindly, split_message
from mailgateway.mail.inbound import ids_in
from mailgateway.mail.results import Results, parse_results
from mailgateway.operator.folders import folders_of
from mailgateway.protocols.imap import (
    ConnectionEvent,
    CountChanged,
    Disconnected,
    FetchedHeaders,
    IdleEnded,
    ImapConnection,
)
from mailgateway.providers import folder_names
from mailgateway.wire.modified_utf7 import decode

LOOK_SECONDS: Final = 3.0
"""How often the folders are looked at of which no news comes."""
HEADER_BYTES: Final = 64 * 1024


@frozen
class Arrival:
    """The facts of one header.

    ``authserv_id`` is who speaks in the outermost ``Authentication-Results`` (RFC 8601): empty where the
    field is there and names nobody, ``None`` where there is none.  ``above`` says that it stands above every
    ``Received`` field, so that only the last server can have written it.
    """

    message_id: str
    authserv_id: str | None
    above: bool


def arrival_of(raw: bytes) -> Arrival:
    """Read the first octets of a mail, its whole header block among them."""
    fields = parse_fields_kindly(split_message(raw)[0])
    names = [each.name for each in fields]
    ids = [found for each in fields if each.name == "message-id" for found in ids_in(each.value)]
    message_id = ids[0] if ids else ""
    if "authentication-results" not in names:
        return Arrival(message_id, None, above=False)
    at = names.index("authentication-results")
    parsed = parse_results(fields[at].value)
    speaker = parsed.authserv_id if isinstance(parsed, Results) else ""
    return Arrival(message_id, speaker, above="received" not in names[:at])


@frozen
class Found:
    """A mail of ours, and where it lies; ``raw`` are its first octets."""

    outbox_id: str
    folder: str
    junk: bool
    raw: bytes = field(repr=False)


@define(eq=False)
class _Place:
    """A folder into which mail may come, and the first UID that is not looked at yet."""

    raw: bytes | str
    name: str
    junk: bool
    next_uid: int = 1


@define(eq=False)
class Postbox:
    """The folders of one account in which mail may come: those that are watched, and that for junk.

    ``hear`` is for the events of the connection that ``open`` gets.
    """

    reactor: Any
    watched: Sequence[str]
    idles: bool
    """Whether IDLE is worth using where it is offered."""
    places: list[_Place] = field(factory=list, init=False)
    _imap: ImapConnection = field(init=False)
    _selected: _Place | None = field(default=None, init=False)
    _came: bool = field(default=False, init=False)
    _waiting: "Deferred[None] | None" = field(default=None, init=False)

    @property
    def names(self) -> list[str]:
        """The folders, as people read them."""
        return [place.name for place in self.places]

    async def open(self, imap: ImapConnection) -> list[tuple[str, str]]:
        """Learn where new mail will begin; the watched folders that cannot be opened, and the server's words.

        Raises a ``PeerError`` when the connection fails.
        """
        self._imap = imap
        junk = find_junk(await folders_of(imap), folder_names().junk)
        known = [_Place(name, name, junk=False) for name in self.watched]
        if junk is not None and decode(junk) not in self.watched:
            known.append(_Place(junk, decode(junk), junk=True))
        closed = []
        for place in known:
            try:
                facts = await self._select(place)
            except CommandRefused as error:
                if not place.junk:
                    closed.append((place.name, error.text))
                continue
            place.next_uid = facts or (await imap.highest_uid() or 0) + 1
            self.places.append(place)
        return closed

    def hear(self, event: ConnectionEvent) -> None:
        """Take an event of the connection."""
        if isinstance(event, CountChanged | IdleEnded | Disconnected):
            self._came = True
            waiting, self._waiting = self._waiting, None
            if waiting is not None:
                waiting.callback(None)

    async def arrivals(self, outbox_ids: set[str], seconds: float) -> AsyncIterator[Found]:
        """Each mail with one of these ids when it comes, until all have come or the time is over."""
        missing = set(outbox_ids)
        end = self.reactor.seconds() + seconds
        while missing:
            for place in [*self.places[1:], self.places[0]]:  # the first stays selected, and tells news
                for found in await self._look(place, missing):
                    missing.discard(found.outbox_id)
                    yield found
            left = end - self.reactor.seconds()
            if left <= 0:
                return
            if missing:
                await self._rest(min(left, LOOK_SECONDS))

    async def _select(self, place: _Place) -> int | None:
        self._selected = None
        facts = await self._imap.select(place.raw, read_only=True)
        self._selected = place
        return facts.uid_next

    async def _look(self, place: _Place, wanted: set[str]) -> list[Found]:
        """What has come into one folder since the last look."""
        self._came = False
        if self._selected is not place:
            await self._select(place)
        else:
            await self._imap.noop()
        marks: dict[int, str] = {}

        def take(mail: FetchedHeaders) -> None:
            place.next_uid = max(place.next_uid, mail.uid + 1)
            for each in parse_fields_kindly(mail.header):
                text = each.value.decode("ascii", "replace").strip()
                if each.name == ID_HEADER.lower() and text in wanted:
                    marks[mail.uid] = text

        await self._imap.fetch_headers(place.next_uid, None, [ID_HEADER], take)
        found = []
        for uid, outbox_id in marks.items():
            raw = await self._imap.fetch_message(uid, HEADER_BYTES)
            if raw is not None:
                found.append(Found(outbox_id, place.name, place.junk, raw))
        return found

    async def _rest(self, seconds: float) -> None:
        """Until there is news, or for so long."""
        if self.idles and self._imap.supports("IDLE") and not self._came:
            try:
                await self._imap.idle()
            except CommandRefused:
                self.idles = False
        if not self._came:
            self._waiting = Deferred()
            self._waiting.addTimeout(seconds, self.reactor, lambda *_: None)
            await self._waiting
