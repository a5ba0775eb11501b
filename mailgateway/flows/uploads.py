"""Files for a mail to come: the door has written the bytes, here they get their row."""

from mailgateway.domain.identity import Identity
from mailgateway.errors import Refusal
from mailgateway.flows.sessions import register
from mailgateway.ids import AttachmentId, SessionId
from mailgateway.store import uploads
from mailgateway.store.database import Database, Tx

UPLOAD_LIMIT = 25_000_000
"""One file has at most so many octets."""

HELD_LIMIT = 100_000_000
"""All files that one session has uploaded lately."""

FILENAME_LIMIT = 255


def attachment_id_of(random: bytes) -> AttachmentId:
    """``a-`` and 24 hex digits, from at least 12 random bytes."""
    return AttachmentId("a-" + random[:12].hex())


async def add(
    database: Database,
    identity: Identity,
    session: SessionId,
    upload_id: AttachmentId,
    filename: str,
    size: int,
    path: str,
) -> AttachmentId:
    """Write that the file at ``path`` (ours, below the state directory) may go with the session's mails.

    Only the last part of ``filename`` is kept.  Refusals: ``too_large`` over 25 MB for one file or 100 MB
    for all of a session; the caller then deletes the file.
    """
    base = filename.replace("\\", "/").rpartition("/")[2]
    shown = "".join(letter for letter in base if letter.isprintable()).strip()[-FILENAME_LIMIT:]

    def work(tx: Tx) -> AttachmentId:
        if size > UPLOAD_LIMIT:
            raise Refusal("too_large", f"a file may have {UPLOAD_LIMIT} bytes; this one has {size}")
        if uploads.held(tx, session) + size > HELD_LIMIT:
            raise Refusal(
                "too_large", f"this session's files exceed {HELD_LIMIT} bytes; they are forgotten in an hour"
            )
        register(tx, identity, session)
        uploads.add(tx, uploads.Upload(upload_id, session, shown or "file", size, path, tx.now))
        return upload_id

    return await database.run(work)


async def paths(database: Database) -> frozenset[str]:
    """Where all files lie that may still go with a mail; at other machines of the database, too."""
    return await database.read(uploads.paths)
