"""Machines, the sessions that run there, and whether they may be heard."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, String, Table, Text, text

from mailgateway.store.tables.schema import Instant, metadata

machine = Table(
    "machine",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("name", String(255), nullable=False),  # the label that people see; it may change
    Column("seen_at", Instant, nullable=False),
)

machine_name = Table(  # every name the machine ever had: tokens minted under an old name still verify
    "machine_name",
    metadata,
    Column("machine_id", ForeignKey("machine.id"), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("digest", String(8), nullable=False),  # hex of ids.device_digest
    Column("first_used_at", Instant, nullable=False),
)

mode = Table(
    "mode",
    metadata,
    Column("machine_id", ForeignKey("machine.id"), primary_key=True),
    Column("mode", String(8), nullable=False),  # on | off
    Column("set_by", String(16), nullable=False),  # session | person: only a person undoes a person's off
    Column("changed_at", Instant, nullable=False),
)

session = Table(
    "session",
    metadata,
    Column("id", String(255), primary_key=True),
    Column("machine_id", ForeignKey("machine.id"), nullable=False),
    Column("digest", String(16), nullable=False, index=True),  # hex of ids.session_digest
    Column("harness", String(64), nullable=False, server_default=""),
    Column("title", Text, nullable=False, server_default=""),
    Column("cwd", Text, nullable=False, server_default=""),
    Column("project", Text, nullable=False, server_default=""),
    Column("branch", Text, nullable=False, server_default=""),
    Column("worktree", Text, nullable=False, server_default=""),
    Column("head", Text, nullable=False, server_default=""),
    Column("dirty", Boolean, nullable=False, server_default=text("false")),
    Column("state", String(16), nullable=False, server_default=""),  # working | blocked | idle | "" unknown
    Column("state_at", Instant),  # since when it is in this state
    Column("first_seen_at", Instant, nullable=False),
    Column("last_ping_at", Instant, nullable=False),
    Column("left_at", Instant),  # said bye; null while it may still be running
)

runtime = Table(  # which running instance has pinged for which session
    "runtime",
    metadata,
    Column("instance_id", String(255), primary_key=True),
    Column("session_id", String(255), primary_key=True),
    Column("last_ping_at", Instant, nullable=False),
    Index("runtime_session", "session_id"),
)
