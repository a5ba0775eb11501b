"""The Message-ID that a mail has in the end, read back where the server changes it and does not say so.

Replies name the id that the reader has seen, so it has to lead to the session as ours does.  The mail is
looked for in the Sent folder by our own header, which nobody changes, as soon as it may lie there and then
less often.  It is a convenience: the tag in the subject routes a reply as well, so what cannot be read is no
failure, and a stop forgets what was being looked for.
"""

from typing import Any

from attrs import define, field
from twisted.internet.task import deferLater
from twisted.logger import Logger

from mailgateway.daemons.tasks import Tasks
from mailgateway.errors import CommandRefused, PeerError, StoreError
from mailgateway.flows import outbox
from mailgateway.flows.ports import Database, SentFolder
from mailgateway.ids import OutboxId

PAUSES = (2.0, 5.0, 10.0, 20.0, 30.0, 45.0)
"""Seconds before each look: six of them, 112 s in all."""

AT_ONCE = 20
"""So many mails are looked for at a time; in a larger burst some are found by their tag alone."""


@define(eq=False)
class ReadBack:
    """The looks of one account."""

    reactor: Any
    database: Database
    sent: SentFolder
    _tasks: Tasks
    _looking: int = field(default=0, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def begin(self, outbox_id: OutboxId) -> None:
        """Look for a mail that was just sent."""
        if self._looking < AT_ONCE:
            self._looking += 1
            self._tasks.start(self._look(outbox_id), "reading back a Message-ID")

    async def _look(self, outbox_id: OutboxId) -> None:
        try:
            for seconds in PAUSES:
                await deferLater(self.reactor, seconds)
                try:
                    found = await self.sent.id_of(outbox_id)
                    if found is not None:
                        await outbox.renamed(self.database, outbox_id, found)
                        return
                except CommandRefused as error:
                    self._log.info(
                        "mail {id}: its Message-ID cannot be read back: {why}", id=outbox_id, why=error.text
                    )
                    return
                except (PeerError, StoreError) as error:
                    self._log.info("mail {id}: not read back now: {why}", id=outbox_id, why=str(error))
        finally:
            self._looking -= 1
