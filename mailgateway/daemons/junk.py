"""The folder into which a server puts what it takes for junk: an answer may lie there, and nobody would know.

Policy.  It is counted from time to time (STATUS), over the connection that watches the inbox anyway, and what
was counted is said in ``status``.  Nothing in it is ever read, filed or moved: what a person wrote there is
for the person who looks, and what anybody else wrote is no command.
"""

from collections.abc import Callable

from attrs import define, field
from twisted.logger import Logger

from mailgateway.daemons.folders import folders_of
from mailgateway.domain.special_use import find_junk
from mailgateway.errors import CommandRefused, ProtocolViolation
from mailgateway.protocols.imap import ImapConnection
from mailgateway.providers import folder_names
from mailgateway.wire.modified_utf7 import decode

LOOK_SECONDS = 900.0


@define(eq=False)
class JunkCount:
    """How much came into an account's junk folder since this process counts."""

    seconds: Callable[[], float]
    """The reactor's clock."""
    _looked_at: float = field(init=False)
    _folder: bytes | None = field(default=None, init=False)
    _first: int | None = field(default=None, init=False)
    """UIDNEXT when it was counted first."""
    _came: int = field(default=0, init=False)
    _gone: bool = field(default=False, init=False)
    """Whether there is no such folder, or it cannot be counted."""
    _log: Logger = field(factory=Logger, init=False)

    def __attrs_post_init__(self) -> None:
        self._looked_at = self.seconds() - LOOK_SECONDS

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the operator may want to know, in words."""
        if not self._came:
            return ()
        mails = "1 mail" if self._came == 1 else f"{self._came} mails"
        return (f"{mails} came into the junk folder, which is not watched: an answer may lie there",)

    async def look(self, connection: ImapConnection) -> None:
        """Count, when it is time; the folder that is selected stays so.  Raises when the connection fails."""
        now = self.seconds()
        if self._gone or now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            if self._folder is None and not await self._find(connection):
                self._gone = True
                return
            await self._count(connection)
        except CommandRefused:
            self._gone = True
        except ProtocolViolation:  # nor will it be any better next time, and it costs the connection
            self._gone = True
            raise

    async def _find(self, connection: ImapConnection) -> bool:
        self._folder = find_junk(await folders_of(connection), folder_names().junk)
        if self._folder is None:
            return False
        self._log.info(
            "what the mail server takes for junk lies in {folder}; it is counted and not watched",
            folder=decode(self._folder),
        )
        return True

    async def _count(self, connection: ImapConnection) -> None:
        status = await connection.status(self._folder or b"")
        if status.uid_next is None:
            self._gone = True
        elif self._first is None or status.uid_next < self._first:
            self._first = status.uid_next
        else:
            self._came = status.uid_next - self._first
