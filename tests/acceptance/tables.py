"""A world on a database of the test's choice, with a look into its tables from outside of the service."""

from mailgateway.store.database import T, Work, transact
from mailgateway.store.upgrade import open_engine
from tests.acceptance.harness import WorldTestCase
from tests.fakes.postgres import fresh_url


class TablesTestCase(WorldTestCase):
    """A world whose rows can be looked at, whether the service runs or not."""

    _url: str | None = None

    def database_url(self) -> str:
        """Make a database; ``""``: the file in the state directory."""
        return ""

    @property
    def url(self) -> str:
        """Where the service keeps its rows."""
        if self._url is None:
            self._url = self.database_url()
        return self._url

    def make_settings(self) -> dict[str, dict[str, object]]:
        """Name the database."""
        return {**super().make_settings(), "daemon": {"database": self.url} if self.url else {}}

    def rows(self, work: Work[T]) -> T:
        """Look into the tables, or change them, in a transaction of our own."""
        engine = open_engine(self.url or self.gateway.state_dir / "mailgateway.sqlite3")
        try:
            return transact(engine, work)
        finally:
            engine.dispose()


class OnPostgres:
    """To be mixed in: the database is a fresh one of a server."""

    def database_url(self) -> str:
        """Make it."""
        return fresh_url()
