"""How an IMAP connection is opened: the greeting, TLS, capabilities, login, and who we are.

TLS is what the settings say and not what the server offers: a server that does not offer STARTTLS, that has
logged us in before it, or whose plain text waits behind it, is refused.  Capabilities are asked for again
after TLS and after the login.  There is one attempt to log in per connection; whether there is another one
is the caller's decision, since providers count them.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mailgateway.errors import CommandRefused, PeerError, ProtocolViolation, TlsRefused
from mailgateway.protocols.dial import TlsTrouble, client_tls
from mailgateway.protocols.imap_channel import ImapChannel
from mailgateway.settings import Tls
from mailgateway.wire import imap_command, imap_outcome
from mailgateway.wire.imap_command import Command
from mailgateway.wire.imap_event import Event, State
from mailgateway.wire.imap_response import Condition, Identification, Listed, MailboxStatus, Status
from mailgateway.wire.sasl import Credential, Mechanism, Password, choose

GREETING_SECONDS = 20.0
COMMAND_SECONDS = 30.0
LOGIN_SECONDS = 60.0


class ImapOpening(ImapChannel):
    """A connection up to the point where a mailbox can be selected."""

    async def open(self) -> None:
        """Read the greeting, begin TLS and ask for capabilities, on a transport that is connected.

        A failure, or a cancellation, ends the connection.
        """
        try:
            greeting = await self._greet(GREETING_SECONDS)
            if greeting.condition is Condition.BYE:
                raise imap_outcome.farewell(greeting)
            if self.peer.tls is Tls.STARTTLS:
                await self._start_tls(greeting)
            await self._know_capabilities()
        except PeerError as error:
            self._give_up(error)
            raise
        self._safe = True

    @property
    def authenticated(self) -> bool:
        """Whether a login has succeeded (or the server said PREAUTH)."""
        return self._dialogue.state in {State.AUTHENTICATED, State.SELECTED}

    def supports(self, capability: str) -> bool:
        """Whether the server told this capability (``IDLE``, ``ID``, ``ESEARCH``), in any case."""
        return self._dialogue.supports(capability)

    async def login(self, credential: Credential) -> None:
        """Log in, with one attempt; capabilities are known anew afterwards.

        Errors: ``LoginRefused`` (``code`` is the token mechanism's error status, or the response code, or
        empty for a bare NO), ``LoginUnavailable``, ``Throttled``, ``CommandRefused`` (the mechanism was
        refused, or none fits: ``NOMECHANISM``), ``TlsRefused`` when the connection is not safe enough.
        """
        if self.authenticated:
            return
        if self.peer.tls is Tls.NONE and not self.peer.loopback:
            raise TlsRefused(f"no login at {self.peer} without TLS")
        secret = credential.password if isinstance(credential, Password) else credential.token
        self._secret = secret.encode()
        try:
            await self._log_in(credential)
        finally:
            self._secret = b""
        await self._know_capabilities()

    async def identify(self, fields: Mapping[str, str]) -> dict[str, str]:
        """Tell who we are (``name``, ``version``, ``vendor``, ``support-email``); what the server answers.

        Some servers refuse SELECT to clients that did not, so call it after ``login`` and before ``select``.
        Does nothing if ID is not offered; a refusal is no failure.  At most 30 fields (RFC 2971).
        """
        if not self.supports("ID"):
            return {}
        answers: list[Identification] = []
        status = await self._run(imap_command.identify(fields), COMMAND_SECONDS, take=into(answers, 30))
        if status.condition is not Condition.OK:
            return {}
        pairs = [pair for answer in answers for pair in answer.fields[:30]]
        return {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in pairs}

    async def _start_tls(self, greeting: Status) -> None:
        """STARTTLS, required: neither the server nor someone in between can talk us out of it."""
        if greeting.condition is Condition.PREAUTH:
            raise TlsRefused(f"{self.peer} has logged us in before TLS: someone may be in between")
        await self._know_capabilities()
        if not self.supports("STARTTLS"):
            raise TlsRefused(f"{self.peer} does not offer STARTTLS", code=TlsTrouble.NOT_OFFERED)
        status = await self._run(imap_command.STARTTLS, COMMAND_SECONDS)
        if status.condition is not Condition.OK:
            raise TlsRefused(f"{self.peer} refused STARTTLS: {imap_outcome.words(status)}")
        self._wire.startTLS(client_tls(self.peer))
        self._dialogue.encrypted()

    async def _know_capabilities(self) -> None:
        """Ask for the capabilities unless the server has told them."""
        if self._dialogue.capabilities is None:
            await self._must(imap_command.CAPABILITY)
        if self._dialogue.capabilities is None:
            raise ProtocolViolation(f"{self.peer} does not tell its capabilities")

    async def _log_in(self, credential: Credential) -> None:
        """One attempt, by our order of preference."""
        attempt = self._attempt(credential)
        status = self._scrubbed(await self._run(attempt, LOGIN_SECONDS))
        if status.condition is not Condition.OK:
            failure = "" if isinstance(attempt, Command) else attempt.failure
            raise imap_outcome.login_failure(status, failure)

    def _attempt(self, credential: Credential) -> Command | Mechanism:
        """AUTHENTICATE with the best mechanism, or LOGIN.

        LOGIN is better than the mechanism of that name, which is obsolete, and better than anything for a
        user name with a backslash or slash (shared mailboxes of Exchange).
        """
        offered = self._dialogue.mechanisms()
        mechanism = choose(offered, credential)
        if isinstance(credential, Password) and not self.supports("LOGINDISABLED"):
            delegated = "\\" in credential.username or "/" in credential.username
            if mechanism is None or mechanism.name == "LOGIN" or delegated:
                return imap_command.login(credential.username, credential.password)
        if mechanism is None:
            names = ", ".join(sorted(offered)) or "none"
            raise CommandRefused(f"{self.peer} has no login that fits; offered: {names}", code="NOMECHANISM")
        return mechanism

    async def _must(
        self, command: Command, *, take: Callable[[Event], None] | None = None, gaps: bool = False
    ) -> None:
        """Run a command that has to succeed; with ``gaps``, messages that are gone are no failure."""
        status = await self._run(command, COMMAND_SECONDS, take=take)
        if status.condition is not Condition.OK and not (gaps and imap_outcome.is_gap(status)):
            raise imap_outcome.command_failure(command.verb, status)


def into(answers: "list[Any]", limit: int) -> Callable[[Event], None]:
    """Takes the data of an answer into a list; ``ProtocolViolation`` beyond ``limit``."""

    def take(event: Event) -> None:
        if isinstance(event, Identification | Listed | MailboxStatus):
            if len(answers) >= limit:
                raise ProtocolViolation("the answer of the server has no end")
            answers.append(event)

    return take
