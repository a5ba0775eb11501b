"""Frames and tokens of IMAP: where a response ends, and what its words are (RFC 3501 sections 4 and 9).

A response is one line, in which each ``{n}`` at the end of the line stands for the n bytes that follow it
and lets the line go on after them.  ``Framer`` finds these frames and copies each byte once or twice,
however large the literals and however small the pieces; ``Reader`` takes a frame apart into tokens.
Neither knows what a response means, with one exception: the human text of a status response may end in
anything, ``{10}`` included, and never announces a literal.

What is lenient: bare LF ends a line, a NUL before a line is dropped, ``~{n}`` and ``{n+}`` are literals.
What is bounded: a line, the literals of one response together, the depth of lists.  Beyond a bound, or when
bytes fit no frame, nothing that follows can be trusted, and ``ProtocolViolation`` says so.
"""

import re
from typing import TypeAlias

from attrs import define, field

from mailgateway.errors import ProtocolViolation

MAX_LINE = 1 << 20
MAX_LITERAL = 32 << 20
MAX_DEPTH = 50

Frame: TypeAlias = list[bytes]
"""A response without its final line end: text, literal, text, literal, ..., text; an odd number of parts."""

_LITERAL = re.compile(rb"~?\{(\d+)\+?\}\Z")
_STATUS = re.compile(rb"[\0 ]*(?:\+|\S+ +(?:OK|NO|BAD|BYE|PREAUTH)(?: |\Z))", re.IGNORECASE)
_LINE_FEED = 10
_RETURN = 13
_BLANK = 32


class Malformed(ValueError):
    """The words of one response make no sense; its frame is sound, so the next response can be read."""


@define(eq=False)
class Framer:
    """Cuts a stream of bytes into frames, each complete.

    Call ``feed`` with what came, then ``next_frame`` until it gives None.
    """

    max_line: int = MAX_LINE
    """Bytes of all text of one response, at most."""
    max_literal: int = MAX_LITERAL
    """Bytes of all literals of one response, at most."""

    _buffer: bytes = field(default=b"", init=False, repr=False)
    _at: int = field(default=0, init=False)
    _waiting: bytearray = field(factory=bytearray, init=False, repr=False)
    """What came of a line or literal that is not complete yet; while it is not empty, the buffer is."""
    _parts: Frame = field(factory=list, init=False, repr=False)
    _due: int = field(default=-1, init=False)
    """The length of the literal that comes next; -1 if text comes next."""
    _text_left: int = field(default=0, init=False)
    _literal_left: int = field(default=0, init=False)

    @property
    def pending(self) -> int:
        """How many bytes have come that belong to no frame handed out."""
        return len(self._buffer) - self._at + len(self._waiting) + sum(map(len, self._parts))

    def feed(self, data: bytes) -> None:
        """Take what came; ``ProtocolViolation`` if a line has outgrown its bound without an end."""
        waiting = self._waiting
        if not waiting:
            self._buffer = self._buffer[self._at :] + data if self._at < len(self._buffer) else data
            self._at = 0
            return
        waiting += data
        if self._due >= 0:
            if len(waiting) < self._due:
                return
            with memoryview(waiting) as view:
                self._parts.append(bytes(view[: self._due]))
                self._buffer = bytes(view[self._due :])
            self._due = -1
        else:
            if _LINE_FEED not in data:
                self._check_line(len(waiting) - 1)  # the last byte may be the CR of its end
                return
            self._buffer = bytes(waiting)
        self._at = 0
        self._waiting = bytearray()

    def next_frame(self) -> Frame | None:
        """The next complete response, None if more bytes are needed."""
        if self._waiting:
            return None
        buffer, at, parts = self._buffer, self._at, self._parts
        while True:
            if self._due >= 0:
                end = at + self._due
                if end > len(buffer):
                    break
                parts.append(buffer[at:end])
                at = end
                self._due = -1
            end = buffer.find(b"\n", at)
            if end < 0:
                self._check_line(len(buffer) - at - 1)
                break
            line = buffer[at : end - 1 if end > at and buffer[end - 1] == _RETURN else end]
            at = end + 1
            self._check_line(len(line))
            parts.append(line)
            if line.endswith(b"}") and self._announces(line):
                continue
            self._at = at
            self._parts = []
            return parts
        if at < len(buffer):
            self._waiting += memoryview(buffer)[at:]
        self._buffer, self._at = b"", 0
        return None

    def take_usual(self, usual: re.Pattern[bytes]) -> list[tuple[tuple[bytes, ...], bytes]]:
        """Responses of the usual kind, as many as come next: what ``usual`` found in each, and the literal.

        That is: all of it has come; its text up to the literal matches ``usual``, whose last group is the
        literal's length, and which ends behind the line end; behind the literal stands ``)`` alone.
        """
        taken: list[tuple[tuple[bytes, ...], bytes]] = []
        if self._parts or self._due >= 0:
            return taken
        buffer, at = self._buffer, self._at
        while (found := usual.match(buffer, at)) is not None:
            groups = found.groups()
            begin = found.end()
            end = begin + int(groups[-1])
            too_much = begin - at > self.max_line or end - begin > self.max_literal
            if too_much or buffer[end : end + 3] != b")\r\n":
                break
            at = end + 3
            taken.append((groups, buffer[begin:end]))
        self._at = at
        return taken

    def _announces(self, line: bytes) -> bool:
        """Whether the line that was just read ends in the announcement of a literal, which then is due."""
        announced = _LITERAL.match(line, max(line.rfind(b"{"), 0))
        first = len(self._parts) == 1
        if announced is None or (first and _STATUS.match(line)):
            return False
        if first:
            self._text_left, self._literal_left = self.max_line, self.max_literal
        digits = announced.group(1)
        self._text_left -= len(line)
        self._literal_left -= int(digits) if len(digits) < 15 else self.max_literal + 1
        if self._literal_left < 0:
            raise ProtocolViolation(
                f"the server announced more than {self.max_literal} bytes in one response"
            )
        self._due = int(digits)
        return True

    def _check_line(self, length: int) -> None:
        """Refuse text of a response that is longer than its bound."""
        if length > (self._text_left if self._parts else self.max_line):
            raise ProtocolViolation(
                f"the server sent a response with more than {self.max_line} bytes of text"
            )


