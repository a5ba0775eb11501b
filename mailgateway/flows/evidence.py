"""Finding out what speaks for a mail, and judging it by that.

Most mail needs nothing beyond its bytes.  For one that says it is from an allowed person, keys are looked up
in DNS, or the Sent folder is asked; both have their deadlines.  Small mails are judged at once, large ones in
a thread, since digests and MIME of 25 MB take their time.
"""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from attrs import define
from twisted.logger import Logger

from mailgateway.domain.judge import Judged, Refused, evidence_wanted, judge_inbound
from mailgateway.errors import PeerError
from mailgateway.flows.ports import KeyLookup, SentFolder
from mailgateway.ids import MessageId
from mailgateway.mail.authenticity import DISAGREEMENT
from mailgateway.mail.decode import Malformed
from mailgateway.mail.evidence import Copy, Evidence, NoCopy, Wanted
from mailgateway.mail.inbound import read
from mailgateway.mail.own import Own
from mailgateway.mail.sent_copy import MARGIN
from mailgateway.mail.verdict import Verdict

SMALL = 64 * 1024
"""Octets of a mail that is judged at once."""

InThread = Callable[[Callable[[], Judged]], Awaitable[Judged]]

_log = Logger()


@define(eq=False)
class Witnesses:
    """Whom to ask; ``None``: there is nobody."""

    keys: KeyLookup | None = None
    sent: SentFolder | None = None


async def examine(
    raw: bytes, own: Own, received_at: datetime, witnesses: Witnesses, in_thread: InThread
) -> Judged:
    """Judge the whole bytes of a mail that arrived (INTERNALDATE) at ``received_at``."""
    inbound = read(raw)
    if isinstance(inbound, Malformed):
        return Refused(verdict=Verdict.MALFORMED, reason=inbound.reason)
    evidence = await _evidence(evidence_wanted(inbound, own), len(raw), received_at, witnesses)
    if len(raw) > SMALL:
        judged = await in_thread(lambda: judge_inbound(inbound, own, evidence))
    else:
        judged = judge_inbound(inbound, own, evidence)
    if isinstance(judged, Refused) and judged.reason == DISAGREEMENT:
        _log.warn("a mail of an allowed person is refused: {reason}", reason=DISAGREEMENT)
    return judged


async def _evidence(wanted: Wanted, size: int, received_at: datetime, witnesses: Witnesses) -> Evidence:
    keys = await witnesses.keys.find(wanted.keys) if wanted.keys and witnesses.keys is not None else {}
    copy = None
    if wanted.sent_copy is not None and witnesses.sent is not None:
        copy = await _copy(witnesses.sent, wanted.sent_copy, size + MARGIN)
    return Evidence(now=datetime.now(UTC), received_at=received_at, keys=keys, copy=copy)


async def _copy(sent: SentFolder, message_id: MessageId, limit: int) -> Copy | NoCopy:
    try:
        found = await sent.find(message_id, limit)
    except PeerError as error:
        _log.warn("the Sent folder cannot be looked into: {error}", error=str(error))
        return NoCopy("the Sent folder cannot be looked into")
    return NoCopy("no copy of it lies in the Sent folder") if found is None else Copy(found)
