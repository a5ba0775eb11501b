"""The texts of candidates: those of small neighbours come together, all others one by one.

A round trip for each mail is most of what a burst costs.  But some mails make a server answer nonsense or
hang up, every time, and must not take others with them.  So a run of neighbours is asked for once; when that
fails, its texts are asked for one by one, where ``flows.patience`` finds the guilty one.
"""

from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from mailgateway.errors import CommandRefused, PeerError
from mailgateway.flows.evidence import SMALL
from mailgateway.flows.patience import Patience
from mailgateway.flows.ports import FetchedMail, Mailbox

TOGETHER = 50
"""Mails whose texts one command brings at most; with ``SMALL``, that bounds what is in memory."""

TOGETHER_OCTETS = 1024 * 1024
"""Octets of such texts, as far as the server tells sizes that are true."""


def runs(mails: Iterable[FetchedMail]) -> Iterator[list[FetchedMail]]:
    """The mails in order of their UIDs, neighbours whose texts may come together in one list."""
    run: list[FetchedMail] = []
    octets = 0
    for mail in sorted(mails, key=lambda each: each.uid):
        octets += mail.size
        fits = (
            run
            and mail.raw is None
            and run[-1].raw is None
            and mail.uid == run[-1].uid + 1
            and max(mail.size, run[-1].size) <= SMALL
            and len(run) < TOGETHER
            and octets <= TOGETHER_OCTETS
        )
        if run and not fits:
            yield run
            run, octets = [], mail.size
        run.append(mail)
    if run:
        yield run


async def with_texts(mailbox: Mailbox, run: Sequence[FetchedMail], patience: Patience) -> list[FetchedMail]:
    """The mails of a run with those texts that came; a text that is not there is to be asked for by itself.

    Raises the ``PeerError`` of a connection that is lost.
    """
    if len(run) == 1 or patience.is_apart((mailbox.uid_validity, run[0].uid)):
        return list(run)
    texts: dict[int, bytes | None] = {}

    def take(mail: FetchedMail) -> None:
        texts[mail.uid] = mail.raw

    last = run[-1].uid
    try:
        await mailbox.fetch(run[0].uid, last, SMALL, take)
    except PeerError as error:
        patience.failed_together((mailbox.uid_validity, last))
        if not isinstance(error, CommandRefused):
            raise
    return [evolve(mail, raw=texts.get(mail.uid)) for mail in run]