class Atom(bytes):
    """A word that stood in no quotes: a number, a flag, a name."""

    __slots__ = ()


Value: TypeAlias = "bytes | tuple[Value, ...] | None"
"""A string or an ``Atom``; a list; None for NIL."""

_TOKEN = re.compile(
    rb" *(?:(\()|(\))|\"((?:[^\"\\]*+(?:\\.[^\"\\]*+)*+))\"|~?\{\d+\+?\}(\Z)|([^ ()\"]++))", re.DOTALL
)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_NAME = re.compile(rb" *([A-Za-z0-9.\-_/]++)")
_SECTION_TEXT = re.compile(rb"(?:[^\]\"{]++|\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\")*+", re.DOTALL)
_ORIGIN = re.compile(rb"<(\d{1,10})(?:\.\d{1,10})?>")
_LITERAL_HERE = re.compile(rb"~?\{\d+\+?\}\Z")


@define(eq=False)
class Reader:
    """Reads the tokens of a frame one after the other; ``Malformed`` where there is none that fits."""

    _frame: Frame
    _at: int = 0
    _part: int = field(default=0, init=False)

    def at_end(self) -> bool:
        """Whether nothing but blanks is left."""
        return self._part == len(self._frame) - 1 and not self._frame[self._part][self._at :].strip(b" ")

    def takes(self, expected: int) -> bool:
        """Pass over blanks and this byte if it comes next; otherwise stay and say no."""
        text, at = self._frame[self._part], self._at
        while at < len(text) and text[at] == _BLANK:
            at += 1
        if at < len(text) and text[at] == expected:
            self._at = at + 1
            return True
        return False

    def name(self) -> bytes:
        """The name of a data item, in upper case, without its section."""
        match = _NAME.match(self._frame[self._part], self._at)
        if match is None:
            raise Malformed("expected the name of an item")
        self._at = match.end()
        return match.group(1).upper()

    def section(self) -> bytes | None:
        """The section in brackets that follows a name, in upper case; None if there is none."""
        if self._here() != b"[":
            return None
        self._at += 1
        parts = []
        while True:
            match = _SECTION_TEXT.match(self._frame[self._part], self._at)
            if match is None:
                raise Malformed("broken section")
            parts.append(match.group())
            self._at = match.end()
            if self._here() == b"]":
                self._at += 1
                return b"".join(parts).upper()
            if not _LITERAL_HERE.match(self._frame[self._part], self._at):
                raise Malformed("section without an end")
            parts.append(self._literal())

    def origin(self) -> int | None:
        """The first octet of a partial, ``<0>``; some servers echo the length too (``<0.100>``)."""
        match = _ORIGIN.match(self._frame[self._part], self._at)
        if match is None:
            return None
        self._at = match.end()
        return int(match.group(1))

    def value(self) -> Value:
        """The next value: a string, an atom, NIL or a list of values."""
        open_lists: list[list[Value]] = []
        while True:
            match = _TOKEN.match(self._frame[self._part], self._at)
            if match is None:
                raise Malformed("expected a value")
            self._at = match.end()
            value: Value
            match match.lastindex:
                case 1:
                    if len(open_lists) >= MAX_DEPTH:
                        raise Malformed("lists nested too deeply")
                    open_lists.append([])
                    continue
                case 2:
                    if not open_lists:
                        raise Malformed("a list ends that never began")
                    value = tuple(open_lists.pop())
                case 3:
                    value = match.group(3)
                    if b"\\" in value:
                        value = _ESCAPED.sub(rb"\1", value)
                case 4:
                    value = self._literal()
                case _:
                    word = match.group(5)
                    value = None if word.upper() == b"NIL" else Atom(word)
            if not open_lists:
                return value
            open_lists[-1].append(value)

    def _literal(self) -> bytes:
        """The literal after this text; reading goes on in the text after it."""
        if self._part + 2 >= len(self._frame):
            raise Malformed("expected a literal")
        literal = self._frame[self._part + 1]
        self._part += 2
        self._at = 0
        return literal

    def _here(self) -> bytes:
        """The byte at the place, empty at the end of the text."""
        return self._frame[self._part][self._at : self._at + 1]
