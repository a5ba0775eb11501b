"""A selected folder on a live IMAP connection, as flows see it (``flows.ports.Mailbox``)."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from attrs import define, field

from mailgateway.flows.ports import FetchedMail, Mailbox
from mailgateway.ids import AccountName
from mailgateway.mail.inbound import SCAN_FIELDS
from mailgateway.protocols.imap import FetchedHeaders, ImapConnection, Selected

MOST_UIDS = 1_000_000
"""UIDs that a search may find; a mailbox with more mail in one week is not what this is for."""


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

    async def fetch(
        self, first: int, last: int | None, small: int, on_mail: Callable[[FetchedMail], None]
    ) -> None:
        """Hand over the mails with ``first <= UID <= last`` as they come."""
        if last is None:
            self._announced = 0

        def take(message: FetchedHeaders) -> None:
            self.uid_next = max(self.uid_next, message.uid + 1)
            on_mail(
                FetchedMail(message.uid, message.size, message.internal_date, message.header, message.body)
            )

        unreadable = await self.connection.fetch_headers(first, last, SCAN_FIELDS, take, small_body=small)
        for each in unreadable:
            if each.uid is not None and first <= each.uid <= (last or each.uid):
                # its fields cannot be read, so nothing can be said of it: the text itself must tell
                self.uid_next = max(self.uid_next, each.uid + 1)
                on_mail(FetchedMail(each.uid, 0, None, b"\r\n", None))

    async def fetch_raw(self, uid: int, limit: int) -> bytes | None:
        """The whole mail, cut at ``limit`` octets."""
        return await self.connection.fetch_message(uid, limit)

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
    if selected.uid_next is None and selected.exists:
        # "*" is the mail with the highest UID, whatever that is (RFC 9051, section 9, seq-number)
        highest: list[int] = []
        await connection.fetch_headers(
            2**32 - 1, None, ("Message-ID",), lambda message: highest.append(message.uid)
        )
        mailbox.uid_next = max(highest, default=0) + 1
    return mailbox


_proof: type[Mailbox] = ImapMailbox
