"""What sending and telling people needs.

Revision ID: 0003
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables, and columns whose default suits the rows that are there."""
    _attention()


def _attention() -> None:
    """Mails that are held back, reminders, and settled turns that were not mailed."""
    op.create_table(
        "held_mail",
        sa.Column("outbox_id", sa.String(length=32), nullable=False),
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("held_for", sa.String(length=16), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("alone", sa.Boolean(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["outbox_id"], ["outbox.id"]),
        sa.PrimaryKeyConstraint("outbox_id"),
    )
    op.create_index(op.f("ix_held_mail_machine_id"), "held_mail", ["machine_id"], unique=False)
    op.create_table(
        "reminder",
        sa.Column("question_id", sa.String(length=32), nullable=False),
        sa.Column("times", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_at", sa.BigInteger(), nullable=True),
        sa.Column("escalated_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("question_id"),
    )
    op.create_table(
        "withheld",
        sa.Column("session_id", sa.String(length=255), nullable=False),
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("code", sa.String(length=32), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_id"),
    )
    op.create_index(op.f("ix_withheld_at"), "withheld", ["at"], unique=False)
    op.add_column("settle", sa.Column("machine_id", sa.String(length=64), server_default="", nullable=False))
    op.execute(
        "UPDATE settle SET machine_id = coalesce("
        "(SELECT session.machine_id FROM session WHERE session.id = settle.session_id), '')"
    )
    _add_to_outbox(
        "submitted_by",
        sa.Column("held_until", sa.BigInteger(), nullable=True),
        sa.Column("carried_by", sa.String(length=32), server_default="", nullable=False),
    )


def _add_to_outbox(after: str, *columns: "sa.Column[Any]") -> None:
    """Add columns in front of the long last one: SQLite reads through a long value to what stands behind."""
    if op.get_bind().dialect.name != "sqlite":
        for column in columns:
            op.add_column("outbox", column)
        return
    with op.batch_alter_table("outbox", recreate="always") as batch:
        for column in columns:
            batch.add_column(column, insert_after=after)
            after = column.name
