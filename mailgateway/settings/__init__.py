"""The settings: one TOML file, read once into frozen values, with every problem told at once.

``load`` finds and reads the file; ``parse`` is its pure half.  ``settings.daemon.port`` is ``[daemon] port``.
"""

from mailgateway.settings.file import config_path, load
from mailgateway.settings.rules import parse
from mailgateway.settings.values import (
    Account,
    Alignment,
    ApprovalProof,
    Authentication,
    Daemon,
    Device,
    Key,
    MailApprovals,
    Notify,
    OAuth,
    People,
    PersonDoor,
    Retention,
    Role,
    Security,
    ServerSettings,
    Settings,
    SingleMailboxProof,
    Tls,
)

__all__ = [
    "Account",
    "Alignment",
    "ApprovalProof",
    "Authentication",
    "Daemon",
    "Device",
    "Key",
    "MailApprovals",
    "Notify",
    "OAuth",
    "People",
    "PersonDoor",
    "Retention",
    "Role",
    "Security",
    "ServerSettings",
    "Settings",
    "SingleMailboxProof",
    "Tls",
    "config_path",
    "load",
    "parse",
]
