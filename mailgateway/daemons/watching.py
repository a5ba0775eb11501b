"""What the watching of one folder consists of: its events, its shared core, and what each state holds.

The machine itself, which says what each event makes of each state, is in ``daemons.machine``.  Every state
holds what it must let go: the attempt, the line with its running work, the timer.  A line that was given up
is deaf: ``Core.line`` names the one that counts, so late news of an old connection cannot disturb a new one.
Nothing here raises; I/O reports back as an event.  Neither IMAP nor the database is known here.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailgateway.daemons.tasks import Tasks
from mailgateway.domain.account import AccountState
from mailgateway.domain.reconnect import PROVEN_SECONDS, FailureClass, delay_seconds, failure_class
from mailgateway.errors import (
    CommandRefused,
    Fault,
    LoginRefused,
    MailgatewayError,
    PeerError,
    Throttled,
    place_of,
)

MOST_PAUSES = 3
"""How often in a row a connection is kept for a server that asks for patience."""

LONGEST_PAUSE = 1_800.0
"""Seconds; a connection that may do nothing for longer is not kept."""

IMPATIENT = frozenset({FailureClass.NETWORK, FailureClass.CLEAN})
"""Failures whose delay nobody asked for: a machine that woke need not keep it."""

STORE_SECONDS = 30.0
"""The longest delay after a failure of our own database."""


class Held(Exception):
    """The credential must not be tried now: not before ``until``, or (``None``) not before it is changed.

    ``refusal`` is what the server has just said, when it was asked.
    """

    def __init__(self, until: datetime | None, refusal: LoginRefused | None = None) -> None:
        super().__init__()
        self.until = until
        self.refusal = refusal


class Line(Protocol):
    """One connection to the mailbox."""

    @property
    def idles(self) -> bool:
        """Whether the server tells news by itself (IDLE, RFC 2177)."""

    @property
    def usable(self) -> bool:
        """Whether the connection is in order, whatever the last command came to."""

    def listen(self, news: Callable[[], None], lost: Callable[[PeerError], None]) -> None:
        """From now on tell of news while resting, and of the loss of the connection."""

    async def prepare(self) -> None:
        """Log in and select the folder."""

    async def catch_up(self) -> None:
        """Stop resting, scan until nothing is new, and set the flags that are due."""

    async def rest(self) -> None:
        """Begin to wait for news."""

    def remind(self) -> None:
        """There is more to do than what a ``catch_up`` that goes on may have seen."""

    def hang_up(self) -> None:
        """Cut the connection at once; whatever runs on it fails, and it tells nothing more."""

    async def say_goodbye(self) -> None:
        """Log out, within a few seconds, then cut; it tells nothing more."""


@frozen
class Condition:
    """What can be told of the watching: its state, and why it waits."""

    state: AccountState
    failure: FailureClass | None = None
    failures: int = 0
    seconds: float | None = None
    """Until the next attempt; ``None`` when not waiting, or waiting for the operator."""
    error: str = ""


class Watching(Protocol):
    """What can happen to the watching of a folder; the first three come from outside."""

    def start(self) -> None:
        """Begin to watch, or stop waiting and try at once."""

    def stop(self) -> None:
        """Let everything go."""

    def woke(self) -> None:
        """The machine slept: connections that look alive are dead, and waiting for the network is over."""

    def nudge(self) -> None:
        r"""There is something to do on the mailbox (``\Seen`` to be set)."""

    def connected(self, line: Line) -> None:
        """The server has greeted us, over TLS where that is required."""

    def prepared(self, line: Line) -> None:
        """Logged in, and the folder is selected."""

    def caught_up(self, line: Line) -> None:
        """Everything is scanned; the server tells what comes next."""

    def caught_up_unannounced(self, line: Line) -> None:
        """Everything is scanned; the server does not tell what comes next."""

    def news(self, line: Line) -> None:
        """The server told of something new."""

    def renew(self, line: Line) -> None:
        """It is time to look again."""

    def lost(self, line: Line | None, error: MailgatewayError) -> None:
        """The connection is gone, or was never made, or our own ground shook."""

    def refused(self, line: Line | None, until: datetime | None) -> None:
        """The credential must not be tried: before ``until``, or at all."""

    def paused(self, line: Line, error: PeerError) -> None:
        """The server asks for patience, on a connection that is in order."""

    def retry(self) -> None:
        """The delay is over."""


@define(eq=False)
class Core:
    """What all states share: how to connect, whom to tell, the line that counts, and the failures so far."""

    clock: IReactorTime
    connect: Callable[[], Awaitable[Line]]
    """Makes a line, or raises ``Held`` or a ``PeerError``."""
    tell: Callable[[Condition], None]
    """Hears of every change of state; must not raise."""
    chance: Callable[[], float]
    """A random number in [0, 1)."""
    rest_seconds: Callable[[], float]
    """How long to rest before looking again without news."""
    seconds_until: Callable[[datetime], float]
    tasks: Tasks = field(factory=Tasks)
    line: Line | None = None
    failure: FailureClass | None = None
    failures: int = 0
    up_since: float | None = None
    pauses: int = 0
    """How often in a row the line that counts was asked for patience."""
    log: Logger = field(factory=Logger)
    parting: Deferred[None] | None = None
    """Fires when the last goodbye is said."""

    def run(
        self, watching: Watching, work: Callable[[], Awaitable[None]], line: Line | None
    ) -> Deferred[None]:
        """Own ``work``; its failure comes back as an event, unless its line has been given up meanwhile."""

        async def reporting() -> None:
            try:
                await work()
            except Held as held:
                if line is self.line:
                    watching.refused(line, held.until)
            except MailgatewayError as error:
                if line is self.line:
                    watching.lost(line, error)
            except CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 (whatever it is: a watcher that died would look healthy)
                self.log.failure("watching failed", failure=Failure(Fault(place_of(error))))
                if line is self.line:
                    watching.lost(line, Fault("a defect of mailgateway stopped the work; its log says where"))

        return self.tasks.start(reporting(), "watching the mailbox")

    def failed(self, error: MailgatewayError) -> tuple[FailureClass, float]:
        """Count a failure; its class, and the seconds before the next attempt.

        A connection that lived for a minute after its first whole scan has made good for earlier failures.
        """
        alive = 0.0 if self.up_since is None else self.clock.seconds() - self.up_since
        if alive >= PROVEN_SECONDS:
            self.failure, self.failures = None, 0
        self.up_since = None
        kind, hint = FailureClass.NETWORK, None
        if isinstance(error, PeerError):
            kind, hint = failure_class(error, alive_seconds=alive), error.retry_after
        self.failures = self.failures + 1 if kind is self.failure else 1
        self.failure = kind
        seconds = delay_seconds(kind, self.failures, self.chance(), hint)
        # our own ground is looked at again soon: it is nobody's server that could be hammered
        return kind, seconds if isinstance(error, PeerError) else min(seconds, STORE_SECONDS)

    def may_pause(self, line: Line) -> bool:
        """Whether patience is worth having with this line, rather than making a new one."""
        return line is self.line and line.usable and self.pauses < MOST_PAUSES

    def give_up_line(self) -> Line | None:
        """The line that counted until now; nothing that it tells counts any more."""
        line, self.line, self.pauses = self.line, None, 0
        return line

    def hang_up(self) -> None:
        """Give the line up and cut it."""
        line = self.give_up_line()
        if line is not None:
            line.hang_up()

    def part(self) -> None:
        """Give the line up politely."""
        line = self.give_up_line()
        if line is not None:
            self.parting = self.tasks.start(_goodbye(line), "logging out")


async def _goodbye(line: Line) -> None:
    await line.say_goodbye()


@frozen(eq=False)
class Attempt:
    """State data of connecting."""

    task: Deferred[None]


@frozen(eq=False)
class Busy:
    """State data while work goes on on the line."""

    task: Deferred[None]


@frozen(eq=False)
class Resting:
    """State data while waiting for news."""

    line: Line
    timer: IDelayedCall

    def end(self) -> None:
        """Let the timer go."""
        if self.timer.active():
            self.timer.cancel()


@frozen(eq=False)
class Waiting:
    """State data of a delay; without a timer only the operator ends it."""

    timer: IDelayedCall | None

    def end(self) -> None:
        """Let the timer go."""
        if self.timer is not None and self.timer.active():
            self.timer.cancel()


def attempt(watching: Watching, core: Core) -> Attempt:
    """Enter *connecting*."""

    async def connect() -> None:
        watching.connected(await core.connect())

    core.tell(Condition(AccountState.CONNECTING, core.failure, core.failures))
    return Attempt(core.run(watching, connect, None))


def prepare(watching: Watching, core: Core, line: Line) -> Busy:
    """Enter *preparing*: from here on this line is the one that counts."""

    async def log_in() -> None:
        await line.prepare()
        if line is core.line:
            watching.prepared(line)

    core.line = line
    line.listen(lambda: watching.news(line), lambda error: watching.lost(line, error))
    return Busy(core.run(watching, log_in, line))


def catch_up(watching: Watching, core: Core, line: Line) -> Busy:
    """Enter *catching up*."""

    async def scan() -> None:
        try:
            await line.catch_up()
        except (CommandRefused, Throttled) as error:
            if not core.may_pause(line):
                raise
            watching.paused(line, error)
            return
        if line is not core.line:
            return  # it was given up while the last rows were written
        core.pauses = 0
        if core.up_since is None:
            core.up_since = core.clock.seconds()
        if line.idles:
            watching.caught_up(line)
        else:
            watching.caught_up_unannounced(line)

    return Busy(core.run(watching, scan, line))


def idle(watching: Watching, core: Core, line: Line) -> Resting:
    """Enter *idling*."""
    core.tell(Condition(AccountState.WATCHING))
    core.run(watching, line.rest, line)
    return Resting(line, core.clock.callLater(core.rest_seconds(), watching.renew, line))


def poll(watching: Watching, core: Core, line: Line) -> Resting:
    """Enter *polling*."""
    core.tell(Condition(AccountState.POLLING))
    return Resting(line, core.clock.callLater(core.rest_seconds(), watching.renew, line))


def pause(watching: Watching, core: Core, line: Line, error: PeerError) -> Resting:
    """Enter *pausing*: as long as the server says, and no longer than half an hour."""
    kind, seconds = core.failed(error)
    seconds = min(seconds, LONGEST_PAUSE)
    core.pauses += 1
    core.tell(Condition(AccountState.BACKING_OFF, kind, core.failures, seconds, str(error)))
    return Resting(line, core.clock.callLater(seconds, watching.renew, line))


def back_off(watching: Watching, core: Core, line: Line | None, error: MailgatewayError) -> Waiting:  # noqa: ARG001 (the event's own arguments)
    """Enter *backing off*."""
    kind, seconds = core.failed(error)
    core.tell(Condition(AccountState.BACKING_OFF, kind, core.failures, seconds, str(error)))
    return Waiting(core.clock.callLater(seconds, watching.retry))


def hold(watching: Watching, core: Core, line: Line | None, until: datetime | None) -> Waiting:  # noqa: ARG001 (the event's own arguments)
    """Enter *refused*."""
    core.up_since = None
    seconds = None if until is None else max(core.seconds_until(until), 1.0)
    core.tell(Condition(AccountState.REFUSED, FailureClass.CREDENTIAL, seconds=seconds))
    return Waiting(None if seconds is None else core.clock.callLater(seconds, watching.retry))
