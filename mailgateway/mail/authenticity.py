"""Is the mail really from the address in its From.  Closed by default.

With ``required``, the one evidence that counts is what the receiving provider wrote: in its pinned
Authentication-Results both ``dmarc=pass`` for the domain of From and an aligned ``dkim=pass``.  SPF alone, a
DMARC pass that rests on SPF, results of another id, below a Received line, doubled or in disagreement are
refused; so is a mail whose own signature leaves room for somebody else's words (see `signature`).
With ``single-mailbox`` there is no such evidence, and the store must find the proof.
"""

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from attrs import frozen

from mailgateway.mail.decode import Field, Malformed
from mailgateway.mail.inbound import Inbound
from mailgateway.mail.own import Own
from mailgateway.mail.results import Clause, Results, parse_results
from mailgateway.mail.sender import OneMailbox
from mailgateway.mail.signature import Coverage, Partial, aligned, coverage_of
from mailgateway.settings import Alignment, Authentication, SingleMailboxProof


@frozen
class Authentic:
    """From is true; ``method`` names the evidence."""

    method: str


@frozen
class Unauthenticated:
    """There is no sufficient evidence for From."""

    reason: str


@frozen
class Forged:
    """The evidence says that From is not true."""

    reason: str


@frozen
class NeedsProof:
    """The store decides: whether the Sent folder holds the mail, or whether its thread names mail we sent."""

    kind: SingleMailboxProof


Authenticity = Authentic | Unauthenticated | Forged | NeedsProof

_SINGULAR = (
    "from",
    "subject",
    "date",
    "message-id",
    "to",
    "cc",
    "reply-to",
    "in-reply-to",
    "references",
    "content-type",
    "content-transfer-encoding",
    "mime-version",
)
"""Fields that a signed mail has once; a second one may be an attacker's (RFC 6376, section 8.15)."""

_FAILED = frozenset({"fail", "hardfail", "softfail", "permerror"})
_RECEIVED_FROM = re.compile(rb"\s*from\s", re.IGNORECASE)
_RECEIVED_BY = re.compile(rb"\s*from\s+\S+\s+by\s+([^\s;]+)(?=[\s;]|$)", re.IGNORECASE)
_PARENTHESIS = re.compile(rb"([()])")


def authenticate(inbound: Inbound, own: Own) -> Authenticity:
    """Weigh the evidence for From; the address itself is compared with the allowed ones elsewhere."""
    if not isinstance(inbound.sender, OneMailbox):
        return Unauthenticated("From is not one plain mailbox")
    match own.authentication:
        case Authentication.SINGLE_MAILBOX:
            return NeedsProof(own.single_mailbox_proof)
        case Authentication.REQUIRED:
            return _by_results(inbound, inbound.sender.domain, own)
        case _:
            assert_never(own.authentication)


def _by_results(inbound: Inbound, domain: str, own: Own) -> Authenticity:
    for name in _SINGULAR:
        if inbound.count(name) > 1:
            return Unauthenticated(f"{name} is there twice")
    coverage = coverage_of(inbound.fields, domain, own.alignment)
    match coverage:
        case Partial(reason=reason):
            return Forged(reason)
        case Malformed(reason=reason):
            return Unauthenticated(reason)
        case Coverage():
            pass
        case _:
            assert_never(coverage)
    if own.addresses and not _addressed_to(inbound, own, coverage):
        return Unauthenticated("the mail is not addressed to this gateway")
    block = (
        _block_below(inbound.fields, own) if own.results_below_received else _block_above(inbound.fields, own)
    )
    if isinstance(block, Malformed):
        return Unauthenticated(block.reason)
    if not block:
        return Unauthenticated("no results of a trusted server stand where that server writes them")
    return _weigh(block, domain, own.alignment)


def _addressed_to(inbound: Inbound, own: Own, coverage: Coverage) -> bool:
    """Whether To or Cc names one of our addresses, a plus-address of it included.

    A true mail of an allowed person to somebody else could else be handed to us by its receiver.  Where the
    signature covers To, a Cc that it does not cover was put on by somebody else; where it does not (Outlook),
    neither proves anything, and both are taken as they stand.
    """
    ours = {address.lower() for address in own.addresses}
    names = [name for name in ("to", "cc") if coverage.covers(name) or not coverage.covers("to")]
    for address in inbound.recipients_in(*names):
        local, _, domain = address.lower().rpartition("@")
        if f"{local}@{domain}" in ours or f"{local.partition('+')[0]}@{domain}" in ours:
            return True
    return False


