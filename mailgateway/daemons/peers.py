"""From a server's settings to what is dialled."""

from mailgateway.errors import ConfigError, TlsRefused
from mailgateway.protocols.dial import Peer
from mailgateway.settings import ServerSettings

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
