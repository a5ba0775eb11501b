"""Sends what waits in the outbox of one account.

A row is claimed (committed) before anybody dials, and concluded (committed) before the next is claimed; the
row owns all retries.  When an outcome cannot be committed, it is kept in mind and written again until it
stands: a mail that the server has is not sent again because our disk was full.

One connection serves a burst.  Work goes on in *lanes*: a lane drains the queue and ends; a second one is
opened only when the first has been stuck with one mail for a while, so that a server that thinks for ten
minutes about a final dot does not keep a decision waiting, and a burst does not become many logins.  While
the way to the server is closed (``daemons.submission``) nothing is claimed, and callers that wait are told.

A mail of unclear fate may go once more; before that it is looked for in the Sent folder, where providers put
what they have taken.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from twisted.application.service import Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeadlineReached
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import deferLater
from twisted.logger import Logger

from mailgateway.daemons.logins import Logins
from mailgateway.daemons.read_back import ReadBack
from mailgateway.daemons.submission import HELD_WORDS, SubmissionServer, reply_code
from mailgateway.daemons.tasks import Tasks, to_the_end
from mailgateway.daemons.watching import Held
from mailgateway.domain.identity import Identity
from mailgateway.domain.outbox import OutboxRow, OutboxState, RecipientOutcome, RecipientVerdict
from mailgateway.errors import PeerError, StoreError, Throttled
from mailgateway.flows import outbox
from mailgateway.flows.bell import Bell, EventKind, Numbered
from mailgateway.flows.outbox import Claimed
from mailgateway.flows.ports import Database, SentFolder
from mailgateway.ids import MessageId, OutboxId
from mailgateway.providers import of_smtp
from mailgateway.wire.smtp_outcome import Accepted, Outcome, Rejected, TryLater, Unclear, advice_on, given_id
from mailgateway.wire.submission import Submission

if TYPE_CHECKING:
    from mailgateway.protocols.smtp import SmtpConnection

LANES = 3
STUCK_SECONDS = 15.0
"""A lane that works on one mail for so long does not keep a new one from being opened."""

ATTEMPT_SECONDS = 1_200.0
"""How long one attempt may take in all: a server that takes a little every minute is not waited for."""

LEASE_SECONDS = 1_500
"""Longer than an attempt, so that a claim dies with its process only."""

LOOK_SECONDS = 300.0
"""How often the queue is looked at without a ring; a shared database is looked at more often."""

SHARED_LOOK_SECONDS = 2.0

COPY_AFTER = timedelta(seconds=10)
"""When a copy is put into the Sent folder: a server that does it by itself has done it by then."""

STORE_PAUSE_SECONDS = 2.0
LONGEST_STORE_PAUSE_SECONDS = 30.0
"""How long to wait before writing again what the database did not take."""


@frozen
class Attempted:
    """How one attempt went: an outcome for each recipient that the server spoke about."""

    outcomes: Sequence[RecipientOutcome] = ()
    error: str = ""
    code: int | None = None
    """The SMTP code of a refusal that was about no recipient."""
    other_id: MessageId | None = None
    """The Message-ID that the server gave the mail."""


STOPPED = Attempted(error="mailgateway was stopped before the mail was handed over")


@define(eq=False)
class Lane:
    """One drain of the queue."""

    since: float
    """When it began with its present mail."""
    connection: "SmtpConnection | None" = None
    sending: bool = False
    """Whether its connection is at work on its present mail."""

    @property
    def has_handed_over(self) -> bool:
        """Whether the server may have its present mail."""
        return self.sending and self.connection is not None and self.connection.dot_written


@define(eq=False)
class Sender(Service):
    """The outbox's way to the submission server of one account."""

    reactor: Any
    database: Database
    bell: Bell
    identity: Identity
    logins: Logins
    hostname: str
    sent: SentFolder | None = None
    """Where mails of unclear fate are looked for; ``None``: nowhere."""
    keeps_copies: bool = False
    """Whether copies of what is sent are to be put into the Sent folder."""
    _server: SubmissionServer = field(init=False)
    _read_back: ReadBack | None = field(default=None, init=False)
    _tasks: Tasks = field(factory=Tasks, init=False)
    _lanes: set[Lane] = field(factory=set, init=False)
    _wanted: bool = field(default=False, init=False)
    _timer: IDelayedCall | None = field(default=None, init=False)
    _unsubscribe: Any = field(default=None, init=False)
    _log: Logger = field(factory=Logger, init=False)

    def __attrs_post_init__(self) -> None:
        self._server = SubmissionServer(self.reactor, self.logins, self.hostname)
        if self.sent is not None and of_smtp(self.logins.account.smtp.host).rewrites_ids:
            self._read_back = ReadBack(self.reactor, self.database, self.sent, self._tasks)

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

    def woke(self) -> None:
        """The machine slept: connections are dead; a mail on its way is concluded as after a loss."""
        for lane in tuple(self._lanes):
            if lane.connection is not None:
                lane.connection.abort()
        self._server.woke()
        self._wake()

    def signed_in(self) -> None:
        """A person has signed in anew: what waits is tried at once."""
        self._server.signed_in()
        self._wake()

    def _heard(self, numbered: Numbered) -> None:
        if numbered.event.kind is EventKind.OUTBOX:
            self._wake()

    def _wake(self) -> None:
        """See to it that somebody looks at the queue."""
        if not self.running:
            return
        self._wanted = True
        now = self.reactor.seconds()
        patience = [lane.since + STUCK_SECONDS - now for lane in self._lanes]
        waiting = [seconds for seconds in patience if seconds > 0]
        if not waiting and len(self._lanes) < LANES:
            lane = Lane(now)
            self._lanes.add(lane)
            self._tasks.start(self._drain(lane), "sending")
        if self._lanes:
            self._look_in(min(waiting, default=STUCK_SECONDS))

    def _look_in(self, seconds: float) -> None:
        """Wake at the latest after so long."""
        if not self.running:
            return
        if self._timer is not None and self._timer.active():
            if self._timer.getTime() <= self.reactor.seconds() + seconds:
                return
            self._timer.cancel()
        self._timer = self.reactor.callLater(seconds, self._wake)

    async def _drain(self, lane: Lane) -> None:
        """Send until nothing is due, and see to it that somebody looks again, whatever happens."""
        try:
            while self._wanted and self.running:
                self._wanted = False
                while (claimed := await self._claim()) is not None:
                    lane.since = self.reactor.seconds()
                    await self._attempt(lane, claimed)
                if self.running:
                    await self._leave(lane)
        except StoreError as error:
            self._log.warn("the outbox cannot be read or written now: {error}", error=str(error))
            self._look_in(STORE_PAUSE_SECONDS)
        finally:
            self._lanes.discard(lane)
            if lane.connection is not None:
                lane.connection.abort()
            self._look_in(LOOK_SECONDS)
        if self.running:
            await self._plan()

    async def _plan(self) -> None:
        """Look again when the next mail is due and the way is open."""
        seconds = SHARED_LOOK_SECONDS if self.database.shared else LOOK_SECONDS
        try:
            due = await outbox.next_due(self.database, self.identity, self.logins.account.tag)
        except StoreError:
            self._look_in(STORE_PAUSE_SECONDS)
            return
        if due is not None:
            seconds = min(seconds, max(0.5, (due - self.logins.now()).total_seconds()))
        pause = self._server.pause
        if pause is not None:
            seconds = max(seconds, pause.until - self.reactor.seconds())
        self._look_in(seconds)

    async def _claim(self) -> Claimed | None:
        """The next mail; ``None`` when none is due, or none can be handed over."""
        tag = self.logins.account.tag
        if not self.running:
            return None
        if await self._server.is_open():
            claimed = await to_the_end(self._take(()))
            if claimed is None and (looked := await self._look_for_doubtful()):
                claimed = await to_the_end(self._take(looked))
            return claimed
        pause = self._server.pause
        if pause is not None and pause.outlasts_callers:
            await to_the_end(
                outbox.hold(self.database, self.bell, self.identity, tag, pause.words, code=pause.code)
            )
        return None

    async def _look_for_doubtful(self) -> Collection[OutboxId]:
        """Look whether mails of unclear fate arrived; those that may go once more."""
        account = self.logins.account.tag
        again: list[OutboxId] = []
        for doubtful in await outbox.doubtful(self.database, self.identity, account):
            if await self._has_arrived(doubtful):
                await to_the_end(outbox.arrived(self.database, self.bell, doubtful.id))
                self._log.info("mail {id}: it lies in the Sent folder, so it was taken", id=doubtful.id)
            else:
                again.append(doubtful.id)
        return again

    async def _has_arrived(self, doubtful: OutboxRow) -> bool:
        """Whether a mail lies in the Sent folder, by whichever id; nobody who can look is no proof of it."""
        if self.sent is None:
            return False
        try:
            if await self.sent.find(doubtful.message_id) is not None:
                return True
            return await self.sent.id_of(doubtful.id) is not None  # where the server gives ids of its own
        except PeerError as error:
            self._log.info("the Sent folder cannot be looked into now: {error}", error=error.text)
            return False

    async def _take(self, looked: Collection[OutboxId]) -> Claimed | None:
        """Claim the next mail; when a stop came meanwhile, give it back untried."""
        claimed = await outbox.claim_next(
            self.database,
            self.identity,
            self.logins.account.tag,
            lease_seconds=LEASE_SECONDS,
            looked=looked,
        )
        if claimed is not None and not self.running:
            await self._conclude(claimed, STOPPED)
            return None
        return claimed

    async def _attempt(self, lane: Lane, claimed: Claimed) -> None:
        """One attempt of one mail, from the connection to the commit of its outcome."""
        attempted = STOPPED
        try:
            submitting = Deferred.fromCoroutine(self._submit(lane, claimed))
            attempted = await submitting.addTimeout(ATTEMPT_SECONDS, self.reactor)
        except Exception as error:
            if lane.has_handed_over:
                words = "the attempt was cut off while the mail server had not yet answered"
                attempted = Attempted(_unclear(claimed, words), words)
            elif isinstance(error, DeadlineReached):
                words = f"the mail server did not take the mail within {ATTEMPT_SECONDS:g} s"
                attempted = Attempted(error=words)
            if not isinstance(error, DeadlineReached):
                raise
        finally:
            lane.sending = False
            await self._conclude(claimed, attempted)

    async def _conclude(self, claimed: Claimed, attempted: Attempted) -> None:
        """Write down how an attempt went, and do not let go of it before it stands."""
        pause = STORE_PAUSE_SECONDS
        while True:
            try:
                state = await to_the_end(self._write(claimed, attempted))
            except StoreError as error:
                self._log.warn(
                    "mail {id}: how it went cannot be written now: {error}", id=claimed.id, error=str(error)
                )
                if not self.running:
                    return  # the next start finds the row as being sent, and calls it unclear
                await self._rest(pause)
                pause = min(pause * 2, LONGEST_STORE_PAUSE_SECONDS)
            else:
                if state is OutboxState.SENT and attempted.other_id is None and self._read_back is not None:
                    self._read_back.begin(claimed.id)
                self._log.info(
                    "mail {id}, attempt {attempt}: {state}",
                    id=claimed.id,
                    attempt=claimed.attempt,
                    state=state,
                )
                return

    async def _write(self, claimed: Claimed, attempted: Attempted) -> OutboxState:
        return await outbox.conclude(
            self.database,
            self.bell,
            claimed,
            attempted.outcomes,
            error=attempted.error,
            code=attempted.code,
            other_id=attempted.other_id,
            copy_after=COPY_AFTER if self.keeps_copies else None,
        )

    async def _rest(self, seconds: float) -> None:
        """Wait, unless a stop comes."""
        with suppress(CancelledError):
            await deferLater(self.reactor, seconds)

    async def _submit(self, lane: Lane, claimed: Claimed) -> Attempted:
        """Hand one mail over, or say what stood in the way."""
        try:
            if lane.connection is not None and not lane.connection.usable:
                await self._leave(lane)
            if lane.connection is None:
                lane.connection = await self._server.connect()
            lane.sending = True
            result = await lane.connection.send(Submission(claimed.sender, claimed.recipients, claimed.raw))
        except Held as held:
            if held.refusal is None:
                return Attempted(error=HELD_WORDS)
            return Attempted(error=held.refusal.text, code=reply_code(held.refusal))
        except PeerError as failure:
            self._server.failed(failure)
            return Attempted(error=failure.text, code=reply_code(failure))
        over = lane.connection.error
        if isinstance(over, Throttled):
            self._server.failed(over)
        else:
            self._server.went_well()
        outcomes = [
            _recipient(address, outcome)
            for address, outcome in zip(claimed.recipients, result.outcomes, strict=True)
        ]
        clear = all(isinstance(outcome, Accepted) for outcome in result.outcomes)
        given = ""
        if any(isinstance(outcome, Accepted) for outcome in result.outcomes):
            given = given_id(result.text, self.logins.account.smtp.host)
        advice = advice_on(result.outcomes)
        error = "" if clear else f"{result.text} ({advice})" if advice else result.text
        return Attempted(outcomes, error, other_id=MessageId(given) if given else None)

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


def _unclear(claimed: Claimed, words: str) -> Sequence[RecipientOutcome]:
    return [
        RecipientOutcome(address, RecipientVerdict.UNCLEAR, None, words) for address in claimed.recipients
    ]
