"""The parts of a mail's body: one bounded walk over its MIME tree (RFC 2045, 2046, 2231).

The walk goes over the bytes once, whatever is nested in what: each line that begins with ``--`` is compared
with the boundaries of all multiparts that are open there, and the outermost that fits ends all within.  No
part is copied; a leaf knows where it lies, and is cut out when somebody asks for it.

Damaged structure is read as far as it goes: an unterminated multipart ends with its data, the boundary of
one that does not name it is guessed, else it is one text.  The number of parts, multiparts included, is
bounded, and so is their depth by that.  An enclosed message is a leaf: what it says is never its carrier's
words.
"""

import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence

from attrs import Factory, define, evolve, field, frozen

from mailgateway.mail.charset import decode_text
from mailgateway.mail.decode import Field, body_after, decode_header, parse_fields_kindly

PART_LIMIT = 400
"""Parts of a mail, multiparts among them; the walk ends at the next one."""

DASHES_LIMIT = 200_000
"""Lines that begin with two dashes; the walk ends at the next one, and the open part takes the rest."""

BOUNDARY_LIMIT = 256
"""Bytes of a boundary (RFC 2046 allows 70); a longer one is none."""

GUESS_LIMIT = 4096
"""Bytes in which the first delimiter of a multipart without a boundary is looked for."""

_DELIMITED = re.compile(rb"(?:^|\n)--([!-~]{1,70})[ \t]*\r?\nContent-[A-Za-z-]{1,40}:", re.IGNORECASE)


@frozen
class Leaf:
    """One part that is not a multipart: what its header says, and where its body lies in the mail.

    ``filename`` is the raw name given; ``content_id`` the id (without brackets) that HTML may show it by.
    """

    content_type: str
    parameters: Mapping[str, str]
    disposition: str
    filename: str
    content_id: str
    encoding: str
    source: bytes = field(repr=False)
    start: int
    end: int

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return self.end - self.start

    @property
    def body(self) -> bytes:
        """The body, still transfer-encoded; a copy."""
        return self.source[self.start : self.end]

    def head(self, limit: int) -> bytes:
        """The first bytes of the body, at most so many."""
        return self.source[self.start : min(self.end, self.start + limit)]

    @property
    def is_text(self) -> bool:
        """Whether this is a piece of the mail's own text and not an attachment."""
        return (
            self.content_type in {"text/plain", "text/html"}
            and self.disposition != "attachment"
            and not (self.filename and self.disposition)
        )


@define
class Walked:
    """The leaves of a body in document order, the types of all multiparts, and whether a bound was hit."""

    leaves: list[Leaf] = Factory(list)
    multiparts: list[tuple[str, Mapping[str, str]]] = Factory(list)
    truncated: bool = False


def first(fields: Sequence[Field], name: str) -> bytes:
    """The first value of a field, or b''."""
    return next((each.value for each in fields if each.name == name), b"")


def walk(fields: Sequence[Field], source: bytes, start: int) -> Walked:
    """All leaves of a mail, from its own fields and its body, which begins at ``start`` in its bytes."""
    walker = _Walker(source)
    walker.enter(fields, start)
    walker.run(start)
    return walker.out