def _block_above(fields: Sequence[Field], own: Own) -> tuple[Results, ...] | Malformed:
    """The pinned results in the contiguous run of Authentication-Results above every Received.

    A mail without any Received is taken too: a server that hands a mail on by LMTP, or to itself, may write
    none, and puts its results on top all the same.  Nothing is lost by that: who can put a mail into the
    mailbox past the receiving server could write a Received line as well.  What comes through that server has
    its results above all that the sender wrote, and it takes out incoming results under its own id (RFC 8601,
    section 5); one that does not must not be trusted in either placement.
    """
    run: list[bytes] = []
    for each in fields:
        if each.name == "authentication-results":
            run.append(each.value)
        elif run or each.name == "received":
            break
    return _pinned(run, own)


def _block_below(fields: Sequence[Field], own: Own) -> tuple[Results, ...] | Malformed:
    """The one pinned field right under the provider's own Received line, which alone it may follow.

    Only the provider's internal hops (lines without ``from``) may stand above that line: the first one with
    ``from`` is where the mail came in from outside, and its ``by`` must be the pinned id.
    """
    entry = next(
        (index for index, each in enumerate(fields) if each.name == "received" and _came_from(each.value)),
        None,
    )
    if entry is None or _came_from(fields[entry].value) not in own.trusted_authserv_ids:
        return ()
    run: list[bytes] = []
    for each in fields[entry + 1 :]:
        if each.name == "received":
            break
        if each.name == "authentication-results":
            run.append(each.value)
    block = _pinned(run, own)
    if not isinstance(block, Malformed) and len(block) > 1:
        return Malformed("a trusted server's results stand there twice")
    return block


def _came_from(received: bytes) -> str:
    """The host after ``by`` of a Received line that begins with ``from``: '?' if unclear, '' without from."""
    if _RECEIVED_FROM.match(received) is None:
        return ""
    by = _RECEIVED_BY.match(_without_comments(received[:4096]))
    return by[1].decode("ascii", "replace").lower() if by is not None else "?"


def _without_comments(value: bytes) -> bytes:
    """The value with a blank in place of each comment (they nest); one that does not end takes the rest."""
    kept: list[bytes] = []
    depth = 0
    for piece in _PARENTHESIS.split(value):
        if piece == b"(":
            depth += 1
        elif piece == b")" and depth:
            depth -= 1
        else:
            kept.append(b" " if depth else piece)
    return b"".join(kept)


def _pinned(run: Sequence[bytes], own: Own) -> tuple[Results, ...] | Malformed:
    parsed = []
    for value in run:
        results = parse_results(value)
        if isinstance(results, Malformed):
            return results
        if results.authserv_id in own.trusted_authserv_ids:
            parsed.append(results)
    return tuple(parsed)


def _weigh(block: Sequence[Results], domain: str, alignment: Alignment) -> Authenticity:
    dmarc = list(_clauses(block, "dmarc"))
    dkim = list(_clauses(block, "dkim"))
    if any(clause.result in _FAILED for clause in (*dmarc, *dkim)):
        return Forged("the receiving server found that DKIM or DMARC failed")
    if len(dmarc) != 1:
        return Unauthenticated("there is not exactly one DMARC result")
    if sum(any(clause.method == "dkim" for clause in results.clauses) for results in block) > 1:
        return Unauthenticated("DKIM results stand in several fields")
    if dmarc[0].result != "pass":
        return Unauthenticated("DMARC did not pass")
    if _one(dmarc[0], "header.from") != domain:
        return Unauthenticated("DMARC passed for another domain")
    signers = [_signer(clause) for clause in dkim if clause.result == "pass"]
    if not any(aligned(signer, domain, alignment) for signer in signers):
        return Unauthenticated("no DKIM signature of the domain of From passed")
    return Authentic("authentication-results")


def _clauses(block: Sequence[Results], method: str) -> Iterator[Clause]:
    return (clause for results in block for clause in results.clauses if clause.method == method)


def _one(clause: Clause, name: str) -> str:
    """The property's only value in lower case; '' when it is missing or doubled."""
    values = clause.properties.get(name, ())
    return values[0].lower() if len(values) == 1 else ""


def _signer(clause: Clause) -> str:
    """The domain that signed: ``header.d``, or where that is not told the domain of ``header.i``."""
    if "header.d" in clause.properties:
        return _one(clause, "header.d")
    return _one(clause, "header.i").rpartition("@")[2]
