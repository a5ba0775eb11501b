"""Running one coroutine function on a reactor of its own, from a command that blocks.

Policy: the work ends by itself, at its deadline, or by Ctrl-C or SIGTERM; in the last two cases it is
cancelled, and gets a few seconds to tidy up before the reactor stops.  Nothing is logged to the terminal
but defects, by their place.  What the work does is not known here.
"""

import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar, cast

from twisted.internet.base import ReactorBase
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.main import installReactor
from twisted.logger import ILogObserver, LogEvent, LogLevel, globalLogBeginner
from twisted.python.failure import Failure
from zope.interface import provider

from mailgateway.errors import Unreachable, place_of

T = TypeVar("T")

_GLOBAL: Final = "twisted.internet.reactor"
TIDY_SECONDS: Final = 5.0
"""How long cancelled work may take to end."""


def run(work: Callable[[Any], Coroutine[Any, Any, T]], *, seconds: float) -> T:
    """Run ``work(reactor)`` to its end on a new reactor, and return its value; what it raises comes out.

    After ``seconds`` it is cancelled and ``Unreachable`` is raised; Ctrl-C and SIGTERM cancel it and raise
    ``KeyboardInterrupt``.  Each call has another reactor, which is the global one meanwhile.
    """
    with _as_global(_new_reactor()) as reactor:
        return _run(reactor, work, seconds)


def _run(reactor: Any, work: Callable[[Any], Coroutine[Any, Any, T]], seconds: float) -> T:
    outcome: list[Any] = []
    running: list[Deferred[Any]] = []
    too_late: list[bool] = []

    def begin() -> None:
        running.append(Deferred.fromCoroutine(work(reactor)))
        running[0].addBoth(end)

    def end(result: Any) -> None:
        outcome.append(result)
        if deadline.active():
            deadline.cancel()
        reactor.callLater(0, _stop, reactor)

    def give_up() -> None:
        too_late.append(True)
        reactor.callLater(TIDY_SECONDS, _stop, reactor)
        running[0].cancel()

    def interrupted() -> Deferred[None] | None:
        """Before a shutdown that was not ours: let the work tidy up."""
        if outcome or not running:
            return None
        over: Deferred[None] = Deferred()
        running[0].addBoth(lambda _: over.callback(None))
        over.addTimeout(TIDY_SECONDS, reactor)
        over.addErrback(lambda _: None)
        running[0].cancel()
        return over

    deadline = reactor.callLater(seconds, give_up)
    reactor.callWhenRunning(begin)
    reactor.addSystemEventTrigger("before", "shutdown", interrupted)
    reactor.run(installSignalHandlers=threading.current_thread() is threading.main_thread())
    result = outcome[0] if outcome else Failure(CancelledError())
    if isinstance(result, Failure):
        if too_late:
            raise Unreachable(f"it was not done within {seconds:g} s and was given up") from None
        if result.check(CancelledError):
            raise KeyboardInterrupt
        result.raiseException()
    return result  # type: ignore[no-any-return]  # what the coroutine returned


def _stop(reactor: Any) -> None:
    """Stop the reactor unless it is stopping already."""
    if reactor.running:
        reactor.stop()


def _new_reactor() -> ReactorBase:
    """Make a reactor; with the first one of a process that logs nothing yet comes a quiet log."""
    try:
        from twisted.internet.epollreactor import EPollReactor as Reactor  # noqa: PLC0415 - Linux has it
    except ImportError:
        from twisted.internet.selectreactor import SelectReactor as Reactor  # noqa: PLC0415
    if globalLogBeginner._temporaryObserver is not None:  # noqa: SLF001 - only it knows that nobody has begun
        globalLogBeginner.beginLoggingTo([_defects], discardBuffer=True, redirectStandardIO=False)
    return Reactor()


@contextmanager
def _as_global(reactor: Any) -> Iterator[Any]:
    """Make the reactor the one that ``twisted.internet`` names, and put back which one it was.

    STARTTLS asks for the global reactor when it writes a little; in one that does not run, that would never
    go out.
    """
    before = sys.modules.pop(_GLOBAL, None)
    installReactor(reactor)
    try:
        yield reactor
    finally:
        del sys.modules[_GLOBAL]
        if before is not None:
            installReactor(cast("ReactorBase", before))


@provider(ILogObserver)
def _defects(event: LogEvent) -> None:
    """Show a defect of ours by its place; nothing else is worth a line beside the findings."""
    failure = event.get("log_failure")
    if event.get("log_level") is LogLevel.critical and failure is not None and failure.value is not None:
        sys.stderr.write(f"mailgateway: a defect: {place_of(failure.value)}\n")
