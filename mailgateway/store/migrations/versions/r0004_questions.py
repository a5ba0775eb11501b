"""What questions need beside decisions: owners, revisions, parents, who read an answer, and the log.

Revision ID: 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables, and columns whose default suits the decisions that are there."""
    _text("question", kind="decision", creator_id="", ambiguity="", mode="single", parent_id="")
    _text("question", content_digest="", source_path="", source_leaf="", replacement_id="")
    op.add_column(
        "question", sa.Column("owner_revision", sa.Integer(), server_default=sa.text("1"), nullable=False)
    )
    op.add_column("question", sa.Column("urgency", sa.Integer(), server_default=sa.text("1"), nullable=False))
    op.add_column("question", sa.Column("request_id", sa.String(length=255), nullable=True))
    op.add_column("question", sa.Column("note", sa.Text(), nullable=True))
    op.add_column(
        "question", sa.Column("attention", sa.Boolean(), server_default=sa.text("true"), nullable=False)
    )
    op.execute("UPDATE question SET creator_id = session_id")
    op.execute("UPDATE question SET attention = false WHERE status <> 'open'")
    op.create_index(op.f("ix_question_parent_id"), "question", ["parent_id"], unique=False)
    op.create_index("question_request", "question", ["creator_id", "request_id"], unique=True)
    op.create_index("question_waiting", "question", ["attention", "urgency", "created_at", "id"])
    op.create_index(
        "question_attention", "question", ["session_id", "attention", "urgency", "created_at", "id"]
    )
    op.create_index("question_age", "question", ["session_id", "created_at", "id"])
    op.create_index("question_ended", "question", ["status", "created_at", "id"])
    op.create_table(
        "question_revision",
        sa.Column("question_id", sa.String(length=32), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("prompt", sa.Text(), nullable=False),
        sa.Column("ambiguity", sa.Text(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("mode", sa.String(length=8), nullable=False),
        sa.Column("urgency", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"]),
        sa.PrimaryKeyConstraint("question_id", "revision"),
    )
    op.execute(
        "INSERT INTO question_revision "
        "SELECT id, revision, prompt, '', options, 'single', 1, created_at FROM question "
        "WHERE status <> 'reserved'"
    )
    op.add_column("session", sa.Column("state_at", sa.BigInteger(), nullable=True))
    op.add_column("answer", sa.Column("chosen", sa.JSON(), nullable=True))
    op.add_column("answer", sa.Column("read_at", sa.BigInteger(), nullable=True))
    _text("answer", read_by="")
    op.create_table(
        "decision_log",
        sa.Column("machine_id", sa.String(length=64), nullable=False),
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("question_id", sa.String(length=32), nullable=False),
        sa.Column("act", sa.String(length=16), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("owner_revision", sa.Integer(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("door", sa.String(length=16), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("machine_id", "number"),
    )
    op.create_index(op.f("ix_decision_log_question_id"), "decision_log", ["question_id"], unique=False)


LENGTHS = {
    "kind": 16,
    "creator_id": 255,
    "mode": 8,
    "parent_id": 32,
    "content_digest": 64,
    "replacement_id": 32,
    "read_by": 255,
}
"""How long the short texts may be; the others have no bound."""


def _text(table: str, **defaults: str) -> None:
    for name, default in defaults.items():
        kind = sa.String(length=LENGTHS[name]) if name in LENGTHS else sa.Text()
        op.add_column(table, sa.Column(name, kind, server_default=default, nullable=False))
