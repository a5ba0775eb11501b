"""Mode: whether this machine writes mail to people and hands out what they wrote.

``off`` is a person's way to be left alone.  What a person switched off, only a person switches on again: an
agent that would like an answer must not be able to take that peace away.
"""

from enum import StrEnum
from typing import Literal

from attrs import frozen

By = Literal["session", "person"]
"""Who asks for the mode: a session (or its tools) with the session key, or a person."""


class Mode(StrEnum):
    """``off``: nothing is mailed but answers to commands, and nothing is handed out; scanning goes on."""

    ON = "on"
    OFF = "off"


@frozen
class ModeSetting:
    """The mode of one machine, and who set it."""

    mode: Mode
    set_by: By


def change(current: ModeSetting, wanted: Mode, by: By) -> ModeSetting | None:
    """The setting after ``by`` asked for ``wanted``; ``None`` when only a person may do that.

    A session that asks for the ``off`` that a person set changes nothing: it stays the person's.
    """
    persons_off = current.mode is Mode.OFF and current.set_by == "person"
    if persons_off and by == "session":
        return current if wanted is Mode.OFF else None
    return ModeSetting(wanted, by)
