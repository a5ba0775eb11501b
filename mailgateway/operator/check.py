"""``check``: whether both servers of each account can be reached, are whom they say, and let us in.

Policy: nothing is sent, nothing is changed, and no mail is read.  A credential is tried once a run at most:
where IMAP refuses it, SMTP is not shown the same one; where the running service is held after a refusal, it
is not tried at all unless that is wanted (``again``).  A step that failed ends the way to that server, and
says what to do; the other servers are looked at all the same.
"""

import os
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from attrs import define, field
from twisted.internet.threads import deferToThreadPool

from mailgateway.errors import ConfigError, LoginRefused, PeerError, TokenUnavailable
from mailgateway.operator.findings import Finding, Record, State, Tell
from mailgateway.operator.service import held_accounts
from mailgateway.operator.troubles import Door, advice_on_source
from mailgateway.protocols import smtp
from mailgateway.protocols.dial import is_loopback
from mailgateway.protocols.grants import Grants
from mailgateway.protocols.imap import ImapConnection
from mailgateway.protocols.servers import credential_of, peer_of
from mailgateway.protocols.tls_facts import tls_facts
from mailgateway.secrets import Credential as NamedCredential
from mailgateway.secrets import OAuthGrant
from mailgateway.settings import Account, Settings, Tls
from mailgateway.wire.sasl import Credential

CONNECT_SECONDS: Final = 30.0
RESOLVE_SECONDS: Final = 20.0
ENDS_SOON_DAYS: Final = 14
"""A certificate that ends sooner should have been renewed: most are a month before."""

IDENTITY: Final = {"name": "mailgateway", "vendor": "mailgateway"}
MEGABYTE: Final = 1_000_000

More = Callable[[ImapConnection, Account, Record], Awaitable[None]]
"""Looks further on a connection that is logged in; raises a ``PeerError`` when that fails."""


async def check(reactor: Any, settings: Settings, tell: Tell, *, again: bool = False) -> tuple[Finding, ...]:
    """Look at both servers of each account, and log in; what was found.

    ``again`` tries a login although the running service is held after a refusal.
    """
    record = Record(tell, reactor.seconds)
    await look(reactor, settings, record, again=again)
    return tuple(record.findings)


async def look(
    reactor: Any, settings: Settings, record: Record, *, again: bool = False, more: More | None = None
) -> None:
    """The same into a record, with ``more`` to look at on each IMAP connection."""
    source = settings.source or "the settings"
    record.ok("settings", f"{source} is valid, and the files of secrets are closed to others")
    for warning in settings.warnings:
        record.warn("settings", warning)
    held = frozenset() if again else held_accounts(settings)
    grants = Grants(reactor, settings.daemon.state_dir, settings.oauth) if settings.oauth else None
    for account in settings.accounts.values():
        await _Look(reactor, account, grants, record, held=account.tag in held, more=more).both()


