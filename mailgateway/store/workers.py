"""Threads that take what was handed over from one queue of their own.

A thread pool finds a thread for each piece of work and carries contexts along; here a rested thread wakes up
in the queue itself, and there is nothing between the one who hands over and the work.
"""

from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

from attrs import define, field
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailgateway.errors import Fault, place_of

T = TypeVar("T")

_log = Logger()


@define(eq=False)
class Workers(Generic[T]):
    """As many threads as ``_most``, each begun when there is something to do: never before a process forks.

    Used by one thread alone, apart from the work itself.
    """

    _name: str
    _most: int
    _work: Callable[[Sequence[T]], None]
    """Does what was taken; it is to raise nothing."""
    _together: int = 1
    """How many pieces that wait already are taken at a time, at most."""
    _queue: SimpleQueue[T | None] = field(factory=SimpleQueue, init=False)
    """``None`` ends the thread that takes it."""
    _begun: list[Thread] = field(factory=list, init=False)

    @property
    def waiting(self) -> int:
        """How many pieces nobody has taken yet."""
        return self._queue.qsize()

    def hand(self, piece: T) -> None:
        """Let one of the threads do it, after what was handed over before."""
        self._queue.put(piece)
        if len(self._begun) < self._most:
            thread = Thread(target=self._take, name=f"{self._name}-{len(self._begun)}")
            self._begun.append(thread)
            thread.start()

    def stop(self) -> None:
        """Wait until everything is done and the threads have ended; nothing may be handed over any more."""
        for _ in self._begun:
            self._queue.put(None)
        for thread in self._begun:
            thread.join()

    def _take(self) -> None:
        """Do what comes, until the end."""
        while self._take_some():
            pass

    def _take_some(self) -> bool:
        """Wait for work and do it; whether there may be more.  Nothing of it is kept while waiting again."""
        taken = [self._queue.get()]
        while len(taken) < self._together:
            try:
                taken.append(self._queue.get_nowait())
            except Empty:
                break
        pieces = [piece for piece in taken if piece is not None]
        try:
            if pieces:
                self._work(pieces)
        except Exception as error:  # noqa: BLE001 (a defect; the thread has to be there for what comes later)
            _log.failure("work on a thread failed", failure=Failure(Fault(place_of(error))))
        return len(pieces) == len(taken)
