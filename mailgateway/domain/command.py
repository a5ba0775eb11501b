"""Commands by mail: the few words that a person says to the gateway itself and not to a session.

A command is a whole reply: one word with a slash, in any case.  Anything more, and any other word with a
slash, is text for the session, since agents have such words of their own.
"""

import re
from enum import StrEnum, unique


@unique
class Command(StrEnum):
    """What a person may ask of the gateway by mail."""

    STATUS = "status"
    ON = "on"
    OFF = "off"
    HELP = "help"
    PENDING = "pending"


_COMMAND = re.compile(rf"\s*/({'|'.join(Command)})\s*", re.IGNORECASE | re.ASCII)


def parse_command(words: str) -> Command | None:
    """The command that the typed words are, the whole of them; ``None`` when they are words."""
    found = _COMMAND.fullmatch(words)
    return Command(found[1].lower()) if found is not None else None
