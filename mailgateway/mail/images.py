"""Which of a mail's files are images that may be shown in place: those that are what they say they are.

PNG, JPEG, GIF and WebP, told by their first bytes; an SVG is a document that can run and load things.
"""

import re
from collections.abc import Sequence
from hashlib import sha256

from mailgateway.ids import MessageId
from mailgateway.mail.letter import Enclosure

_MAGIC = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)


def image_type(data: bytes) -> str | None:
    """The content type of an image that may be shown; ``None`` for all other files."""
    return next((kind for magic, kind in _MAGIC if magic.match(data)), None)


def images_of(enclosures: Sequence[Enclosure], message_id: MessageId) -> dict[str, str]:
    """The content id (RFC 2392, without brackets) that each image has when it is shown, by attachment id."""
    domain = message_id.strip("<>").rpartition("@")[2]
    found = {}
    for each in enclosures:
        if each.attachment_id and image_type(each.data) is not None:
            digest = sha256(f"{message_id}\0{each.attachment_id}".encode()).hexdigest()
            found[each.attachment_id] = f"{digest[:24]}@{domain}"
    return found
