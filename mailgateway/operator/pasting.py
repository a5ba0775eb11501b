"""Lines that a person types or pastes, read while the reactor runs.

A thread that waits for a terminal would outlive the command, so the file is watched like a socket.
"""

import os
from typing import Any, Final

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

LONGEST: Final = 64 * 1024


@implementer(IReadDescriptor)
@define(eq=False)
class Lines:
    """Lines of a file, one at a time; it is watched only while somebody waits."""

    reactor: Any
    handle: int = 0
    _kept: bytes = field(default=b"", init=False, repr=False)
    _ended: bool = field(default=False, init=False)
    _wanted: Deferred[str] | None = field(default=None, init=False)

    async def next(self) -> str:
        """The next line without its end; ``EOFError`` when there is none."""
        if b"\n" in self._kept:
            return self._line()
        if self._ended:
            raise EOFError
        self._wanted = Deferred(lambda _: self._leave())
        self.reactor.addReader(self)
        return await self._wanted

    def fileno(self) -> int:
        """The file that is watched."""
        return self.handle

    def logPrefix(self) -> str:  # noqa: N802 - the reactor's name
        """What the reactor calls it."""
        return "lines"

    def doRead(self) -> None:  # noqa: N802 - the reactor's name
        """Take what is there."""
        try:
            data = os.read(self.handle, 4096)
        except OSError:
            data = b""
        self._kept = (self._kept + data)[-LONGEST:]
        if not data:
            self._end()
        elif b"\n" in self._kept and self._wanted is not None:
            wanted = self._wanted
            self._leave()
            wanted.callback(self._line())

    def connectionLost(self, reason: Failure) -> None:  # noqa: ARG002, N802 - the reactor's
        """Nobody writes any more."""
        self._end()

    def _line(self) -> str:
        line, _, self._kept = self._kept.partition(b"\n")
        return line.decode("utf-8", "replace").removesuffix("\r")

    def _end(self) -> None:
        """Give what is left, if it is anything."""
        self._ended = True
        wanted, rest, self._kept = self._wanted, self._kept, b""
        self._leave()
        if wanted is not None and rest:
            wanted.callback(rest.decode("utf-8", "replace"))
        elif wanted is not None:
            wanted.errback(EOFError())

    def _leave(self) -> None:
        self._wanted = None
        self.reactor.removeReader(self)
