"""The store on a real PostgreSQL."""

from sqlalchemy import Engine, text

from mailgateway.errors import StoreUnavailable
from mailgateway.store import envelopes
from mailgateway.store.database import Tx, transact
from mailgateway.store.upgrade import open_engine
from tests.fakes.postgres import fresh_url
from tests.store import conformance
from tests.store.values import envelope, filed


class PostgresTests(conformance.StoreConformance):
    """The suite, and what only a server can do: end a connection, be read-only, be away."""

    def make_engine(self) -> Engine:
        return open_engine(fresh_url())

    def test_a_connection_that_the_server_ended_is_replaced(self) -> None:
        """After the server has been restarted, the next transaction works."""

        def others(tx: Tx) -> None:
            tx.execute(
                text(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            )

        with self.engine.connect() as kept:
            kept.rollback()
            transact(self.engine, others)
        self.tx(lambda tx: filed(tx, envelope(1)))

        def suicide(tx: Tx) -> None:
            tx.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

        self.assertRaises(StoreUnavailable, self.tx, suicide)
        self.assertEqual(self.tx(lambda tx: envelopes.find(tx, envelope(1).id)), envelope(1))

    def test_a_connection_that_ends_under_a_prepared_statement_is_replaced(self) -> None:
        """It is told as what may heal, and nobody is given the dead connection."""

        def work(tx: Tx) -> None:
            pid = tx.execute(text("SELECT pg_backend_pid()")).scalar_one()
            with self.engine.connect() as other:
                other.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
            envelopes.find(tx, envelope(1).id)

        self.assertRaises(StoreUnavailable, self.tx, work)
        self.tx(lambda tx: filed(tx, envelope(1)))
        self.assertEqual(self.tx(lambda tx: envelopes.find(tx, envelope(1).id)), envelope(1))

    def test_a_read_only_server_is_told(self) -> None:
        """A standby that was not promoted cannot take mail in; that may heal, so it is not our fault."""

        def work(tx: Tx) -> None:
            tx.execute(text("SET TRANSACTION READ ONLY"))
            filed(tx, envelope(1))

        self.assertRaises(StoreUnavailable, self.tx, work)

    def test_reading_cannot_write(self) -> None:
        """A transaction that was begun for reading is held to it."""
        self.assertRaises(
            StoreUnavailable,
            transact,
            self.engine,
            lambda tx: filed(tx, envelope(1)),
            reading=True,
        )

    def test_a_server_that_is_away_is_told(self) -> None:
        """Nobody listens: no traceback, and no password in the words."""
        engine = open_engine("postgresql://gateway:sesame@127.0.0.1:1/none")
        self.addCleanup(engine.dispose)
        error = self.assertRaises(StoreUnavailable, transact, engine, lambda tx: tx.now)
        self.assertNotIn("sesame", str(error))
