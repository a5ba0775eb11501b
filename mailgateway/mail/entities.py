"""The parts of a mail as lines of bytes to be: 7-bit, at most 76 columns, no bare CR or LF ever.

A bare line end is how mail is smuggled past a server, and a long line is what a server refuses.  Texts are
quoted-printable or base64, files base64; names of files that are not ASCII are written as RFC 2231 says.
"""

import base64
import binascii
import re
from collections.abc import Sequence

from mailgateway.mail.agent_text import one_line
from mailgateway.mail.images import image_type
from mailgateway.mail.letter import Enclosure
from mailgateway.mail.parts import safe_filename

_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}", re.ASCII)

Entity = tuple[list[str], list[str]]
"""The Content lines of a part, and the lines of its body."""


def text_part(subtype: str, text: str) -> Entity:
    """Quoted-printable where the text is mostly ASCII, base64 else."""
    data = text.encode("utf-8", "replace")
    head = [f"Content-Type: text/{subtype}; charset=utf-8"]
    if sum(byte > 126 for byte in data) * 6 > len(data):
        crlf = data.replace(b"\n", b"\r\n")
        return [*head, "Content-Transfer-Encoding: base64"], _base64_lines(crlf)
    return [*head, "Content-Transfer-Encoding: quoted-printable"], _quoted_printable(data)


def _quoted_printable(data: bytes) -> list[str]:
    encoded = binascii.b2a_qp(data, istext=True, header=False).decode("ascii")
    lines: list[str] = []
    for line in encoded.split("\n"):
        if len(line) > 76:  # the library encodes a blank at a line's end without making room for it
            lines += [f"{line[:-3]}=", line[-3:]]
        elif line.startswith("From ") and len(line) <= 74:  # some servers would put a > before it
            lines.append(f"=46{line[1:]}")
        else:
            lines.append(line)
    return lines


def _base64_lines(data: bytes) -> list[str]:
    encoded = base64.b64encode(data).decode("ascii")
    return [encoded[at : at + 76] for at in range(0, len(encoded), 76)] or [""]


def multipart(subtype: str, boundary: str, parts: Sequence[Entity], *parameters: str) -> Entity:
    """Several parts in one; ``boundary`` stands in none of them, ``parameters`` are further ones."""
    lines: list[str] = []
    for head, body in parts:
        lines += [f"--{boundary}", *head, "", *body]
    lines.append(f"--{boundary}--")
    more = [f" {each};" for each in parameters]
    return [f"Content-Type: multipart/{subtype};", *more, f' boundary="{boundary}"'], lines


def file_part(enclosure: Enclosure, number: int) -> Entity:
    """A file to be saved; ``number`` names it when its own name cannot be used."""
    content_type = enclosure.content_type.strip().lower()
    if _TYPE.fullmatch(content_type) is None or content_type.startswith(("multipart/", "message/")):
        content_type = "application/octet-stream"
    return _file(enclosure, number, content_type, ["Content-Disposition: attachment;"])


def image_part(enclosure: Enclosure, number: int, content_id: str) -> Entity:
    """An image that the page shows by its ``content_id`` (RFC 2392)."""
    content_type = image_type(enclosure.data) or "application/octet-stream"
    return _file(
        enclosure, number, content_type, [f"Content-ID: <{content_id}>", "Content-Disposition: inline;"]
    )


def _file(enclosure: Enclosure, number: int, content_type: str, disposition: Sequence[str]) -> Entity:
    name = safe_filename(one_line(enclosure.filename), number)
    head = [
        f"Content-Type: {content_type}",
        "Content-Transfer-Encoding: base64",
        *disposition,
        *_filename_lines(name),
    ]
    return head, _base64_lines(enclosure.data)


def _filename_lines(name: str) -> list[str]:
    """The filename parameter: quoted when ASCII, else percent-encoded in numbered sections (RFC 2231)."""
    if name.isascii() and len(name) <= 60:
        return [f' filename="{name}"']
    data = name.encode("utf-8", "replace")
    encoded = [chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"%{byte:02X}" for byte in data]
    sections: list[str] = ["utf-8''"]
    for piece in encoded:
        if len(sections[-1]) + len(piece) > 54:
            sections.append("")
        sections[-1] += piece
    last = len(sections) - 1
    if last == 0:
        return [f" filename*={sections[0]}"]
    return [f" filename*{at}*={section}{';' if at < last else ''}" for at, section in enumerate(sections)]
