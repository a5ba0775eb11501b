"""How much may be sent: the budget of notifications.

A loop that went wrong must not flood a person, and whoever holds one key must not use up what others may
send.  Notifications are counted for each key on each machine.  A decision is bounded by itself (one at a time
for a session); a settle is debounced, and no session settles more often than a person could read.  Since
whoever holds a key without named sessions may invent as many as it likes, each key has a bound of these, too.
"""

import math
from collections.abc import Iterable
from datetime import datetime, timedelta

WINDOW = timedelta(minutes=1)

SETTLES_PER_MINUTE = 10
"""How many settles of one session are mailed; whoever debounces them comes never near it."""

OF_ONE_KEY_PER_MINUTE = 120
"""How many decisions, and how many settles, leave by one key; hundreds of honest sessions stay below it."""


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
