"""From a letter to the final bytes that go over the wire, and that nobody changes any more.

CRLF at every line end, 7-bit, no line over 76 columns but for an id or address that cannot be broken.  The
tag stands first in the subject as plain ASCII.  Every mail carries the marker header and ``Auto-Submitted``,
so that no gateway ever takes it for a person's, and no ``Precedence``, which some take for advertising.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from email.utils import format_datetime

from attrs import field, frozen

from mailgateway.errors import Refusal
from mailgateway.ids import MessageId
from mailgateway.mail.agent_text import one_line
from mailgateway.mail.entities import Entity, file_part, image_part, multipart, text_part
from mailgateway.mail.images import images_of
from mailgateway.mail.letter import Letter, LetterKind, cleaned
from mailgateway.mail.letter_html import letter_html
from mailgateway.mail.letter_text import letter_text
from mailgateway.mail.markup import lines_of_html
from mailgateway.mail.own import MARKER_HEADER
from mailgateway.mail.page import OTHER_FORM
from mailgateway.mail.subject import human_subject
from mailgateway.mail.tag import format_tag

__all__ = ["Composed", "compose", "usable_ids"]

ID_HEADER = "X-Mailgateway-Id"

WORD_LIMIT = 60
"""Characters of a word of plain ASCII in a header; a longer one is encoded, so that it can be folded."""

_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9.-]{1,253}", re.ASCII)
_MESSAGE_ID = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]{1,900}>", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9._@:+-]{1,200}", re.ASCII)
_ATOMS = re.compile(r"[A-Za-z0-9 !#$%&'*+/=?^_`{|}~-]*", re.ASCII)


@frozen
class Composed:
    """``raw`` are the final bytes, ``text`` the plain text as it was sent, ``subject`` the whole subject.

    ``quotable`` is all that a program may quote of it: the plain text, and the page as text where there is
    one (see `page.Sent`).
    """

    raw: bytes = field(repr=False)
    text: str = field(repr=False)
    quotable: str = field(repr=False)
    subject: str = field(repr=False)


def compose(letter: Letter) -> Composed:
    """Compose the final bytes; the same letter gives the same bytes.

    Refuses (``invalid``) an address, Message-ID or id that cannot stand in a header; free texts are cleaned.
    """
    letter = cleaned(letter)
    subject = _subject(letter)
    text = letter_text(letter)
    images = images_of(letter.attachments, letter.message_id)
    page = letter_html(letter, images)
    body_type, body = _body(letter, text, page, images)
    lines = [*_header(letter, subject), "MIME-Version: 1.0", *body_type, "", *body]
    end = "" if lines[-1] == "" else "\r\n"
    raw = ("\r\n".join(lines) + end).encode("ascii")
    shown = "" if page is None else "\n".join(line.text for line in lines_of_html(page).lines)
    return Composed(raw, text, f"{text}{OTHER_FORM}{shown}" if shown else text, subject)


def _body(letter: Letter, text: str, page: str | None, images: Mapping[str, str]) -> Entity:
    """Text and page as alternatives, the images that the page shows beside it, the other files around."""
    digest = hashlib.sha256(f"{letter.message_id}\0{letter.outbox_id}".encode()).hexdigest()[:32]
    shown, files = [], []
    for number, each in enumerate(letter.attachments, 1):
        content_id = images.get(each.attachment_id)
        if page is not None and content_id is not None and f'"cid:{content_id}"' in page:
            shown.append(image_part(each, number, content_id))
        else:
            files.append(file_part(each, number))
    body = text_part("plain", text)
    if page is not None:
        rich = text_part("html", page)
        if shown:
            rich = multipart("related", f"=_r{digest}", [rich, *shown], 'type="text/html"')
        body = multipart("alternative", f"=_a{digest}", [body, rich])
    return multipart("mixed", f"=_m{digest}", [body, *files]) if files else body


def _subject(letter: Letter) -> str:
    tag = format_tag(letter.tag, letter.route) if letter.route else ""
    return f"{tag} {human_subject(letter.subject, letter.tags)}".strip()


def _header(letter: Letter, subject: str) -> list[str]:
    tag = format_tag(letter.tag, letter.route) if letter.route else ""
    sender = _address(letter.sender_address, "the sender's address")
    lines = [
        f"Date: {format_datetime(letter.date)}",
        *_named_address("From", letter.sender_name, sender),
        f"To: {_address(letter.recipient, 'the recipient')}",
        *_unstructured("Subject", tag, subject.removeprefix(tag).strip()),
        *_reply_to(letter, sender),
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


def _reply_to(letter: Letter, sender: str) -> list[str]:
    """Where replies go, when that is not where the mail comes from."""
    address = _address(letter.reply_address or sender, "the address for replies")
    return [] if address == sender else _named_address("Reply-To", letter.sender_name, address)


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
    if text.isascii() and "=?" not in text and all(len(word) <= WORD_LIMIT for word in text.split()):
        return _folded(name, [*([tag] if tag else []), *text.split()])
    return _folded(name, [*([tag] if tag else []), *_encoded_words(text)])


def _encoded_words(text: str) -> list[str]:
    """Base64 words of at most 36 bytes each, cut between characters."""
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
    if not display.isascii() or "=?" in display or len(display) > WORD_LIMIT:
        return _folded(name, [*_encoded_words(display), f"<{address}>"])
    if _ATOMS.fullmatch(display) is None:
        escaped = display.replace("\\", "\\\\").replace('"', '\\"')
        return _folded(name, [f'"{escaped}"', f"<{address}>"])
    return _folded(name, [*display.split(), f"<{address}>"])
