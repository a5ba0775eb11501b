"""What understanding mail needs: fates that say why, people who are told, attachments that are left out.

Revision ID: 0002
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables, and columns whose default suits the rows that are there."""
    op.create_table(
        "told",
        sa.Column("address", sa.String(length=320), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("address", "reason"),
    )
    op.create_index(op.f("ix_told_at"), "told", ["at"], unique=False)
    op.create_table(
        "muted",
        sa.Column("scope", sa.String(length=400), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope"),
    )
    op.create_index(op.f("ix_muted_until"), "muted", ["until"], unique=False)
    op.create_table(
        "gap",
        sa.Column("account", sa.String(length=255), nullable=False),
        sa.Column("folder", sa.String(length=255), nullable=False),
        sa.Column("uid_validity", sa.BigInteger(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.Column("looks", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("account", "folder", "uid_validity", "uid"),
    )
    op.create_table(
        "sent_copy",
        sa.Column("outbox_id", sa.String(length=32), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["outbox_id"], ["outbox.id"]),
        sa.PrimaryKeyConstraint("outbox_id"),
    )
    op.create_index(op.f("ix_sent_copy_due_at"), "sent_copy", ["due_at"], unique=False)
    op.create_table(
        "held",
        sa.Column("account", sa.String(length=255), nullable=False),
        sa.Column("folder", sa.String(length=255), nullable=False),
        sa.Column("uid_validity", sa.BigInteger(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.Column("raw_sha256", sa.String(length=64), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.Column("awaits", sa.String(length=16), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("fate_id", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("account", "folder", "uid_validity", "uid"),
    )
    op.add_column(
        "account_health", sa.Column("doubts", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.add_column("fate", sa.Column("reason", sa.Text(), server_default="", nullable=False))
    op.add_column("fate", sa.Column("reply_id", sa.String(length=32), server_default="", nullable=False))
    _add_before_bytes(
        "attachment", "size", sa.Column("left_out", sa.String(length=32), server_default="", nullable=False)
    )
    _add_before_bytes(
        "outbox",
        "content_digest",
        sa.Column("submitted_by", sa.String(length=255), server_default="", nullable=False),
    )


def _add_before_bytes(table: str, after: str, column: "sa.Column[Any]") -> None:
    """Add a column in front of the long last one: SQLite reads through a long value to what stands behind."""
    if op.get_bind().dialect.name != "sqlite":
        op.add_column(table, column)
        return
    with op.batch_alter_table(table, recreate="always") as batch:
        batch.add_column(column, insert_after=after)
