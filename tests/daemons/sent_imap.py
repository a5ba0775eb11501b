"""A small IMAP server with folders, for tests of what looks into the Sent folder."""

import re

from attrs import define, field

from tests.daemons.small_imap import Habits, SmallImap

_MESSAGE_ID = re.compile(rb"(?im)^message-id:\s*(\S+)")
_LITERAL = re.compile(rb"\{(\d+)(\+?)\}\Z")

CAPABILITIES = b"IMAP4rev1 IDLE ID SASL-IR AUTH=PLAIN"


@define(eq=False)
class SentHabits(Habits):
    """How the servers behave; ``folders`` holds the mails of each folder by its raw name, UIDs from 1."""

    login: bytes = b"OK [CAPABILITY " + CAPABILITIES + b"] welcome"
    folders: dict[bytes, list[bytes]] = field(factory=dict)
    listing: list[bytes] = field(factory=list)
    """The lines of LIST, without ``* LIST``."""
    appended: list[bytes] = field(factory=list)
    lines: list[bytes] = field(factory=list)
    """Commands that were heard, without their tags."""

    def server(self) -> "SentImap":
        """For one connection."""
        return SentImap(self)


class SentImap(SmallImap):
    """One connection."""

    habits: SentHabits

    def __init__(self, habits: SentHabits) -> None:
        super().__init__(habits)
        self.selected = b""
        self._began: tuple[bytes, int] | None = None
        self._literal = b""

    def lineReceived(self, line: bytes) -> None:
        """Wait for a literal, or answer what concerns folders; the rest is answered as ever."""
        if self._began is not None:  # the end of the line behind a literal
            line, self._began = self._began[0], None
        elif (found := _LITERAL.search(line)) is not None:
            self._literal = b""
            self._await_literal(line, found)
            return
        tag, _, words = line.partition(b" ")
        self.habits.lines.append(words)
        verb, _, rest = words.partition(b" ")
        name = verb.decode()
        answer = b""
        if name in {"LIST", "XLIST", "EXAMINE"} or words.startswith(b"UID SEARCH HEADER"):
            self.habits.verbs.append(name)
            answer = next(self.habits.answers.get(name, iter(())), b"")
        if self.habits.hangs_at == name:
            return
        if answer:
            self._end(tag, answer)
        elif name in {"LIST", "XLIST"}:
            for each in self.habits.listing:
                self.sendLine(b"* " + verb + b" " + each)
            self._end(tag, b"OK")
        elif name == "EXAMINE":
            self._examine(tag, self._literal if rest.endswith(b"}") else rest.strip(b'"'))
        elif name == "APPEND":
            self.habits.folders[rest.rpartition(b" (")[0].strip(b'"')].append(self._literal)
            self.habits.appended.append(self._literal)
            self._end(tag, b"OK [APPENDUID 3 9] done")
        elif words.startswith(b"UID SEARCH HEADER"):
            wanted = words.split(b" ")[-1].strip(b'"')
            uids = [b"%d" % uid for uid, raw in enumerate(self._mails, 1) if wanted in raw]
            self.sendLine(b" ".join([b"* SEARCH", *uids]))
            self._end(tag, b"OK")
        elif words.startswith(b"UID FETCH") and self.selected:
            uid = int(words.split(b" ")[2])
            raw = self._mails[uid - 1]
            self.sendLine(b"* %d FETCH (UID %d BODY[]<0> {%d}\r\n%s)" % (uid, uid, len(raw), raw))
            self._end(tag, b"OK")
        else:
            super().lineReceived(line)

    @property
    def _mails(self) -> list[bytes]:
        return self.habits.folders[self.selected]

    def _examine(self, tag: bytes, name: bytes) -> None:
        if name not in self.habits.folders:
            self._end(tag, b"NO [NONEXISTENT] no such mailbox")
            return
        self.selected = name
        self.sendLine(b"* %d EXISTS\r\n* OK [UIDVALIDITY 3] ok" % len(self._mails))
        self._end(tag, b"OK [READ-ONLY] examined")

    def _await_literal(self, line: bytes, found: "re.Match[bytes]") -> None:
        tag, _, words = line.partition(b" ")
        name = words.partition(b" ")[0].decode()
        answer = next(self.habits.answers.get(name, iter(())), b"")
        if self.habits.hangs_at == name:
            return
        if answer:
            self._end(tag, answer)
            return
        self._began = (line, int(found.group(1)))
        if not found.group(2):
            self.sendLine(b"+ go on")
        self.setRawMode()

    def rawDataReceived(self, data: bytes) -> None:
        """A literal."""
        assert self._began is not None
        _, octets = self._began
        self._literal += data
        if len(self._literal) >= octets:
            rest, self._literal = self._literal[octets:], self._literal[:octets]
            self.setLineMode(rest)
