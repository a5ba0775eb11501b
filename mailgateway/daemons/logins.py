"""Credentials of one account: where they come from, and whether they may be tried.

IMAP and SMTP share one count of refusals (``domain.reconnect.may_log_in``), since they mostly share one
password.  A refusal is committed before anybody could try again.  A token command runs for every connection,
so a token is fresh when it is used; when the server refuses it, the next connection gets another.  The token
of a grant is renewed before it ends, and once more when it is refused before its time; where only a person
can help, neither provider nor mail server is asked until somebody has signed in.
Secrets stand in ``Credential`` values only, and digests are keyed, so that a row tells nothing of a password.
"""

import hashlib
import hmac
import os
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar, assert_never

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from mailgateway.daemons.health import DoorHealth, utc_now
from mailgateway.daemons.openings import Openings
from mailgateway.daemons.watching import Held
from mailgateway.domain.reconnect import LoginRecord, MayTry, TryLater, WaitForOperator, may_log_in
from mailgateway.errors import LoginRefused, LoginUnavailable, TokenUnavailable
from mailgateway.protocols.grants import AccessToken, Grants, SignInNeeded, Verdict
from mailgateway.protocols.servers import bearer_of, credential_of
from mailgateway.providers import Provider, of_imap, of_smtp
from mailgateway.secrets import OAuthGrant, TokenCommand
from mailgateway.settings import Account, ServerSettings
from mailgateway.wire.sasl import BearerToken, Credential, Password

T = TypeVar("T")

ANOTHER_TOKEN = timedelta(seconds=2)
"""How soon after the refusal of a token the next one is asked for: it may just have run out."""

_log = Logger()


class Door(StrEnum):
    """Which server of an account."""

    IMAP = "imap"
    SMTP = "smtp"


def ignored(account: str, credential: Credential) -> None:
    """Nobody wants to hear of a credential."""


