"""What the running service of some settings tells a tool of the operator; that there is none is an answer.

The calls block, for some seconds at most: nothing else runs in a tool meanwhile.
"""

from typing import Final

from mailgateway.client import ApiRefused, Client, ServiceUnreachable, WrongService
from mailgateway.client.answers import Health
from mailgateway.client.of_settings import base_of_settings
from mailgateway.errors import ConfigError
from mailgateway.ids import AccountName
from mailgateway.secrets import SESSION_KEY
from mailgateway.settings import Settings

SECONDS: Final = 3.0
HELD: Final = "refused"
"""The state of an account whose login was refused (``domain.account``)."""


def health_of(settings: Settings) -> Health:
    """What the service of this state directory says about itself, after it has proved to be that.

    Raises ``ServiceUnreachable``, ``WrongService`` or ``ApiRefused``, and ``ConfigError`` where the key is
    not there, or not ours to read.
    """
    client = Client(base_of_settings(settings), settings.daemon.state_dir / SESSION_KEY, timeout=SECONDS)
    return client.proved_health()


def held_accounts(settings: Settings) -> frozenset[AccountName]:
    """The accounts that the running service does not log in to any more, since a login was refused."""
    try:
        told = health_of(settings).get("accounts", [])
    except (ServiceUnreachable, WrongService, ApiRefused, ConfigError):
        return frozenset()
    watched = settings.watched
    if len(told) != len(watched):  # it has other settings than these
        return frozenset()
    return frozenset(
        account.tag for account, state in zip(watched, told, strict=True) if state["state"] == HELD
    )
