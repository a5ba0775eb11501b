"""Signing in by OAuth: a person types a code, or a browser brings one back, or its address is pasted.

Policy: what a person must do is told through ``invite`` and nothing else goes on meanwhile; every flow ends
with a ``SignedIn`` that is on disk, or with a sentence that says what to do.  The listener is on the loopback
interface, takes one answer with the right ``state``, and its page carries nothing.  No token is ever told.
How it is shown, and how a person's words are read, is not known here.
"""

import os
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeAlias, assert_never

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater

from mailgateway.errors import ConfigError, MailgatewayError, PeerError, Problem
from mailgateway.operator.loopback import Listener, listen
from mailgateway.protocols.grant_file import Grant, GrantFile
from mailgateway.protocols.grants import Grants, Posts, SignInNeeded, registration_of
from mailgateway.protocols.oauth import Forms
from mailgateway.secrets import prepare_state_dir
from mailgateway.settings import OAuth, Settings
from mailgateway.wire.oauth import (
    VERIFIER_BYTES,
    Registration,
    authorize_url,
    code_request,
    device_request,
    poll_request,
    printable_of,
)
from mailgateway.wire.oauth_answer import (
    AuthorizationCode,
    Denied,
    DeviceCode,
    Expired,
    Foreign,
    Granted,
    Lost,
    Misconfigured,
    Pending,
    RedirectAnswer,
    SlowDown,
    Unavailable,
    device_answer,
    poll_answer,
    redirect_answer,
    token_answer,
)

SLOW_DOWN_SECONDS: Final = 5
"""What each ``slow_down`` adds to the interval (RFC 8628 section 3.5)."""
MOST_CODES: Final = 3
"""How many device codes are offered, one after another."""
MOST_PASTES: Final = 5
LONGEST_PAUSE: Final = 60.0
BROWSER_SECONDS: Final = 900.0
UNCLAIMED: Final = frozenset({"offline_access", "openid", "profile", "email"})
"""Scopes that a provider grants without naming them in the answer."""


class Flow(StrEnum):
    """How a person signs in."""

    DEVICE = "device"
    """A code is typed into a page, on any machine."""
    BROWSER = "browser"
    """A browser on this machine comes back by itself; its address may be pasted, too."""
    PASTE = "paste"
    """A browser on another machine; the address that it ends at is pasted."""


@frozen
class TypeCode:
    """The person is to open ``url`` and type ``code``, now; ``complete_url`` has the code in it already."""

    url: str
    code: str
    complete_url: str
    seconds: int
    again: bool
    """Whether the code before has run out."""


@frozen
class OpenPage:
    """The person is to open ``url``; ``paste`` where the address that the browser ends at is to be pasted.

    ``remark`` says what was wrong with the last paste.
    """

    url: str = field(repr=False)
    paste: bool
    redirect_uri: str
    remark: str = ""


Invitation: TypeAlias = TypeCode | OpenPage
Invite: TypeAlias = Callable[[Invitation], None]
"""Tells the person what to do; returns at once."""

Paste: TypeAlias = Callable[[], Awaitable[str]]
"""Reads one line of the person's; raises ``EOFError`` when there will be none."""


class SignInFailed(MailgatewayError):
    """It came to nothing; the text says why, and what to do."""


@frozen
class SignedIn:
    """Tokens are on disk.  ``remarks`` are sentences about what may trouble later."""

    name: str
    seconds: int
    """How long the first access token lives."""
    lasting: bool
    """Whether there is a refresh token."""
    remarks: tuple[str, ...] = ()


def flow_of(written: OAuth) -> Flow:
    """The flow that the addresses of a registration allow, the one that works everywhere first."""
    return Flow.DEVICE if written.device_url else Flow.BROWSER