@define
class _Walker:
    """The walk: the multiparts that are open, outermost first, and whether a leaf is."""

    source: bytes
    out: Walked = Factory(Walked)
    boundaries: list[bytes] = Factory(list)
    level_of: dict[bytes, int] = Factory(dict)
    """Boundary -> the outermost open multipart that has it."""
    leaf_open: bool = False
    parts: int = 0

    def run(self, start: int) -> None:
        """Follow the delimiters from a line's start to the end, or to a bound."""
        at = start
        for count, (line, begin) in enumerate(_dashed_lines(self.source, start)):
            if count >= DASHES_LIMIT or not self.level_of:
                self.out.truncated = bool(self.level_of)
                return
            if begin < at:  # in a header that was read already
                continue
            level, closing = self._delimiter(line)
            if level < 0:
                continue
            self._close(level + (not closing), begin)
            if closing:
                continue
            following = self.source.find(b"\n", begin) + 1 or len(self.source)
            at = self._part(following)
            if self.out.truncated:
                return

    def _delimiter(self, line: bytes) -> tuple[int, bool]:
        """The level that a line delimits, -1 for none, and whether it closes that."""
        opening = self.level_of.get(line, -1)
        closing = self.level_of.get(line[:-2], -1) if line.endswith(b"--") else -1
        if opening >= 0 and (closing < 0 or opening <= closing):
            return opening, False
        return closing, True

    def _close(self, levels: int, begin: int) -> None:
        """End the open leaf in front of a delimiter, and all multiparts but the outermost ``levels``."""
        if self.leaf_open:
            # the line break before a delimiter belongs to the delimiter (RFC 2046, section 5.1.1)
            end = begin - 1 - self.source.startswith(b"\r", begin - 2)
            leaf = self.out.leaves[-1]
            self.out.leaves[-1] = evolve(leaf, end=max(leaf.start, end))
            self.leaf_open = False
        while len(self.boundaries) > levels:
            boundary = self.boundaries.pop()
            if self.level_of[boundary] == len(self.boundaries):
                del self.level_of[boundary]

    def _part(self, start: int) -> int:
        """Take in the part that begins here; where its body begins."""
        end, body = body_after(self.source, start)
        for line, begin in _dashed_lines(self.source, start, end):
            if self._delimiter(line)[0] >= 0:  # the part ends before its header does
                end = body = begin
                break
        self.enter(parse_fields_kindly(self.source[start:end]), body)
        return body

    def _guessed_boundary(self, body: int) -> bytes:
        """What delimits the parts of a multipart that does not say it: the first delimiter above a header."""
        found = _DELIMITED.search(self.source, max(body - 1, 0), body + GUESS_LIMIT)
        return found[1] if found is not None else b""

    def enter(self, fields: Sequence[Field], body: int) -> None:
        """Open the multipart or leaf that has these fields."""
        self.parts += 1
        if self.parts > PART_LIMIT:
            self.out.truncated = True
            return
        content_type, parameters = content_type_of(first(fields, "content-type"))
        if content_type.startswith("multipart/"):
            self.out.multiparts.append((content_type, parameters))
            boundary = parameters.get("boundary", "").encode("utf-8", "replace").rstrip(b" \t")
            boundary = boundary or self._guessed_boundary(body)
            if 0 < len(boundary) <= BOUNDARY_LIMIT:
                self.level_of.setdefault(boundary, len(self.boundaries))
                self.boundaries.append(boundary)
                return
            content_type = "text/plain"
        disposition, extra = _value_and_parameters(first(fields, "content-disposition"))
        self.leaf_open = True
        self.out.leaves.append(
            Leaf(
                content_type=content_type,
                parameters=parameters,
                disposition=disposition,
                filename=extra.get("filename", "") or parameters.get("name", ""),
                content_id=first(fields, "content-id").decode("ascii", "replace").strip(" <>"),
                encoding=first(fields, "content-transfer-encoding").decode("ascii", "replace"),
                source=self.source,
                start=body,
                end=len(self.source),
            )
        )


def _dashed_lines(source: bytes, start: int, end: int | None = None) -> Iterator[tuple[bytes, int]]:
    """Each line from ``start`` on that begins with two dashes: what follows these, and where it begins.

    A line begins at ``start``, never at 0; one that is too long for a delimiter comes as b''.
    """
    end = len(source) if end is None else end
    width = BOUNDARY_LIMIT + 70
    begin = source.find(b"\n--", start - 1, end) + 1
    while begin > 0:
        line, newline, _ = source[begin + 2 : min(begin + 2 + width, end)].partition(b"\n")
        line = line.removesuffix(b"\r").rstrip(b" \t")
        yield (line if newline or begin + 2 + width >= end else b""), begin
        begin = source.find(b"\n--", begin + 2, end) + 1


# --------------------------------------------------------------------------- Content-Type and its parameters

_TYPE = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,100}/[A-Za-z0-9!#$&^_.+-]{1,100}")
_PARAMETER = re.compile(
    rb";\s*([A-Za-z0-9_.*'-]{1,60})\s*=\s*(?:\"((?:[^\"\\]|\\.)*+)\"?|([^;\"\s]*+))", re.DOTALL
)
_QUOTED_PAIR = re.compile(rb"\\(.)", re.DOTALL)


def content_type_of(value: bytes) -> tuple[str, Mapping[str, str]]:
    """The type in lower case and its parameters; what cannot be read is text/plain (RFC 2045, 5.2)."""
    kind, parameters = _value_and_parameters(value)
    return (kind if _TYPE.fullmatch(kind) else "text/plain"), parameters


def _value_and_parameters(value: bytes) -> tuple[str, Mapping[str, str]]:
    head, semicolon, rest = value.partition(b";")
    words = head.split()
    kind = words[0].decode("ascii", "replace").lower() if words else ""
    if not semicolon:
        return kind, {}
    pieces: dict[str, dict[int, tuple[bytes, bool]]] = {}
    for found in _PARAMETER.finditer(b";" + rest):
        given = _QUOTED_PAIR.sub(rb"\1", found[2]) if found[2] is not None else found[3]
        name, *sections = found[1].decode("ascii").lower().split("*")
        number = next((int(section) for section in sections if section.isdigit() and len(section) < 4), 0)
        pieces.setdefault(name, {}).setdefault(number, (given, found[1].endswith(b"*")))
    return kind, {name: _joined(sections) for name, sections in pieces.items()}


def _joined(sections: Mapping[int, tuple[bytes, bool]]) -> str:
    """Put together what RFC 2231 may have cut into numbered and percent-encoded sections."""
    charset = ""
    data = bytearray()
    extended = False
    for number in sorted(sections):
        value, encoded = sections[number]
        if encoded:
            extended = True
            if number == 0 and value.count(b"'") >= 2:
                raw_charset, _, value = value.split(b"'", 2)
                charset = raw_charset.decode("ascii", "replace")
            value = urllib.parse.unquote_to_bytes(value)
        data += value
    if extended:
        return decode_text(bytes(data), charset or "utf-8")
    return decode_header(bytes(data))
