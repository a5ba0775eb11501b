"""A small IMAP server that answers by itself: one folder, for tests of what drives the connection."""

from collections.abc import Iterator
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
    answers: dict[str, Iterator[bytes]] = field(factory=dict)
    """What the next commands of a name are answered with, instead of what is usual."""
    mails: list[bytes] = field(factory=list)
    """The mails that are there, with UIDs from 1."""
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
        self.spoken = 0
        """Octets that were sent."""
        self.cut_at: int | None = None
        """After so many octets the connection is closed."""
        self._idle = b""
        self._hangs = False

    def connectionMade(self) -> None:
        """Greet."""
        self.sendLine(self.habits.greeting)

    def connectionLost(self, reason: object = None) -> None:  # noqa: ARG002 (the base's)
        """Note it."""
        self.gone = True

    def lineReceived(self, line: bytes) -> None:
        """Answer one command."""
        if self._hangs:
            return
        if line == b"DONE":
            self._hangs = self.habits.hangs_at == "DONE"
            if not self._hangs:
                self._end(self._idle, b"OK idle is over")
            return
        tag, verb, *_ = line.split(b" ")
        name = verb.decode()
        self.habits.verbs.append(name)
        if name == self.habits.hangs_at:
            return
        answer = next(self.habits.answers.get(name, iter(())), b"")
        if answer:
            self._end(tag, answer)
            return
        if name == "IDLE":
            self._idle = tag
            self.sendLine(b"+ idling")
        elif name == "AUTHENTICATE":
            self._end(tag, self.habits.login)
        elif name == "SELECT":
            count = len(self.habits.mails)
            self.sendLine(
                b"* %d EXISTS\r\n* OK [UIDVALIDITY 7] ok\r\n* OK [UIDNEXT %d] ok" % (count, count + 1)
            )
            self._end(tag, b"OK [READ-WRITE] selected")
        elif name == "UID":
            self._fetch(line)
            self._end(tag, b"OK")
        elif name == "NOOP":
            self.sendLine(b"* %d EXISTS" % len(self.habits.mails))
            self._end(tag, b"OK")
        elif name == "LOGOUT":
            self.sendLine(b"* BYE")
            self._end(tag, b"OK")
            self.transport.loseConnection()
        else:
            self._end(tag, b"OK")

    def _fetch(self, line: bytes) -> None:
        first, _, last = line.split(b" ")[3].partition(b":")
        final = len(self.habits.mails) if last == b"*" else int(last or first)
        for uid, raw in enumerate(self.habits.mails, 1):
            if int(first) <= uid <= final:
                header = raw.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
                self.sendLine(
                    b"* %d FETCH (UID %d RFC822.SIZE %d BODY[HEADER.FIELDS (FROM)] {%d}\r\n%s"
                    b" BODY[]<0> {%d}\r\n%s)" % (uid, uid, len(raw), len(header), header, len(raw), raw)
                )

    def sendLine(self, line: bytes) -> None:
        """Send a line, or as much of it as the connection still carries."""
        data = line + b"\r\n"
        if self.cut_at is not None:
            data = data[: self.cut_at - self.spoken]
        self.spoken += len(data)
        self.transport.write(data)
        if self.spoken == self.cut_at:
            self.transport.loseConnection()

    def say(self, line: bytes) -> None:
        """Say something unasked."""
        self.sendLine(line)

    def hang_up(self) -> None:
        """Close the connection."""
        self.transport.loseConnection()

    def _end(self, tag: bytes, words: bytes) -> None:
        self.sendLine(tag + b" " + words)
