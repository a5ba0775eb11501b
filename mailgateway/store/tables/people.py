"""Where people are logged in, and what they call sessions."""

from sqlalchemy import Column, String, Table, Text

from mailgateway.store.tables.schema import Instant, metadata

login_link = Table(  # may be used once, until it expires
    "login_link",
    metadata,
    Column("digest", String(64), primary_key=True),  # SHA-256 of its code
    Column("person", Text, nullable=False),  # an address, or the name of the key that made it
    Column("created_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
)

login = Table(  # one browser of a person
    "login",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),  # SHA-256 of its cookie
    Column("person", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("seen_at", Instant, nullable=False),  # to about ten minutes
)

alias = Table(  # what people call a session, in place of its own title
    "alias",
    metadata,
    Column("session_id", String(255), primary_key=True),
    Column("name", Text, nullable=False),
    Column("at", Instant, nullable=False),
)
