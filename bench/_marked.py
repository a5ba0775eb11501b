"""``twistd`` with a clock at the stations of a mail's way in; ``latency.py`` starts it instead of ``twistd``.

Functions of the product are wrapped from the outside, so nothing in it knows of clocks.  A station is a line
in the file that ``MARKS`` names: seconds of the monotonic clock, which all processes share, and its name.
One costs about 2 us.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.scripts import twistd

TOLD = "server has told the watcher"
ASKED = "FETCH is on its way"
ANSWERED = "server has answered it"
JUDGED = "mail is judged"
BEGUN = "transaction has begun"
WRITTEN = "rows are written"
COMMITTED = "commit is done"
READING = "poll's read begins"
READ = "poll's read ends"
RUNG = "bell is rung"
REPLYING = "poll has the rows"
REPLIED = "answer is written"
STATIONS = (TOLD, ASKED, ANSWERED, JUDGED, BEGUN, WRITTEN, COMMITTED, READING, READ, RUNG, REPLYING, REPLIED)
"""In their order on the way."""


def _before(owner: Any, name: str, mark: Callable[[], None]) -> None:
    """Mark each time that a function is called."""
    original = getattr(owner, name)

    def marked(*args: Any, **named: Any) -> Any:
        mark()
        return original(*args, **named)

    setattr(owner, name, marked)


def _after(owner: Any, name: str, mark: Callable[[], None]) -> None:
    """Mark each time that a function returns."""
    original = getattr(owner, name)

    def marked(*args: Any, **named: Any) -> Any:
        result = original(*args, **named)
        mark()
        return result

    setattr(owner, name, marked)


def install(path: Path) -> None:
    """Put the clock at the stations."""
    from mailgateway.daemons.line import ImapLine  # noqa: PLC0415 (here and below: twistd is to come first)
    from mailgateway.flows import receive, scan  # noqa: PLC0415
    from mailgateway.flows.bell import Bell  # noqa: PLC0415
    from mailgateway.http import shapes_of  # noqa: PLC0415
    from mailgateway.http.limits import Channel  # noqa: PLC0415
    from mailgateway.store import envelopes  # noqa: PLC0415
    from mailgateway.store.threaded import ThreadedDatabase  # noqa: PLC0415
    from mailgateway.wire import imap_command  # noqa: PLC0415
    from mailgateway.wire.imap_headers import HeaderCollector  # noqa: PLC0415

    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def at(station: str) -> Callable[[], None]:
        def mark() -> None:
            os.write(file, f"{time.monotonic():.6f} {station}\n".encode())

        return mark

    _before(ImapLine, "_heard", at(TOLD))
    _after(imap_command, "fetch_headers", at(ASKED))
    _after(HeaderCollector, "finish", at(ANSWERED))
    _before(scan, "receive", at(JUDGED))
    _before(receive, "check_folder", at(BEGUN))
    _after(receive._Filing, "finish", at(WRITTEN))  # noqa: SLF001 (a station is where it is)
    _after(ThreadedDatabase, "_run_alone", at(COMMITTED))
    _before(Bell, "ring", at(RUNG))
    _before(envelopes, "waiting", at(READING))
    _after(envelopes, "waiting", at(READ))
    _before(shapes_of, "delivery", at(REPLYING))
    _after(Channel, "writeHeaders", at(REPLIED))


if __name__ == "__main__":
    install(Path(os.environ.pop("MARKS")))
    twistd.run()
