"""A database server that says nothing any more is noticed here: by us, since it cannot tell.

Packets that are dropped, a host that was suspended, a server process that was stopped: the connection stays
open and the answer never comes.  TCP notices only some of this, so each exchange with the server has a
deadline of its own.  Over it the connection is closed, the transaction has failed like any other whose
server went away, and the next one connects anew.
"""

from typing import Any

from sqlalchemy import Engine, event

SILENT_SECONDS = 20.0
"""An answer that has not come by then does not come: a server gives up waiting for a lock after ten."""


def notice_silence(engine: Engine, seconds: float = SILENT_SECONDS) -> None:
    """Give every exchange on new connections of a server's engine a deadline; SQLite needs none.

    Over it the exchange fails with ``OperationalError``.  Not for upgrades, whose statements take long.
    """
    if engine.dialect.name != "postgresql":
        return

    def connect(_dialect: object, _record: object, arguments: Any, named: Any) -> Any:
        return _attentive(seconds).connect(*arguments, **named)

    event.listen(engine, "do_connect", connect)


def _attentive(seconds: float) -> Any:
    """A class of connections whose server may be silent for so long."""
    import psycopg  # noqa: PLC0415 (an extra, and 2 MB: imported where there is such a server)

    class AttentiveConnection(psycopg.Connection[Any]):
        """Waits as psycopg does, with a deadline."""

        def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
            """Wait for the end of an exchange; ``OperationalError`` when it does not come in time."""
            try:
                return super().wait(gen, interval, seconds if timeout is None else timeout)
            except psycopg.OperationalError:
                if self.pgconn.transaction_status == psycopg.pq.TransactionStatus.ACTIVE:
                    self.pgconn.finish()  # what may still come, nobody asks for any more
                raise

    return AttentiveConnection
