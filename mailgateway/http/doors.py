"""Everything that the API needs of the rest, in one value; and the way it ends.

``service`` makes it, the routes read from it.  What it holds beside the given parts is the API's own: who is
connected, who subscribes, who waits.  When the service stops, nobody is kept waiting: polls answer what there
is, streams end, connections without a request close at once.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from attrs import Factory, define, field
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailgateway.domain.identity import Identity
from mailgateway.domain.mode import Mode
from mailgateway.errors import StoreError
from mailgateway.flows import mode as modes
from mailgateway.flows import uploads
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.counts import Counts, counts
from mailgateway.flows.ports import Database, ProcessControl
from mailgateway.flows.submit import Sender
from mailgateway.flows.waiting import Timers
from mailgateway.flows.waiting_questions import Waiting
from mailgateway.http.folder import UploadFolder
from mailgateway.http.keys import Keys
from mailgateway.http.limits import MOST_CONNECTIONS, Connections
from mailgateway.http.places import Places
from mailgateway.http.request import LimitedSite
from mailgateway.settings import Settings

T = TypeVar("T")

READ_SECONDS = 2.0
"""How long ``/health`` waits for the database before it tells what was known last."""

LAST_ANSWERS_SECONDS = 2.0
"""How long connections may take to read their last answer when the service stops."""


def scaled(most: int, share: float) -> int:
    """A share of some places; one at least."""
    return max(1, round(most * share))


def places(most: int, own: int, other: int, share: float) -> Places:
    """A share of places of one kind."""
    return Places(most=scaled(most, share), own=scaled(own, share), other=scaled(other, share))


class Stream(Protocol):
    """An answer that stays open."""

    def end(self) -> None:
        """Finish the answer."""


@define(eq=False)
class Doors:
    """The API's view of the service.

    ``settings``, ``keys`` and ``sender`` are asked at every request, so a reload takes effect at once;
    ``mint`` gives so many random bytes; ``uploads`` is a directory of ours for files on their way.
    """

    reactor: Timers
    database: Database
    bell: Bell
    identity: Identity
    settings: Callable[[], Settings]
    keys: Callable[[], Keys]
    control: ProcessControl
    sender: Callable[[], Sender]
    uploads: Path
    mint: Callable[[int], bytes]
    in_thread: Callable[[Callable[[], Any]], Deferred[Any]] = maybeDeferred
    """Calls something that takes long, such as loading libraries, where nobody has to wait for it."""
    share: float = 1.0
    """The part of all places that the process has files for (``limits.share_of``)."""
    connections: Connections = field(
        default=Factory(lambda doors: Connections(scaled(MOST_CONNECTIONS, doors.share)), takes_self=True)
    )
    waiting: Places = field(
        default=Factory(lambda doors: places(600, 500, 200, doors.share), takes_self=True)
    )
    """For requests that wait; well below the number of connections, so that whoever only asks is served."""
    bodies: Places = field(default=Factory(lambda doors: places(100, 80, 20, doors.share), takes_self=True))
    """For bodies of more than 100 kB, which go to temporary files until they are answered."""
    subscribing: Places = field(
        default=Factory(lambda doors: places(100, 100, 25, doors.share), takes_self=True)
    )
    """For streams."""
    questions: Waiting = field(
        default=Factory(lambda doors: Waiting(doors.bell), takes_self=True), init=False
    )
    """Which sessions wait for their questions."""
    streams: set[Stream] = field(factory=set, init=False)
    requests: Counter[tuple[str, int]] = field(factory=Counter, init=False)
    """Answers given, by route and status; read by the metrics."""
    folder: UploadFolder = field(init=False)
    started: str = field(init=False)
    """Names this run of the service in ids of events: their numbers begin anew with it."""
    closed: bool = field(default=False, init=False)
    last_read: tuple[Counts, Mode] = field(default=(Counts(), Mode.ON), init=False)
    """What health showed when the database could last be read."""
    _asking: list[Deferred[bool]] = field(factory=list, init=False)
    """Those who want the numbers of the next reading."""
    _reading: bool = field(default=False, init=False)
    _log: Logger = field(factory=Logger, init=False)
    _sites: list[LimitedSite] = field(factory=list, init=False)
    _held: set[Deferred[Any]] = field(factory=set, init=False)

    def __attrs_post_init__(self) -> None:
        self.folder = UploadFolder(self.uploads, self.mint, self.reactor.seconds)
        self.started = self.mint(4).hex()

    def add(self, site: LimitedSite) -> None:
        """Remember a factory that listens for us."""
        self._sites.append(site)

    async def unless_closed(self, awaited: Deferred[T], otherwise: T) -> T:
        """What ``awaited`` gives, or ``otherwise`` when the service stops before."""
        held: Deferred[Any] = awaited
        self._held.add(held)
        if self.closed:
            held.cancel()
        try:
            return await awaited
        except CancelledError:
            if self.closed:
                return otherwise
            raise
        finally:
            self._held.discard(held)

    def read_anew(self) -> Deferred[bool]:
        """Bring ``last_read`` up to date; fires with whether the database answered within two seconds.

        There is one reading at a time, and the next is for all who have asked meanwhile: a database that
        says nothing makes nobody wait for long, and no questions pile up in front of it.
        """
        asking: Deferred[bool] = Deferred()
        self._asking.append(asking)
        if not self._reading:
            self._reading = True
            Deferred.fromCoroutine(self._read())

        timer = self.reactor.callLater(READ_SECONDS, self._too_late, asking)

        def read(outcome: bool | Failure) -> bool | Failure:
            if timer.active():
                timer.cancel()
            return outcome

        return asking.addBoth(read)

    def _too_late(self, asking: Deferred[bool]) -> None:
        if asking in self._asking:
            self._asking.remove(asking)
        asking.callback(False)

    async def _read(self) -> None:
        try:
            while self._asking:
                asking, self._asking = self._asking, []
                outcome: bool | Failure = True
                try:
                    numbers = await counts(self.database, self.identity)
                    self.last_read = numbers, await modes.current(self.database, self.identity)
                except StoreError:
                    outcome = False
                except Exception:  # noqa: BLE001 (whoever asked hears of it)
                    outcome = Failure()
                for each in asking:
                    if not each.called:
                        each.callback(outcome)
        finally:
            self._reading = False

    async def remove_leftovers(self) -> None:
        """Remove files of an earlier run that no row names: nobody can send them any more.

        When that cannot be done, they go when they are old enough to be nobody's.
        """
        try:
            names = self.folder.names()
            if names:
                rows = await uploads.paths(self.database)
                self.folder.remove_all_but(names, {Path(path).name for path in rows})
        except (StoreError, OSError) as error:
            self._log.warn("leftovers among the uploads: {error}", error=type(error).__name__)

    def close(self) -> Deferred[None]:
        """Let everybody go; fires when nobody is connected any more, after two seconds at the latest.

        Listening is to be stopped before, by whoever listens.
        """
        self.closed = True
        for site in self._sites:
            site.closing = True
        for stream in tuple(self.streams):
            stream.end()
        self.bell.ring(Event(EventKind.MODE))  # wakes the polls, which see that we are closing
        for held in tuple(self._held):
            held.cancel()
        for channel in tuple(self.connections.open):
            if channel.is_idle():
                channel.loseConnection()
        return self.connections.emptied(self.reactor, LAST_ANSWERS_SECONDS)
