"""The first tables.

Revision ID: 0001
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create them."""
    op.create_table(
        "account_health",
        sa.Column("account", sa.String(length=255), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("failure", sa.String(length=32), server_default="", nullable=False),
        sa.Column("failures", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("refusals", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("proven", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("credential_digest", sa.String(length=64), server_default="", nullable=False),
        sa.Column("last_error", sa.Text(), server_default="", nullable=False),
        sa.PrimaryKeyConstraint("account"),
    )
    op.create_table(
        "cursor",
        sa.Column("account", sa.String(length=255), nullable=False),
        sa.Column("folder", sa.String(length=255), nullable=False),
        sa.Column("uid_validity", sa.BigInteger(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "folder"),
    )
    op.create_table(
        "envelope",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("trust", sa.String(length=16), nullable=False),
        sa.Column("session_id", sa.String(length=255), nullable=False),
        sa.Column("machine_id", sa.String(length=64), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("dropped_reason", sa.String(length=32), server_default="", nullable=False),
        sa.Column("claimant", sa.String(length=255), server_default="", nullable=False),
        sa.Column("claimant_machine", sa.String(length=64), server_default="", nullable=False),
        sa.Column("claimant_pid", sa.BigInteger(), nullable=True),
        sa.Column("claimant_started_at", sa.Float(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("quoted", sa.Text(), server_default="", nullable=False),
        sa.Column("from_address", sa.Text(), nullable=False),
        sa.Column("from_name", sa.Text(), server_default="", nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("filed_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.Column("route_id", sa.String(length=16), server_default="", nullable=False),
        sa.Column("device", sa.String(length=255), server_default="", nullable=False),
        sa.Column("account", sa.String(length=255), server_default="", nullable=False),
        sa.Column("folder", sa.String(length=255), server_default="", nullable=False),
        sa.Column("uid_validity", sa.BigInteger(), nullable=True),
        sa.Column("uid", sa.BigInteger(), nullable=True),
        sa.Column("message_id", sa.Text(), server_default="", nullable=False),
        sa.Column("in_reply_to", sa.Text(), server_default="", nullable=False),
        sa.Column("question_id", sa.String(length=32), server_default="", nullable=False),
        sa.Column("choice", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("envelope_open", "envelope", ["session_id", "state", "number"], unique=False)
    op.create_index("envelope_place", "envelope", ["account", "folder", "uid_validity", "uid"], unique=False)
    op.create_index("envelope_settled", "envelope", ["settled_at"], unique=False)
    op.create_index("envelope_waiting", "envelope", ["state", "number"], unique=False)
    op.create_index(op.f("ix_envelope_number"), "envelope", ["number"], unique=False)
    op.create_table(
        "fate",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("account", sa.String(length=255), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("from_address", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.Column("step", sa.String(length=32), nullable=False),
        sa.Column("envelope_id", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_fate_at"), "fate", ["at"], unique=False)
    op.create_table(
        "flagging",
        sa.Column("account", sa.String(length=255), nullable=False),
        sa.Column("folder", sa.String(length=255), nullable=False),
        sa.Column("uid_validity", sa.BigInteger(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("account", "folder", "uid_validity", "uid"),
    )
    op.create_table(
        "journal",
        sa.Column("envelope_id", sa.String(length=32), nullable=False),
        sa.Column("session_id", sa.String(length=255), nullable=False),
        sa.Column("instance_id", sa.String(length=255), nullable=False),
        sa.Column("acked_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("envelope_id"),
    )
    op.create_index(op.f("ix_journal_acked_at"), "journal", ["acked_at"], unique=False)
    op.create_table(
        "lease",
        sa.Column("resource", sa.String(length=512), nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("resource"),
    )
    op.create_table(
        "machine",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("account", sa.String(length=255), nullable=False),
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("session_id", sa.String(length=255), server_default="", nullable=False),
        sa.Column("question_id", sa.String(length=32), server_default="", nullable=False),
        sa.Column("route_id", sa.String(length=16), server_default="", nullable=False),
        sa.Column("message_id", sa.String(length=998), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("sender", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), server_default="", nullable=False),
        sa.Column("last_code", sa.Integer(), nullable=True),
        sa.Column("idempotency_key", sa.String(length=255), nullable=True),
        sa.Column("content_digest", sa.String(length=64), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.Column("raw", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_outbox_created_at"), "outbox", ["created_at"], unique=False)
    op.create_index(op.f("ix_outbox_number"), "outbox", ["number"], unique=False)
    op.create_index("outbox_due", "outbox", ["state", "next_attempt_at"], unique=False)
    op.create_index("outbox_key", "outbox", ["session_id", "idempotency_key"], unique=True)
    op.create_table(
        "question",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("session_id", sa.String(length=255), nullable=False),
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("blocking", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("revision", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("subject", sa.Text(), server_default="", nullable=False),
        sa.Column("prompt", sa.Text(), server_default="", nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("recommendation", sa.Text(), server_default="", nullable=False),
        sa.Column("route_id", sa.String(length=16), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("settled_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_question_session_id"), "question", ["session_id"], unique=False)
    op.create_index(
        "question_blocking",
        "question",
        ["session_id"],
        unique=True,
        sqlite_where=sa.text("blocking AND status IN ('reserved', 'open')"),
        postgresql_where=sa.text("blocking AND status IN ('reserved', 'open')"),
    )
    op.create_table(
        "route",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("purpose", sa.String(length=16), nullable=False),
        sa.Column("session_id", sa.String(length=255), nullable=False),
        sa.Column("question_id", sa.String(length=32), server_default="", nullable=False),
        sa.Column("revision", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("recipient", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_route_session_id"), "route", ["session_id"], unique=False)
    op.create_table(
        "runtime",
        sa.Column("instance_id", sa.String(length=255), nullable=False),
        sa.Column("session_id", sa.String(length=255), nullable=False),
        sa.Column("last_ping_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("instance_id", "session_id"),
    )
    op.create_index("runtime_session", "runtime", ["session_id"], unique=False)
    op.create_table(
        "settle",
        sa.Column("session_id", sa.String(length=255), nullable=False),
        sa.Column("instance_id", sa.String(length=255), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("aborted", sa.Boolean(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id"),
    )
    op.create_table(
        "source",
        sa.Column("account", sa.String(length=255), nullable=False),
        sa.Column("folder", sa.String(length=255), nullable=False),
        sa.Column("uid_validity", sa.BigInteger(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.Column("raw_sha256", sa.String(length=64), nullable=False),
        sa.Column("said_sha256", sa.String(length=64), server_default="", nullable=False),
        sa.Column("envelope_id", sa.String(length=32), nullable=False),
        sa.Column("filed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "folder", "uid_validity", "uid"),
    )
    op.create_index(op.f("ix_source_envelope_id"), "source", ["envelope_id"], unique=False)
    op.create_index(op.f("ix_source_raw_sha256"), "source", ["raw_sha256"], unique=False)
    op.create_index(op.f("ix_source_said_sha256"), "source", ["said_sha256"], unique=False)
    op.create_table(
        "upload",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("session_id", sa.String(length=255), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "answer",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("question_id", sa.String(length=32), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("choice", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("answered_by", sa.Text(), nullable=False),
        sa.Column("door", sa.String(length=16), nullable=False),
        sa.Column("answered_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["question_id"],
            ["question.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("question_id"),
    )
    op.create_table(
        "attachment",
        sa.Column("envelope_id", sa.String(length=32), nullable=False),
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["envelope_id"],
            ["envelope.id"],
        ),
        sa.PrimaryKeyConstraint("envelope_id", "id"),
    )
    op.create_table(
        "machine_name",
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("digest", sa.String(length=8), nullable=False),
        sa.Column("first_used_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["machine_id"],
            ["machine.id"],
        ),
        sa.PrimaryKeyConstraint("machine_id", "name"),
    )
    op.create_table(
        "mode",
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("mode", sa.String(length=8), nullable=False),
        sa.Column("set_by", sa.String(length=16), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["machine_id"],
            ["machine.id"],
        ),
        sa.PrimaryKeyConstraint("machine_id"),
    )
    op.create_table(
        "recipient",
        sa.Column("outbox_id", sa.String(length=32), nullable=False),
        sa.Column("address", sa.String(length=320), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("code", sa.Integer(), nullable=True),
        sa.Column("reply", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["outbox_id"],
            ["outbox.id"],
        ),
        sa.PrimaryKeyConstraint("outbox_id", "address"),
    )
    op.create_table(
        "session",
        sa.Column("id", sa.String(length=255), nullable=False),
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=16), nullable=False),
        sa.Column("harness", sa.String(length=64), server_default="", nullable=False),
        sa.Column("title", sa.Text(), server_default="", nullable=False),
        sa.Column("cwd", sa.Text(), server_default="", nullable=False),
        sa.Column("project", sa.Text(), server_default="", nullable=False),
        sa.Column("branch", sa.Text(), server_default="", nullable=False),
        sa.Column("worktree", sa.Text(), server_default="", nullable=False),
        sa.Column("head", sa.Text(), server_default="", nullable=False),
        sa.Column("dirty", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("state", sa.String(length=16), server_default="", nullable=False),
        sa.Column("first_seen_at", sa.BigInteger(), nullable=False),
        sa.Column("last_ping_at", sa.BigInteger(), nullable=False),
        sa.Column("left_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["machine_id"],
            ["machine.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_session_digest"), "session", ["digest"], unique=False)
    op.create_table(
        "thread",
        sa.Column("message_id", sa.String(length=998), nullable=False),
        sa.Column("route_id", sa.String(length=16), nullable=False),
        sa.Column("outbox_id", sa.String(length=32), server_default="", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_text", sa.Text(), server_default="", nullable=False),
        sa.ForeignKeyConstraint(
            ["route_id"],
            ["route.id"],
        ),
        sa.PrimaryKeyConstraint("message_id"),
    )
    op.create_index(op.f("ix_thread_route_id"), "thread", ["route_id"], unique=False)


def downgrade() -> None:
    """There is no way back but a backup."""
    raise NotImplementedError("restore the backup that was made before the upgrade")
