"""The running end of an IMAP connection: one command at a time, each with its deadline, and the first cause.

``ImapChannel`` joins a dialogue of ``wire`` with a transport and a clock.  It knows when a command has
waited too long, who gets what the server says meanwhile, and why a connection ended: the *first* thing that
went wrong (a BYE, a breach, a silence) is what every waiter and the ``Disconnected`` event get, and not the
bare loss that follows from it.  A command that is started in IDLE ends it and is sent along with DONE; both
are waited for, each with its own deadline.  Every deadline ends in ``abortConnection``, since a TLS peer that
hangs never lets ``loseConnection`` finish.  What the commands mean stands in ``mailgateway.protocols.imap``.
"""

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailgateway.errors import Fault, PeerError, TlsRefused, Unreachable, place_of
from mailgateway.protocols.dial import Peer, failure_of
from mailgateway.wire import Misuse
from mailgateway.wire.imap_command import Command
from mailgateway.wire.imap_dialogue import Dialogue
from mailgateway.wire.imap_event import (
    Broken,
    Bye,
    Completed,
    CountChanged,
    Event,
    Greeted,
    Idling,
    State,
)
from mailgateway.wire.imap_fetch import Fetched
from mailgateway.wire.imap_lexer import MAX_LITERAL
from mailgateway.wire.imap_outcome import farewell, words
from mailgateway.wire.imap_response import Expunge, Status, Vanished
from mailgateway.wire.sasl import Mechanism

AFTER_BYE = 5.0
"""Seconds that a server gets to close the connection after it said BYE."""

DONE_SECONDS = 15.0
"""How long the end of IDLE may take."""

_CODED = re.compile(rb"[A-Za-z0-9+/=_-]{24,}")

_log = Logger()


@frozen
class Expunged:
    """One or more messages are gone from the selected mailbox."""


@frozen
class IdleEnded:
    """The server ended IDLE by itself; the connection is free for commands."""

    text: str


@frozen
class Alert:
    """A word of the server that RFC 3501 wants people to see."""

    text: str


@frozen
class Leaving:
    """The server said BYE; ``cause`` is what ``Disconnected`` will tell."""

    cause: PeerError


@frozen
class Disconnected:
    """The connection is gone, told once; ``asked`` if ``logout`` or ``abort`` ended it."""

    cause: PeerError
    asked: bool


ConnectionEvent: TypeAlias = CountChanged | Expunged | IdleEnded | Alert | Leaving | Disconnected


@define(eq=False)
class _Wait:
    """What is waited for: the greeting, or the end of a command."""

    what: str
    waiters: "list[Deferred[Status | None]]" = field(factory=list, repr=False)
    take: Callable[[Event], None] | None = field(default=None, repr=False)
    silence: float | None = None
    """Seconds without a byte that are too many; None if only the whole counts."""
    quiet: IDelayedCall | None = field(default=None, repr=False)
    deadline: IDelayedCall | None = field(default=None, repr=False)

    def disarm(self) -> None:
        """Stop the clocks."""
        for call in (self.quiet, self.deadline):
            if call is not None and call.active():
                call.cancel()
        self.quiet = self.deadline = None


