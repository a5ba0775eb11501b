"""A mailbox in memory: what a scan needs of a server, and the mischief that servers make."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime

from attrs import define, field

from mailgateway.errors import PeerError, ProtocolViolation, Unreachable
from mailgateway.flows.ports import FetchedMail, Mailbox
from mailgateway.ids import AccountName

ARRIVAL = datetime(2026, 11, 30, 12, tzinfo=UTC)


@define(eq=False)
class FakeMailbox:
    """One folder: raw mails by UID.

    ``withheld`` are UIDs whose text is not given though the mail is there; ``vanishing`` are expunged by
    another client when their text is asked for; ``lost_after`` ends the connection after so many headers;
    ``poisoned_headers`` and ``poisoned_texts`` are UIDs for which it answers with ``poison``, the latter also
    when the text is asked for together with others.
    """

    account: AccountName = field(default=AccountName("main"))
    folder: str = "INBOX"
    uid_validity: int = 7
    mails: dict[int, bytes] = field(factory=dict)
    arrivals: dict[int, datetime] = field(factory=dict)
    seen: set[int] = field(factory=set)
    withheld: set[int] = field(factory=set)
    vanishing: set[int] = field(factory=set)
    lost_after: int | None = None
    poisoned_headers: set[int] = field(factory=set)
    poisoned_texts: set[int] = field(factory=set)
    poison: PeerError = field(factory=lambda: ProtocolViolation("nonsense"))
    outage: PeerError | None = None
    """What every command is answered with, while it lasts."""
    next_uid: int = 1
    unscanned: int = 0
    fetches: list[tuple[int, int | None, int]] = field(factory=list)
    texts: list[int] = field(factory=list)
    hidden: set[int] = field(factory=set)
    """UIDs that are not visible yet."""
    unnamed: set[int] = field(factory=set)
    """UIDs that are there and yet named in no answer to a FETCH."""
    told_size: int | None = None
    """RFC822.SIZE of every mail, of a server that tells wrong sizes."""
    searches: list[tuple[int, ...]] = field(factory=list)

    @property
    def uid_next(self) -> int:
        """UIDNEXT."""
        return self.next_uid

    def deliver(self, raw: bytes, at: datetime = ARRIVAL) -> int:
        """Put a mail in; its UID."""
        uid = self.next_uid
        self.next_uid += 1
        self.mails[uid] = raw
        self.arrivals[uid] = at
        self.unscanned += 1
        return uid

    def renumbered(self, order: Sequence[int], uid_validity: int) -> "FakeMailbox":
        """Another connection, after a restore: these mails in this order under new numbers, no others."""
        return FakeMailbox(
            self.account,
            self.folder,
            uid_validity,
            mails={uid: self.mails[was] for uid, was in enumerate(order, start=1)},
            arrivals={uid: self.arrivals[was] for uid, was in enumerate(order, start=1)},
            next_uid=len(order) + 1,
        )

    async def fetch(
        self,
        first: int,
        last: int | None,
        small: int,
        on_mail: Callable[[FetchedMail], None],
        wanted: Callable[[int, bytes], bool] | None = None,
    ) -> None:
        """Hand over header fields."""
        self.fetches.append((first, last, small))
        if self.outage is not None:
            raise self.outage
        if last is None:
            self.unscanned = 0
        given = 0
        for uid in sorted(self.mails):
            if not first <= uid <= (last or uid) or uid in self.hidden | self.unnamed:
                continue
            if self.lost_after is not None and given >= self.lost_after:
                raise Unreachable("the connection was lost")
            given += 1
            if uid in self.poisoned_headers:
                raise self.poison
            if small and uid in self.poisoned_texts:
                raise self.poison
            if small and uid in self.vanishing:
                del self.mails[uid]
                continue
            raw = self.mails[uid]
            header = raw.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n"
            whole = raw if len(raw) <= small and uid not in self.withheld else None
            if wanted is None or wanted(uid, header):
                on_mail(
                    FetchedMail(
                        uid,
                        len(raw) if self.told_size is None else self.told_size,
                        self.arrivals[uid],
                        header,
                        whole,
                    )
                )

    async def fetch_raw(self, uid: int, limit: int) -> bytes | None:
        """The text, unless it is withheld."""
        self.texts.append(uid)
        if self.outage is not None:
            raise self.outage
        if uid in self.poisoned_texts:
            raise self.poison
        if uid in self.vanishing:
            self.mails.pop(uid, None)
        raw = self.mails.get(uid)
        return None if raw is None or uid in self.withheld else raw[:limit]

    async def present(self, uids: Iterable[int]) -> Sequence[int]:
        """Those that are there and not hidden."""
        self.searches.append(tuple(uids))
        if self.outage is not None:
            raise self.outage
        return [uid for uid in self.searches[-1] if uid in self.mails and uid not in self.hidden]

    async def uids_since(self, day: date) -> Sequence[int]:
        """By the day of arrival."""
        return [uid for uid in sorted(self.mails) if self.arrivals[uid].date() >= day]

    async def add_seen(self, uids: Iterable[int]) -> None:
        r"""Remember ``\Seen``."""
        self.seen |= set(uids) & set(self.mails)


_proof: type[Mailbox] = FakeMailbox
