"""Where a reply went: the fates of mail that concerns us, for a person who asks.

The steps of a mail are ``received``, ``authenticated`` (an allowed person wrote it), ``parsed`` (what it
claims about where it belongs was read), ``routed`` (to a session), ``delivered`` (it waits there) and
``acked`` (the session has it).  A fate names the last one that the mail has reached, and why it went no
further.
"""

from collections.abc import Mapping
from datetime import datetime

from mailgateway.flows.troubles import Trouble
from mailgateway.mail.verdict import Verdict
from mailgateway.store import fates as rows
from mailgateway.store.database import Database, Tx
from mailgateway.store.fates import KEPT, Fate

__all__ = [
    "ANSWER",
    "COMMAND",
    "DELIVERED",
    "LATE",
    "RECEIVED",
    "Fate",
    "fates",
    "reason_of",
    "reason_of_trouble",
    "step_of",
]

COMMAND = "command"
"""The verdict of a mail that asked something of the gateway itself; its last step is ``acked``."""

ANSWER = "answer"
"""The verdict of a mail that answered a question whose session reads answers by itself; then ``acked``."""

LATE = "late"
"""The verdict of a mail whose question was answered before, has changed, or is over; then ``acked``."""

DELIVERED = "delivered"
"""The verdict of a mail that became an envelope, and its step."""

RECEIVED = "received"
AUTHENTICATED = "authenticated"
PARSED = "parsed"
ROUTED = "routed"

_ENDS: Mapping[Verdict, tuple[str, str]] = {
    Verdict.OWN_MAIL: (RECEIVED, "a gateway has written it"),
    Verdict.AUTOMATIC: (RECEIVED, "a machine has written it"),
    Verdict.BOUNCE: (RECEIVED, "a mail server reports on a mail"),
    Verdict.NOT_ALLOWED: (RECEIVED, "it is from nobody who may write to sessions (people.allowed)"),
    Verdict.UNAUTHENTICATED: (RECEIVED, "nobody vouches for its sender"),
    Verdict.FORGED: (RECEIVED, "its sender is forged"),
    Verdict.PROOF_REQUIRED: (
        RECEIVED,
        "that a person wrote it is not proven (security.single_mailbox_proof)",
    ),
    Verdict.NO_TOKEN: (
        PARSED,
        "it names no session: it has no tag that was given out, and replies to no mail of ours",
    ),
    Verdict.EXPIRED_TOKEN: (PARSED, "the conversation that it belongs to is over (security.route_ttl_hours)"),
    Verdict.AMBIGUOUS: (PARSED, "it names two conversations"),
    Verdict.OTHER_DEVICE: (PARSED, "it belongs to a session of another machine"),
    Verdict.EMPTY: (ROUTED, "no words were typed in it"),
    Verdict.TOO_LARGE: (RECEIVED, "it is too large to be read"),
    Verdict.MALFORMED: (RECEIVED, "it cannot be read"),
    Verdict.DUPLICATE: (ROUTED, "the same was received before"),
}


_TROUBLES: Mapping[Trouble, str] = {
    Trouble.LATE: "the question was answered before, or is over",
    Trouble.STALE: "the question was changed after the mail that it answers",
    Trouble.UNCLEAR: "it chooses no option beyond doubt, so the question is still open",
}

_AFTER_ROUTING = frozenset({Trouble.ENCRYPTED, Trouble.NO_COMMANDS, Trouble.NOT_ASKED})


def step_of(verdict: Verdict, trouble: Trouble | None = None) -> str:
    """The last step that a mail with this verdict has reached; ``trouble`` is what its sender is told."""
    return ROUTED if trouble in _AFTER_ROUTING else _ENDS[verdict][0]


def reason_of(verdict: Verdict) -> str:
    """Why a mail with this verdict went no further, in our words."""
    return _ENDS[verdict][1]


def reason_of_trouble(trouble: Trouble) -> str:
    """Why an answer has not answered its question, in our words; ``""`` of other troubles."""
    return _TROUBLES.get(trouble, "")


async def fates(database: Database, *, since: datetime | None, limit: int) -> tuple[Fate, ...]:
    """The newest fates, newest first, of those decided at ``since`` or later; 1,000 at most."""

    def work(tx: Tx) -> tuple[Fate, ...]:
        return rows.since(tx, since, max(0, min(limit, KEPT)))

    return await database.read(work)
