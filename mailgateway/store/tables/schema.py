"""What all tables share: the schema that they belong to, and how a time is stored."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import BigInteger, Dialect, MetaData, TypeDecorator

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
