"""One scan of a folder: from the cursor to the newest mail, window by window.

Header fields are read of every mail, whole mails only of candidates (``flows.texts``).  Judging is pure and
happens outside of the transaction; each batch is then filed in one transaction that also moves the cursor
(``receive``).  A scan that ends with a lost connection has moved the cursor over exactly what it filed.

A mail whose text the server does not give is not passed over: the scan stops in front of it and tries again
at the next one; ``flows.patience`` says when it is given up and filed as unreadable.
"""

import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, succeed
from twisted.logger import Logger

from mailgateway.domain.judge import Judged
from mailgateway.errors import PeerError, StoreError
from mailgateway.flows import held
from mailgateway.flows.bell import Bell
from mailgateway.flows.evidence import SMALL, InThread, Witnesses, examine
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.folders import Continue, FirstLook, Renumbered, finish_renumbering, open_folder
from mailgateway.flows.gaps import OVERLAP, Gaps
from mailgateway.flows.isolate import defective, file_batch
from mailgateway.flows.patience import WINDOW, Patience, ranges
from mailgateway.flows.ports import FetchedMail, Mailbox
from mailgateway.flows.receive import Examined, Received, Window, receive
from mailgateway.flows.tally import Scanned, Tally
from mailgateway.flows.texts import runs, with_texts
from mailgateway.flows.unread import HEADER_LIMIT, too_large, unread
from mailgateway.mail.inbound import LARGEST_MAIL, is_candidate
from mailgateway.mail.verdict import Verdict
from mailgateway.store.database import Database

__all__ = ["FEW", "ScanRules", "Scanned", "Scanner", "Stuck"]

_log = Logger()

FEW = 8
"""Up to so many new mails bring small texts along with their header fields, which saves a round trip."""

BATCH = 4 * 1024 * 1024
"""Octets of candidates that are judged before they are filed."""

PASSED_OVER = 5_000
"""Mails of strangers that are looked at before the cursor moves over them; after a crash they are again."""

MOST = 100
"""Candidates that are filed in one transaction, which others wait for meanwhile: about 0.1 s."""


@frozen
class ScanRules:
    """What a scan needs to know, all of it from the settings."""

    filing: FilingRules
    route_ttl: timedelta
    """For how long a mail is answered at all, and so how far back a new look at a folder goes."""


class Stuck(Exception):
    """The text of one mail did not come."""

    def __init__(self, uid: int) -> None:
        super().__init__(uid)
        self.uid = uid


