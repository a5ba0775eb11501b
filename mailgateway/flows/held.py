"""Holding mail whose evidence may come yet: a key that DNS does not tell, a copy not yet in the Sent folder.

The mail is tried again with growing pauses and refused at the end of its time.  It keeps its time over
restarts, and where the server numbers the folder anew: it is known again by the digest of its bytes.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import assert_never

from attrs import evolve, frozen

from mailgateway.domain.envelope import Source
from mailgateway.flows.folders import space
from mailgateway.flows.leases import check_folder
from mailgateway.ids import AccountName
from mailgateway.mail.evidence import Awaited
from mailgateway.mail.verdict import Verdict
from mailgateway.store import cursors, fates
from mailgateway.store import held as rows
from mailgateway.store.database import Database, Tx
from mailgateway.store.held import Held

HELD = "held"
"""The verdict of a fate that is not the last word."""

LONGEST: Mapping[Awaited, timedelta] = {
    Awaited.KEY: timedelta(hours=1),
    Awaited.SENT_COPY: timedelta(minutes=10),
}
"""How long a mail is held at most."""

FIRST: Mapping[Awaited, timedelta] = {
    Awaited.KEY: timedelta(seconds=10),
    Awaited.SENT_COPY: timedelta(seconds=5),
}
"""The first pause; each is twice the one before, up to ten minutes.

Most trouble with DNS is over in seconds.  The first pause for a key is longer than a failed lookup is
remembered (`daemons.keys`), so that each try asks anew.
"""

PAUSE = timedelta(minutes=10)
MOST = 1_000
"""Mails of one folder that are held at once.  Only a flood brings more: then the one that has waited longest
is given up: evidence that comes at all mostly comes within seconds, and the newest may be a person's."""

AT_ONCE = 20
"""Mails that are tried in one scan: each may ask others, who take seconds, while news wait."""


@frozen
class Due:
    """The mails to try now, as UIDs with their INTERNALDATE, and in how many seconds the next ones are."""

    now: Mapping[int, datetime]
    seconds: float | None


async def due(database: Database, account: AccountName, folder: str, uid_validity: int) -> Due:
    """What is to be tried of a folder, which the server numbers so; what has waited longest first."""

    def work(tx: Tx) -> Due:
        numbering = space(cursors.find(tx, account, folder), uid_validity)
        held = [each for each in rows.of_folder(tx, account, folder) if each.place.uid_validity == numbering]
        later = [(each.next_at - tx.now).total_seconds() for each in held if each.next_at > tx.now]
        ripe = [each for each in held if each.next_at <= tx.now][:AT_ONCE]
        return Due({each.place.uid: each.received_at for each in ripe}, min(later, default=None))

    return await database.read(work)


async def vanished(
    database: Database, account: AccountName, folder: str, uid_validity: int, uid: int, fence: int | None
) -> None:
    """A mail that is held was taken out of its folder: hold it no more, and say so in its fate."""

    def work(tx: Tx) -> None:
        check_folder(tx, account, folder, fence)
        place = Source(account, folder, space(cursors.find(tx, account, folder), uid_validity), uid)
        held = next((each for each in rows.of_folder(tx, account, folder) if each.place == place), None)
        if held is not None:
            rows.drop(tx, [place])
            if held.fate_id is not None:
                fates.change(
                    tx,
                    held.fate_id,
                    verdict_of(Awaited(held.awaits)),
                    "it was taken out of the mailbox before its sender was proven",
                )

    await database.run(work)


def row_of(tx: Tx, place: Source, raw_sha256: str) -> Held | None:
    """The row of a mail, under its place or, when it was held under another number, by its bytes."""
    known = rows.of_folder(tx, place.account, place.folder)
    here = (each for each in known if each.place == place)
    before = (
        each
        for each in known
        if each.raw_sha256 == raw_sha256 and each.place.uid_validity != place.uid_validity
    )
    return next(here, None) or next(before, None)


def hold(
    tx: Tx, before: Held | None, place: Source, raw_sha256: str, received_at: datetime, awaits: Awaited
) -> Held | None:
    """The row of a mail that has to wait, longer or for the first time; ``None``: its time is over.

    Writes nothing; ``before`` is its row until now.
    """
    tries = 0 if before is None else before.tries + 1
    until = tx.now + LONGEST[awaits] if before is None else before.until
    if until <= tx.now:
        return None
    pause = min(FIRST[awaits] * 2 ** min(tries, 20), PAUSE)
    next_at = min(tx.now + pause, until)
    if before is None:
        return Held(place, raw_sha256, received_at, awaits.value, until, next_at)
    return evolve(before, place=place, awaits=awaits.value, next_at=next_at, tries=tries)


@frozen
class GivenUp:
    """A mail that is held no more, and how it is refused."""

    place: Source
    verdict: Verdict


def make_room(tx: Tx, account: AccountName, folder: str) -> GivenUp | None:
    """Give up the mail of a full folder that has waited longest, and say so in its fate; which it was.

    For one more that is to be held for the first time; ``None`` where there is room.
    """
    known = rows.of_folder(tx, account, folder)
    if len(known) < MOST:
        return None
    longest = min(known, key=lambda each: (_since(each), each.fate_id or 0, each.place.uid))
    rows.drop(tx, [longest.place])
    verdict = verdict_of(Awaited(longest.awaits))
    if longest.fate_id is not None:
        fates.change(tx, longest.fate_id, verdict, "too many mails waited for evidence, this one longest")
    return GivenUp(longest.place, verdict)


def _since(held: Held) -> datetime:
    """When a mail began to wait."""
    return held.until - LONGEST[Awaited(held.awaits)]


def verdict_of(awaits: Awaited) -> Verdict:
    """The verdict on a mail whose evidence has not come."""
    match awaits:
        case Awaited.KEY:
            return Verdict.UNAUTHENTICATED
        case Awaited.SENT_COPY:
            return Verdict.PROOF_REQUIRED
        case _:
            assert_never(awaits)
