"""What the receiving server found, as it wrote it into the header: pinned Authentication-Results (RFC 8601).

Anybody can write such a field.  It counts only under an id that the settings pin, and only where that server
writes it, which is a fact about the provider (`mailgateway.providers.Results`); any failure or contradiction
in it refuses, and what is absent is none, never a pass.  RFC 8601 obliges a server to take out what comes in
under its own id; where that is known to be missing, or results are left out when DKIM fails, they are not
looked at.
"""

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from attrs import frozen

from mailgateway.mail.alignment import aligned
from mailgateway.mail.decode import Field, Malformed
from mailgateway.mail.own import Own
from mailgateway.mail.results import Clause, Results, parse_results
from mailgateway.providers import Results as Placement
from mailgateway.settings import Alignment

_FAILED = frozenset({"fail", "hardfail", "softfail", "permerror"})
_RECEIVED_FROM = re.compile(rb"\s*from\s", re.IGNORECASE)
_RECEIVED_BY = re.compile(rb"\s*from\s+\S+\s+by\s+([^\s;]+)(?=[\s;]|$)", re.IGNORECASE)
_PARENTHESIS = re.compile(rb"([()])")
_MICROSOFT = (".outlook.com", ".office365.com")


@frozen
class Vouched:
    """The server found that the mail is from the domain of From."""


@frozen
class Silent:
    """The server says nothing that counts."""

    reason: str


@frozen
class Denied:
    """The server found that the mail is not what it says it is."""

    reason: str


Finding = Vouched | Silent | Denied


def finding_of(fields: Sequence[Field], domain: str, own: Own) -> Finding:
    """What the pinned results in a header say about the domain of From."""
    match own.results:
        case Placement.ABOVE:
            block = _block_above(fields, own)
        case Placement.BELOW:
            block = _block_below(fields, own)
        case Placement.ANONYMOUS:
            block = _anonymous(fields)
        case Placement.NONE:
            return Silent("the results of this provider cannot be relied on")
        case _:
            assert_never(own.results)
    if isinstance(block, Malformed):
        return Silent(block.reason)
    if not block:
        return Silent("no results of a trusted server stand where that server writes them")
    return _weigh(block, domain, own.alignment)


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


def _anonymous(fields: Sequence[Field]) -> tuple[Results, ...] | Malformed:
    """The topmost field, as Microsoft writes it: without an id, below the lines of its own hops alone.

    Only for accounts on its servers, which take out every such field that comes in.
    """
    for each in fields:
        if each.name == "received" and not _host_of(each.value).endswith(_MICROSOFT):
            break
        if each.name == "authentication-results":
            results = parse_results(each.value, anonymous=True)
            return results if isinstance(results, Malformed) else (results,)
    return ()


def _host_of(received: bytes) -> str:
    """The host after ``by``; '?' where it cannot be told."""
    by = _RECEIVED_BY.match(_without_comments(received[:4096]))
    return by[1].decode("ascii", "replace").lower() if by is not None else "?"


def _came_from(received: bytes) -> str:
    """The host after ``by`` of a Received line that begins with ``from``: '?' if unclear, '' without from."""
    if _RECEIVED_FROM.match(received) is None:
        return ""
    return _host_of(received)


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


def _weigh(block: Sequence[Results], domain: str, alignment: Alignment) -> Finding:
    """DKIM passed for a domain that may speak for From, and DMARC for From itself, where it is told at all.

    An aligned DKIM pass is all that DMARC could add (RFC 7489, section 3.1.1), so a server that checks no
    DMARC is believed; one that did and found none or a failure is not.
    """
    dmarc = list(_clauses(block, "dmarc"))
    dkim = list(_clauses(block, "dkim"))
    everything = (*dmarc, *dkim, *_clauses(block, "compauth"))
    if any(clause.result in _FAILED for clause in everything):
        return Denied("the receiving server found that DKIM or DMARC failed")
    if len(dmarc) > 1:
        return Silent("there is more than one DMARC result")
    if sum(any(clause.method == "dkim" for clause in results.clauses) for results in block) > 1:
        return Silent("DKIM results stand in several fields")
    if dmarc and dmarc[0].result != "pass":
        return Silent("DMARC did not pass")
    if dmarc and _one(dmarc[0], "header.from") != domain:
        return Silent("DMARC passed for another domain")
    signers = [_signer(clause) for clause in dkim if clause.result == "pass"]
    if not any(aligned(signer, domain, alignment) for signer in signers):
        return Silent("no DKIM signature of the domain of From passed")
    return Vouched()


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
