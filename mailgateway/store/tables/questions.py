"""Questions with their revisions and answers, and the log of all that was decided about them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    String,
    Table,
    Text,
    event,
    text,
)
from sqlalchemy.types import JSON

from mailgateway.store.tables.schema import Instant, metadata

question = Table(
    "question",
    metadata,
    Column("id", String(32), primary_key=True),  # q- and 24 hex
    Column("session_id", String(255), nullable=False, index=True),  # its owner, who may change
    Column("machine_id", String(64), nullable=False),
    Column("blocking", Boolean, nullable=False),
    Column("status", String(16), nullable=False),  # reserved open answered cancelled expired superseded
    Column("revision", Integer, nullable=False, server_default=text("1")),
    Column("subject", Text, nullable=False, server_default=""),
    Column("prompt", Text, nullable=False, server_default=""),
    Column("options", JSON, nullable=False),
    Column("recommendation", Text, nullable=False, server_default=""),
    Column("route_id", String(16), nullable=False, server_default=""),
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant),  # null: never
    Column("settled_at", Instant),
    Column("kind", String(16), nullable=False, server_default="decision"),  # decision | question
    Column("creator_id", String(255), nullable=False, server_default=""),  # session; never changes
    Column("owner_revision", Integer, nullable=False, server_default=text("1")),
    Column("ambiguity", Text, nullable=False, server_default=""),
    Column("mode", String(8), nullable=False, server_default="single"),  # single | multi
    Column("urgency", Integer, nullable=False, server_default=text("1")),  # 0 high, 1 normal, 2 low
    Column("parent_id", String(32), nullable=False, server_default="", index=True),
    Column("request_id", String(255)),  # of the creator's making; the same one makes no second question
    Column("content_digest", String(64), nullable=False, server_default=""),  # of what was first asked
    Column("source_path", Text, nullable=False, server_default=""),  # where in the session it was asked
    Column("source_leaf", Text, nullable=False, server_default=""),
    Column("replacement_id", String(32), nullable=False, server_default=""),  # by which it was superseded
    Column("note", Text),  # why it was cancelled
    Column(
        "attention", Boolean, nullable=False, server_default=text("true")
    ),  # open, or its end not yet read
    Index("question_request", "creator_id", "request_id", unique=True),
    Index("question_waiting", "attention", "urgency", "created_at", "id"),
    Index("question_attention", "session_id", "attention", "urgency", "created_at", "id"),
    Index("question_age", "session_id", "created_at", "id"),
    Index("question_ended", "status", "created_at", "id"),
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


question_revision = Table(  # what a question said; written once, never changed
    "question_revision",
    metadata,
    Column("question_id", ForeignKey("question.id"), primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("prompt", Text, nullable=False),
    Column("ambiguity", Text, nullable=False),
    Column("options", JSON, nullable=False),
    Column("mode", String(8), nullable=False),
    Column("urgency", Integer, nullable=False),
    Column("at", Instant, nullable=False),
)

answer = Table(
    "answer",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("question_id", ForeignKey("question.id"), nullable=False, unique=True),  # the first answer wins
    Column("revision", Integer, nullable=False),
    Column("choice", Text),  # a single value; null: several, or words alone
    Column("note", Text),
    Column("text", Text, nullable=False),
    Column("answered_by", Text, nullable=False),
    Column("door", String(16), nullable=False),  # mail | web | terminal | api
    Column("answered_at", Instant, nullable=False),
    Column("chosen", JSON),  # every value that was chosen; null in rows of before
    Column("read_at", Instant),  # by the first session that read it
    Column("read_by", String(255), nullable=False, server_default=""),
)

decision_log = Table(  # who decided what, by which door, when; rows are only ever added
    "decision_log",
    metadata,
    Column("machine_id", String(64), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),  # 1, 2, 3 ... of the machine
    Column("question_id", String(32), nullable=False, index=True),
    Column("act", String(16), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("owner_revision", Integer, nullable=False),
    Column("by", Text, nullable=False),
    Column("door", String(16), nullable=False),
    Column("at", Instant, nullable=False),
    Column("details", Text, nullable=False),  # canonical JSON
    Column("digest", String(64), nullable=False),  # SHA-256 over all of it and the digest before
)