async def authorize(
    reactor: Any,
    state_dir: Path,
    name: str,
    written: OAuth,
    *,
    invite: Invite,
    flow: Flow | None = None,
    paste: Paste | None = None,
    port: int = 0,
    posts: Posts | None = None,
    chance: Callable[[int], bytes] = os.urandom,
) -> SignedIn:
    """Let a person sign in, and write down what they grant; bounded by the life of codes and by 15 minutes.

    ``port`` is that of the redirect address, 0 for any.  ``SignInFailed``, ``ConfigError`` and ``PeerError``
    say what stood in the way; nothing that was granted before is touched by a failure.
    """
    attempt = _Attempt(
        reactor,
        name,
        written,
        registration_of(name, written),
        invite,
        paste,
        port,
        posts or Forms(reactor),
        chance,
    )
    chosen = flow or flow_of(written)
    prepare_state_dir(state_dir)
    GrantFile.of(state_dir, name).ready()  # nobody signs in for what could not be written down
    match chosen:
        case Flow.DEVICE:
            granted = await attempt.device()
        case Flow.BROWSER | Flow.PASTE:
            granted = await attempt.page(listening=chosen is Flow.BROWSER)
        case _:
            assert_never(chosen)
    await Grants(reactor, state_dir, {name: written}, chance=chance).adopt(name, granted)
    return SignedIn(name, granted.lifetime, bool(granted.refresh_token), _remarks(written, granted))


def standing(settings: Settings, name: str) -> tuple[Grant | None, str]:
    """What is on disk of a sign-in, and why it cannot be used, ``""`` where it can; nobody is asked."""
    state_dir = settings.daemon.state_dir
    try:
        found = Grants(None, state_dir, settings.oauth).standing(name)
    except ConfigError as error:  # of one file, which is no reason to hide the others
        return None, str(error)
    why = found.why if isinstance(found, SignInNeeded) else ""
    return GrantFile.of(state_dir, name).read(), why


async def forget(reactor: Any, settings: Settings, name: str) -> bool:
    """Remove the tokens of a sign-in from this machine; whether there were any."""
    return await Grants(reactor, settings.daemon.state_dir, settings.oauth).forget(name)


