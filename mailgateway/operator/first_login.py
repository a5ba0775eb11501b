"""The first login to both servers of each account, as the service will do it; nothing is sent or read.

Policy: one try of each credential.  Where IMAP was refused and SMTP has the same, SMTP is not tried:
providers count wrong passwords, and lock accounts.
"""

import os
import socket
from typing import Any, Final

from attrs import define

from mailgateway.errors import LoginRefused, PeerError, TlsRefused, TokenUnavailable
from mailgateway.operator.findings import Finding, Record, Tell
from mailgateway.protocols import smtp
from mailgateway.protocols.grants import Grants
from mailgateway.protocols.imap import ImapConnection
from mailgateway.protocols.servers import credential_of, peer_of
from mailgateway.providers import of_imap
from mailgateway.settings import Account, ServerSettings, Settings
from mailgateway.wire.sasl import Credential

CONNECT_SECONDS: Final = 30.0


async def log_in(reactor: Any, settings: Settings, tell: Tell) -> tuple[Finding, ...]:
    """Log in to IMAP and SMTP of each account; what became of it."""
    record = Record(tell, reactor.seconds)
    grants = Grants(reactor, settings.daemon.state_dir, settings.oauth) if settings.oauth else None
    for account in settings.accounts.values():
        logins = _Logins(reactor, account, grants, record)
        if await logins.tried("imap", account.imap) is not False or not logins.shared:
            await logins.tried("smtp", account.smtp)
        else:
            record.skip(f"{account.tag} smtp login", "SMTP takes the same secret, so it is not tried")
    return tuple(record.findings)


@define(eq=False)
class _Logins:
    """The logins of one account."""

    reactor: Any
    account: Account
    grants: Grants | None
    record: Record

    @property
    def shared(self) -> bool:
        """Whether both servers are shown the same secret."""
        imap, smtp_server = self.account.imap, self.account.smtp
        return imap.secret == smtp_server.secret

    async def tried(self, door: str, server: ServerSettings) -> bool | None:
        """Log in to one server: whether it is well; ``None`` for trouble that says nothing of the secret."""
        step = f"{self.account.tag} {door} login"
        self.record.begin(step, f"logging in at {server.host}:{server.port}")
        try:
            path = f"accounts.{self.account.tag}.{door}"
            credential = await credential_of(self.reactor, server, path, os.environ, self.grants)
            await self._enter(door, server, credential)
        except LoginRefused as error:
            self.record.fail(step, f"the login was refused: {error.text}", self._advice())
            return False
        except TokenUnavailable as error:
            self.record.fail(f"{step} secret", f"there is no secret to log in with: {error.text}")
            return None
        except TlsRefused as error:
            self.record.fail(
                f"{step} tls", error.text, "Name the right server, or its certificate in `ca_file`."
            )
            return None
        except PeerError as error:
            self.record.fail(f"{step} connection", error.text, "Look at host and port, and try again later.")
            return None
        self.record.ok(step, f"{server.username} is logged in at {server.host}:{server.port}")
        return True

    async def _enter(self, door: str, server: ServerSettings, credential: Credential) -> None:
        peer = peer_of(server)
        if door == "imap":
            connection = await ImapConnection.connect(self.reactor, peer)
            try:
                await connection.login(credential)
            finally:
                connection.abort()
        else:
            session = await smtp.connect(
                self.reactor, peer, credential, socket.gethostname(), CONNECT_SECONDS
            )
            session.abort()

    def _advice(self) -> str:
        """What a refused password may mean, by the provider."""
        also = of_imap(self.account.imap.host).refusals
        more = f" With this provider it may also mean: {also}." if also else ""
        return f"Look at the user name and the password.{more} It is not tried again by itself."
