"""Who said what when: by which a person's mail is known again that somebody sends another time."""

import hashlib
from collections.abc import Sequence

from mailgateway.domain.envelope import AttachmentInfo, Envelope
from mailgateway.mail.dkim_canonical import body_digest
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own
from mailgateway.mail.signature import coverage_for
from mailgateway.providers import Results


def said_digest(
    envelope: Envelope, inbound: Inbound, own: Own, parts: Sequence[tuple[AttachmentInfo, bytes]]
) -> str:
    """A digest that a replay cannot change: the sender, the Date, what was said, and a signed Message-ID.

    Somebody who sends a person's mail again can add or change whatever the signature leaves out, blanks
    included, which makes other bytes of the same mail, and other words of it where an unsigned field says how
    they are to be read.  So what was said is the body as DKIM signs it; where no signature of the sender's
    domain is on the mail, or a server writes other bytes than it checked, words and files.  From and Date are
    signed by every provider, Message-ID by most.
    """
    coverage = coverage_for(inbound, own)
    date = " ".join(inbound.date.split())
    identity = [envelope.from_address, date]
    if coverage.covers("message-id") or not date:
        identity.append(envelope.message_id)
    signed = coverage.fields is not None and own.results is not Results.ANONYMOUS
    body = body_digest(inbound.raw, inbound.body_start, relaxed=True) if signed else None
    if body is not None:
        identity.append(body.hex())
    else:
        identity.append(" ".join(envelope.body.split()))
        identity += [hashlib.sha256(data.translate(None, b" \t\r\n")).hexdigest() for _, data in parts]
    return hashlib.sha256("\0".join(identity).encode()).hexdigest()
