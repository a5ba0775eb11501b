"""From a letter to the final bytes that go over the wire, and that nobody changes any more.

CRLF at every line end, 7-bit, no line over 76 characters of body and 998 of header, no bare CR or LF ever
(they are how mail is smuggled past a server).  The tag stands first in the subject as plain ASCII.  Every
mail carries the marker header and ``Auto-Submitted``, so that no gateway ever takes it for a person's.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Sequence
from email.utils import format_datetime

from attrs import field, frozen

from mailgateway.errors import Refusal
from mailgateway.ids import MessageId
from mailgateway.mail.letter import Enclosure, Letter, LetterKind, letter_html, letter_text, one_line
from mailgateway.mail.own import MARKER_HEADER
from mailgateway.mail.parts import safe_filename
from mailgateway.mail.tag import format_tag, strip_tags

__all__ = ["Composed", "Enclosure", "Letter", "LetterKind", "compose"]

SUBJECT_LIMIT = 200
"""Characters of a human subject; a longer one is cut."""

ID_HEADER = "X-Mailgateway-Id"

_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}", re.ASCII)
_MESSAGE_ID = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]{1,900}>", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9._@:+-]{1,200}", re.ASCII)
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}", re.ASCII)
_ATOMS = re.compile(r"[A-Za-z0-9 !#$%&'*+/=?^_`{|}~-]*", re.ASCII)


@frozen
class Composed:
    """``raw`` are the final bytes, ``text`` the plain text as it was sent, ``subject`` the whole subject."""

    raw: bytes = field(repr=False)
    text: str = field(repr=False)
    subject: str


def compose(letter: Letter) -> Composed:
    """Compose the final bytes; the same letter gives the same bytes.

    Refuses (``invalid``) an address, Message-ID or id that cannot stand in a header; free texts are cleaned.
    """
    subject = _subject(letter)
    text = letter_text(letter)
    page = letter_html(letter, subject)
    boundary = hashlib.sha256(f"{letter.message_id}\0{letter.outbox_id}".encode()).hexdigest()[:32]
    body_type, body = _text_part("plain", text)
    if page is not None:
        html_type, html = _text_part("html", page)
        body_type, body = _multipart("alternative", f"=_a{boundary}", [(body_type, body), (html_type, html)])
    if letter.attachments:
        files = [_file_part(each, number) for number, each in enumerate(letter.attachments, 1)]
        body_type, body = _multipart("mixed", f"=_m{boundary}", [(body_type, body), *files])
    lines = [*_header(letter, subject), "MIME-Version: 1.0", *body_type, "", *body]
    end = "" if lines[-1] == "" else "\r\n"
    return Composed(("\r\n".join(lines) + end).encode("ascii"), text, subject)


def _subject(letter: Letter) -> str:
    human = strip_tags(one_line(letter.subject), frozenset({letter.tag.lower(), "mg", "pi"}))
    if len(human) > SUBJECT_LIMIT:
        human = human[: SUBJECT_LIMIT - 1].rstrip() + "…"
    tag = format_tag(letter.tag, letter.route) if letter.route else ""
    return f"{tag} {human}".strip()


def _header(letter: Letter, subject: str) -> list[str]:
    tag = format_tag(letter.tag, letter.route) if letter.route else ""
    sender = _address(letter.sender_address, "the sender's address")
    lines = [
        f"Date: {format_datetime(letter.date)}",
        *_named_address("From", letter.sender_name, sender),
        f"To: {_address(letter.recipient, 'the recipient')}",
        *_unstructured("Subject", tag, subject.removeprefix(tag).strip()),
        f"Message-ID: {_checked(_MESSAGE_ID, letter.message_id, 'the Message-ID')}",
    ]
    if letter.in_reply_to is not None:
        lines.append(f"In-Reply-To: {_checked(_MESSAGE_ID, letter.in_reply_to, 'In-Reply-To')}")
    if letter.references:
        lines += _folded("References", _thread(letter.references))
    return [
        *lines,
        f"Auto-Submitted: {'auto-replied' if letter.kind is LetterKind.ANSWER else 'auto-generated'}",
        "X-Auto-Response-Suppress: All",
        f"{MARKER_HEADER}: {_checked(_TOKEN, letter.instance, 'the instance')}",
        f"{ID_HEADER}: {_checked(_TOKEN, letter.outbox_id, 'the outbox id')}",
    ]


def usable_ids(ids: Iterable[MessageId]) -> tuple[MessageId, ...]:
    """Those of a mail's Message-IDs that can stand in a header of ours."""
    return tuple(each for each in ids if _MESSAGE_ID.fullmatch(each) is not None)


