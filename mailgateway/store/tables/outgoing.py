"""The way out: routes, threads, and the mail that leaves."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    text,
)

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
    Column("state", String(16), nullable=False),  # domain.outbox.OutboxState
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("next_attempt_at", Instant),
    Column("lease_until", Instant),
    Column("last_error", Text, nullable=False, server_default=""),
    Column("last_code", Integer),
    Column("idempotency_key", String(255)),
    Column("content_digest", String(64), nullable=False, server_default=""),
    Column("submitted_by", String(255), nullable=False, server_default=""),  # the name of the key; its budget
    Column("held_until", Instant),  # null: it is not held back (``held_mail``)
    Column("carried_by", String(32), nullable=False, server_default=""),  # the mail that it left within
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
