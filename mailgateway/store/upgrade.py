"""Opening the database: made when it is new, upgraded when it is old, refused when it is newer than we are.

The usual start finds everything in place and costs one small query; alembic, which is slow to import, is
loaded only when there is something to migrate.  A new database is created from ``tables`` at once and
stamped with the newest revision; a test says that this is what the migrations make.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, inspect, select, text

from mailgateway.errors import ConfigError, Problem, SchemaTooNew, StoreUnavailable
from mailgateway.store.database import (
    begin,
    begun,
    postgres_database_engine,
    sqlite_database_engine,
    unavailability,
)
from mailgateway.store.tables import metadata

REVISIONS = ("0001", "0002", "0003", "0004", "0005")
"""Every revision in ``migrations/versions``, oldest first; the last is what this version works with."""

HEAD = REVISIONS[-1]

LOCK = 0x6D61696C6777
"""Key of the PostgreSQL advisory lock under which gateways upgrade one after the other."""

_stamp = MetaData()
_version = Table("alembic_version", _stamp, Column("version_num", String(32), primary_key=True))


def open_engine(where: str | Path) -> Engine:
    """An engine on a ``postgresql://`` URL, or on an SQLite file, whose folder and file are made private.

    ``ConfigError`` for a URL that cannot be served, ``StoreUnavailable`` for a file that cannot be made.
    """
    if isinstance(where, Path):
        try:
            where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _private(where)
        except OSError as error:
            raise StoreUnavailable(f"{where} cannot be used: {error.strerror}") from None
        return sqlite_database_engine(where)
    if not where.startswith("postgresql://"):
        raise _setting("must begin with postgresql:// (or stay empty for a file in the state directory)")
    try:
        return postgres_database_engine(where)
    except ModuleNotFoundError:
        raise _setting("needs the extra: pip install 'mailgateway[postgres]'") from None


def upgrade(engine: Engine, backup_dir: Path | None = None) -> None:
    """Bring the schema to what this version works with; call it before anything else uses the engine.

    An older SQLite file is copied into ``backup_dir`` (``None``: its own folder) before it is changed.  On
    PostgreSQL one gateway at a time does this, the others wait.  ``SchemaTooNew`` for a database of a newer
    version, ``StoreUnavailable`` for one that cannot be used; either leaves it as it was.
    """
    with unavailability():
        with begun(engine, reading=True) as connection:
            current = _revision(connection)
        if current == HEAD:
            return
        if current is not None:
            _back_up(engine, backup_dir, current)
        with _alone(engine) as connection:
            current = _revision(connection)  # again: another gateway may have been faster
            if current is None:
                metadata.create_all(connection)
                _stamp.create_all(connection)
                connection.execute(_version.insert(), {"version_num": HEAD})
            elif current != HEAD:
                migrate(connection)


def migrate(connection: Connection) -> None:
    """Run the migrations that the database lacks, in the open transaction."""
    from alembic import command  # noqa: PLC0415 (loaded only when needed: it costs a third of a start)
    from alembic.config import Config  # noqa: PLC0415 (as above)

    config = Config()
    config.set_main_option("script_location", "mailgateway.store:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    """The revision of the database, ``None`` when it is empty; refuses what is not ours or newer."""
    tables = inspect(connection)
    if not tables.has_table(_version.name):
        if tables.has_table("envelope"):
            raise StoreUnavailable("the database has tables like ours but no revision; name another one")
        return None
    found: str | None = connection.execute(select(_version.c.version_num)).scalar()
    if found is not None and found not in REVISIONS:
        raise SchemaTooNew(
            f"the database has revision {found}, this mailgateway knows up to {HEAD}; run the newer version, "
            "or go back to a backup from before its upgrade"
        )
    return found


@contextmanager
def _alone(engine: Engine) -> Iterator[Connection]:
    """A transaction in which nobody else changes the schema."""
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            # a migration may have to build a table anew, which enforced references would forbid
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA foreign_keys=OFF")
            try:
                with begin(connection):
                    yield connection
            finally:
                driver.execute("PRAGMA foreign_keys=ON")
        return
    # READ COMMITTED: a stricter transaction would not see what was committed while it waited for the lock
    with (
        engine.connect().execution_options(isolation_level="READ COMMITTED") as connection,
        connection.begin(),
    ):
        for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
            connection.execute(text(f"SET LOCAL {name} = 0"))  # an upgrade, and waiting for it, may take long
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        yield connection


def _back_up(engine: Engine, backup_dir: Path | None, revision: str) -> None:
    """Copy an SQLite file beside itself before its schema changes; other databases are the operator's."""
    if engine.dialect.name != "sqlite" or not engine.url.database:
        return
    source = Path(engine.url.database)
    folder = backup_dir or source.parent
    target = folder / f"{source.stem}-{revision}.backup"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _private(target)
        with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as copy:
            old.backup(copy)
    except (OSError, sqlite3.Error) as error:
        raise StoreUnavailable(f"no backup could be written to {target}: {error}") from None


def _private(path: Path) -> None:
    """Make sure that a file exists and is its owner's alone."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _setting(message: str) -> ConfigError:
    return ConfigError([Problem("daemon.database", message)])
