"""A selected folder on a live IMAP connection, as flows see it (``flows.ports.Mailbox``)."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from attrs import define, field

from mailgateway.errors import ProtocolViolation
from mailgateway.flows.ports import FetchedMail, Mailbox
from mailgateway.ids import AccountName
from mailgateway.mail.inbound import SCAN_FIELDS
from mailgateway.protocols.imap import FetchedHeaders, ImapConnection, Selected

NEARBY = 1_000
"""UIDs among which a mail is looked for whose number the server garbled."""

MOST_UIDS = 1_000_000
"""UIDs that a search may find; a mailbox with more mail in one week is not what this is for."""


PLAIN_TEXT = 64 * 1024
"""Octets that are read of a mail whose header fields cannot be had in the usual way."""


@define(eq=False)
class ImapMailbox:
    """One folder; made by ``select_folder``."""

    account: AccountName
    folder: str
    connection: ImapConnection
    selected: Selected
    uid_next: int
    _counted: int = field(default=0, init=False)
    _announced: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._counted = self.selected.exists

    @property
    def uid_validity(self) -> int:
        """UIDVALIDITY; 0 when the server does not tell."""
        return self.selected.uid_validity or 0

    @property
    def unscanned(self) -> int:
        """Mails announced since the last ``fetch`` to the end."""
        return self._announced

    def count_changed(self, exists: int) -> bool:
        """Hear how many mails there are now; whether there are more than before."""
        grown = exists - self._counted
        self._counted = exists
        if grown > 0:
            self._announced += grown
        return grown > 0

    def expunged(self) -> None:
        """Hear that a mail is gone; one that takes its place makes the count what it was."""
        self._counted = max(0, self._counted - 1)

    async def fetch(
        self,
        first: int,
        last: int | None,
        small: int,
        on_mail: Callable[[FetchedMail], None],
        wanted: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        """Hand over the mails with ``first <= UID <= last`` as they come."""
        if last is None:
            self._announced = 0

        told: set[int] = set()

        def look(uid: int, header: bytes) -> bool:
            told.add(uid)
            self.uid_next = max(self.uid_next, uid + 1)
            return wanted is None or wanted(uid, header)

        def take(message: FetchedHeaders) -> None:
            on_mail(
                FetchedMail(message.uid, message.size, message.internal_date, message.header, message.body)
            )

        unreadable = await self.connection.fetch_headers(
            first, last, SCAN_FIELDS, take, small_body=small, wanted=look
        )
        known = {each.uid for each in unreadable if each.uid is not None}
        if any(each.uid is None for each in unreadable):
            # not even which mail it was could be read: it is one of those that are there and did not come
            nearby = range(first, min(last or first + NEARBY, first + NEARBY) + 1)
            known |= set(await self.connection.search_uid(nearby))
        for uid in sorted(known - told):
            if first <= uid <= (last or uid):
                mail = await self._fetch_by_itself(uid)
                if mail is not None and (wanted is None or wanted(uid, mail.header)):
                    on_mail(mail)

    async def _fetch_by_itself(self, uid: int) -> FetchedMail | None:
        """A mail of which the server said something that cannot be read: its own text must tell.

        ``None`` when it has vanished; ``ProtocolViolation`` when it is there and has no text: it must not be
        passed over.
        """
        self.uid_next = max(self.uid_next, uid + 1)
        text = await self.connection.fetch_message(uid, PLAIN_TEXT)
        if text is None and await self.connection.search_uid([uid]):
            raise ProtocolViolation(f"the server gives neither header fields nor text of UID {uid}")
        if text is None:
            return None
        header, _, _ = text.partition(b"\r\n\r\n")
        whole = text if len(text) < PLAIN_TEXT else None
        return FetchedMail(uid, len(text), None, header + b"\r\n\r\n", whole)

    async def fetch_raw(self, uid: int, limit: int) -> bytes | None:
        """The whole mail, cut at ``limit`` octets."""
        return await self.connection.fetch_message(uid, limit)

    async def present(self, uids: Iterable[int]) -> Sequence[int]:
        """Those of these UIDs under which there is a mail."""
        asked = tuple(uids)
        found = await self.connection.search_uid(asked)
        return [uid for uid in asked if uid in found]

    async def uids_since(self, day: date) -> Sequence[int]:
        """UIDs of the mails whose INTERNALDATE is on ``day`` or later."""
        found = await self.connection.search_since(day)
        return [uid for uid, _ in zip(found, range(MOST_UIDS), strict=False)]

    async def add_seen(self, uids: Iterable[int]) -> None:
        r"""Set ``\Seen``."""
        await self.connection.add_seen(uids)


async def select_folder(connection: ImapConnection, account: AccountName, folder: str) -> ImapMailbox:
    """Select a folder and find out its UIDNEXT, also when the server does not tell."""
    selected = await connection.select(folder)
    mailbox = ImapMailbox(account, folder, connection, selected, selected.uid_next or 1)
    if selected.uid_next is None:
        mailbox.uid_next = (await connection.highest_uid() or 0) + 1
    return mailbox


_proof: type[Mailbox] = ImapMailbox
