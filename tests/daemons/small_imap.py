"""A small IMAP server that answers by itself: one empty folder, for tests of what drives the connection."""

from typing import Any

from attrs import define, field
from twisted.protocols.basic import LineReceiver

CAPABILITIES = b"IMAP4rev1 IDLE SASL-IR AUTH=PLAIN"


@define(eq=False)
class Habits:
    """How the servers behave, and what they have seen."""

    greeting: bytes = b"* OK [CAPABILITY " + CAPABILITIES + b"] ready"
    login: bytes = b"OK [CAPABILITY " + CAPABILITIES + b"] welcome"
    hangs_at: str = ""
    """A command that is never answered."""
    verbs: list[str] = field(factory=list)

    def server(self) -> "SmallImap":
        """For one connection."""
        return SmallImap(self)


class SmallImap(LineReceiver):
    """One connection."""

    transport: Any

    def __init__(self, habits: Habits) -> None:
        self.habits = habits
        self.gone = False
        self._idle = b""

    def connectionMade(self) -> None:
        """Greet."""
        self.sendLine(self.habits.greeting)

    def connectionLost(self, reason: object = None) -> None:  # noqa: ARG002 (the base's)
        """Note it."""
        self.gone = True

    def lineReceived(self, line: bytes) -> None:
        """Answer one command."""
        if line == b"DONE":
            self._end(self._idle, b"OK idle is over")
            return
        tag, verb, *_ = line.split(b" ")
        name = verb.decode()
        self.habits.verbs.append(name)
        if name == self.habits.hangs_at:
            return
        if name == "IDLE":
            self._idle = tag
            self.sendLine(b"+ idling")
        elif name == "AUTHENTICATE":
            self._end(tag, self.habits.login)
        elif name == "SELECT":
            self.sendLine(b"* 0 EXISTS\r\n* OK [UIDVALIDITY 7] ok\r\n* OK [UIDNEXT 1] ok")
            self._end(tag, b"OK [READ-WRITE] selected")
        elif name == "LOGOUT":
            self.sendLine(b"* BYE")
            self._end(tag, b"OK")
            self.transport.loseConnection()
        else:
            self._end(tag, b"OK")

    def _end(self, tag: bytes, words: bytes) -> None:
        self.sendLine(tag + b" " + words)
