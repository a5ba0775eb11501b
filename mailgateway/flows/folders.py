"""Opening a folder: where to read on, and what to do when the server has numbered it anew.

A place (UIDVALIDITY, UID) names a mail only as long as the server keeps its numbers (RFC 9051, section
2.3.1.1).  When the UIDVALIDITY has changed, or the numbers have shrunk under the same one (a mailbox restored
from a backup), the mails of the last ``route_ttl`` are scanned again under their new numbers: ``receive``
knows them by their bytes and binds them to their envelopes, and ``finish_renumbering`` drops what was not
found and moves the cursor.  Until then the cursor stays in the old numbering, so that a crash in between
begins the scan anew, which changes nothing that is done already.

Shrunken numbers reuse places.  So the old ones are *parked* first: rows keep their UIDs under a negative
UIDVALIDITY that no server can tell.
"""

from datetime import datetime, timedelta

from attrs import frozen

from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.leases import check_folder
from mailgateway.ids import AccountName
from mailgateway.store import cursors, envelopes, places, sources
from mailgateway.store.cursors import Cursor
from mailgateway.store.database import Database, Tx


@frozen
class FirstLook:
    """The folder was never looked at; reading begins after ``uid``, with what comes from now on."""

    uid: int


@frozen
class Continue:
    """Read on after ``uid``."""

    uid: int


@frozen
class Renumbered:
    """The numbers are new: scan what arrived since then, ``receive`` it, then ``finish_renumbering``."""

    since: datetime


_GENERATION = 2**32


def space(cursor: Cursor | None, told: int) -> int:
    """The numbering that rows of a folder are kept under, when the server tells UIDVALIDITY ``told``.

    A server that tells none (0) is taken to have kept the one that is known.
    """
    if told or cursor is None:
        return told
    return cursor.uid_validity if cursor.uid_validity >= 0 else (-cursor.uid_validity - 1) % _GENERATION


def renumbering(cursor: Cursor | None, uid_validity: int) -> bool:
    """Whether the cursor still stands in a former numbering."""
    return cursor is not None and cursor.uid_validity != uid_validity


def _parked(uid_validity: int, lowest: int) -> int:
    """A negative name for the places of a numbering, below the ``lowest`` that is in use.

    Its remainder tells the UIDVALIDITY (32 bits) again.
    """
    generation = 0 if lowest >= 0 else (-lowest - 1) // _GENERATION + 1
    return -(generation * _GENERATION + uid_validity) - 1


async def open_folder(
    database: Database,
    account: AccountName,
    folder: str,
    uid_validity: int,
    uid_next: int,
    *,
    route_ttl: timedelta,
    prime: bool = False,
    fence: int | None = None,
) -> FirstLook | Continue | Renumbered:
    """Decide where to read on; remembers a first look.

    ``uid_validity`` 0 means that the server does not tell; that never counts as a change.  ``uid_next`` is
    the UID that the next mail will get.  With ``prime``, a cursor from whose folder nothing was ever filed
    is moved to now (``FirstLook``).  ``fence`` is that of the folder's lease, where there is one; raises
    ``StaleWrite`` when another gateway has taken it: what this one knows of the numbers is old.
    """

    def work(tx: Tx) -> FirstLook | Continue | Renumbered:
        check_folder(tx, account, folder, fence)
        newest = max(0, uid_next - 1)
        cursor = cursors.find(tx, account, folder)
        if cursor is None or (prime and not sources.any_filed(tx, account, folder)):
            cursors.move(tx, account, folder, Cursor(uid_validity, newest))
            return FirstLook(newest)
        if cursor.uid_validity == 0 and uid_validity and cursor.uid <= newest:
            # the server has begun to tell what it had kept to itself: no change by itself
            places.renumber(tx, account, folder, 0, uid_validity)
            cursor = Cursor(uid_validity, cursor.uid)
            cursors.move(tx, account, folder, cursor)
        numbering = space(cursor, uid_validity)
        if numbering == cursor.uid_validity and cursor.uid > newest:
            parked = _parked(numbering, sources.lowest_uid_validity(tx, account, folder))
            places.renumber(tx, account, folder, numbering, parked)
            cursor = Cursor(parked, cursor.uid)
            cursors.move(tx, account, folder, cursor)
        if renumbering(cursor, numbering):
            return Renumbered(tx.now - route_ttl)
        return Continue(cursor.uid)

    return await database.run(work)


async def finish_renumbering(
    database: Database,
    bell: Bell,
    account: AccountName,
    folder: str,
    uid_validity: int,
    through: int,
    *,
    fence: int | None = None,
) -> int:
    """Everything up to UID ``through`` was received under the new numbers: drop what was not found again.

    Returns how many envelopes were dropped as ``renumbered``.  Raises ``StaleWrite`` as ``open_folder``.
    """

    def work(tx: Tx) -> int:
        check_folder(tx, account, folder, fence)
        cursor = cursors.find(tx, account, folder)
        numbering = space(cursor, uid_validity)
        dropped = envelopes.drop_other(tx, account, folder, numbering)
        places.forget_other(tx, account, folder, numbering)
        advance(tx, account, folder, cursor, Cursor(numbering, through))
        return dropped

    dropped = await database.run(work)
    bell.ring(Event(EventKind.DELIVERY), Event(EventKind.FLAGGING))
    return dropped


def advance(tx: Tx, account: AccountName, folder: str, cursor: Cursor | None, to: Cursor) -> None:
    """Move a cursor, never backwards in its own numbering: somebody may have read further meanwhile."""
    if cursor is None or cursor.uid_validity != to.uid_validity or cursor.uid < to.uid:
        cursors.move(tx, account, folder, to)


async def cursor(database: Database, account: AccountName, folder: str) -> tuple[int, int] | None:
    """The UIDVALIDITY and UID up to which a folder was read; ``None`` when it was never looked at."""

    def work(tx: Tx) -> tuple[int, int] | None:
        found = cursors.find(tx, account, folder)
        return None if found is None else (found.uid_validity, found.uid)

    return await database.read(work)
