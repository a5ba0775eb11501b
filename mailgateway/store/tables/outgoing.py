"""The way out: routes, threads, questions, and the mail that asks them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    event,
    text,
)
from sqlalchemy.types import JSON

from mailgateway.store.tables.schema import Instant, metadata

route = Table(
    "route",
    metadata,
    Column("id", String(16), primary_key=True),  # 6 or 8 hex digits, never issued twice
    Column("purpose", String(16), nullable=False),  # session | question | approval
    Column("session_id", String(255), nullable=False, index=True),
    Column("question_id", String(32), nullable=False, server_default=""),
    Column("revision", Integer, nullable=False, server_default=text("1")),
    Column("machine_id", String(64), nullable=False),
    Column("recipient", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
)

thread = Table(
    "thread",
    metadata,
    Column("message_id", String(998), primary_key=True),
    Column("route_id", ForeignKey("route.id"), nullable=False, index=True),
    Column("outbox_id", String(32), nullable=False, server_default=""),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
    Column("sent_text", Text, nullable=False, server_default=""),  # at most 64 kB: what we know of the quote
)

question = Table(
    "question",
    metadata,
    Column("id", String(32), primary_key=True),  # q- and 24 hex
    Column("session_id", String(255), nullable=False, index=True),
    Column("machine_id", String(64), nullable=False),
    Column("blocking", Boolean, nullable=False),
    Column("status", String(16), nullable=False),  # reserved | open | answered | cancelled | expired
    Column("revision", Integer, nullable=False, server_default=text("1")),
    Column("subject", Text, nullable=False, server_default=""),
    Column("prompt", Text, nullable=False, server_default=""),
    Column("options", JSON, nullable=False),
    Column("recommendation", Text, nullable=False, server_default=""),
    Column("route_id", String(16), nullable=False, server_default=""),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),
    Column("settled_at", Instant),
)

_OUTSTANDING = text("blocking AND status IN ('reserved', 'open')")

_question_blocking = Index(  # the one outstanding decision of a session
    "question_blocking", question.c.session_id, unique=True, sqlite_where=_OUTSTANDING
)


@event.listens_for(question, "before_create")
def _also_on_postgresql(_table: Table, connection: Connection, **_how: object) -> None:
    """Make it a partial index there, too; said only here, since the dialect costs 2 MB where it is named."""
    if connection.dialect.name == "postgresql":
        _question_blocking.dialect_options["postgresql"]["where"] = _OUTSTANDING


answer = Table(
    "answer",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("question_id", ForeignKey("question.id"), nullable=False, unique=True),  # the first answer wins
    Column("revision", Integer, nullable=False),
    Column("choice", Text),
    Column("note", Text),
    Column("text", Text, nullable=False),
    Column("answered_by", Text, nullable=False),
    Column("door", String(16), nullable=False),  # mail | web | terminal
    Column("answered_at", Instant, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", String(32), primary_key=True),  # o- and 24 hex
    Column("number", BigInteger, nullable=False, index=True),  # order of submission
    Column("kind", String(16), nullable=False),  # notification | settle | decision | notice
    Column("account", String(255), nullable=False),
    Column("machine_id", String(64), nullable=False),
    Column("session_id", String(255), nullable=False, server_default=""),
    Column("question_id", String(32), nullable=False, server_default=""),
    Column("route_id", String(16), nullable=False, server_default=""),
    Column("message_id", String(998), nullable=False),
    Column("subject", Text, nullable=False),
    Column("sender", Text, nullable=False),  # MAIL FROM
    Column("state", String(16), nullable=False),  # queued | sending | sent | failed | cancelled | unclear
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("next_attempt_at", Instant),
    Column("lease_until", Instant),
    Column("last_error", Text, nullable=False, server_default=""),
    Column("last_code", Integer),
    Column("idempotency_key", String(255)),
    Column("content_digest", String(64), nullable=False, server_default=""),
    Column("submitted_by", String(255), nullable=False, server_default=""),  # the name of the key; its budget
    Column("created_at", Instant, nullable=False, index=True),
    Column("settled_at", Instant),
    # last, since SQLite reads through a long value to whatever stands behind it
    Column("raw", LargeBinary, nullable=False),  # the final bytes; what was composed is what is sent
    Index("outbox_due", "state", "next_attempt_at"),
    Index("outbox_key", "session_id", "idempotency_key", unique=True),
)

recipient = Table(
    "recipient",
    metadata,
    Column("outbox_id", ForeignKey("outbox.id"), primary_key=True),
    Column("address", String(320), primary_key=True),
    Column("state", String(16), nullable=False),  # waiting accepted rejected unclear lost bounced
    Column("code", Integer),
    Column("reply", Text, nullable=False, server_default=""),
)

sent_copy = Table(  # mails of which a copy is to be put into the Sent folder
    "sent_copy",
    metadata,
    Column("outbox_id", ForeignKey("outbox.id"), primary_key=True),
    Column("due_at", Instant, nullable=False, index=True),
    Column("tries", Integer, nullable=False, server_default=text("0")),
)

settle = Table(  # the debounced "the session's turn is over"; a newer one replaces the one that waits
    "settle",
    metadata,
    Column("session_id", String(255), primary_key=True),
    Column("instance_id", String(255), nullable=False),
    Column("summary", Text, nullable=False),
    Column("aborted", Boolean, nullable=False),
    Column("due_at", Instant, nullable=False),
)

upload = Table(  # files that clients uploaded for a mail to come; used within an hour or forgotten
    "upload",
    metadata,
    Column("id", String(32), primary_key=True),  # a- and 24 hex
    Column("session_id", String(255), nullable=False),
    Column("filename", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("path", Text, nullable=False),  # below the state directory; never a path that a request named
    Column("created_at", Instant, nullable=False),
)
