"""People's pages on a real PostgreSQL: the same tests of all that reads or writes rows."""

from sqlalchemy import Engine

from mailgateway.store.database import Tx, transact
from mailgateway.store.tables import metadata
from tests.fakes.database import ImmediateDatabase
from tests.flows.test_outbound_postgres import _engine
from tests.http import test_inbox_login, test_inbox_pages
from tests.http.case import RouteCase
from tests.http.rig import Rig


class OnPostgres(RouteCase):
    """A service on one database, emptied before each test."""

    def make_rig(self) -> Rig:
        """The service."""
        return Rig(database=ImmediateDatabase(emptied()))


def emptied() -> Engine:
    """The database, without a row."""

    def empty(tx: Tx) -> None:
        for table in reversed(metadata.sorted_tables):
            tx.execute(table.delete())

    transact(_engine(), empty)
    return _engine()


class LinkTests(OnPostgres, test_inbox_login.LinkTests):
    """Links."""


class CookieTests(OnPostgres, test_inbox_login.CookieTests):
    """Logins."""


class QueueTests(OnPostgres, test_inbox_pages.QueueTests):
    """The queue."""


class CardTests(OnPostgres, test_inbox_pages.CardTests):
    """One question."""


class AroundTests(OnPostgres, test_inbox_pages.AroundTests):
    """The other pages."""