@define(eq=False)
class Logins:
    """The logins of one account at both of its servers."""

    reactor: Any
    account: Account
    key: str = field(repr=False)
    """What digests are keyed with: the text of ``secret.key``."""
    imap: DoorHealth
    smtp: DoorHealth
    environ: Mapping[str, str] = field(factory=lambda: os.environ, repr=False)
    now: Callable[[], datetime] = utc_now
    openings: Openings = field(factory=Openings)
    """Shared by all accounts, where there are many."""
    grants: Grants | None = None
    """Shared by all accounts; where there is none, nobody has signed in."""
    noted: Callable[[str, Credential], None] = ignored
    """Hears of every credential (``daemons.known_secrets``)."""
    _unproven: DeferredLock = field(factory=DeferredLock, init=False)
    _resting: dict[Door, tuple[str, datetime]] = field(factory=dict, init=False, repr=False)
    """Which credential is in doubt at a door, and until when it is left alone."""
    _sign_in: SignInNeeded | None = field(default=None, init=False)
    """Why a person has to sign in, where that is so."""
    _denied: str = field(default="", init=False)
    """What a person may do where tokens were refused for good."""
    _waiting: set[str] = field(factory=set, init=False)
    """The grants on which logins wait until there is another one; ``""`` stands for none at all."""

    async def credential(self, door: Door) -> Credential:
        """The credential for a login that is made now.

        Raises ``Held`` when it must not be tried, ``LoginUnavailable`` while it is in doubt, and
        ``TokenUnavailable`` when it cannot be had now.
        """
        credential = await self._obtain(door)
        self.noted(self.account.tag, credential)
        self._permit(door, credential)
        return credential

    async def log_in(
        self, door: Door, credential: Credential, attempt: Callable[[], Coroutine[Deferred[Any], Any, T]]
    ) -> T:
        """Make one login with ``attempt`` and write down how it went, before anybody can try again.

        Until a credential has logged in at a door, logins of the account are made one at a time, so that
        several folders and connections cannot spend a wrong password together more often than one alone.
        Raises ``Held`` when the server refuses it, or when it must not be tried any more, and
        ``LoginUnavailable`` when it is not clear that the credential is wrong.
        """
        if self._health(door).login.about(self._digest(door, credential)).proven:
            return await self._attempt(door, credential, attempt)
        locked: Deferred[DeferredLock] = self._unproven.acquire()
        await locked
        try:
            return await self._attempt(door, credential, attempt)
        finally:
            self._unproven.release()

    async def _attempt(
        self, door: Door, credential: Credential, attempt: Callable[[], Coroutine[Deferred[Any], Any, T]]
    ) -> T:
        self._permit(door, credential)
        try:
            result = await attempt()
        except LoginRefused as error:
            raise await self._refused(door, credential, error) from None
        await self._succeeded(door, credential)
        return result

    def _permit(self, door: Door, credential: Credential) -> None:
        """Raise ``Held`` or ``LoginUnavailable`` when the credential must not be tried now."""
        digest = self._digest(door, credential)
        if (rest := self._rest(door, digest)) > 0:
            raise LoginUnavailable("a login was refused without a reason just now", retry_after=rest)
        here, there = self._records(door, digest)
        match may_log_in(here, there, self.now()):
            case MayTry():
                return
            case TryLater(at):
                raise Held(at)
            case WaitForOperator():
                self._waits_for_operator(door, credential)
                raise Held(None)

    async def _succeeded(self, door: Door, credential: Credential) -> None:
        """The server let us in."""
        health, digest = self._health(door), self._digest(door, credential)
        self._resting.pop(door, None)
        self._denied = ""
        known = health.login.about(digest)
        if known.succeeded() != health.login:
            await health.remember_login(known.succeeded())

    async def _refused(
        self, door: Door, credential: Credential, error: LoginRefused
    ) -> Held | LoginUnavailable:
        """The server refused; returns what the caller raises once this is committed."""
        health, digest = self._health(door), self._digest(door, credential)
        verdict = self._verdict(door, credential)
        if verdict is Verdict.OLD:
            return Held(self.now() + ANOTHER_TOKEN, error)
        if not error.code and (rest := self._rest(door, digest)) > 0:
            # one of several that were on their way together: the server has trouble once, not so many times
            return LoginUnavailable(error.text, retry_after=rest)
        doubted = health.login.about(digest).doubted() if not error.code else None
        if doubted is not None and verdict is Verdict.RENEW:
            return Held(self.now() + ANOTHER_TOKEN, error)  # another token is the first thing to try
        if doubted is not None:
            record, wait = doubted
            self._resting[door] = digest, self.now() + timedelta(seconds=wait)
            await health.remember_login(record)
            return LoginUnavailable(error.text, retry_after=wait)
        provider = self._provider(door)
        record = health.login.about(digest).refused(self.now(), provider.refused_seconds)
        command = isinstance(self._server(door).secret, TokenCommand)
        if (command or verdict is Verdict.RENEW) and record.refusals == 1:
            record = evolve(record, wait_until=self.now() + ANOTHER_TOKEN)
        await health.remember_login(record)
        _log.warn(
            "{door} of account {account}: the login was refused ({text}). "
            "It is tried twice at most; run `mailgateway status` for what to do.{hint}",
            door=door.upper(),
            account=self.account.tag,
            text=error.text,
            hint=f" At {provider.name}: {provider.refusals}." if provider.refusals else "",
        )
        here, there = self._records(door, digest)
        match may_log_in(here, there, self.now()):
            case TryLater(at):
                return Held(at, error)
            case _:
                self._waits_for_operator(door, credential)
                return Held(None, error)

    def _rest(self, door: Door, digest: str) -> float:
        """For how many seconds the credential is left alone, since it is in doubt."""
        known, until = self._resting.get(door, ("", self.now()))
        seconds = (until - self.now()).total_seconds() if known == digest else 0.0
        return seconds if seconds >= 1 else 0.0  # clocks differ a little: who has waited is not sent away

    def _health(self, door: Door) -> DoorHealth:
        return self.imap if door is Door.IMAP else self.smtp

    def _server(self, door: Door) -> ServerSettings:
        return self.account.imap if door is Door.IMAP else self.account.smtp

    def _provider(self, door: Door) -> Provider:
        host = self._server(door).host
        return of_imap(host) if door is Door.IMAP else of_smtp(host)

    def _records(self, door: Door, digest: str) -> tuple[LoginRecord, LoginRecord]:
        """This door's record of this credential, and the other door's record of its own."""
        here, there = (self.imap, self.smtp) if door is Door.IMAP else (self.smtp, self.imap)
        other = there.login
        return here.login.about(digest), other.about(digest) if self._shared else other

    @property
    def _shared(self) -> bool:
        """Whether both servers take the same secret."""
        return self.account.imap.secret == self.account.smtp.secret

    def _digest(self, door: Door, credential: Credential) -> str:
        """Which credential this is; of a token command its line, since every token is another.

        A secret of both servers is one credential, also where each knows the account by another name: it is
        the account that a provider locks.
        """
        server = self._server(door)
        names = {self.account.imap.username, self.account.smtp.username} if self._shared else set()
        name = "\0".join(sorted({*names, credential.username}))
        match credential:
            case Password(_, password):
                secret = f"password\0{name}\0{password}"
            case BearerToken():
                secret = f"token\0{name}\0{server.secret}\0{credential.grant}".rstrip("\0")
        return hmac.new(self.key.encode(), secret.encode(), hashlib.sha256).hexdigest()[:32]

    async def _obtain(self, door: Door) -> Credential:
        server = self._server(door)
        match server.secret:
            case OAuthGrant(name):
                return bearer_of(server, await self._granted(name))
            case _:
                path = f"accounts.{self.account.tag}.{door}"
                return await credential_of(self.reactor, server, path, self.environ)

    # --- grants ---------------------------------------------------------------------------------------

    async def _granted(self, name: str) -> AccessToken:
        """A token of a grant; ``Held`` where only a person can help, which the log says once."""
        if self.grants is None:
            raise TokenUnavailable(f"[oauth.{name}] is not in use")
        found = await self.grants.token(name)
        match found:
            case AccessToken():
                self._sign_in = None
                return found
            case SignInNeeded(why, grant):
                self._waiting.add(grant)
                if found != self._sign_in:
                    self._sign_in = found
                    _log.warn("account {account}: {why}", account=self.account.tag, why=why)
                raise Held(None, LoginRefused(why))
            case _:
                assert_never(found)

    def _verdict(self, door: Door, credential: Credential) -> Verdict | None:
        """What a refusal says of the token of a grant; ``None`` for another credential."""
        match credential, self._server(door).secret:
            case BearerToken(token=token), OAuthGrant(name) if self.grants is not None:
                return self.grants.refused(name, token)
            case _:
                return None

    def _waits_for_operator(self, door: Door, credential: Credential) -> None:
        """A credential is not tried any more; that of a grant until somebody signs in."""
        match credential, self._server(door).secret:
            case BearerToken(grant=grant), OAuthGrant(name):
                self._waiting.add(grant)
                self._denied = (
                    f"the {door.upper()} server refuses tokens that the provider gave: look whether the "
                    f"mailbox may be used by {door.upper()}, and whether its user name is that of the "
                    f"sign-in; then run `mailgateway auth {name}`"
                )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What only a person can mend, for ``status``."""
        told = (self._sign_in.why if self._sign_in is not None else "", self._denied)
        return tuple(each for each in told if each)

    def somebody_signed_in(self) -> bool:
        """Whether a login that waits for a person is worth a try: looks at files only, and tells once."""
        if not self._waiting or self.grants is None:
            return False
        secrets = {self.account.imap.secret, self.account.smtp.secret}
        names = [secret.name for secret in secrets if isinstance(secret, OAuthGrant)]
        fresh = any(self.grants.signed_in(name) not in {*self._waiting, ""} for name in names)
        if fresh:
            self._sign_in, self._waiting, self._denied = None, set(), ""
        return fresh
