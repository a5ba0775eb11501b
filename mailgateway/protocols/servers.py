"""From a server's settings to what is dialled, and to what proves that the account is ours.

Whether a credential may be tried is not decided here.
"""

from collections.abc import Mapping
from typing import Any, assert_never

from mailgateway.errors import ConfigError, TlsRefused, TokenUnavailable
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.grants import AccessToken, Grants, SignInNeeded
from mailgateway.protocols.process import run_command
from mailgateway.secrets import Credential as NamedCredential
from mailgateway.secrets import (
    OAuthGrant,
    PasswordCommand,
    PasswordEnv,
    PasswordFile,
    TokenCommand,
    read_password,
)
from mailgateway.settings import ServerSettings
from mailgateway.wire.sasl import BearerToken, Credential, Password, end_of_token

LARGEST_TRUST = 1024 * 1024


def peer_of(server: ServerSettings) -> Peer:
    """Where to dial, how to make it safe, and whom to trust.

    ``ca_file`` is read anew for every connection, so that a renewed one needs no restart.  Raises
    ``TlsRefused`` when it cannot be read: without it the certificate cannot be judged.
    """
    trust = None
    if server.ca_file is not None:
        try:
            trust = server.ca_file.read_bytes()[:LARGEST_TRUST]
        except OSError as error:
            raise TlsRefused(f"ca_file {server.ca_file} cannot be read: {error.strerror}") from None
    try:
        return Peer(server.host, server.port, server.tls, trust)
    except ConfigError as error:
        raise TlsRefused(str(error)) from None


async def credential_of(
    reactor: Any,
    server: ServerSettings,
    path: str,
    environ: Mapping[str, str],
    grants: Grants | None = None,
) -> Credential:
    """The credential as its source gives it now; ``path`` is the server's dotted path in the settings.

    Raises ``TokenUnavailable`` when the source gives none, also when a person has to sign in first.
    """
    match server.secret:
        case PasswordFile() | PasswordEnv() | NamedCredential() as source:
            try:
                return Password(server.username, read_password(source, environ, path))
            except ConfigError as error:
                raise TokenUnavailable(str(error)) from None
        case PasswordCommand(command):
            return Password(server.username, await run_command(reactor, command))
        case TokenCommand(command):
            token = await run_command(reactor, command)
            return BearerToken(server.username, server.host, server.port, token, end_of_token(token))
        case OAuthGrant(name):
            if grants is None:
                raise TokenUnavailable(f"[oauth.{name}] is not in use here")
            match await grants.token(name):
                case AccessToken() as given:
                    return bearer_of(server, given)
                case SignInNeeded(why):
                    raise TokenUnavailable(why)
                case outcome:
                    assert_never(outcome)
        case _:
            assert_never(server.secret)


def bearer_of(server: ServerSettings, token: AccessToken) -> BearerToken:
    """The token of a grant as it is shown to one server."""
    origin = token.expires_at, token.issued_at, token.grant
    return BearerToken(server.username, server.host, server.port, token.text, *origin)
