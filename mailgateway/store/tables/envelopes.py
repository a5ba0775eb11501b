"""Envelopes and their delivery."""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, LargeBinary, String, Table, Text

from mailgateway.store.tables.schema import Instant, metadata

envelope = Table(
    "envelope",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("number", BigInteger, nullable=False, index=True),  # order of filing, oldest first
    Column("kind", String(16), nullable=False),
    Column("trust", String(16), nullable=False),
    Column("session_id", String(255), nullable=False),
    Column("machine_id", String(64)),  # null: of no machine
    Column("state", String(16), nullable=False),  # new | claimed | acked | dropped
    Column("dropped_reason", String(32), nullable=False, server_default=""),
    Column("claimant", String(255), nullable=False, server_default=""),  # instance id
    Column("claimant_machine", String(64), nullable=False, server_default=""),
    Column("claimant_pid", BigInteger),
    Column("claimant_started_at", Float),
    Column("lease_until", Instant),
    Column("subject", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("quoted", Text, nullable=False, server_default=""),
    Column("from_address", Text, nullable=False),
    Column("from_name", Text, nullable=False, server_default=""),
    Column("received_at", Instant, nullable=False),
    Column("filed_at", Instant, nullable=False),
    Column("settled_at", Instant),  # acked or dropped
    Column("route_id", String(16), nullable=False, server_default=""),
    Column("device", String(255), nullable=False, server_default=""),
    Column("account", String(255), nullable=False, server_default=""),
    Column("folder", String(255), nullable=False, server_default=""),
    Column("uid_validity", BigInteger),
    Column("uid", BigInteger),
    Column("message_id", Text, nullable=False, server_default=""),
    Column("in_reply_to", Text, nullable=False, server_default=""),
    Column("question_id", String(32), nullable=False, server_default=""),
    Column("choice", Text),
    Column("note", Text),
    Index("envelope_open", "session_id", "state", "number"),
    Index("envelope_waiting", "state", "number"),
    Index("envelope_place", "account", "folder", "uid_validity", "uid"),
    Index("envelope_settled", "settled_at"),
)

attachment = Table(  # parts of mails that became envelopes; only the claimant fetches them
    "attachment",
    metadata,
    Column("envelope_id", ForeignKey("envelope.id"), primary_key=True),
    Column("id", String(16), primary_key=True),
    Column("filename", Text, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("left_out", String(32), nullable=False, server_default=""),  # why its bytes are not kept
    Column("data", LargeBinary, nullable=False),
)

journal = Table(  # what was acked, and by whom; outlives the body of the envelope
    "journal",
    metadata,
    Column("envelope_id", String(32), primary_key=True),
    Column("session_id", String(255), nullable=False),
    Column("instance_id", String(255), nullable=False),  # empty: consumed by the gateway itself
    Column("acked_at", Instant, nullable=False, index=True),
)
