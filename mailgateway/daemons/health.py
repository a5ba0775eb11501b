"""How one door of an account goes, in memory and in its row: state, failures, refusals of the credential.

The row lets a restarted service know what the one before it had learned, so that a service manager cannot
make us hammer a provider.  One object owns one row; it is the only one that writes it, in order.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from mailgateway.daemons.tasks import Tasks, to_the_end
from mailgateway.daemons.watching import Condition
from mailgateway.domain.account import AccountState
from mailgateway.domain.reconnect import FailureClass, LoginRecord
from mailgateway.flows import health as rows
from mailgateway.flows.health import AccountHealth
from mailgateway.flows.ports import AccountStatus, Database
from mailgateway.ids import AccountName

_log = Logger()


def utc_now() -> datetime:
    """The time by the system's clock; tests hand in another one."""
    return datetime.now(UTC)


@define(eq=False)
class DoorHealth:
    """The health of one door.

    ``name`` is the account's tag; behind it ``:smtp`` for that door, ``/FOLDER`` for a further folder.
    """

    name: AccountName
    database: Database
    tasks: Tasks
    now: Callable[[], datetime] = utc_now
    _health: AccountHealth = field(init=False)
    _writing: DeferredLock = field(factory=DeferredLock, init=False)
    _logged: str = field(default="", init=False)
    """The failure that the log has told of since all was well."""

    def __attrs_post_init__(self) -> None:
        self._health = AccountHealth(
            account=self.name,
            state=AccountState.STOPPED,
            since=self.now(),
            failure="",
            failures=0,
            next_attempt_at=None,
            refusals=0,
            proven=False,
            doubts=0,
            credential_digest="",
            last_error="",
        )

    async def load(self) -> None:
        """Take up what is remembered."""
        known = await rows.load(self.database, self.name)
        if known is not None:
            self._health = known

    @property
    def login(self) -> LoginRecord:
        """What is remembered of logins."""
        health = self._health
        # a login that was not even tried, since the other door's was refused, says nothing of this credential
        refused = health.failure == FailureClass.CREDENTIAL and health.refusals > 0
        return LoginRecord(
            health.credential_digest,
            health.refusals,
            health.proven,
            health.next_attempt_at if refused else None,
            health.doubts,
        )

    @property
    def status(self) -> AccountStatus:
        """What ``/health`` shows."""
        health = self._health
        waits = health.state in {AccountState.BACKING_OFF, AccountState.REFUSED, AccountState.STOPPED}
        until = health.next_attempt_at if waits else None
        return AccountStatus(health.state, health.since, until, health.failure)

    @property
    def last_error(self) -> str:
        """The server's last words of refusal or failure, for ``status``."""
        return self._health.last_error

    @property
    def remembered_failure(self) -> tuple[FailureClass, int] | None:
        """The class and count of the failures that the last run ended with."""
        health = self._health
        return (FailureClass(health.failure), health.failures) if health.failure else None

    def seconds_to_wait(self) -> float:
        """How long a fresh start has to wait because of failures before it; 0 when it may begin at once."""
        health = self._health
        if health.next_attempt_at is None or health.failure == FailureClass.CREDENTIAL:
            return 0.0
        return max(0.0, (health.next_attempt_at - self.now()).total_seconds())

    async def remember_login(self, record: LoginRecord) -> None:
        """Write down how a login went; returns when it is committed."""
        refused = record.refusals > 0
        await self._write(
            evolve(
                self._health,
                refusals=record.refusals,
                proven=record.proven,
                doubts=record.doubts,
                credential_digest=record.credential_digest,
                next_attempt_at=record.wait_until if refused else None,
                failure=FailureClass.CREDENTIAL if refused else "",
            )
        )

    def tell(self, condition: Condition) -> None:
        """Hear of a change of the watching; only what a restart must know is written.

        Why it failed is logged once, until all is well again: ``/health`` is open to everybody, and cannot
        repeat the words of a server.
        """
        health = self._health
        waiting = condition.seconds is not None
        known = evolve(
            health,
            state=condition.state,
            since=health.since if health.state == condition.state else self.now(),
        )
        match condition.state:
            case AccountState.WATCHING | AccountState.POLLING | AccountState.SENDING:
                known = evolve(known, failure="", failures=0, next_attempt_at=None, last_error="")
                self._logged = ""
            case AccountState.BACKING_OFF | AccountState.REFUSED:
                self._log_failure(condition.error)
                until = self.now() + timedelta(seconds=condition.seconds or 0) if waiting else None
                known = evolve(
                    known,
                    failure=condition.failure or "",
                    failures=condition.failures,
                    next_attempt_at=until,
                    last_error=condition.error or health.last_error,
                )
        worth_keeping = evolve(known, state=health.state, since=health.since) != health
        self._health = known
        if worth_keeping:
            self.tasks.start(self._write(known), "remembering the account's health")

    def _log_failure(self, error: str) -> None:
        if error and error != self._logged:
            self._logged = error
            _log.warn("account {name}: {error}", name=self.name, error=error)

    async def _write(self, health: AccountHealth) -> None:
        self._health = health
        await to_the_end(self._save())

    async def _save(self) -> None:
        """Write the row as it stands when its turn has come."""
        locked: Deferred[DeferredLock] = self._writing.acquire()
        await locked
        try:
            await rows.save(self.database, self._health)
        finally:
            self._writing.release()
