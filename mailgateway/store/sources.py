"""Which mail became which envelope: the memory by which a mail is known again.

One row for each mail that was filed or consumed, under its place; the digest of its bytes knows it again
when the server has given it another place.  Rows outlive the delivery for as long as a mail may come back.
"""

from collections.abc import Sequence
from datetime import datetime

from attrs import evolve, frozen
from sqlalchemy import and_, bindparam, delete, exists, func, or_, select, update

from mailgateway.domain.envelope import Source
from mailgateway.ids import AccountName, EnvelopeId
from mailgateway.store.database import Tx
from mailgateway.store.insert import insert_or_ignore
from mailgateway.store.places import columns_of, is_at, place_of
from mailgateway.store.prepared import Prepared
from mailgateway.store.tables import envelope as envelope_table
from mailgateway.store.tables import source as table

CHUNK = 500
"""How many keys one statement names at most."""


@frozen
class Filed:
    """One mail that is known: its place, the digest of its bytes (``""``: not known), its envelope."""

    place: Source
    raw_sha256: str
    envelope_id: EnvelopeId


@frozen
class Known:
    """What is known of some mails."""

    uids: set[int]
    """Those whose place was filed before."""
    copies: dict[str, list[Filed]]
    """The known mails with the same bytes, by digest, wherever they lie."""


_KNOWN = Prepared(
    select(table).where(
        or_(
            and_(
                table.c.account == bindparam("account_"),
                table.c.folder == bindparam("folder_"),
                table.c.uid_validity == bindparam("uid_validity_"),
                table.c.uid.in_(bindparam("uids", expanding=True)),
            ),
            table.c.raw_sha256.in_(bindparam("digests", expanding=True)),
        )
    )
)
"""Both by an index of its own."""


def known(tx: Tx, mails: Sequence[tuple[Source, str]]) -> Known:
    """What is known of mails of one numbering, given with the digests of their bytes.

    The empty digest knows nothing.
    """
    uids: set[int] = set()
    copies: dict[str, list[Filed]] = {}
    for start in range(0, len(mails), CHUNK):
        chunk = mails[start : start + CHUNK]
        space, _ = chunk[0]
        wanted = {place.uid for place, _ in chunk}
        digests = {digest for _, digest in chunk if digest} - copies.keys()
        rows = tx.execute(
            _KNOWN,
            {
                "account_": space.account,
                "folder_": space.folder,
                "uid_validity_": space.uid_validity,
                "uids": list(wanted),
                "digests": list(digests),
            },
        )
        for row in rows:
            place = place_of(row)
            if place.uid in wanted and evolve(space, uid=place.uid) == place:
                uids.add(place.uid)
            if row.raw_sha256 in digests:
                filed = Filed(place, row.raw_sha256, EnvelopeId(row.envelope_id))
                copies.setdefault(filed.raw_sha256, []).append(filed)
    return Known(uids, copies)


_SAID = Prepared(select(table.c.envelope_id).where(table.c.said_sha256 == bindparam("said")).distinct())


def saying(tx: Tx, said_sha256: str) -> tuple[EnvelopeId, ...]:
    """The envelopes of mails in which the same person said the same at the same time."""
    return tuple(EnvelopeId(each) for each in tx.execute(_SAID, {"said": said_sha256}).scalars())


def add(tx: Tx, filed: Filed, said_sha256: str = "") -> bool:
    """Remember a mail, and who said what in it; whether its place was not taken."""
    return insert_or_ignore(
        tx,
        table,
        {
            **columns_of(filed.place),
            "raw_sha256": filed.raw_sha256,
            "said_sha256": said_sha256,
            "envelope_id": filed.envelope_id,
            "filed_at": tx.now,
        },
    )


def rebind(tx: Tx, filed: Filed, place: Source) -> None:
    """The known mail lies at another place now."""
    tx.execute(update(table).where(is_at(table, filed.place)).values(**columns_of(place)))


def any_filed(tx: Tx, account: AccountName, folder: str) -> bool:
    """Whether any mail of a folder was ever filed."""
    return (
        tx.execute(select(table.c.uid).where(table.c.account == account, table.c.folder == folder).limit(1))
    ).first() is not None


def lowest_uid_validity(tx: Tx, account: AccountName, folder: str) -> int:
    """The smallest UIDVALIDITY under which mails of a folder are known; 0 when none is."""
    return (
        tx.execute(
            select(func.min(table.c.uid_validity)).where(table.c.account == account, table.c.folder == folder)
        ).scalar()
        or 0
    )


def prune(tx: Tx, before: datetime) -> int:
    """Forget mails that were filed before a time and wait for nobody; how many."""
    waiting = exists().where(
        envelope_table.c.id == table.c.envelope_id, envelope_table.c.state.in_(("new", "claimed"))
    )
    return tx.execute(delete(table).where(table.c.filed_at < before, ~waiting)).rowcount
