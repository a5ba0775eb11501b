"""Keeping one mail that hits a defect of ours from holding up all that come behind it.

Mail is what strangers write, and code has defects; together they must not add up to a mailbox that nobody
reads any more.  A mail whose judging or filing fails is refused as ``malformed``, visibly, and the scan goes
on.  Failures of the database and of the mail server are none of this: they stop the scan, which is made
again.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from attrs import evolve
from twisted.internet.defer import CancelledError
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailgateway.domain.judge import Judged, Refused
from mailgateway.errors import Fault, MailgatewayError, place_of
from mailgateway.flows.receive import Examined, Received
from mailgateway.mail.verdict import Verdict

_log = Logger()

File = Callable[[int, Sequence[Examined]], Awaitable[Received]]
"""Files these mails and moves the cursor to that UID, in one transaction."""


def defective(error: Exception, what: str) -> Judged:
    """The verdict on a mail that hit a defect; the log says where, without a word of the mail."""
    _log.failure("{what} failed", failure=Failure(Fault(place_of(error))), what=what)
    return Refused(verdict=Verdict.MALFORMED, reason="mailgateway could not read it; the log says where")


async def file_batch(file: File, through: int, mails: Sequence[Examined]) -> Received:
    """File mails together; when that hits a defect, one by one, refusing those that hit it."""
    try:
        return await file(through, mails)
    except (MailgatewayError, CancelledError):
        raise
    except Exception as error:
        if not mails:
            raise
        found = defective(error, "filing a batch of mails")
    received: list[Received] = []
    for number, mail in enumerate(mails, 1):
        upto = through if number == len(mails) else mail.uid
        try:
            received.append(await file(upto, [mail]))
        except (MailgatewayError, CancelledError):
            raise
        except Exception:  # noqa: BLE001 (told above: this is the one)
            received.append(await file(upto, [evolve(mail, judged=found)]))
    return _together(received)


def _together(received: Sequence[Received]) -> Received:
    refused: Counter[str] = Counter()
    for each in received:
        refused.update(each.refused)
    return Received(
        sum(each.routed for each in received),
        dict(refused),
        tuple(envelope for each in received for envelope in each.envelopes),
        sum(each.held for each in received),
    )