@define(eq=False)
class _Look:
    """The look at one account."""

    reactor: Any
    account: Account
    grants: Grants | None
    record: Record
    held: bool
    more: More | None
    _refused: bool = field(default=False, init=False)
    """Whether IMAP has refused the credential."""

    async def both(self) -> None:
        """Both servers, each with its own outcome."""
        await self._imap(Door(self.account, "imap"))
        await self._smtp(Door(self.account, "smtp"))

    def _step(self, door: Door, word: str) -> str:
        return f"{self.account.tag} {door.name} {word}"

    def _fail(self, door: Door, error: PeerError | ConfigError) -> None:
        """Tell a failure by its class."""
        if isinstance(error, ConfigError):
            self.record.fail(
                self._step(door, "certificate"), str(error), f"Look at `ca_file` of {door.table}."
            )
            return
        trouble = door.trouble(error)
        self.record.fail(self._step(door, trouble.step), trouble.what, trouble.advice)

    # The way to a server

    async def _resolved(self, door: Door) -> bool:
        """Whether the name of the server has an address; addresses and this machine need no question."""
        host = door.server.host
        step = self._step(door, "name")
        if is_loopback(host) or _is_address(host):
            return True
        self.record.begin(step, f"looking up {host}")
        asking = deferToThreadPool(
            self.reactor, self.reactor.getThreadPool(), socket.getaddrinfo, host, None, 0, socket.SOCK_STREAM
        )
        asking.addTimeout(RESOLVE_SECONDS, self.reactor, lambda *_: [])
        try:
            found = await asking
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:
                what, advice = (
                    f"no name server answers about {host}",
                    "Is this machine online? Look at its DNS.",
                )
            else:
                what = f"{host} has no address in DNS"
                advice = (
                    f"Look at `host` of {door.table}: it may be mistyped. Your provider tells the right one."
                )
            self.record.fail(step, what, advice)
            return False
        except (OSError, UnicodeError):
            self.record.fail(step, f"{host} cannot be looked up", f"Look at `host` of {door.table}.")
            return False
        if not found:
            advice = "Is this machine online? Look at its DNS."
            self.record.fail(step, f"DNS did not answer about {host} within {RESOLVE_SECONDS:g} s", advice)
            return False
        addresses = sorted({str(each[4][0]) for each in found})
        self.record.ok(step, f"{host} is {', '.join(addresses[:4])}{' ...' if len(addresses) > 4 else ''}")
        return True

    def _safe(self, door: Door, transport: Any) -> None:
        """Tell what makes the connection safe."""
        if door.server.tls is Tls.NONE:
            self.record.note(self._step(door, "certificate"), "without TLS, which stays on this machine")
            return
        facts = tls_facts(transport)
        if facts is None:
            return
        days = facts.days_left(datetime.now(UTC))
        trust = f", by {door.server.ca_file}" if door.server.ca_file else ""
        what = (
            f"{facts.version}, the certificate is good for {door.server.host}{trust}; issued by "
            f"{facts.issuer or 'nobody named'}, {days} days left (until {facts.until:%Y-%m-%d})"
        )
        step = self._step(door, "certificate")
        if days < ENDS_SOON_DAYS:
            self.record.warn(step, what, "Whoever runs the server should renew it now.")
        else:
            self.record.ok(step, what)

    async def _credential(self, door: Door) -> Credential | None:
        """What to log in with; ``None`` after it was told why there is nothing that may be tried."""
        server, step = door.server, self._step(door, "login")
        if self._refused and self.account.imap.secret == self.account.smtp.secret:
            self.record.skip(step, "SMTP takes the secret that IMAP has refused, so it was not tried")
            return None
        if self.held and not isinstance(server.secret, OAuthGrant):
            self.record.add(
                step,
                State.SKIPPED,
                "the service was refused and has stopped trying, so that the account is not locked",
                "If you have changed the password since: mailgateway check --force, then mailgateway reload",
            )
            return None
        if isinstance(server.secret, NamedCredential) and "CREDENTIALS_DIRECTORY" not in os.environ:
            what = f"the password is the credential `{server.secret.name}` of the service manager"
            self.record.add(step, State.SKIPPED, what, advice_on_source(server.secret))
            return None
        self.record.begin(self._step(door, "secret"), "getting the secret")
        path = f"accounts.{self.account.tag}.{door.name}"
        try:
            return await credential_of(self.reactor, server, path, os.environ, self.grants)
        except TokenUnavailable as error:
            self._fail(door, error)
            return None

    # IMAP

    async def _imap(self, door: Door) -> None:
        if not await self._resolved(door):
            return
        try:
            peer = peer_of(door.server)
            self.record.begin(self._step(door, "connection"), f"connecting to {peer}")
            connection = await ImapConnection.connect(self.reactor, peer)
        except (PeerError, ConfigError) as error:
            self._fail(door, error)
            return
        try:
            self.record.ok(self._step(door, "connection"), f"{peer} answers")
            self._safe(door, connection.transport)
            await self._inside(door, connection)
        except PeerError as error:
            self._fail(door, error)
        finally:
            await connection.logout()

    async def _inside(self, door: Door, connection: ImapConnection) -> None:
        """Log in, and look at what the service needs there."""
        credential = await self._credential(door)
        if credential is None:
            return
        step = self._step(door, "login")
        self.record.begin(step, f"logging in as {door.server.username}")
        try:
            await connection.login(credential)
        except LoginRefused as error:
            self._refused = True
            self._fail(door, error)
            return
        self.record.ok(step, f"{door.server.username} is let in")
        self._news(door, connection)
        await connection.identify(IDENTITY)
        for folder in self.account.watch:
            await self._folder(door, connection, folder)
        if self.more is not None:
            await self.more(connection, self.account, self.record)

    def _news(self, door: Door, connection: ImapConnection) -> None:
        """How new mail is heard of."""
        step = self._step(door, "idle")
        if not self.account.watch:
            return
        if not connection.supports("IDLE"):
            what = "the server does not tell of new mail by itself (no IDLE)"
            self.record.note(
                step, what, "It is asked every `daemon.scan_interval_seconds`: answers come later."
            )
        elif not door.provider.idle:
            self.record.note(step, f"IDLE is offered, but not to be relied on with {door.provider.name}")
        else:
            self.record.ok(step, "the server tells of new mail at once (IDLE)")

    async def _folder(self, door: Door, connection: ImapConnection, folder: str) -> None:
        """Whether a watched folder is there and can be opened."""
        step = f"{self._step(door, 'folder')} {folder}"
        self.record.begin(step, "opening it")
        try:
            facts = await connection.select(folder, read_only=True)
        except PeerError as error:
            if not connection.alive:
                raise
            advice = f"Make the folder, or take it out of `watch` of [accounts.{self.account.tag}]."
            self.record.fail(step, f"it cannot be opened: {error.text}", advice)
            return
        self.record.ok(step, f"it is there, with {facts.exists} mails")

    # SMTP

    async def _smtp(self, door: Door) -> None:
        """Look first without a login: what is offered then is known also where the login fails."""
        if not await self._resolved(door):
            return
        try:
            peer = peer_of(door.server)
            self.record.begin(self._step(door, "connection"), f"connecting to {peer}")
            session = await smtp.connect(self.reactor, peer, None, socket.gethostname(), CONNECT_SECONDS)
        except (PeerError, ConfigError) as error:
            self._fail(door, error)
            return
        self.record.ok(self._step(door, "connection"), f"{peer} answers")
        self._safe(door, session.transport)
        offered = session.offered
        await session.quit()
        if not offered.mechanisms:
            self.record.fail(
                self._step(door, "authentication"),
                "the server offers no login (AUTH), so it is not for sending",
                f"Use the submission port: most providers take {door.usual}.",
            )
            return
        credential = await self._credential(door)
        if credential is None:
            return
        step = self._step(door, "login")
        self.record.begin(step, f"logging in as {door.server.username}")
        try:
            session = await smtp.connect(
                self.reactor, peer, credential, socket.gethostname(), CONNECT_SECONDS
            )
        except PeerError as error:
            self._fail(door, error)
            return
        self.record.ok(step, f"{door.server.username} is let in; nothing was sent")
        size = session.offered.size or offered.size
        if size is not None:
            self.record.ok(self._step(door, "size"), f"mails of up to {size / MEGABYTE:.3g} MB are taken")
        await session.quit()


def _is_address(host: str) -> bool:
    """Whether it is an address literal."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, UnicodeError):
            continue
        return True
    return False
