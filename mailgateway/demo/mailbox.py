"""A mailbox in memory as Twisted's IMAP server wants it: raw bytes, UIDs that only grow, flags, news.

Messages keep the very bytes in which they came, since what is rebuilt from parsed fields loses doubled header
fields and breaks signatures.  This module knows no protocol and no socket.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import Message
from email.utils import format_datetime
from io import BytesIO
from typing import Any, Final, cast

from twisted.internet.defer import Deferred, succeed
from twisted.mail import imap4
from zope.interface import implementer

SEEN: Final = "\\Seen"
DELETED: Final = "\\Deleted"
FLAGS: Final = (SEEN, "\\Answered", "\\Flagged", DELETED, "\\Draft")

CAPACITY: Final = 1000
"""Messages that one mailbox holds; one more is refused."""


class MailboxFull(Exception):
    """The mailbox holds as many messages as it may."""


@implementer(imap4.IMessagePart)
class Part:
    """One part of a message, for clients that ask for its structure; numbers count from zero."""

    def __init__(self, parsed: "Message[str, str]", raw: bytes) -> None:
        self._parsed = parsed
        self.raw = raw

    def getHeaders(self, negate: bool, *names: bytes | str) -> dict[str, str]:
        """Return the fields with these names, or all but these; of doubled fields the last."""
        wanted = {(name.decode("latin-1") if isinstance(name, bytes) else name).lower() for name in names}
        fields = ((name.lower(), str(value)) for name, value in self._parsed.items())
        return {name: value for name, value in fields if (name in wanted) is not bool(negate)}

    def getBodyFile(self) -> BytesIO:
        """Open what stands below the header."""
        return BytesIO(split(self.raw)[1])

    def getSize(self) -> int:
        """Count the bytes."""
        return len(self.raw)

    def isMultipart(self) -> bool:
        """Say whether there are parts in it."""
        return self._parsed.is_multipart()

    def getSubPart(self, part: int) -> "Part":
        """Return one part of a multipart."""
        inner = cast("list[Message[str, str]]", self._parsed.get_payload())[part]
        return Part(inner, inner.as_bytes())


@implementer(imap4.IMessage, imap4.IMessageFile)
class Letter(Part):
    """One message of a mailbox."""

    def __init__(self, uid: int, raw: bytes, flags: Iterable[str], received_at: datetime) -> None:
        super().__init__(message_from_bytes(raw), raw)
        self.uid = uid
        self.flags = set(flags)
        self.received_at = received_at

    def open(self) -> BytesIO:
        """Open the message, byte for byte as it came."""
        return BytesIO(self.raw)

    def getUID(self) -> int:
        """Return the number that never changes."""
        return self.uid

    def getFlags(self) -> list[str]:
        """Return the flags, in a fixed order."""
        return sorted(self.flags)

    def getInternalDate(self) -> bytes:
        """Return when it arrived, as mail writes dates."""
        return format_datetime(self.received_at).encode("ascii")


def split(raw: bytes) -> tuple[bytes, bytes]:
    """Split a message into its header, with the empty line that ends it, and its body."""
    header, empty, body = raw.partition(b"\r\n\r\n")
    return header + empty, body


@implementer(imap4.IMailbox)
class Mailbox:
    """One folder, shared by all connections that selected it.

    New messages and changed flags are told to every listener at once.  Removed ones are told only to the
    connection that removed them, since Twisted's listeners have no word for it.
    """

    def __init__(self, uid_validity: int, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.letters: list[Letter] = []
        self._uid_validity = uid_validity
        self._uid_next = 1
        self._now = now
        self._listeners: list[Any] = []
        self._waiting: list[Deferred[None]] = []

    def file(self, raw: bytes, flags: Iterable[str] = ()) -> Letter:
        """Put a message in, line ends made CRLF, and tell everybody; ``MailboxFull`` if there is no room."""
        if len(self.letters) >= CAPACITY:
            raise MailboxFull
        raw = raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        letter = Letter(self._uid_next, raw, flags, self._now())
        self._uid_next += 1
        self.letters.append(letter)
        for listener in tuple(self._listeners):
            listener.newMessages(len(self.letters), None)
        self._changed()
        return letter

    @property
    def watched(self) -> bool:
        """Whether some connection has selected the folder."""
        return bool(self._listeners)

    async def until(self, holds: Callable[["Mailbox"], bool]) -> None:
        """Wait until something holds; asked after each change of the mailbox, so that nobody polls."""
        while not holds(self):
            change: Deferred[None] = Deferred()
            self._waiting.append(change)
            await change

    def _changed(self) -> None:
        waiting, self._waiting = self._waiting, []
        for change in waiting:
            if not change.called:  # a waiter that was cancelled has gone
                change.callback(None)

    def _selected(self, messages: imap4.MessageSet, uid: bool) -> list[tuple[int, Letter]]:
        """Find what a client's set of numbers means, with the sequence numbers of now."""
        last = self._uid_next - 1 if uid else len(self.letters)
        messages.last = last
        return [
            (number, letter)
            for number, letter in enumerate(self.letters, 1)
            if (letter.uid if uid else number) in messages
        ]

    # What follows is Twisted's IMailbox.

    def getFlags(self) -> tuple[str, ...]:
        """Return the flags that messages may have."""
        return FLAGS

    def getHierarchicalDelimiter(self) -> str:
        """Return what stands between the names of folders."""
        return "/"

    def getUIDValidity(self) -> int:
        """Return the number of this numbering."""
        return self._uid_validity

    def getUIDNext(self) -> int:
        """Return the number that the next message will have."""
        return self._uid_next

    def getUID(self, message: int) -> int:
        """Return the UID of a sequence number."""
        return self.letters[message - 1].uid

    def getMessageCount(self) -> int:
        """Count all messages."""
        return len(self.letters)

    def getRecentCount(self) -> int:
        """Count nothing: nobody needs the flag, and IMAP4rev2 has dropped it (RFC 9051 appendix E)."""
        return 0

    def getUnseenCount(self) -> int:
        """Count what nobody has read."""
        return sum(SEEN not in letter.flags for letter in self.letters)

    def isWriteable(self) -> bool:
        """Say that flags can be set."""
        return True

    def destroy(self) -> None:
        """Refuse: the folder is as old as the server."""
        raise imap4.MailboxException("this folder cannot be deleted")

    def requestStatus(self, names: Iterable[str]) -> dict[str, int]:
        """Answer STATUS."""
        return cast("dict[str, int]", imap4.statusRequestHelper(self, names))

    def addListener(self, listener: Any) -> None:
        """Tell ``listener`` what is new from now on."""
        self._listeners.append(listener)
        self._changed()

    def removeListener(self, listener: Any) -> None:
        """Tell ``listener`` nothing more; it need not be known."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def addMessage(self, message: Any, flags: Iterable[str] = (), date: object = None) -> Deferred[int]:  # noqa: ARG002 - the time of arrival is ours
        """Take a message by APPEND."""
        return succeed(self.file(message.read(), flags).uid)

    def expunge(self) -> list[int]:
        """Remove what is deleted; the sequence numbers as they are when each one goes."""
        gone = [number for number, letter in enumerate(self.letters, 1) if DELETED in letter.flags]
        self.letters = [letter for letter in self.letters if DELETED not in letter.flags]
        self._changed()
        return gone[::-1]

    def fetch(self, messages: imap4.MessageSet, uid: bool) -> list[tuple[int, Letter]]:
        """Return the messages that a client asked for."""
        return self._selected(messages, uid)

    def store(
        self, messages: imap4.MessageSet, flags: Iterable[str], mode: int, uid: bool
    ) -> dict[int, list[str]]:
        """Add flags (mode 1), remove (-1) or replace (0) them, and tell everybody."""
        changed = {}
        for number, letter in self._selected(messages, uid):
            match mode:
                case 1:
                    letter.flags.update(flags)
                case -1:
                    letter.flags.difference_update(flags)
                case _:
                    letter.flags = set(flags)
            changed[number] = letter.getFlags()
        for listener in tuple(self._listeners):
            listener.flagsChanged(changed)
        self._changed()
        return changed