def _thread(references: Sequence[MessageId]) -> list[str]:
    """The first and the last nineteen ancestors: a thread's header must not grow for ever."""
    kept = [references[0], *references[-19:]] if len(references) > 20 else list(references)
    return [_checked(_MESSAGE_ID, each, "References") for each in kept]


def _address(address: str, what: str) -> str:
    """The address with an international domain as A-labels; a local part that needs SMTPUTF8 is refused."""
    local, _, domain = address.rpartition("@")
    try:
        domain = domain if domain.isascii() else domain.encode("idna").decode("ascii")
    except UnicodeError:
        domain = ""
    return _checked(_ADDRESS, f"{local}@{domain}", what)


def _checked(pattern: re.Pattern[str], text: str, what: str) -> str:
    if pattern.fullmatch(text) is None:
        raise Refusal("invalid", f"{what} cannot stand in a mail header")
    return text


def _folded(name: str, words: Iterable[str]) -> list[str]:
    """A field whose words are never broken; a line holds as many as fit into 76 columns."""
    lines = [f"{name}:"]
    for word in words:
        if len(lines[-1]) + 1 + len(word) > 76 and lines[-1] != f"{name}:":
            lines.append("")
        lines[-1] += f" {word}"
    return lines


def _unstructured(name: str, tag: str, text: str) -> list[str]:
    """A field of free text: the tag as it is, then plain ASCII, else encoded words (RFC 2047)."""
    if text.isascii() and "=?" not in text:
        words = [*([tag] if tag else []), *text.split()]
        if all(len(word) <= 200 for word in words):
            return _folded(name, words)
    return _folded(name, [*([tag] if tag else []), *_encoded_words(text)])


def _encoded_words(text: str) -> list[str]:
    """Base64 words of at most 45 bytes each, cut between characters."""
    words: list[str] = []
    piece = b""
    for char in text:
        encoded = char.encode("utf-8", "replace")
        if len(piece) + len(encoded) > 36:
            words.append(_encoded_word(piece))
            piece = b""
        piece += encoded
    if piece:
        words.append(_encoded_word(piece))
    return words


def _encoded_word(piece: bytes) -> str:
    return f"=?utf-8?B?{base64.b64encode(piece).decode('ascii')}?="


def _named_address(name: str, display: str, address: str) -> list[str]:
    display = one_line(display)[:100]
    if not display:
        return [f"{name}: {address}"]
    if not display.isascii() or "=?" in display:
        return _folded(name, [*_encoded_words(display), f"<{address}>"])
    if _ATOMS.fullmatch(display) is None:
        escaped = display.replace("\\", "\\\\").replace('"', '\\"')
        return _folded(name, [f'"{escaped}"', f"<{address}>"])
    return _folded(name, [*display.split(), f"<{address}>"])


# --------------------------------------------------------------------------- bodies

_Entity = tuple[list[str], list[str]]
"""The Content lines of a part, and the lines of its body."""


def _text_part(subtype: str, text: str) -> _Entity:
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


def _multipart(subtype: str, boundary: str, parts: Sequence[_Entity]) -> _Entity:
    lines: list[str] = []
    for head, body in parts:
        lines += [f"--{boundary}", *head, "", *body]
    lines.append(f"--{boundary}--")
    return [f"Content-Type: multipart/{subtype};", f' boundary="{boundary}"'], lines


def _file_part(enclosure: Enclosure, number: int) -> _Entity:
    content_type = enclosure.content_type.strip().lower()
    if _TYPE.fullmatch(content_type) is None or content_type.startswith(("multipart/", "message/")):
        content_type = "application/octet-stream"
    name = safe_filename(one_line(enclosure.filename), number)
    head = [
        f"Content-Type: {content_type}",
        "Content-Transfer-Encoding: base64",
        "Content-Disposition: attachment;",
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
    return [
        f" filename*{number}*={section}{';' if number < last else ''}"
        for number, section in enumerate(sections)
    ]
