"""The proof of a single mailbox: the mail that came also lies in the account's Sent folder.

Only who may log in can put a mail there, so what lies there is the owner's.  A Message-ID alone proves
nothing: everybody who ever got a mail of the owner knows one that lies there.  So both copies have to be
one mail: the same sender, recipients, time, subject, thread, words, and attachments.  Their bytes differ,
since servers add fields and change transfer encodings on the way; what is compared is what a reader would
see.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime

from mailgateway.mail.attachments import files_of
from mailgateway.mail.automatic import Person, classify_header
from mailgateway.mail.decode import Malformed
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.own import Own
from mailgateway.mail.sender import OneMailbox

MARGIN = 64 * 1024
"""Octets by which the copy in the Sent folder may be longer than the mail that came."""


def owner_s(inbound: Inbound, copy: bytes, own: Own) -> Inbound | str:
    """The mail as its owner sent it; a sentence where the two are not one mail, or no person wrote it.

    The copy is what is to be read from here on: line ends, blanks and types of parts of the mail that came
    may be somebody else's, and decide which words are a quotation.
    """
    sent = read(copy)
    if isinstance(sent, Malformed) or not isinstance(sent.sender, OneMailbox):
        return "the copy in the Sent folder cannot be read"
    if not isinstance(inbound.sender, OneMailbox) or sent.sender.address != inbound.sender.address:
        return "the copy in the Sent folder is from another address"
    if not isinstance(classify_header(sent, own), Person):  # what a gateway sends lies there, too
        return "the copy in the Sent folder was not written by a person"
    for what, seen in _COMPARED:
        if seen(inbound) != seen(sent):
            return f"the copy in the Sent folder has another {what}"
    return sent


def moment(date: str) -> datetime | str:
    """The time that a Date field tells; the text itself where it tells none."""
    try:
        return parsedate_to_datetime(date)
    except (ValueError, OverflowError, IndexError, TypeError):  # what the parser raises on nonsense
        return date.strip()


def _words(text: str) -> str:
    return " ".join(text.split())


def _attached(mail: Inbound) -> list[tuple[str, str]]:
    return [(part.content_type, hashlib.sha256(part.data).hexdigest()) for part in files_of(mail.tree)]


_COMPARED: tuple[tuple[str, Callable[[Inbound], object]], ...] = (
    ("Message-ID", lambda mail: mail.message_id),
    ("date", lambda mail: moment(mail.date)),
    ("subject", lambda mail: _words(mail.subject)),
    ("thread", lambda mail: (mail.in_reply_to, mail.references)),
    ("recipients", lambda mail: set(mail.recipients)),
    ("text", lambda mail: [*map(_words, mail.texts)]),
    ("text", lambda mail: [*map(_words, mail.htmls)]),
    ("attachments", _attached),
)
"""What has to be the same, the cheap things first."""
