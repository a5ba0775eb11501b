"""Sends what waits in the outbox of one account.

A row is claimed (committed) before anybody dials, and concluded (committed) before the next is claimed; the
row owns all retries.  One connection serves a burst.  Work goes on in *lanes*: a lane drains the queue and
ends; a second one is opened only when the first has been stuck with one mail for a while, so that a server
that thinks for ten minutes about a final dot does not keep a decision waiting, and a burst does not become
many logins.  A refused login keeps every mail back without another try (``daemons.logins``).
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import define, field
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from mailgateway.daemons.logins import Door, Logins
from mailgateway.daemons.peers import peer_of
from mailgateway.daemons.tasks import Tasks
from mailgateway.daemons.watching import Held
from mailgateway.domain.identity import Identity
from mailgateway.domain.outbox import RecipientOutcome, RecipientVerdict
from mailgateway.errors import LoginRefused, PeerError, StoreError
from mailgateway.flows import outbox
from mailgateway.flows.bell import Bell, EventKind, Numbered
from mailgateway.flows.outbox import Claimed
from mailgateway.flows.ports import Database
from mailgateway.protocols.smtp import SmtpConnection, Submission, connect
from mailgateway.wire.smtp_outcome import Accepted, Outcome, Rejected, TryLater, Unclear

LANES = 3
STUCK_SECONDS = 15.0
"""A lane that works on one mail for so long does not keep a new one from being opened."""

LEASE_SECONDS = 1_200
"""Longer than the deadlines of one submission together: a claim dies with its process only."""

LOOK_SECONDS = 300.0
"""How often the queue is looked at without a ring; a shared database is looked at more often."""

SHARED_LOOK_SECONDS = 2.0

HELD_WORDS = (
    "the mail server refused this account's login, so it is not tried again; "
    "mend the password and run `mailgateway reload`"
)


@define(eq=False)
class Lane:
    """One drain of the queue."""

    since: float
    """When it began with its present mail."""
    connection: SmtpConnection | None = None


@define(eq=False)
class Sender(Service):
    """The outbox's way to the submission server of one account."""

    reactor: Any
    database: Database
    bell: Bell
    identity: Identity
    logins: Logins
    hostname: str
    _tasks: Tasks = field(factory=Tasks, init=False)
    _lanes: set[Lane] = field(factory=set, init=False)
    _wanted: bool = field(default=False, init=False)
    _timer: IDelayedCall | None = field(default=None, init=False)
    _unsubscribe: Any = field(default=None, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def startService(self) -> None:
        """Begin to send."""
        Service.startService(self)
        self._unsubscribe = self.bell.subscribe(self._heard)
        self._wake()

    def stopService(self) -> Deferred[None]:
        """Stop; a mail that is under way is concluded as far as is known."""
        Service.stopService(self)
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        return self._tasks.stop()

    def _heard(self, numbered: Numbered) -> None:
        if numbered.event.kind is EventKind.OUTBOX:
            self._wake()

    def _wake(self) -> None:
        """See to it that somebody looks at the queue."""
        if not self.running:
            return
        self._wanted = True
        now = self.reactor.seconds()
        free = [lane for lane in self._lanes if now - lane.since < STUCK_SECONDS]
        if free or len(self._lanes) >= LANES:
            self._look_in(STUCK_SECONDS)
            return
        lane = Lane(now)
        self._lanes.add(lane)
        self._tasks.start(self._drain(lane), "sending")

    def _look_in(self, seconds: float) -> None:
        """Wake at the latest after so long."""
        if self._timer is not None and self._timer.active():
            if self._timer.getTime() <= self.reactor.seconds() + seconds:
                return
            self._timer.cancel()
        self._timer = self.reactor.callLater(seconds, self._wake)

    async def _drain(self, lane: Lane) -> None:
        """Send until nothing is due."""
        try:
            while self._wanted:
                self._wanted = False
                while (claimed := await self._claim()) is not None:
                    lane.since = self.reactor.seconds()
                    await self._attempt(lane, claimed)
                await self._leave(lane)
        except StoreError as error:
            self._log.warn("the outbox cannot be read or written now: {error}", error=str(error))
            self._look_in(SHARED_LOOK_SECONDS)
        finally:
            self._lanes.discard(lane)
            if lane.connection is not None:
                lane.connection.abort()
        if self.running:
            await self._plan()

    async def _plan(self) -> None:
        """Look again when the next mail is due."""
        due = await outbox.next_due(self.database, self.identity, self.logins.account.tag)
        seconds = SHARED_LOOK_SECONDS if self.database.shared else LOOK_SECONDS
        if due is not None:
            seconds = min(seconds, max(0.05, (due - datetime.now(UTC)).total_seconds()))
        self._look_in(seconds)

    async def _claim(self) -> Claimed | None:
        if not self.running:
            return None
        return await outbox.claim_next(
            self.database, self.identity, self.logins.account.tag, lease_seconds=LEASE_SECONDS
        )

    async def _attempt(self, lane: Lane, claimed: Claimed) -> None:
        """One attempt of one mail, from the connection to the commit of its outcome."""
        outcomes: Sequence[RecipientOutcome] = ()
        error = "mailgateway was stopped before the mail was handed over"
        try:
            outcomes, error = await self._submit(lane, claimed)
        except Held:
            error = HELD_WORDS
        except PeerError as failure:
            error = failure.text
            outcomes = _all(claimed, RecipientVerdict.TRY_LATER, _code(failure), failure.text)
        except CancelledError:
            if lane.connection is not None and lane.connection.dot_written:
                error = "mailgateway was stopped while the mail server had not yet answered"
                outcomes = _all(claimed, RecipientVerdict.UNCLEAR, None, error)
            raise
        finally:
            state = await outbox.conclude(
                self.database, self.bell, self.identity, claimed, outcomes, error=error
            )
            self._log.info(
                "mail {id}, attempt {attempt}: {state}", id=claimed.id, attempt=claimed.attempt, state=state
            )

    async def _submit(self, lane: Lane, claimed: Claimed) -> tuple[Sequence[RecipientOutcome], str]:
        """Hand one mail over; its outcome for each recipient, and the server's last word when it matters."""
        if lane.connection is not None and not lane.connection.usable:
            await self._leave(lane)
        if lane.connection is None:
            lane.connection = await self._connect()
        submission = Submission(claimed.sender, claimed.recipients, claimed.raw)
        try:
            result = await lane.connection.send(submission)
        except LoginRefused:
            lane.connection.abort()
            lane.connection = None
            raise
        outcomes = [
            _recipient(address, outcome)
            for address, outcome in zip(claimed.recipients, result.outcomes, strict=True)
        ]
        clear = all(isinstance(outcome, Accepted) for outcome in result.outcomes)
        return outcomes, "" if clear else result.text

    async def _connect(self) -> SmtpConnection:
        credential = await self.logins.credential(Door.SMTP)
        peer = peer_of(self.logins.account.smtp)
        try:
            connection = await connect(self.reactor, peer, credential, self.hostname)
        except LoginRefused as error:
            await self.logins.refused(Door.SMTP, credential, error)
            raise
        await self.logins.succeeded(Door.SMTP, credential)
        return connection

    async def _leave(self, lane: Lane) -> None:
        connection, lane.connection = lane.connection, None
        if connection is not None:
            await connection.quit()


def _recipient(address: str, outcome: Outcome) -> RecipientOutcome:
    match outcome:
        case Accepted(code, text):
            return RecipientOutcome(address, RecipientVerdict.ACCEPTED, code, text)
        case TryLater(code, text):
            return RecipientOutcome(address, RecipientVerdict.TRY_LATER, code, text)
        case Rejected(code, text):
            return RecipientOutcome(address, RecipientVerdict.REJECTED, code, text)
        case Unclear(text):
            return RecipientOutcome(address, RecipientVerdict.UNCLEAR, None, text)


def _all(
    claimed: Claimed, verdict: RecipientVerdict, code: int | None, text: str
) -> Sequence[RecipientOutcome]:
    return [RecipientOutcome(address, verdict, code, text) for address in claimed.recipients]


def _code(failure: PeerError) -> int | None:
    """The SMTP code of a failure, where it had one."""
    head = failure.code.split(" ", 1)[0]
    return int(head) if head.isdigit() else None
