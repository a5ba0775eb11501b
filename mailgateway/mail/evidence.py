"""What was found out about a mail beyond its bytes, before it is judged: by DNS, and in the Sent folder.

Judging is pure.  Whoever judges asks first what there is to find out (`Wanted`), asks the world, and hands
the answers over (`Evidence`).  What nobody asked for is no answer, and proves nothing.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum, unique

from attrs import field, frozen

from mailgateway.ids import MessageId
from mailgateway.mail.dkim_key import KeyAnswer


@unique
class Awaited(StrEnum):
    """Evidence that may come yet."""

    KEY = "key"
    SENT_COPY = "sent-copy"


@frozen
class Wanted:
    """What there is to find out: keys in DNS by name, and a Message-ID to look for in the Sent folder."""

    keys: tuple[str, ...] = ()
    sent_copy: MessageId | None = None

    def __bool__(self) -> bool:
        return bool(self.keys) or self.sent_copy is not None


@frozen
class Copy:
    """The mail that lies in the Sent folder under the Message-ID: its first octets."""

    raw: bytes = field(repr=False)


@frozen
class NoCopy:
    """The Sent folder does not have it, or could not be looked into; ``reason`` is a sentence."""

    reason: str


@frozen(kw_only=True)
class Evidence:
    """The answers.

    ``now`` and ``received_at`` (INTERNALDATE) are aware; None: this is no arrival, and age does not matter.
    ``copy`` is None when nobody looked.
    """

    now: datetime | None = None
    received_at: datetime | None = None
    keys: Mapping[str, KeyAnswer] = field(factory=dict)
    copy: Copy | NoCopy | None = None


NO_EVIDENCE = Evidence()
"""Nobody asked anybody."""
