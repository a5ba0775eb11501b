"""What waits for the right time: settled turns, mails that are held back, decisions to be brought to mind."""

from sqlalchemy import Boolean, Column, ForeignKey, Integer, String, Table, Text, text

from mailgateway.store.tables.schema import Instant, metadata

settle = Table(  # the debounced "the session's turn is over"; a newer one replaces the one that waits
    "settle",
    metadata,
    Column("session_id", String(255), primary_key=True),
    Column("instance_id", String(255), nullable=False),
    Column("summary", Text, nullable=False),
    Column("aborted", Boolean, nullable=False),
    Column("due_at", Instant, nullable=False),
    Column("machine_id", String(64), nullable=False, server_default=""),  # where it was said, and is mailed
)

withheld = Table(  # the last settled turn of a session that was not mailed, and why; for `status`
    "withheld",
    metadata,
    Column("session_id", String(255), primary_key=True),
    Column("machine_id", String(64), nullable=False),
    Column("code", String(32), nullable=False),
    Column("at", Instant, nullable=False, index=True),
)

held_mail = Table(  # mails of the outbox that are held back; the row goes when the mail may leave
    "held_mail",
    metadata,
    Column("outbox_id", ForeignKey("outbox.id"), primary_key=True),
    Column("machine_id", String(64), nullable=False, index=True),
    Column("held_for", String(16), nullable=False),  # quiet | bundle
    Column("until", Instant, nullable=False),
    Column("alone", Boolean, nullable=False),  # it cannot leave together with others
    Column("subject", Text, nullable=False),  # as it was submitted, without the tag
    Column("words", Text, nullable=False),  # Markdown
)

reminder = Table(  # how often, and when last, an open decision was brought to mind
    "reminder",
    metadata,
    Column("question_id", String(32), primary_key=True),
    Column("times", Integer, nullable=False, server_default=text("0")),
    Column("last_at", Instant),
    Column("escalated_at", Instant),
)
