"""How one folder's server is asked for news: how long to rest, by which command, and what was learned.

Policy.  What is known of the provider (``mailgateway.providers``) is where it begins; what the server does
from then on counts more.  A server that leaves mail unannounced in IDLE has its IDLE renewed twice as often;
one whose NOOP shows nothing is asked by STATUS; one that shows new mail in no other way is asked by SELECT.
What was learned belongs to the folder and outlives connections, not the process.
"""

from collections.abc import Callable

from attrs import define, field

from mailgateway.daemons.mailbox import ImapMailbox, select_folder
from mailgateway.providers import UNKNOWN, Poll, Provider

JITTER = 1 / 18
"""Which part of its period IDLE is renewed earlier or later: 9 min ± 30 s; it spreads many mailboxes."""

POLL_SECONDS = 120.0
"""How often a server without IDLE is asked when the settings name no interval."""

SHORTEST_SECONDS = 60.0
"""IDLE is renewed no more often, however much is missed."""

FORGIVEN_SECONDS = 24 * 3_600.0
"""After so long without unannounced mail IDLE may last twice as long again."""

MISSES = 2
"""So often mail has to come unannounced before IDLE is renewed more often."""

STATUS_SECONDS = 900.0
SELECT_SECONDS = 3_600.0
"""How often a stronger way to look is tried, lest the usual one shows nothing."""

_STEPS = (Poll.NOOP, Poll.STATUS, Poll.SELECT)


@define(eq=False)
class Habits:
    """What is known of the server of one folder."""

    provider: Provider = UNKNOWN
    seconds: Callable[[], float] = lambda: 0.0
    """The reactor's clock."""
    _poll: Poll = field(init=False)
    _halvings: int = field(default=0, init=False)
    _misses: int = field(default=0, init=False)
    _missed_at: float = field(default=0.0, init=False)
    _unseen: int = field(default=0, init=False)
    _status_at: float = field(init=False)
    _selected_at: float = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._poll = self.provider.poll
        self._status_at = self._selected_at = self.seconds()

    @property
    def idle_seconds(self) -> float:
        """How long IDLE lasts now."""
        if self._halvings and self.seconds() - self._missed_at >= FORGIVEN_SECONDS:
            self._halvings -= 1
            self._missed_at = self.seconds()
        usual = self.provider.idle_seconds
        return max(usual * 0.5**self._halvings, min(usual, SHORTEST_SECONDS))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the operator may want to know, in words."""
        told = []
        if self._halvings:
            told.append(
                f"the server leaves mail unannounced: IDLE is renewed every {self.idle_seconds:.0f} s"
            )
        if _STEPS.index(self._poll) > _STEPS.index(self.provider.poll):
            told.append(f"the server shows new mail only when it is asked by {self._poll.upper()}")
        return tuple(told)

    def rest_seconds(self, *, idles: bool, scan_interval: float, chance: float) -> float:
        """How long to rest before looking again; ``chance`` in [0, 1) spreads many mailboxes.

        ``scan_interval`` is that of the settings; 0: none.
        """
        spread = 2 * chance - 1
        scan = scan_interval * (1 + spread / 10) if scan_interval else None
        if idles:
            longest = self.idle_seconds * (1 + spread * JITTER)
        else:
            longest = (self.provider.poll_seconds or (0 if scan else POLL_SECONDS)) * (1 + spread * JITTER)
        waits = [wait for wait in (scan, longest) if wait]
        return min(waits)

    def announced(self) -> None:
        """The server told of mail in IDLE: it is not deaf."""
        self._misses = 0

    def missed(self) -> None:
        """A look at the end of IDLE found mail of which the server had told nothing."""
        self._misses += 1
        self._missed_at = self.seconds()
        if self._misses >= MISSES and self.idle_seconds > SHORTEST_SECONDS:
            self._misses = 0
            self._halvings += 1

    async def ask(self, mailbox: ImapMailbox) -> ImapMailbox:
        """Give the server the occasion to tell news of a folder; the folder as it is selected from now on."""
        now, connection = self.seconds(), mailbox.connection
        if self._poll is not Poll.SELECT:
            if await _shows_more(mailbox) or not self._looks_harder(now):
                return mailbox
            self._status_at = now
            status = await connection.status(mailbox.folder)
            if status.uid_next is not None and status.uid_next > mailbox.uid_next:
                if await _shows_more(mailbox):
                    return mailbox  # it had just come
                self._poll = Poll.STATUS
            elif now - self._selected_at < SELECT_SECONDS:
                return mailbox
            else:
                return await self._select(mailbox, MISSES)
        return await self._select(mailbox, None)

    async def _select(self, mailbox: ImapMailbox, misses: int | None) -> ImapMailbox:
        """Select the folder anew; so many that show mail where nothing else did make it the usual way."""
        self._selected_at = self.seconds()
        again = await select_folder(mailbox.connection, mailbox.account, mailbox.folder)
        if misses and again.uid_validity == mailbox.uid_validity and again.uid_next > mailbox.uid_next:
            self._unseen += 1
            if self._unseen >= misses:
                self._poll = Poll.SELECT
        return again

    def _looks_harder(self, now: float) -> bool:
        return self._poll is Poll.STATUS or now - self._status_at >= STATUS_SECONDS


async def _shows_more(mailbox: ImapMailbox) -> bool:
    """Whether NOOP shows new mail."""
    await mailbox.connection.noop()
    return mailbox.unscanned > 0