@define(eq=False)
class _Attempt:
    """One signing in."""

    reactor: Any
    name: str
    written: OAuth
    registration: Registration
    invite: Invite
    paste: Paste | None
    port: int
    posts: Posts
    chance: Callable[[int], bytes]

    async def device(self) -> Granted:
        """Ask for a code, tell it, and ask until it was typed; with another one when it has run out."""
        if not self.registration.device_url:
            raise self._missing("device_url", "device codes are asked for there")
        for number in range(MOST_CODES):
            code = await self._device_code()
            self.invite(TypeCode(code.url, code.user_code, code.complete_url, code.lifetime, number > 0))
            granted = await self._typed(code)
            if granted is not None:
                return granted
        raise SignInFailed(
            f"Nobody typed the code in time, {MOST_CODES} times; run `mailgateway auth {self.name}` again"
        )

    async def _device_code(self) -> DeviceCode:
        outcome = device_answer(await self.posts.post(device_request(self.registration)))
        match outcome:
            case DeviceCode():
                return outcome
            case Misconfigured(code, why):
                raise self._wrong(code, why)
            case Unavailable(why):
                raise SignInFailed(f"The provider gives no code now: {why}; try again later")
            case _:
                assert_never(outcome)

    async def _typed(self, code: DeviceCode) -> Granted | None:
        """Ask at the provider's pace until the person is done; ``None`` when the code has run out."""
        interval = float(code.interval)
        until = self.reactor.seconds() + code.lifetime
        while self.reactor.seconds() + interval < until:
            await deferLater(self.reactor, interval)
            try:
                outcome = poll_answer(
                    await self.posts.post(poll_request(self.registration, code.device_code))
                )
            except PeerError as error:  # RFC 8628 section 3.5: a time-out slows down, and ends nothing
                outcome = Unavailable(str(error))
            match outcome:
                case Granted():
                    return outcome
                case Pending():
                    pass
                case SlowDown():
                    interval += SLOW_DOWN_SECONDS
                case Unavailable(_, retry_after):
                    interval = min(max(interval * 2, retry_after or 0), max(LONGEST_PAUSE, interval))
                case Expired():
                    return None
                case Denied(why) | Lost(why):
                    raise self._denied(why)
                case Misconfigured(why, what):
                    raise self._wrong(why, what)
                case _:
                    assert_never(outcome)
        return None

    async def page(self, *, listening: bool) -> Granted:
        """Send a browser to the provider's page, and exchange the code that it brings back."""
        if not self.registration.authorize_url:
            raise self._missing("authorize_url", "a browser signs in there")
        if not listening and self.paste is None:
            raise SignInFailed("Nothing can be pasted here; run it on a terminal")
        state, verifier = printable_of(self.chance(VERIFIER_BYTES)), printable_of(self.chance(VERIFIER_BYTES))
        listener = listen(self.reactor, self.written.redirect_host, self.port)
        try:
            uri = listener.uri
            if not listening:
                listener.close()  # its port was only to be one that is free
            url = authorize_url(self.registration, uri, state, verifier)
            self.invite(OpenPage(url, not listening or self.paste is not None, uri))
            code = await self._code(listener if listening else None, url, uri, state)
        finally:
            listener.close()
        outcome = token_answer(await self.posts.post(code_request(self.registration, code, uri, verifier)))
        match outcome:
            case Granted():
                return outcome
            case Lost(why):
                raise SignInFailed(
                    f"The provider does not take the code any more ({why}); "
                    f"run `mailgateway auth {self.name}` again"
                )
            case Misconfigured(why, what):
                raise self._wrong(why, what)
            case Unavailable(why):
                raise SignInFailed(f"The provider gives no token now: {why}; try again later")
            case _:
                assert_never(outcome)

    async def _code(self, listener: Listener | None, url: str, uri: str, state: str) -> str:
        """Wait for the first address with the right state, from the browser or from the person."""
        answered: Deferred[RedirectAnswer] = Deferred()

        def judge(address: str) -> bool:
            """Whether the address ends the waiting."""
            outcome = redirect_answer(address, uri, state)
            if isinstance(outcome, Foreign):
                return False
            if not answered.called:
                answered.callback(outcome)
            return True

        if listener is not None:
            listener.hear(judge)
        alone = listener is None
        reading = (
            Deferred.fromCoroutine(self._read(url, uri, state, answered, alone=alone)) if self.paste else None
        )
        try:
            answered.addTimeout(BROWSER_SECONDS, self.reactor, _too_late)
            outcome = await answered
        finally:
            if reading is not None:
                reading.addErrback(lambda failure: failure.trap(CancelledError))
                reading.cancel()
        match outcome:
            case AuthorizationCode(code):
                return code
            case Denied(why) | Lost(why):
                raise self._denied(why)
            case Misconfigured(why, what):
                raise self._wrong(why, what)
            case Unavailable(why):
                raise SignInFailed(f"The provider cannot let anybody sign in now: {why}; try again later")
            case Foreign(why):
                raise SignInFailed(f"What was pasted is not the address that is wanted: {why}")
            case _:
                assert_never(outcome)

    async def _read(
        self, url: str, uri: str, state: str, answered: "Deferred[RedirectAnswer]", *, alone: bool
    ) -> None:
        """Take what is pasted, until it is the address, or too often is not; ``alone``: no browser comes."""
        assert self.paste is not None  # noqa: S101 - whoever calls has looked
        for number in range(MOST_PASTES):
            try:
                line = await self.paste()
            except EOFError:
                if alone and not answered.called:
                    answered.callback(Foreign("there was none, and the input has ended"))
                return  # else the browser may still come back by itself
            if answered.called:
                return
            outcome = redirect_answer(line, uri, state)
            if not isinstance(outcome, Foreign) or number == MOST_PASTES - 1:
                answered.callback(outcome)
                return
            self.invite(OpenPage(url, paste=True, redirect_uri=uri, remark=outcome.why))

    def _missing(self, key: str, why: str) -> ConfigError:
        return ConfigError([Problem(f"oauth.{self.name}.{key}", f"is missing; {why}")])

    def _wrong(self, code: str, why: str) -> SignInFailed:
        named = f" ({code})" if code else ""
        return SignInFailed(f"The provider does not take the registration{named}: {why}")

    def _denied(self, code: str) -> SignInFailed:
        return SignInFailed(
            f"The sign-in was declined ({code}), by you or by your organization; nothing has changed"
        )


def _too_late(_: object, seconds: float) -> None:
    raise SignInFailed(f"Nobody signed in within {seconds / 60:.0f} minutes; run it again")


def _remarks(written: OAuth, granted: Granted) -> tuple[str, ...]:
    """What may trouble later."""
    found = []
    if not granted.refresh_token:
        found.append(
            "The provider gave no refresh token, so you would have to sign in again soon: ask for a lasting "
            "grant (scope offline_access at Microsoft, access_type=offline and prompt=consent at Google)."
        )
    missing = set(written.scopes) - set(granted.scopes) - UNCLAIMED if granted.scopes else set()
    if missing:
        found.append(
            f"Not granted: {', '.join(sorted(missing))}. Mail may be refused; sign in again and tick it."
        )
    return tuple(found)
