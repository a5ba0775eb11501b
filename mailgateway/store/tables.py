"""The tables, as one picture of everything that outlives the process.

Times are instants of the database's clock, stored as whole microseconds since 1970 (``Instant``), so that
both databases compare and index them alike.  Ids are text.  Unique keys carry the invariants: one row per
mail (``source``), one open blocking question per session (``question_blocking``), one outbox row per
idempotency key, one lease per resource.  Ids of routes are never deleted, hence never issued again.

Changing a table here needs a migration in ``migrations/versions``; a test compares the two.
"""

from datetime import UTC, datetime, timedelta

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    event,
    text,
)
from sqlalchemy.types import JSON

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Instant(TypeDecorator[datetime]):
    """An aware UTC ``datetime``, stored as whole microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002 (SQLAlchemy's signature)
        """Turn an aware time into microseconds; integer arithmetic, since a float would round."""
        return None if value is None else (value - EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 (SQLAlchemy's signature)
        """Turn microseconds back into an aware UTC time."""
        return None if value is None else EPOCH + timedelta(microseconds=value)


metadata = MetaData()

# --- machines, sessions, mode -----------------------------------------------------------------------

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

# --- the mailbox: accounts, cursors, what was taken in --------------------------------------------------

account_health = Table(  # survives a restart, so that a service manager cannot make us hammer a provider
    "account_health",
    metadata,
    Column("account", String(255), primary_key=True),  # "main" for IMAP, "main:smtp" for its other door
    Column("state", String(32), nullable=False),  # connecting | watching | polling | backing-off | refused
    Column("since", Instant, nullable=False),
    Column("failure", String(32), nullable=False, server_default=""),  # class of the last failure
    Column("failures", Integer, nullable=False, server_default=text("0")),
    Column("next_attempt_at", Instant),  # null: not waiting, or waiting for the operator
    Column("refusals", Integer, nullable=False, server_default=text("0")),  # of this credential
    Column("proven", Boolean, nullable=False, server_default=text("false")),  # it has logged in here
    Column("doubts", Integer, nullable=False, server_default=text("0")),  # refusals without a reason since
    Column("credential_digest", String(64), nullable=False, server_default=""),  # keyed; tells a changed one
    Column("last_error", Text, nullable=False, server_default=""),
)

lease = Table(
    "lease",
    metadata,
    Column("resource", String(512), primary_key=True),  # "folder:<account>/<folder>"
    Column("holder", String(64), nullable=False),  # machine id
    Column("fence", BigInteger, nullable=False),  # grows with every take-over; a stale holder is refused
    Column("until", Instant, nullable=False),
)

cursor = Table(
    "cursor",
    metadata,
    Column("account", String(255), primary_key=True),
    Column("folder", String(255), primary_key=True),
    Column("uid_validity", BigInteger, nullable=False),  # 0: the server does not tell
    Column("uid", BigInteger, nullable=False),  # everything up to here is persisted or refused
    Column("moved_at", Instant, nullable=False),
)

source = Table(  # one row per mail that became an envelope or was consumed; unrelated mail leaves none
    "source",
    metadata,
    Column("account", String(255), primary_key=True),
    Column("folder", String(255), primary_key=True),
    Column("uid_validity", BigInteger, primary_key=True),
    Column("uid", BigInteger, primary_key=True),
    Column("raw_sha256", String(64), nullable=False, index=True),
    Column(
        "said_sha256", String(64), nullable=False, server_default="", index=True
    ),  # who, when, which words
    Column("envelope_id", String(32), nullable=False, index=True),
    Column("filed_at", Instant, nullable=False),
)

flagging = Table(  # \Seen still to be set; an ack never waits for IMAP
    "flagging",
    metadata,
    Column("account", String(255), primary_key=True),
    Column("folder", String(255), primary_key=True),
    Column("uid_validity", BigInteger, primary_key=True),
    Column("uid", BigInteger, primary_key=True),
    Column("asked_at", Instant, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
)

fate = Table(  # what became of mail that concerns us; bounded to 1,000 rows
    "fate",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("account", String(255), nullable=False),
    Column("at", Instant, nullable=False, index=True),
    Column("received_at", Instant, nullable=False),
    Column("from_address", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("verdict", String(32), nullable=False),  # delivered, or a scan verdict
    Column("step", String(32), nullable=False),  # how far it came; the envelope tells what came after
    Column("envelope_id", String(32)),
    Column("reason", Text, nullable=False, server_default=""),  # why it went no further, in our words
    Column("reply_id", String(32), nullable=False, server_default=""),  # outbox: what the person was told
)

held = Table(  # mail whose evidence may come yet; its bytes stay on the server, and the cursor is past it
    "held",
    metadata,
    Column("account", String(255), primary_key=True),
    Column("folder", String(255), primary_key=True),
    Column("uid_validity", BigInteger, primary_key=True),
    Column("uid", BigInteger, primary_key=True),
    Column("raw_sha256", String(64), nullable=False),
    Column("received_at", Instant, nullable=False),
    Column("awaits", String(16), nullable=False),  # key | sent-copy
    Column("until", Instant, nullable=False),  # it is judged then, without the evidence if need be
    Column("next_at", Instant, nullable=False),
    Column("tries", Integer, nullable=False, server_default=text("0")),
    Column("fate_id", BigInteger),  # the fate that says so, which the last one replaces
)

told = Table(  # what a person was told lately about a mail that could not be used: once a day for each reason
    "told",
    metadata,
    Column("address", String(320), primary_key=True),
    Column("reason", String(32), primary_key=True),
    Column("at", Instant, nullable=False, index=True),
)

muted = Table(  # where we have said so much by ourselves that we say no more for a while: maybe a loop
    "muted",
    metadata,
    Column("scope", String(400), primary_key=True),  # "thread:<route>" | "person:<address>"
    Column("since", Instant, nullable=False),
    Column("until", Instant, nullable=False, index=True),
)

# --- envelopes and their delivery -----------------------------------------------------------------------

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

# --- the way out: routes, threads, questions, outbox -----------------------------------------------------

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

gap = Table(  # numbers below the cursor under which nothing was there: a mail may become visible late
    "gap",
    metadata,
    Column("account", String(255), primary_key=True),
    Column("folder", String(255), primary_key=True),
    Column("uid_validity", BigInteger, primary_key=True),
    Column("uid", BigInteger, primary_key=True),
    Column("looks", Integer, nullable=False, server_default=text("0")),
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
