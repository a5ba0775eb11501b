"""Commands of the operator that print a secret: ``password_command`` and ``token_command``.

Policy: a command has a deadline and a bound on what it prints, and both end in a kill.  A list of words runs
without a shell, a string is a line for ``/bin/sh -c``, since the operator has written it as one.  What it
prints is never shown anywhere: its output is the secret, and its complaints may quote it.
"""

import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from mailgateway.errors import TokenUnavailable

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

OUTPUT_LIMIT: Final = 64 * 1024
"""Bytes that a command may print."""


class _Command(ProcessProtocol):
    """Collects what a process prints, up to a limit, and tells once how it ended."""

    transport: Any

    def __init__(self, name: str, limit: int) -> None:
        self.printed: Deferred[bytes] = Deferred(lambda _: self._kill())
        self._name = name
        self._limit = limit
        self._output: list[bytes] = []
        self._size = 0
        self._told = False

    def connectionMade(self) -> None:
        """The process runs; it gets no input."""
        self.transport.closeStdin()

    def outReceived(self, data: bytes) -> None:
        """Keep what it prints."""
        self._size += len(data)
        if self._size > self._limit:
            self.end(f"printed more than {self._limit} bytes")
        else:
            self._output.append(data)

    def errReceived(self, data: bytes) -> None:
        """Take its complaints, so that it does not block, and forget them."""

    def processEnded(self, reason: Failure) -> None:
        """The process is gone and its output is complete."""
        if self._told:
            return
        match reason.value:
            case ProcessDone():
                self._told = True
                self.printed.callback(b"".join(self._output))
            case ProcessTerminated(exitCode=int(status)):
                self.end(f"ended with status {status}")
            case _:
                self.end("was ended by a signal")

    def end(self, why: str) -> None:
        """Give it up."""
        if not self._told:
            self._kill()
            self.printed.errback(TokenUnavailable(f"the command {self._name} {why}"))

    def _kill(self) -> None:
        """Kill it, and let go of its output, which a child that it left behind may hold open."""
        self._told = True
        with suppress(ProcessExitedAlready):
            self.transport.signalProcess("KILL")
        self.transport.loseConnection()


async def run_command(
    reactor: Any, command: str | Sequence[str], seconds: float = 30, limit: int = OUTPUT_LIMIT
) -> str:
    """Run a command and return the first line that it prints, without its line end.

    ``command`` is a list of words, or a line for the shell.  Raises ``TokenUnavailable`` if the command is
    not found, ends with a status other than 0, prints nothing, more than ``limit`` bytes or a line that is no
    plain UTF-8 text, or has not ended after ``seconds``; it is killed then, as it is when the wait is
    cancelled.
    """
    words = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
    name = "line of the shell" if isinstance(command, str) else PurePath(words[0]).name if words else ""
    path = shutil.which(words[0]) if words else None
    if path is None:
        raise TokenUnavailable(f"the command {name} is not found")
    process = _Command(name, limit)
    reactor.spawnProcess(process, path, words, env=os.environ)
    deadline = reactor.callLater(seconds, process.end, f"did not end within {seconds:g} s")
    try:
        output = await process.printed
    finally:
        if deadline.active():
            deadline.cancel()
    try:
        line = output.decode("utf-8").split("\n", 1)[0].removesuffix("\r")
    except UnicodeDecodeError:
        raise TokenUnavailable(f"the command {name} printed something that is not UTF-8") from None
    if not line:
        raise TokenUnavailable(f"the command {name} printed nothing")
    if _CONTROL.search(line):  # colours, for instance, meant for a terminal
        raise TokenUnavailable(f"the command {name} printed control characters")
    return line
