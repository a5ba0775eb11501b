"""A Sent folder in memory."""

from attrs import define, field

from mailgateway.errors import MailgatewayError
from mailgateway.flows.ports import SentFolder
from mailgateway.ids import MessageId, OutboxId


@define(eq=False)
class FakeSentFolder:
    """What was sent, by Message-ID; with an ``outage`` nobody can look."""

    mails: dict[MessageId, bytes] = field(factory=dict)
    outage: MailgatewayError | None = None
    names: dict[OutboxId, MessageId] = field(factory=dict)
    """What mails of ours are called there."""
    asked: list[MessageId] = field(factory=list)
    kept: list[MessageId] = field(factory=list)

    async def find(self, message_id: MessageId, limit: int = 65_536) -> bytes | None:
        """Look."""
        self.asked.append(message_id)
        if self.outage is not None:
            raise self.outage
        raw = self.mails.get(message_id)
        return None if raw is None else raw[:limit]

    async def id_of(self, outbox_id: OutboxId) -> MessageId | None:
        """Look by our own header."""
        if self.outage is not None:
            raise self.outage
        return self.names.get(outbox_id)

    async def keep(self, raw: bytes, message_id: MessageId) -> bool:
        """Put a mail there, once."""
        if await self.find(message_id) is not None:
            return False
        self.mails[message_id] = raw
        self.kept.append(message_id)
        return True


_proof: type[SentFolder] = FakeSentFolder
