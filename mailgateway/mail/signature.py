"""What the sender's own signature covers, read from the DKIM-Signature fields (RFC 6376, section 3.5).

That a signature is valid is the receiving server's finding; here is read what it speaks of.  Whoever got a
true mail of an allowed person can hand it to us with more fields put on it, and it still passes: a field
counts as the person's only when every aligned signature names it in ``h=``.  Signatures of other domains are
somebody else's, and a mail without an aligned one says nothing (a server may take them away once it has
looked): then all fields count, as far as the server's results do.

To, Cc, Content-Type and Message-ID need not be signed: the largest providers leave some of them out (Outlook
signs no To, Gmail no Content-Type), and nobody could write to us from there.  They decide less: see who asks.
"""

from collections.abc import Sequence

from attrs import frozen

from mailgateway.mail.alignment import aligned
from mailgateway.mail.decode import Field, Malformed
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own
from mailgateway.mail.sender import OneMailbox
from mailgateway.mail.tag_list import parse_tag_list
from mailgateway.settings import Alignment, Authentication


@frozen
class Coverage:
    """The fields (names in lower case) that every aligned signature covers; None when there is none."""

    fields: frozenset[str] | None = None

    def covers(self, name: str) -> bool:
        """Whether what a field says may be taken for the sender's words."""
        return self.fields is None or name in self.fields


@frozen
class Partial:
    """A signature leaves room for somebody else's text, or does not even cover From."""

    reason: str


def coverage_of(fields: Sequence[Field], domain: str, alignment: Alignment) -> Coverage | Partial | Malformed:
    """What the signatures of a domain cover.

    A signature that cannot be read is Malformed: it may be the one that the server found valid.
    """
    covered: frozenset[str] | None = None
    for each in fields:
        if each.name != "dkim-signature":
            continue
        tags = parse_tag_list(each.value)
        if tags is None:
            return Malformed("a signature cannot be read")
        if not aligned(tags.get("d", "").lower().removesuffix("."), domain, alignment):
            continue
        if "l" in tags:
            return Partial("the signature covers only a part of the text")
        names = frozenset(tags.get("h", "").lower().split(":"))
        if "from" not in names:
            return Partial("the signature does not cover From")
        covered = names if covered is None else covered & names
    return Coverage(covered)


def coverage_for(inbound: Inbound, own: Own) -> Coverage:
    """What of a mail may route it; of a mail whose signatures would be refused, nothing.

    Where agent and person share a mailbox no signature was looked at by anybody, and none limits.
    """
    if own.authentication is not Authentication.REQUIRED or not isinstance(inbound.sender, OneMailbox):
        return Coverage()
    found = coverage_of(inbound.fields, inbound.sender.domain, own.alignment)
    return found if isinstance(found, Coverage) else Coverage(frozenset())