@define(eq=False)
class Scanner:
    """Scans one folder, again and again; remembers between scans which mails would not come."""

    database: Database
    bell: Bell
    rules: ScanRules
    in_thread: InThread
    """Runs the judging of a large mail off the reactor's thread."""
    witnesses: Witnesses = field(factory=Witnesses)
    """Whom to ask about mail that says it is from an allowed person."""
    breathe: Callable[[], Awaitable[None]] = lambda: succeed(None)
    """Lets the answers to those leave who have waited for what was filed."""
    priming: bool = False
    """The next scan moves a cursor from which nothing was ever filed to now."""
    _gaps: Gaps = field(init=False)
    _patience: Patience = field(factory=Patience, init=False)
    _passed: int = field(default=0, init=False)
    """How many mails, and windows, the cursor has still to pass over; nothing of them is to be filed."""
    _holds: bool = field(default=True, init=False)
    """Whether mail may be held; after a start nobody knows."""
    _reached: tuple[Mailbox, int] | None = field(default=None, init=False)
    """On which connection the last scan came how far: while that lives, nobody else moves the cursor."""

    def __attrs_post_init__(self) -> None:
        self._gaps = Gaps(self.database)

    async def scan(self, mailbox: Mailbox, fence: int | None) -> Scanned:
        """Scan from the cursor to the end, file what is found, and move the cursor.

        ``fence`` is that of the folder's lease, where there is one.  Raises ``PeerError`` when the
        connection fails and ``StoreError`` when the database does; what was filed until then stays filed.
        """
        tally, announced = Tally(), mailbox.unscanned
        look = await self._look(mailbox, fence)
        again_in = None
        try:
            match look:
                case FirstLook(uid):
                    _log.info(
                        "account {account}: the first look at {folder}, or what was known of it is lost; "
                        "mail up to UID {uid} is left alone",
                        account=mailbox.account,
                        folder=mailbox.folder,
                        uid=uid,
                    )
                    self._reached = (mailbox, uid)
                case Continue(uid):
                    self._reached = (mailbox, await self._forward(mailbox, fence, uid, tally))
                case Renumbered(since):
                    await self._renumbered(mailbox, fence, since, tally)
            if announced == 0 or tally.examined < announced:
                await self._look_into_gaps(mailbox, fence, tally)
            if self._holds:
                again_in = await self._try_again(mailbox, fence, tally)
        except Stuck as stuck:
            return tally.result(stopped_at=stuck.uid)
        return tally.result(again_in=again_in)

    async def _try_again(self, mailbox: Mailbox, fence: int | None, tally: Tally) -> float | None:
        """Judge anew what is held and due; in how many seconds there is more of it."""
        place = (mailbox.account, mailbox.folder, mailbox.uid_validity)
        due = await held.due(self.database, *place)
        for uid, received_at in due.now.items():
            mail = FetchedMail(uid, 0, received_at, b"")
            examined = await self._examine(mailbox, mail)
            if examined is None:
                await held.vanished(self.database, *place, uid, fence)
            else:
                # through 0: the cursor is past these, and moves only forwards
                await self._file(mailbox, fence, 0, [evolve(examined, held=True)], tally)
        if due.now:
            due = await held.due(self.database, *place)
        self._holds = bool(due.now) or due.seconds is not None
        return 0.0 if due.now else due.seconds

    async def _look_into_gaps(self, mailbox: Mailbox, fence: int | None, tally: Tally) -> None:
        """Mails that became visible below the cursor are taken in; the cursor stays."""
        gaps = self._gaps.uids
        if not gaps:
            return
        settled: list[int] = []
        for uid in await mailbox.present(gaps):
            told: list[bytes] = []
            candidates: list[FetchedMail] = []

            def wanted(_uid: int, header: bytes, told: list[bytes] = told) -> bool:
                told.append(header)
                return self._concerns_us(header)

            place = (mailbox.uid_validity, uid)
            if not self._gaps.patience.is_over(place):
                small = 0 if self._patience.is_apart(place) else SMALL
                try:
                    await mailbox.fetch(uid, uid, small, candidates.append, wanted)
                except PeerError as error:
                    self._patience.failed_together(place)
                    self._gaps.patience.text_failed(place, error)
                    raise
                if not told and not self._gaps.is_last_look(uid):
                    continue
            settled.append(uid)
            self._gaps.patience.forget(place)
            if told and not candidates:
                tally.refuse(Verdict.NOT_ALLOWED, 1)
            elif not told:
                await self._give_up(mailbox, fence, uid, tally, through=0)
            for mail in candidates:
                examined = await self._examine(mailbox, mail)
                if examined is not None:
                    await self._file(mailbox, fence, 0, [examined], tally)
        await self._gaps.looked(mailbox, fence, settled)

    async def _look(self, mailbox: Mailbox, fence: int | None) -> FirstLook | Continue | Renumbered:
        """Where to read on; the table is asked once for each connection, and after every trouble."""
        reached, self._reached = self._reached, None
        priming, self.priming = self.priming, False
        if reached is not None and reached[0] is mailbox and not priming:
            return Continue(reached[1])
        await self._gaps.load(mailbox)
        return await open_folder(
            self.database,
            mailbox.account,
            mailbox.folder,
            mailbox.uid_validity,
            mailbox.uid_next,
            route_ttl=self.rules.route_ttl,
            prime=priming,
            fence=fence,
        )

    async def _forward(self, mailbox: Mailbox, fence: int | None, cursor: int, tally: Tally) -> int:
        """Everything above the cursor: known UIDs in windows, then what came since in one command.

        Returns how far the cursor has come.
        """
        newest = mailbox.uid_next - 1
        last: int | None = cursor
        while last is not None:
            place = (mailbox.uid_validity, cursor)
            width = self._patience.width(place)
            if width == 0:
                cursor = await self._give_up(mailbox, fence, cursor + 1, tally)
                continue
            all_at_once = newest <= cursor or (width == WINDOW and newest - cursor <= WINDOW)
            last = None if all_at_once else min(cursor + width, newest)
            try:
                cursor = await self._window(mailbox, fence, cursor + 1, last, tally)
            except PeerError as error:
                self._patience.stumbled(place, newest if last is None else last, error)
                await self._pass(mailbox, fence, cursor, tally)
                raise
        await self._pass(mailbox, fence, cursor, tally)
        return cursor

    async def _pass(self, mailbox: Mailbox, fence: int | None, through: int, tally: Tally) -> None:
        """Let the cursor catch up, over windows in which nothing was to be filed."""
        if self._passed:
            await self._file(mailbox, fence, through, [], tally)

    async def _give_up(
        self, mailbox: Mailbox, fence: int | None, uid: int, tally: Tally, through: int | None = None
    ) -> int:
        """File a mail whose header fields never come as unreadable, and move the cursor; its UID."""
        mail = FetchedMail(uid, 0, None, b"\r\n")
        words = "the server does not give its header fields"
        without = unread(mail, datetime.now(UTC), Verdict.MALFORMED, words)
        await self._file(mailbox, fence, uid if through is None else through, [without], tally)
        return uid

    async def _renumbered(self, mailbox: Mailbox, fence: int | None, since: datetime, tally: Tally) -> None:
        """Everything since then under its new numbers; ``receive`` knows again what it has had before."""
        # a day of margin: SEARCH SINCE ignores the time of day and the zone (RFC 9051, section 6.4.4)
        uids = sorted(await mailbox.uids_since((since - timedelta(days=1)).date()))
        through = max(uids[-1] if uids else 0, mailbox.uid_next - 1)
        for first, last in ranges(uids):
            await self._window(mailbox, fence, first, last, tally)
        self._passed = 0
        await finish_renumbering(
            self.database,
            self.bell,
            mailbox.account,
            mailbox.folder,
            mailbox.uid_validity,
            through,
            fence=fence,
        )

    async def _window(
        self, mailbox: Mailbox, fence: int | None, first: int, last: int | None, tally: Tally
    ) -> int:
        """One FETCH of header fields, then the candidates' texts, filed in batches.

        Returns the UID up to which everything is done.
        """
        candidates: list[FetchedMail] = []
        strangers = 0
        highest = first - 1
        recent: deque[int] = deque(maxlen=OVERLAP)

        def wanted(uid: int, header: bytes) -> bool:
            nonlocal strangers, highest
            highest = max(highest, uid)
            recent.append(uid)
            concerns_us = self._concerns_us(header)
            if not concerns_us:
                strangers += 1
            return concerns_us

        few = last is None and 0 < mailbox.unscanned <= FEW
        await mailbox.fetch(first, last, SMALL if few else 0, candidates.append, wanted)
        end = highest if last is None else last
        if end < first:
            return end
        if end >= mailbox.uid_next - OVERLAP:
            await self._gaps.passing(mailbox, fence, first, end, recent)
        tally.refuse(Verdict.NOT_ALLOWED, strangers)
        batch: list[Examined] = []
        size = 0
        for run in runs(candidates):
            for mail in await with_texts(mailbox, run, self._patience):
                try:
                    examined = await self._examine(mailbox, mail)
                except Stuck:
                    await self._file(mailbox, fence, mail.uid - 1, batch, tally)
                    raise
                if examined is None:
                    continue
                batch.append(examined)
                size += examined.size
                if size >= BATCH or len(batch) >= MOST:
                    await self._file(mailbox, fence, mail.uid, batch, tally)
                    batch, size = [], 0
        self._passed += strangers + 1  # so that a window without a mail counts too
        if candidates or self._passed >= PASSED_OVER:
            await self._file(mailbox, fence, end, batch, tally)
        return end

    async def _file(
        self, mailbox: Mailbox, fence: int | None, through: int, mails: Sequence[Examined], tally: Tally
    ) -> None:
        async def file(upto: int, batch: Sequence[Examined]) -> Received:
            return await receive(
                self.database,
                self.bell,
                self.rules.filing,
                Window(mailbox.account, mailbox.folder, mailbox.uid_validity, upto, fence),
                batch,
            )

        self._passed = 0
        received = await file_batch(file, through, mails)
        self._holds = self._holds or received.held > 0
        tally.add(len(mails), received.routed, received.refused)
        if received.envelopes:
            await self.breathe()

    async def _examine(self, mailbox: Mailbox, mail: FetchedMail) -> Examined | None:
        """Fetch and judge one candidate; ``None`` when it has vanished meanwhile."""
        received_at = mail.received_at or datetime.now(UTC)
        large = mail.raw is None and mail.size > LARGEST_MAIL
        place = (mailbox.uid_validity, mail.uid)
        raw = mail.raw
        if raw is None and not self._patience.is_over(place):
            try:
                raw = await mailbox.fetch_raw(mail.uid, HEADER_LIMIT if large else LARGEST_MAIL)
            except PeerError as error:
                self._patience.text_failed(place, error)
                raise
        if large:
            self._patience.forget(place)
            return too_large(mail, received_at, raw, self.rules.filing.own)
        if raw is None:
            return await self._missing(mailbox, mail, received_at)
        self._patience.forget(place)
        judged = await self._judge(raw, received_at)
        return Examined(mail.uid, received_at, len(raw), hashlib.sha256(raw).hexdigest(), judged)

    def _concerns_us(self, header: bytes) -> bool:
        """Whether the whole mail is to be read; a mail whose header hits a defect is."""
        try:
            return is_candidate(header, self.rules.filing.own)
        except Exception as error:  # noqa: BLE001 (any defect; the judging says what becomes of the mail)
            defective(error, "reading the header of a mail")
            return True

    async def _judge(self, raw: bytes, received_at: datetime) -> Judged:
        """Judge a mail."""
        try:
            return await examine(raw, self.rules.filing.own, received_at, self.witnesses, self.in_thread)
        except (CancelledError, StoreError):
            raise  # a witness may have to log in, which is written down
        except Exception as error:  # noqa: BLE001 (any defect; judging is pure, so trying again is no help)
            return defective(error, "judging a mail")

    async def _missing(self, mailbox: Mailbox, mail: FetchedMail, received_at: datetime) -> Examined | None:
        """A text that did not come: gone with its mail, or still there and to be tried again."""
        still_there: list[int] = []
        await mailbox.fetch(mail.uid, mail.uid, 0, lambda again: still_there.append(again.uid))
        place = (mailbox.uid_validity, mail.uid)
        if still_there and not self._patience.is_over(place) and not self._patience.text_failed(place):
            raise Stuck(mail.uid)
        self._patience.forget(place)
        if not still_there:
            return None
        return unread(mail, received_at, Verdict.MALFORMED, "the server does not give its text")
