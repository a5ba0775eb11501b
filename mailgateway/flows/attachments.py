"""The files of a person's mail, as they are kept for a session: bounded for each session.

Runs inside the transaction that files the mail, and writes nothing.
"""

from attrs import evolve

from mailgateway.domain.envelope import AttachmentInfo
from mailgateway.ids import SessionId
from mailgateway.mail.attachments import Part, Reason, attachments_of
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own
from mailgateway.store import attachments
from mailgateway.store.database import Tx

FILES_LIMIT = 1_000
BYTES_LIMIT = 256 * 1024 * 1024
"""How much is kept for one session; what comes beyond is named, and lies in the mailbox."""


def kept_for(
    tx: Tx, session_id: SessionId, inbound: Inbound, own: Own, sent_text: str | None
) -> tuple[tuple[AttachmentInfo, bytes], ...]:
    """What is kept of a mail's files with their bytes, and what is only named, without."""
    parts = attachments_of(inbound, own, sent_text)
    if not any(part.left_out is None for part in parts):
        fitting = parts
    else:
        files, size = attachments.held_for(tx, session_id)
        fitting = _fitting(parts, FILES_LIMIT - files, BYTES_LIMIT - size)
    return tuple(
        (
            AttachmentInfo(
                f"a{number}", part.filename, part.content_type, len(part.data), part.left_out or ""
            ),
            b"" if part.left_out is not None else part.data,
        )
        for number, part in enumerate(fitting, 1)
    )


def _fitting(parts: tuple[Part, ...], files: int, size: int) -> tuple[Part, ...]:
    """The parts, those for which there is no room left out."""
    found = []
    for part in parts:
        if part.left_out is None and (files < 1 or size < len(part.data)):
            found.append(evolve(part, left_out=Reason.SESSION_FULL))
            continue
        if part.left_out is None:
            files, size = files - 1, size - len(part.data)
        found.append(part)
    return tuple(found)
