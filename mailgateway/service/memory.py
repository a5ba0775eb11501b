"""Memory that the C library holds back, given to others again.

A thousand TLS handshakes, a large mail, a burst: what they needed is free afterwards, but lies between what
stays, and glibc gives back only what lies at the end.  Once in a while it is told to look everywhere, which
takes a few milliseconds.  Threads of ours hardly allocate at the same time, so they share one arena instead
of a megabyte each.  Other C libraries have neither call, and do as they always do.
"""

import ctypes
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.interfaces import IDelayedCall

FIRST_SECONDS = 30.0
"""When what only a start needs is free."""

EVERY_SECONDS = 600.0

_ARENA_MAX = -8
"""``M_ARENA_MAX`` of glibc's ``malloc.h``."""


def _glibc() -> Any:
    """The C library when it is glibc, else None."""
    try:
        library = ctypes.CDLL(None)
    except OSError:
        return None
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None


def share_one_arena() -> None:
    """Let all threads that are started from now on allocate from one heap."""
    library = _glibc()
    if library is not None:
        library.mallopt(_ARENA_MAX, 1)


@define(eq=False)
class GiveBack(Service):
    """Gives memory back, soon after the start and from time to time."""

    reactor: Any
    _library: Any = field(factory=_glibc)
    _next: IDelayedCall | None = field(default=None, init=False)

    def startService(self) -> None:
        """Begin."""
        Service.startService(self)
        if self._library is not None:
            self._next = self.reactor.callLater(FIRST_SECONDS, self._give_back)

    def stopService(self) -> None:
        """End."""
        Service.stopService(self)
        if self._next is not None and self._next.active():
            self._next.cancel()

    def _give_back(self) -> None:
        self._library.malloc_trim(0)
        self._next = self.reactor.callLater(EVERY_SECONDS, self._give_back)
