"""The parts of a mail's body: a bounded walk over its MIME tree (RFC 2045, 2046, 2231).

Damaged structure is read as far as it goes: an unterminated multipart ends with its data, a multipart
without a boundary is one text.  Depth and number of parts are bounded, and an enclosed message is a leaf:
what it says is never its carrier's words.
"""

import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence

from attrs import Factory, define, field, frozen

from mailgateway.mail.charset import decode_text
from mailgateway.mail.decode import Field, decode_header, parse_fields_kindly, split_message

DEPTH_LIMIT = 30
PART_LIMIT = 300


@frozen
class Leaf:
    """One part that is not a multipart; ``body`` is still transfer-encoded.

    ``parent`` is the subtype of the multipart around it ('' for none), ``filename`` the raw name given.
    """

    content_type: str
    parameters: Mapping[str, str]
    disposition: str
    filename: str
    encoding: str
    content_id: str
    parent: str
    body: bytes = field(repr=False)

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


def walk(fields: Sequence[Field], body: bytes) -> Walked:
    """All leaves of a mail, from its own fields and its body."""
    out = Walked()
    _descend(fields, body, "", 0, out)
    return out


def _descend(fields: Sequence[Field], body: bytes, parent: str, depth: int, out: Walked) -> None:
    content_type, parameters = content_type_of(first(fields, "content-type"))
    if content_type.startswith("multipart/"):
        out.multiparts.append((content_type, parameters))
        boundary = parameters.get("boundary", "")
        if depth >= DEPTH_LIMIT:
            out.truncated = True
            return
        if boundary:
            subtype = content_type.partition("/")[2]
            for inner in _split(body, boundary):
                if len(out.leaves) >= PART_LIMIT:
                    out.truncated = True
                    return
                block, inner_body = split_message(inner)
                inner_fields = parse_fields_kindly(block)
                _descend(inner_fields, inner_body, subtype, depth + 1, out)
            return
        content_type = "text/plain"
    disposition, extra = _value_and_parameters(first(fields, "content-disposition"))
    out.leaves.append(
        Leaf(
            content_type=content_type,
            parameters=parameters,
            disposition=disposition,
            filename=extra.get("filename", "") or parameters.get("name", ""),
            encoding=first(fields, "content-transfer-encoding").decode("ascii", "replace"),
            content_id=first(fields, "content-id").decode("ascii", "replace"),
            parent=parent,
            body=body,
        )
    )


def _split(body: bytes, boundary: str) -> Iterator[bytes]:
    """The bodies between the delimiters, without preamble and epilogue; at most `PART_LIMIT` + 1."""
    mark = re.compile(
        rb"^--" + re.escape(boundary.encode("utf-8", "replace")) + rb"(--)?[ \t]*\r?(?:\n|\Z)", re.MULTILINE
    )
    start = -1
    count = 0
    for found in mark.finditer(body):
        if start >= 0:
            yield _without_last_break(body[start : found.start()])
            count += 1
        if found[1] or count > PART_LIMIT:
            return
        start = found.end()
    if start >= 0:
        yield body[start:]


def _without_last_break(data: bytes) -> bytes:
    """The line break before a delimiter belongs to the delimiter (RFC 2046, section 5.1.1)."""
    return data[:-2] if data.endswith(b"\r\n") else data.removesuffix(b"\n")


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
