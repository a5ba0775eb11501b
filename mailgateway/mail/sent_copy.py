"""The proof of a single mailbox: the mail that came also lies in the account's Sent folder.

Only who may log in can put a mail there, so what lies there is the owner's.  A Message-ID alone proves
nothing: everybody who ever got a mail of the owner knows one that lies there.  So both copies have to be
one mail: the same sender, recipients, time, subject, thread, words, and attachments.  Their bytes differ,
since servers add fields and change transfer encodings on the way; what is compared is what a reader would
see.
"""

import hashlib
from datetime import datetime
from email.utils import parsedate_to_datetime

from mailgateway.mail.attachments import files_of
from mailgateway.mail.decode import Malformed
from mailgateway.mail.inbound import Inbound, read
from mailgateway.mail.sender import OneMailbox

MARGIN = 64 * 1024
"""Octets by which the copy in the Sent folder may be longer than the mail that came."""


def difference(inbound: Inbound, copy: bytes) -> str:
    """In what the two are not the same mail, as a sentence; ``""`` when they are."""
    sent = read(copy)
    if isinstance(sent, Malformed) or not isinstance(sent.sender, OneMailbox):
        return "the copy in the Sent folder cannot be read"
    if not isinstance(inbound.sender, OneMailbox) or sent.sender.address != inbound.sender.address:
        return "the copy in the Sent folder is from another address"
    for what, ours, theirs in (
        ("Message-ID", inbound.message_id, sent.message_id),
        ("date", moment(inbound.date), moment(sent.date)),
        ("subject", _words(inbound.subject), _words(sent.subject)),
        ("thread", (inbound.in_reply_to, inbound.references), (sent.in_reply_to, sent.references)),
        ("recipients", set(inbound.recipients), set(sent.recipients)),
        ("text", [*map(_words, inbound.texts)], [*map(_words, sent.texts)]),
        ("text", [*map(_words, inbound.htmls)], [*map(_words, sent.htmls)]),
        ("attachments", _attached(inbound), _attached(sent)),
    ):
        if ours != theirs:
            return f"the copy in the Sent folder has another {what}"
    return ""


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
