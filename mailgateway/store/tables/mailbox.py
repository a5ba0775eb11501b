"""The way in: accounts, how far each folder was read, and what is known of the mail that was in it."""

from sqlalchemy import BigInteger, Boolean, Column, Integer, String, Table, Text, text

from mailgateway.store.tables.schema import Instant, metadata

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

gap = Table(  # numbers below the cursor under which nothing was there: a mail may become visible late
    "gap",
    metadata,
    Column("account", String(255), primary_key=True),
    Column("folder", String(255), primary_key=True),
    Column("uid_validity", BigInteger, primary_key=True),
    Column("uid", BigInteger, primary_key=True),
    Column("looks", Integer, nullable=False, server_default=text("0")),
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
