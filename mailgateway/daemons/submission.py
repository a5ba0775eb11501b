"""The way to the submission server of one account: connections, and the pauses when it is closed.

After a failure nobody dials for a while that depends on the failure's class (``domain.reconnect``), however
many mails wait and over restarts too, so that a full outbox does not hammer a server that asks for patience.
When the network is at fault the pause stays so short that a waiting caller still gets its attempt; in every
other pause such callers are to be told at once.  This module knows no rows of the outbox.
"""

from collections.abc import Callable
from random import random
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from mailgateway.daemons.logins import Door, Logins
from mailgateway.daemons.watching import IMPATIENT, Condition, Held
from mailgateway.domain.account import AccountState
from mailgateway.domain.reconnect import FailureClass, delay_seconds, failure_class
from mailgateway.errors import PeerError
from mailgateway.protocols.servers import peer_of

if TYPE_CHECKING:
    from mailgateway.protocols.smtp import SmtpConnection

LONGEST_NETWORK_PAUSE = 15.0
"""A caller waits for a minute: after this pause there is time left for its attempt."""

OPERATOR_LOOK_SECONDS = 300.0
"""How often it is looked whether a credential that was refused for good has been changed."""

HELD_WORDS = (
    "the mail server refused this account's login, so it is not tried again; "
    "mend the password and run `mailgateway reload`"
)


@frozen
class Pause:
    """Nobody dials before ``until``, by the reactor's clock."""

    until: float
    failure: FailureClass
    words: str
    code: int | None

    @property
    def outlasts_callers(self) -> bool:
        """Whether who waits for the first attempt of a mail is to be told now that there will be none."""
        return self.failure not in IMPATIENT


@define(eq=False)
class SubmissionServer:
    """The submission server of one account, as far as reaching it goes."""

    reactor: Any
    logins: Logins
    hostname: str
    chance: Callable[[], float] = random
    _pause: Pause | None = field(default=None, init=False)
    _failure: FailureClass | None = field(default=None, init=False)
    _failures: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        """Take up what an earlier run has learned."""
        health = self.logins.smtp
        if health.remembered_failure is not None:
            self._failure, self._failures = health.remembered_failure
            self._close(self._failure, health.seconds_to_wait(), health.last_error, None)

    @property
    def pause(self) -> Pause | None:
        """The pause that goes on."""
        if self._pause is not None and self._pause.until > self.reactor.seconds():
            return self._pause
        return None

    async def is_open(self) -> bool:
        """Whether a mail may be taken up now; after a refused login it is looked first what has changed."""
        if self.pause is not None:
            return False
        if self._pause is not None and self._pause.failure is FailureClass.CREDENTIAL:
            try:
                await self.logins.credential(Door.SMTP)
            except Held as held:
                self._hold(held)
                return False
            except PeerError as error:
                self.failed(error)
                return False
        self._pause = None
        return True

    async def connect(self) -> "SmtpConnection":
        """A connection that is logged in; raises ``Held`` or another ``PeerError``, and closes the way."""
        from mailgateway.protocols.smtp import connect  # noqa: PLC0415 (1.5 MB that the first mail may pay for)

        try:
            credential = await self.logins.credential(Door.SMTP)
            peer = peer_of(self.logins.account.smtp)
            return await self.logins.log_in(
                Door.SMTP, credential, lambda: connect(self.reactor, peer, credential, self.hostname)
            )
        except Held as held:
            self._hold(held)
            raise

    def woke(self) -> None:
        """The machine slept: a network that failed before may be another one by now."""
        if self._pause is not None and self._pause.failure in IMPATIENT:
            self._pause = None

    def signed_in(self) -> None:
        """A person has signed in anew: no login has to wait any more."""
        if self._pause is not None and self._pause.failure is FailureClass.CREDENTIAL:
            self._pause = None

    def failed(self, error: PeerError) -> None:
        """Something stood in the way: nobody dials for a while."""
        failure = failure_class(error)
        self._failures = self._failures + 1 if failure is self._failure else 1
        self._failure = failure
        seconds = delay_seconds(failure, self._failures, self.chance(), error.retry_after)
        if failure is FailureClass.NETWORK:
            seconds = min(seconds, LONGEST_NETWORK_PAUSE)
        self._close(failure, seconds, error.text, reply_code(error))
        self.logins.smtp.tell(
            Condition(AccountState.BACKING_OFF, failure, self._failures, seconds, error.text)
        )

    def went_well(self) -> None:
        """The server has taken up a mail: earlier failures are forgotten."""
        self._pause, self._failure, self._failures = None, None, 0
        self.logins.smtp.tell(Condition(AccountState.SENDING))

    def _hold(self, held: Held) -> None:
        """The credential must not be tried."""
        seconds = None
        if held.until is not None:
            seconds = max(1.0, (held.until - self.logins.now()).total_seconds())
        words = HELD_WORDS if held.refusal is None else held.refusal.text
        code = None if held.refusal is None else reply_code(held.refusal)
        self._close(FailureClass.CREDENTIAL, seconds or OPERATOR_LOOK_SECONDS, words, code)
        self.logins.smtp.tell(
            Condition(AccountState.REFUSED, FailureClass.CREDENTIAL, seconds=seconds, error=words)
        )

    def _close(self, failure: FailureClass, seconds: float, words: str, code: int | None) -> None:
        self._pause = Pause(self.reactor.seconds() + seconds, failure, words, code)


def reply_code(failure: PeerError) -> int | None:
    """The SMTP code of a failure, where it had one."""
    head = failure.code.split(" ", 1)[0]
    return int(head) if head.isdigit() else None
