"""Named points at which a test kills the service: the edges of its transactions.

Whatever the service does to the outside world (a mail handed over, a flag set, an answer given) lies between
two transactions.  So a process that dies just before or just after the commit of a given transaction stands
for every way of dying there, and no code on the walk needs to know.

The point is named in the environment, ``MAILGATEWAY_FAULT=MODULE.FUNCTION:EDGE[:NTH]``: the use case whose
transaction it is (``deliver.ack``), ``before-commit`` or ``after-commit``, and which execution is meant, the
first by default.  With ``sleep-`` in front of the edge the process is stopped there (SIGSTOP) and may be
woken, as a suspended machine is.  Without the variable nothing of this is in the way of a transaction.
"""

import re
import signal
import threading
from collections.abc import Mapping
from datetime import timedelta

from attrs import define

from mailgateway.errors import ConfigError, Problem
from mailgateway.store.database import Connects, T, Transact, Tx, Work, transact

VARIABLE = "MAILGATEWAY_FAULT"

_FORM = re.compile(
    r"(?P<point>\w+\.\w+):(?P<sleep>sleep-)?(?P<edge>before|after)-commit(:(?P<nth>[1-9]\d{0,5}))?", re.ASCII
)


def transact_of(environ: Mapping[str, str]) -> Transact:
    """How transactions are run: as always, or until the fatal one that the environment names.

    Raises ``ConfigError`` when the variable is there and does not name one.
    """
    wanted = environ.get(VARIABLE, "")
    if not wanted:
        return transact
    form = _FORM.fullmatch(wanted)
    if form is None:
        raise ConfigError(
            [Problem(VARIABLE, "write MODULE.FUNCTION:before-commit or :after-commit, and :NTH if you like")]
        )
    number = signal.SIGSTOP if form["sleep"] else signal.SIGKILL
    return _Fault(form["point"], form["edge"] == "after", int(form["nth"] or 1), number)


@define(eq=False)
class _Fault:
    """Runs transactions, and dies of one of them."""

    point: str
    after: bool
    left: int
    """How many executions of the point are still to come, the fatal one included."""
    number: signal.Signals

    def __call__(
        self, engine: Connects, work: Work[T], *, offset: timedelta = timedelta(0), reading: bool = False
    ) -> T:
        """Run ``work`` in one transaction on the calling thread."""
        if reading or point_of(work) != self.point:
            return transact(engine, work, offset=offset, reading=reading)
        self.left -= 1
        if self.left:
            return transact(engine, work, offset=offset)
        if self.after:
            return self._fall(transact(engine, work, offset=offset))

        def fatal(tx: Tx) -> T:
            return self._fall(work(tx))

        return transact(engine, fatal, offset=offset)

    def _fall(self, result: T) -> T:
        signal.pthread_kill(threading.get_ident(), self.number)  # so that this thread goes no further
        return result


def point_of(work: Work[T]) -> str:
    """The name of a transaction: module and function of the use case that ``work`` stands in."""
    function = work.__qualname__.partition(".<locals>")[0].rpartition(".")[2]
    return f"{work.__module__.rpartition('.')[2]}.{function}"
