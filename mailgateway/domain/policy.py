"""How much may be sent: the budget of notifications.

A loop that went wrong must not flood a person.  Only ``notification`` is counted: a decision is bounded by
itself (one at a time for a session), and a settle is debounced.
"""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

WINDOW = timedelta(minutes=1)


def retry_after(sent_at: Iterable[datetime], now: datetime, per_minute: int) -> int | None:
    """Whole seconds (1 to 60) until one more notification fits into the budget; ``None``: it fits now.

    ``sent_at`` are the times of those already taken; what is older than a minute does not count.  At the
    instant ``retry_after`` seconds from now the next one does fit, provided that none came in between.
    """
    recent = sorted(moment for moment in sent_at if moment > now - WINDOW)
    if len(recent) < per_minute:
        return None
    if per_minute <= 0:
        return int(WINDOW.total_seconds())
    makes_room = recent[-per_minute] + WINDOW
    return min(int(WINDOW.total_seconds()), max(1, math.ceil((makes_room - now).total_seconds())))
