"""What a dialogue reports: the responses that concern others, and what they mean for the connection.

Data responses (``Fetched``, ``Found``, ...) are reported as they are read; the rest is told in terms of the
connection: a command ended, the server idles, the mailbox has changed, the server leaves or broke the rules.
"""

from enum import Enum
from typing import TypeAlias

from attrs import frozen

from mailgateway.errors import PeerError
from mailgateway.wire.imap_command import Command
from mailgateway.wire.imap_fetch import Fetched, Unreadable
from mailgateway.wire.imap_response import (
    Expunge,
    Found,
    Identification,
    Listed,
    MailboxStatus,
    Status,
    Vanished,
)


class State(Enum):
    """How far the connection has come (RFC 3501 section 3)."""

    GREETING = "waiting for the greeting"
    NOT_AUTHENTICATED = "not authenticated"
    AUTHENTICATED = "authenticated"
    SELECTED = "selected"
    LOGOUT = "logged out"


@frozen
class Greeted:
    """The greeting; BYE in it refuses us."""

    status: Status


@frozen
class Completed:
    """The running command has ended; the next one may begin."""

    command: Command
    status: Status


@frozen
class Idling:
    """The server has entered IDLE and tells news as it happens."""


@frozen
class CountChanged:
    """The selected mailbox holds another number of messages than it was known to: time to look for mail."""

    exists: int


@frozen
class Bye:
    """The server is about to close the connection."""

    status: Status


@frozen
class Broken:
    """The server broke the rules, or someone wrote into our connection; nothing further is read."""

    error: PeerError


Event: TypeAlias = (
    Greeted
    | Completed
    | Idling
    | Bye
    | Broken
    | Status
    | CountChanged
    | Expunge
    | Vanished
    | Fetched
    | Unreadable
    | Found
    | Listed
    | MailboxStatus
    | Identification
)
