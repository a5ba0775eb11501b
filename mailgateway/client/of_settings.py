"""Where the service of some settings listens, as those on the same machine reach it."""

import os

from mailgateway.client.connection import Base
from mailgateway.settings import Settings

EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared, not bound


def base_of_settings(settings: Settings) -> Base:
    """Where the service of these settings listens: its socket when there is one, else its port."""
    daemon = settings.daemon
    if daemon.socket is not None and (daemon.port == 0 or os.access(daemon.socket, os.F_OK)):
        return Base(socket=daemon.socket)
    return Base(host=EVERYWHERE.get(daemon.host, daemon.host), port=daemon.port)
