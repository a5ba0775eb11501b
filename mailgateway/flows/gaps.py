"""Mails that become visible late: numbers right below the cursor under which nothing was there.

A server may show a mail after one with a higher UID (commits overtake each other at large providers), or
leave one out of an answer.  Every number among the last fifty below the cursor that a scan was not told of is
therefore looked for again, ten times; mostly there was a mail once, and it is gone.  Numbers that were told,
and all below the first look at the folder, are never looked at again, so nothing comes twice and no old mail
is filed.  The numbers are written down before the cursor passes them: a crash forgets none.
"""

from collections.abc import Collection, Iterable, Mapping

from attrs import define, field

from mailgateway.flows.leases import check_folder
from mailgateway.flows.patience import Patience
from mailgateway.flows.ports import Mailbox
from mailgateway.store import gaps
from mailgateway.store.database import Database, Tx

OVERLAP = 50
"""How far below the cursor a mail may become visible late."""

LOOKS = 10
"""How often a number is looked for; a look comes with a scan that has nothing else to do."""


@define(eq=False)
class Gaps:
    """What one folder's scans were not told of."""

    database: Database
    patience: Patience = field(factory=Patience, init=False)
    """With mails that the server hangs up on, once they are there."""
    _looks: dict[int, int] = field(factory=dict, init=False)

    @property
    def uids(self) -> tuple[int, ...]:
        """The numbers that are looked for, in order."""
        return tuple(sorted(self._looks))

    async def load(self, mailbox: Mailbox) -> None:
        """Take up what is written down for the folder's numbering."""

        def work(tx: Tx) -> dict[int, int]:
            return gaps.of_folder(tx, mailbox.account, mailbox.folder, mailbox.uid_validity)

        self._looks = await self.database.read(work)

    async def passing(
        self, mailbox: Mailbox, fence: int | None, first: int, last: int, told: Collection[int]
    ) -> None:
        """The cursor is about to pass the numbers from ``first`` to ``last``; the server told of some.

        Raises ``StaleWrite`` when the folder's lease was taken by another machine, as ``looked`` does.
        """
        lowest = last - OVERLAP + 1
        new = [uid for uid in range(max(first, lowest), last + 1) if uid not in told]
        if new:
            kept = {uid: looks for uid, looks in self._looks.items() if uid >= lowest and uid < first}
            await self._write(mailbox, fence, {**kept, **dict.fromkeys(new, 0)})

    def is_last_look(self, uid: int) -> bool:
        """Whether the number is not looked for again after this look."""
        return self._looks.get(uid, 0) + 1 >= LOOKS

    async def looked(self, mailbox: Mailbox, fence: int | None, settled: Iterable[int]) -> None:
        """All numbers were looked for; what was there under these is settled."""
        over = set(settled)
        left = {uid: looks + 1 for uid, looks in self._looks.items() if uid not in over and looks + 1 < LOOKS}
        await self._write(mailbox, fence, left)

    async def _write(self, mailbox: Mailbox, fence: int | None, looks: Mapping[int, int]) -> None:
        def work(tx: Tx) -> None:
            check_folder(tx, mailbox.account, mailbox.folder, fence)
            gaps.replace(tx, mailbox.account, mailbox.folder, mailbox.uid_validity, looks)

        await self.database.run(work)
        self._looks = dict(looks)