class ImapChannel(Protocol):
    """A connection that can run commands; see the module."""

    def __init__(self, reactor: Any, peer: Peer, max_literal: int = MAX_LITERAL) -> None:
        self.peer = peer
        self.on_event: Callable[[ConnectionEvent], None] = _ignore
        """Called with what the server tells unasked, and with the end of the connection."""
        self._reactor = reactor
        self._dialogue = Dialogue(max_literal=max_literal)
        self._wait: _Wait | None = None
        self._behind: _Wait | None = None
        """The command that follows on IDLE."""
        self._greeting: Status | None = None
        self._cause: PeerError | None = None
        self._leaving: IDelayedCall | None = None
        self._secret = b""
        self._safe = False
        self._asked = False
        self._lost = False
        self._paused = False

    @property
    def alive(self) -> bool:
        """Whether commands may still succeed: neither lost nor given up nor told BYE."""
        return self._cause is None and not self._lost

    def abort(self) -> None:
        """Close the connection at once; whoever waits gets ``Unreachable``."""
        self._asked = True
        self._give_up(Unreachable("the connection was closed by us", code="CLOSED"))

    def pause(self) -> None:
        """Take no more bytes from the server until ``resume``; what has come already is still handed on."""
        self._paused = True
        if self._wait is not None and self._wait.quiet is not None:
            self._wait.quiet.cancel()
            self._wait.quiet = None
        if not self._lost:
            self._wire.pauseProducing()

    def resume(self) -> None:
        """Take bytes again."""
        self._paused = False
        if not self._lost:
            self._wire.resumeProducing()
            self._listen_for_silence()

    def dataReceived(self, data: bytes) -> None:
        """Let the dialogue read, send what it wants sent, and hand its events on."""
        wait = self._wait
        if wait is not None and wait.quiet is not None and wait.silence is not None:
            wait.quiet.reset(wait.silence)
        events = self._dialogue.receive(data)
        outgoing = self._dialogue.outgoing()
        if outgoing:
            self._wire.write(outgoing)
        for event in events:
            wait = self._wait
            if wait is not None and wait.take is not None:
                try:
                    wait.take(event)
                except Exception as error:  # noqa: BLE001 - whatever the taker raised belongs to who waits
                    self._fail_taker(error)
                    return
            if type(event) is not Fetched:
                self._dispatch(event)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell whoever waits, and the listener, why it ended."""
        self._lost = True
        if self._cause is None:
            self._cause = self._why(reason)
        if self._leaving is not None and self._leaving.active():
            self._leaving.cancel()
        self._end(Failure(self._cause))
        self._tell(Disconnected(self._cause, self._asked))
        self.on_event = _ignore

    @property
    def _wire(self) -> Any:
        """The transport: TCP, TLS, or one in memory."""
        return self.transport

    async def _greet(self, seconds: float) -> Status:
        """The greeting."""
        if self._greeting is None:
            self._raise_if_lost()
            self._wait = _Wait("waiting for the greeting")
            await self._until_end(self._wait, seconds)
        if self._greeting is None:
            raise Misuse("the wait for the greeting ended without one")
        return self._greeting

    async def _run(
        self,
        command: Command | Mechanism,
        seconds: float,
        *,
        take: Callable[[Event], None] | None = None,
        silence: float | None = None,
    ) -> Status:
        """Run a command to its tagged end, for at most ``seconds``; the end may be NO or BAD."""
        wait = self._start(command, take, silence)
        status = await self._until_end(wait, seconds)
        if status is None:
            raise Misuse(f"{wait.what} ended without a status")
        return status

    def _start(
        self,
        command: Command | Mechanism,
        take: Callable[[Event], None] | None = None,
        silence: float | None = None,
    ) -> _Wait:
        """Put a command on the wire; the first cause if the connection is gone."""
        idle = self._wait if self._dialogue.resting else None
        self._raise_if_lost(idle)
        if isinstance(command, Command):
            what, data = command.verb.decode("ascii"), self._dialogue.command(command)
        else:
            what, data = "AUTHENTICATE", self._dialogue.authenticate(command)
        wait = _Wait(what, take=take, silence=silence)
        if idle is None:
            self._wait = wait
        else:
            self._behind = wait
            idle.disarm()
            idle.deadline = self._reactor.callLater(DONE_SECONDS, self._too_late, idle, DONE_SECONDS)
        self._wire.write(data)
        return wait

    def _until_end(self, wait: _Wait, seconds: float) -> "Deferred[Status | None]":
        """Fires when ``wait`` ends; gives the connection up after ``seconds``, or when it is cancelled."""
        if wait not in (self._wait, self._behind):  # a write may have found the connection broken
            self._raise_if_lost()
            raise Misuse(f"{wait.what} has ended")
        wait.disarm()
        waiter: Deferred[Status | None] = Deferred(lambda cancelled: self._cancelled(wait, cancelled))
        wait.waiters.append(waiter)
        wait.deadline = self._reactor.callLater(seconds, self._too_late, wait, seconds)
        self._listen_for_silence()
        return waiter

    def _listen_for_silence(self) -> None:
        """Start the clock that each byte sets back, if the command wants one."""
        wait = self._wait
        if wait is not None and wait.silence is not None and wait.quiet is None and not self._paused:
            wait.quiet = self._reactor.callLater(wait.silence, self._too_late, wait, wait.silence)

    def _too_late(self, wait: _Wait, seconds: float) -> None:
        """A deadline has passed."""
        self._give_up(Unreachable(f"{self.peer} kept us waiting for {seconds:g} s: {wait.what}"))

    def _cancelled(self, wait: _Wait, waiter: "Deferred[Status | None]") -> None:
        """Who waited has gone: the answer would be taken for that of the next command, so close."""
        wait.waiters.remove(waiter)
        self.abort()

    def _fail_taker(self, error: Exception) -> None:
        """What takes the answer failed: the command cannot end well any more."""
        if self._cause is None:
            ours = Unreachable("closed by us: what came could not be taken", code="CLOSED")
            self._cause = error if isinstance(error, PeerError) else ours
        self._end(Failure(error))
        self._give_up(self._cause)

    def _give_up(self, cause: PeerError) -> None:
        """Close at once; ``cause`` is the reason unless there was one before."""
        if self._cause is None:
            self._cause = cause
        if not self._lost:
            self._wire.abortConnection()
        self._end(Failure(self._cause))

    def _end(self, result: Status | Failure | None) -> None:
        """The wait is over; that for a command behind IDLE takes its place, unless it cannot end well."""
        wait, self._wait, self._behind = self._wait, self._behind, None
        self._listen_for_silence()
        if wait is not None:
            wait.disarm()
            self._wake(wait, result)
        if self._wait is not None and isinstance(result, Failure):
            self._end(result)

    def _wake(self, wait: _Wait, result: Status | Failure | None) -> None:
        """Hand ``result`` to all who wait."""
        waiters, wait.waiters = wait.waiters, []
        for waiter in waiters:
            waiter.callback(result)

    def _dispatch(self, event: Event) -> None:
        """One event that is no message."""
        match event:
            case Completed(command, status):
                unasked = command.verb == b"IDLE" and self._nobody_waits
                self._end(status)
                if unasked:
                    self._tell(IdleEnded(words(status)))
            case Greeted(status):
                self._greeting = status
                self._end(status)
            case Idling():
                if self._wait is not None and not self._dialogue.ending_idle:
                    self._wait.disarm()
                    self._wake(self._wait, None)
            case CountChanged():
                self._tell(event)
            case Expunge() | Vanished():
                self._tell(Expunged())
            case Bye(status):
                self._bye(self._scrubbed(status))
            case Broken(error):
                self._give_up(error)
            case Status(code=b"ALERT"):
                self._tell(Alert(words(self._scrubbed(event))))
            case _:
                pass

    @property
    def _nobody_waits(self) -> bool:
        """Whether what runs was begun without anybody who waits for its end."""
        return self._wait is not None and not self._wait.waiters and self._behind is None

    def _bye(self, status: Status) -> None:
        """The server leaves; the running command may still get its end, so wait a little."""
        if self._wait is not None and self._wait.what == "LOGOUT":
            return
        if self._cause is None:
            self._cause = farewell(status)
        if self._leaving is None:
            self._leaving = self._reactor.callLater(AFTER_BYE, self._give_up, self._cause)
        self._tell(Leaving(self._cause))

    def _scrubbed(self, status: Status) -> Status:
        """A status whose text holds nothing of the credential that is being tried, should it be echoed."""
        if not self._secret:
            return status
        return evolve(status, text=_CODED.sub(b"(...)", status.text.replace(self._secret, b"(...)")))

    def _why(self, reason: Failure) -> PeerError:
        """The reason of a loss that nothing foretold."""
        during = f" ({self._wait.what})" if self._wait is not None else ""
        if reason.check(ConnectionDone):
            return Unreachable(f"{self.peer} closed the connection{during}")
        cause = failure_of(reason.value, self.peer)
        if isinstance(cause, TlsRefused) and self._safe:
            return Unreachable(cause.text + during)  # a TLS connection that broke later, not a refused one
        return cause

    def _raise_if_lost(self, idle: _Wait | None = None) -> None:
        """The first cause, if the connection is of no use any more; ``idle`` is what may run."""
        if self._cause is not None:
            raise self._cause
        if self._wait is not None and self._wait is not idle:
            raise Misuse(f"another command while {self._wait.what} runs")
        if self._dialogue.state is State.LOGOUT:
            raise Unreachable("the connection is logged out", code="CLOSED")

    def _tell(self, event: ConnectionEvent) -> None:
        """Tell the listener; its failures are its own and must not end the connection."""
        try:
            self.on_event(event)
        except Exception as error:  # noqa: BLE001 - as said above
            what, fault = type(event).__name__, Failure(Fault(place_of(error)))
            _log.failure("a listener of an IMAP connection failed on {event}", failure=fault, event=what)


def _ignore(event: ConnectionEvent) -> None:
    """Nobody listens."""
