"""Mail whose text is not read: what its header says is all that it is judged by."""

import hashlib
from datetime import datetime

from attrs import evolve

from mailgateway.domain.judge import Refused, judge_large
from mailgateway.flows.isolate import defective
from mailgateway.flows.ports import FetchedMail
from mailgateway.flows.receive import Examined
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.own import Own
from mailgateway.mail.verdict import Verdict

HEADER_LIMIT = 65_536
"""Octets from the beginning of a mail in which its whole header has to stand to be looked at."""


def unread(mail: FetchedMail, received_at: datetime, verdict: Verdict, reason: str) -> Examined:
    """A mail of which only header fields are known."""
    try:
        inbound = read(mail.header)
    except Exception as error:  # noqa: BLE001 (any defect; the verdict stands without it)
        inbound = None
        defective(error, "reading the header of a mail")
    known = inbound if isinstance(inbound, Inbound) else None
    digest = hashlib.sha256(mail.header).hexdigest()
    return Examined(
        mail.uid, received_at, mail.size, digest, Refused(verdict=verdict, reason=reason, inbound=known)
    )


def too_large(mail: FetchedMail, received_at: datetime, start: bytes | None, own: Own) -> Examined:
    """A mail that is too large to be read; ``start`` are its first octets, by which its sender may be known.

    A header that is not whole in them proves nothing.
    """
    known = unread(mail, received_at, Verdict.TOO_LARGE, f"it has {mail.size} octets")
    header, end, _ = (start or b"").partition(b"\r\n\r\n")
    if not end:
        return known
    try:
        return evolve(known, judged=judge_large(header + end, mail.size, own))
    except Exception as error:  # noqa: BLE001 (any defect; the verdict stands without it)
        defective(error, "judging the header of a mail")
        return known
