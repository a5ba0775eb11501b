"""What flows need of the outside: seams that daemons implement and ``service`` joins.

Each is small, speaks in values of ``mail`` and ``domain`` only, and has a fake in ``tests/fakes`` that
passes the same suite as the real thing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from attrs import field, frozen

from mailgateway.domain.account import AccountState
from mailgateway.ids import AccountName, MessageId, OutboxId
from mailgateway.mail.dkim_key import KeyAnswer
from mailgateway.store.database import Database

__all__ = [
    "AccountStatus",
    "Database",
    "FetchedMail",
    "KeyLookup",
    "Mailbox",
    "ProcessControl",
    "Reloaded",
    "ScanSummary",
    "SentFolder",
]


@frozen
class FetchedMail:
    """What a scan sees of one mail: its place, facts, header fields, and a small body when it came along."""

    uid: int
    size: int
    """RFC822.SIZE in octets: a hint; servers are known to tell wrong sizes."""
    received_at: datetime | None
    """INTERNALDATE (RFC 9051, section 2.3.3), aware; ``None`` when the server gave none that can be read."""
    header: bytes = field(repr=False)
    """The header fields that were asked for, as they stand in the mail, with their last empty line."""
    raw: bytes | None = field(default=None, repr=False)
    """The whole mail when it is small and came along, else ``None``."""


class Mailbox(Protocol):
    """One selected folder on a live connection; every method may raise a ``PeerError``."""

    @property
    def account(self) -> AccountName:
        """Whose mailbox it is."""

    @property
    def folder(self) -> str:
        """The folder's name."""

    @property
    def uid_validity(self) -> int:
        """UIDVALIDITY as told at SELECT; 0 when the server does not tell."""

    @property
    def uid_next(self) -> int:
        """UIDNEXT as told at SELECT, or found out; mail that came later has this UID or a higher one."""

    @property
    def unscanned(self) -> int:
        """How many mails were announced since the last ``fetch`` to the end, as far as is known."""

    async def fetch(
        self,
        first: int,
        last: int | None,
        small: int,
        on_mail: Callable[[FetchedMail], None],
        wanted: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        """Hand over the mails with ``first <= UID <= last`` (``None``: to the end) as they come.

        With ``small`` above 0, mails of up to so many octets bring their whole text along.  ``wanted`` hears
        first of each, by UID and header fields, and passes over those to which it says no.  Returns when the
        server has answered completely; a UID that did not come has vanished.
        """

    async def fetch_raw(self, uid: int, limit: int) -> bytes | None:
        """The whole mail, cut at ``limit`` octets; ``None`` when it has vanished or was not given."""

    async def present(self, uids: Iterable[int]) -> Sequence[int]:
        """Those of these UIDs under which there is a mail."""

    async def uids_since(self, day: date) -> Sequence[int]:
        """UIDs of the mails whose INTERNALDATE is on ``day`` or later."""

    async def add_seen(self, uids: Iterable[int]) -> None:
        r"""Set ``\Seen`` on these mails; those that vanished are passed over."""


class KeyLookup(Protocol):
    """Who asks DNS for the keys that domains sign their mail with."""

    async def find(self, names: Sequence[str]) -> Mapping[str, KeyAnswer]:
        """The answer for each name, within seconds; that DNS does not tell is one, too.  Never raises."""


class SentFolder(Protocol):
    """The folder of an account in which mail programs keep what was sent; looks queue up.

    Every method may raise a ``PeerError``: nobody can look now, or (``CommandRefused`` with code ``NOSENT``)
    the account has no such folder that can be found.  Never awaited inside a transaction.
    """

    async def find(self, message_id: MessageId, limit: int = 65_536) -> bytes | None:
        """The mail with exactly this Message-ID, its first ``limit`` octets; ``None``: it is not there."""

    async def id_of(self, outbox_id: OutboxId) -> MessageId | None:
        """The Message-ID that the mail of our outbox has there; ``None``: it is not there."""

    async def keep(self, raw: bytes, message_id: MessageId) -> bool:
        """Put this mail there, unless one with its Message-ID is there; whether it was put there."""


@frozen
class ScanSummary:
    """What the last scan that found something did; kept in memory, shown in ``/health``.

    ``at`` moves with every scan, the counts only with one that examined a mail.
    """

    at: datetime
    examined: int
    routed: int
    refused: Mapping[str, int]


@frozen
class AccountStatus:
    """How one account's watching goes; shown in ``/health``, so without its address."""

    state: AccountState
    since: datetime
    next_attempt_at: datetime | None
    failure: str = ""
    remarks: tuple[str, ...] = ()
    """What was learned of the server that the operator may want to know; no address, no words of a mail."""


@frozen
class Reloaded:
    """The outcome of reading the settings again; ``warning`` says why the old ones stay, else ``""``."""

    loaded_at: datetime
    warning: str = ""


class ProcessControl(Protocol):
    """What the API may ask of the running process."""

    @property
    def loaded_at(self) -> datetime:
        """When the settings in force were read."""

    @property
    def store_trouble(self) -> str:
        """What kept the database from being used when it was last tried; ``""``: nothing."""

    def accounts(self) -> Sequence[AccountStatus]:
        """Every watched account."""

    def last_scan(self) -> ScanSummary | None:
        """The last scan that examined a mail."""

    async def reload(self) -> Reloaded:
        """Read the settings again; on failure the old ones stay in force."""

    async def prime(self) -> int:
        """Move cursors from which nothing was ever filed to now, at the next look; how many folders."""

    def shutdown(self) -> None:
        """Stop cleanly, soon; returns at once."""
