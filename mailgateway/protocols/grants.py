"""Access tokens of what people have granted: the one that is good, or another one from the provider.

Policy: of all who need a token at the same time one asks, in this process and among processes, since a
refresh token that is used twice makes some providers revoke everything.  What is asked for is on disk before
it is used, and an answer that is on its way is waited for even when nobody needs it any more.  A provider
that cannot answer is left alone for a while, longer each time, and nothing is forgotten meanwhile; a token
that is still good goes on being used.  Only what the provider says of the grant itself ends it, and then a
person has to sign in again.

Mail servers, and how often a token may be refused there, are not known here.
"""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, assert_never

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.python.failure import Failure

from mailgateway.errors import ConfigError, PeerError, Problem, TokenUnavailable
from mailgateway.protocols.grant_file import Grant, GrantFile, binding_of
from mailgateway.secrets import read_client_secret
from mailgateway.settings import OAuth
from mailgateway.wire.oauth import Registration, Request, refresh_request
from mailgateway.wire.oauth_answer import Answer, Granted, Lost, Misconfigured, Unavailable, token_answer

JUST_ISSUED: Final = timedelta(minutes=5)
"""A token that young which a mail server refuses is not mended by another one."""

LEAST_LEFT: Final = timedelta(seconds=30)
"""What a token must still be good for when the provider cannot give another one."""

FIRST_REST, LONGEST_REST = 30.0, 900.0
WRONG_REST: Final = 300.0
"""How long a provider is left alone that says that the registration is wrong."""


class Posts(Protocol):
    """What posts a form: ``protocols.oauth.Forms``."""

    async def post(self, request: Request) -> Answer:
        """What is answered; a ``PeerError`` without an answer."""


@frozen
class AccessToken:
    """A token that is good as far as anybody can tell."""

    text: str = field(repr=False)
    grant: str
    """The identity of the grant that it comes from."""
    issued_at: datetime
    expires_at: datetime


@frozen
class SignInNeeded:
    """Only a person can help: ``why`` is a sentence that says with which command."""

    why: str
    grant: str = ""


TokenOutcome: TypeAlias = AccessToken | SignInNeeded


class Verdict(StrEnum):
    """What the refusal of a token by a mail server means."""

    OLD = "old"
    """It was replaced, or refused before: the refusal says nothing new."""
    RENEW = "renew"
    """Another one is asked for before the next login."""
    YOUNG = "young"
    """It has just been issued: another one would be refused as well."""


@define
class _Rest:
    """How long a provider is left alone."""

    until: float = 0.0
    seconds: float = 0.0
    why: str = ""


def registration_of(name: str, written: OAuth) -> Registration:
    """The registration with its secret; ``ConfigError`` when the secret cannot be read."""
    file = written.client_secret_file
    return Registration(
        client_id=written.client_id,
        token_url=written.token_url,
        device_url=written.device_url,
        authorize_url=written.authorize_url,
        scopes=written.scopes,
        parameters=written.authorize_parameters,
        client_secret=read_client_secret(file, f"oauth.{name}.client_secret_file") if file else "",
    )


def utc_now() -> datetime:
    """The time by the system's clock."""
    return datetime.now(UTC)


def _forms(reactor: Any) -> Posts:
    from mailgateway.protocols.oauth import Forms  # noqa: PLC0415 - 2 MB that only those who use it pay

    return Forms(reactor)


