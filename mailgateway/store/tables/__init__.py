"""The tables, as one picture of everything that outlives the process.

Times are instants of the database's clock, stored as whole microseconds since 1970 (``Instant``), so that
both databases compare and index them alike.  Ids are text.  Unique keys carry the invariants: one row per
mail (``source``), one open blocking question per session (``question_blocking``), one outbox row per
idempotency key, one lease per resource.  Ids of routes are never deleted, hence never issued again.

The modules follow a mail: who is there, what came in, what is delivered, what goes out.  Changing a table
needs a migration in ``migrations/versions``; a test compares the two.
"""

from mailgateway.store.tables.attention import held_mail, reminder, settle, withheld
from mailgateway.store.tables.envelopes import attachment, envelope, journal
from mailgateway.store.tables.mailbox import (
    account_health,
    cursor,
    fate,
    flagging,
    gap,
    held,
    lease,
    muted,
    source,
    told,
)
from mailgateway.store.tables.outgoing import (
    outbox,
    recipient,
    route,
    sent_copy,
    thread,
    upload,
)
from mailgateway.store.tables.people import alias, login, login_link
from mailgateway.store.tables.questions import answer, decision_log, question, question_revision
from mailgateway.store.tables.schema import EPOCH, Instant, metadata
from mailgateway.store.tables.sessions import machine, machine_name, mode, runtime, session

__all__ = [
    "EPOCH",
    "Instant",
    "account_health",
    "alias",
    "answer",
    "attachment",
    "cursor",
    "decision_log",
    "envelope",
    "fate",
    "flagging",
    "gap",
    "held",
    "held_mail",
    "journal",
    "lease",
    "login",
    "login_link",
    "machine",
    "machine_name",
    "metadata",
    "mode",
    "muted",
    "outbox",
    "question",
    "question_revision",
    "recipient",
    "reminder",
    "route",
    "runtime",
    "sent_copy",
    "session",
    "settle",
    "source",
    "thread",
    "told",
    "upload",
    "withheld",
]