@define(eq=False)
class Grants:
    """The grants of all registrations, in one process."""

    reactor: Any
    state_dir: Path
    registrations: Mapping[str, OAuth]
    now: Callable[[], datetime] = utc_now
    posts: Callable[[Any], Posts] = _forms
    chance: Callable[[int], bytes] = os.urandom
    _waiting: dict[str, list[Deferred[TokenOutcome]]] = field(factory=dict, init=False)
    """Who waits for the renewal that goes on, by name."""
    _refused: dict[str, str] = field(factory=dict, init=False, repr=False)
    """The access token that a mail server has refused, by name."""
    _unwritten: dict[str, tuple[Grant, Grant | None]] = field(factory=dict, init=False, repr=False)
    """What came and could not be written, and what it is to replace, by name: it must not get lost."""
    _read: dict[str, Grant | None] = field(factory=dict, init=False, repr=False)
    """What was on disk when it was last looked at, by name."""
    _rests: dict[str, _Rest] = field(factory=dict, init=False)

    async def token(self, name: str) -> TokenOutcome:
        """A token for a login that is made now.

        ``TokenUnavailable`` when there is none now and trying later helps, or the settings are wrong.
        """
        try:
            found = self.standing(name)
            if isinstance(found, SignInNeeded):
                return found
            if not self._due(name, found):
                return _token(found)
            return await self._renewed(name)
        except ConfigError as error:
            raise TokenUnavailable(str(error)) from None

    def refused(self, name: str, text: str) -> Verdict:
        """Hear that a mail server has refused a token; whether another one is worth asking for."""
        try:
            grant = self.standing(name)
        except ConfigError:
            return Verdict.OLD
        if isinstance(grant, SignInNeeded) or grant.access_token != text or self._refused.get(name) == text:
            return Verdict.OLD
        if self.now() - grant.issued_at < JUST_ISSUED or not grant.refresh_token:
            return Verdict.YOUNG
        self._refused[name] = text
        return Verdict.RENEW

    def signed_in(self, name: str) -> str:
        """The identity of the grant that can be used, ``""`` where there is none."""
        try:
            found = self.standing(name)
        except ConfigError:
            return ""
        return "" if isinstance(found, SignInNeeded) else found.identity

    async def adopt(self, name: str, granted: Granted) -> Grant:
        """Write down what a person has just granted, in place of what was there before.

        ``ConfigError`` when it cannot be written, ``TokenUnavailable`` when another process does not let it.
        """
        registration = self._registration(name)
        file, now = GrantFile.of(self.state_dir, name), self.now()
        grant = Grant(
            self.chance(8).hex(),
            binding_of(registration),
            granted.access_token,
            granted.refresh_token,
            now,
            now,
            now + timedelta(seconds=granted.lifetime),
            granted.scopes,
        )
        lock = await file.lock(self.reactor)
        try:
            file.write(grant)
        finally:
            lock.release()
        self._unwritten.pop(name, None)
        self._rests.pop(name, None)
        return grant

    async def forget(self, name: str) -> bool:
        """Remove what is on disk of a grant; whether there was anything."""
        file = GrantFile.of(self.state_dir, name)
        if not file.folder.is_dir():
            return False
        lock = await file.lock(self.reactor)
        try:
            return file.forget()
        finally:
            lock.release()

    async def settled(self) -> None:
        """Wait for answers that are on their way: they may hold the only refresh token that is good."""
        while self._waiting:
            ends: list[Deferred[TokenOutcome]] = []
            for waiting in self._waiting.values():
                ends.append(Deferred())
                waiting.append(ends[-1])
            await DeferredList(ends, consumeErrors=True)

    # --- what is there --------------------------------------------------------------------------------

    def _registration(self, name: str) -> OAuth:
        if name not in self.registrations:
            raise ConfigError([Problem(f"oauth.{name}", "is not in the settings")])
        return self.registrations[name]

    def standing(self, name: str) -> Grant | SignInNeeded:
        """The grant as it is, or why a person has to sign in; nobody is asked."""
        registration = self._registration(name)
        self._read[name] = GrantFile.of(self.state_dir, name).read()
        grant = self._newest(name, self._read[name])
        command = f"run `mailgateway auth {name}`"
        if grant is None:
            return SignInNeeded(f"nobody has signed in yet; {command}")
        if grant.binding != binding_of(registration):
            return SignInNeeded(
                f"[oauth.{name}] has changed since somebody signed in; {command}", grant.identity
            )
        if grant.lost:
            return SignInNeeded(
                f"the provider takes no more of this sign-in ({grant.lost}); {command}", grant.identity
            )
        if not grant.refresh_token and not grant.alive(self.now()):
            return SignInNeeded(
                f"the provider gave no refresh token, and the access token has run out; {command}",
                grant.identity,
            )
        return grant

    def _newest(self, name: str, written: Grant | None) -> Grant | None:
        """What could not be written counts, unless somebody has written another since.

        No clock tells which is newer: it may have been set in between.
        """
        if name not in self._unwritten:
            return written
        kept, replaced = self._unwritten[name]
        if written is not None and written == replaced:
            return kept
        del self._unwritten[name]
        return written

    def _due(self, name: str, grant: Grant) -> bool:
        if name in self._unwritten:
            return True
        if not grant.refresh_token:
            return False
        return grant.due(self.now()) or self._refused.get(name) == grant.access_token

    # --- renewing -------------------------------------------------------------------------------------

    async def _renewed(self, name: str) -> TokenOutcome:
        """Wait for the renewal that goes on, or begin one; who stops waiting does not stop it."""
        waiting = self._waiting.get(name)
        mine: Deferred[TokenOutcome] = Deferred()
        if waiting is not None:
            waiting.append(mine)
            return await mine
        self._waiting[name] = [mine]

        def ended(result: Any) -> None:
            for each in self._waiting.pop(name):
                if not each.called:  # the others have stopped waiting
                    each.errback(result) if isinstance(result, Failure) else each.callback(result)

        Deferred.fromCoroutine(self._alone(name)).addBoth(ended)
        return await mine

    async def _alone(self, name: str) -> TokenOutcome:
        """Renew, as the only one of this machine."""
        lock = await GrantFile.of(self.state_dir, name).lock(self.reactor)
        try:
            found = self.standing(name)  # another process may have been first
            if isinstance(found, SignInNeeded):
                return found
            if name in self._unwritten:
                self._keep(name, found)
            if not self._due(name, found):
                return _token(found)
            return await self._ask(name, found)
        finally:
            lock.release()

    async def _ask(self, name: str, grant: Grant) -> TokenOutcome:
        rest = self._rests.setdefault(name, _Rest())
        left = rest.until - self.reactor.seconds()
        if left > 0:
            return self._stopgap(name, grant, rest.why, left)
        registration = registration_of(name, self._registration(name))
        outcome: Granted | Lost | Misconfigured | Unavailable
        try:
            request = refresh_request(registration, grant.refresh_token)
            outcome = token_answer(await self.posts(self.reactor).post(request))
        except PeerError as error:
            outcome = Unavailable(str(error))
        match outcome:
            case Granted() as granted:
                self._rests.pop(name, None)
                return self._take(name, grant, granted)
            case Lost(code):
                self._keep(name, evolve(grant, lost=code))
                found = self.standing(name)
                return found if isinstance(found, SignInNeeded) else _token(found)
            case Misconfigured(code, why):
                words = f"the provider refuses [oauth.{name}] ({code}): {why}"
                return self._stopgap(name, grant, *self._leave_alone(name, words, WRONG_REST))
            case Unavailable(why, retry_after):
                seconds = max(min(rest.seconds * 2, LONGEST_REST) or FIRST_REST, retry_after or 0.0)
                words = f"no access token from the provider: {why}"
                return self._stopgap(name, grant, *self._leave_alone(name, words, seconds))
            case _:
                assert_never(outcome)

    def _take(self, name: str, grant: Grant, granted: Granted) -> AccessToken:
        """Write down what came, and only then let it be used."""
        now = self.now()
        renewed = evolve(
            grant,
            access_token=granted.access_token,
            refresh_token=granted.refresh_token or grant.refresh_token,
            issued_at=now,
            expires_at=now + timedelta(seconds=granted.lifetime),
            scopes=granted.scopes or grant.scopes,
        )
        self._keep(name, renewed)
        return _token(renewed)

    def _keep(self, name: str, grant: Grant) -> None:
        """Write it, and hold it in memory until that has worked."""
        self._unwritten[name] = grant, self._read.get(name)
        GrantFile.of(self.state_dir, name).write(grant)
        del self._unwritten[name]

    def _leave_alone(self, name: str, why: str, seconds: float) -> tuple[str, float]:
        self._rests[name] = _Rest(self.reactor.seconds() + seconds, seconds, why)
        return why, seconds

    def _stopgap(self, name: str, grant: Grant, why: str, seconds: float) -> AccessToken:
        """The token of before, as long as it is good; else what stands in the way."""
        if grant.alive(self.now(), LEAST_LEFT) and self._refused.get(name) != grant.access_token:
            return _token(grant)
        raise TokenUnavailable(why, retry_after=seconds)


def _token(grant: Grant) -> AccessToken:
    return AccessToken(grant.access_token, grant.identity, grant.issued_at, grant.expires_at)
