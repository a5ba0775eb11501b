"""Waiting for a delivery and claiming it, through restarts of the service and other claimants."""

import time
from collections.abc import Callable

from mailgateway.client import ApiRefused, Client, ServiceUnreachable, WrongService
from mailgateway.client.answers import Delivery

POLL_SECONDS = 10.0
PAUSE_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
"""How long the service may be away (a restart, an upgrade) before waiting is given up."""
TAKEN = frozenset({"already_claimed", "acked", "unknown", "mode_off"})


def next_delivery(
    client: Client,
    session: str,
    instance: str,
    *,
    wanted: Callable[[Delivery], bool],
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Delivery | None:
    """Wait for the first wanted delivery that can be claimed, and claim it; ``None`` after ``seconds``.

    Pings meanwhile, so that the session counts as live.  What somebody else has claimed is left to them.
    """
    deadline = clock() + seconds
    heard = clock()
    while True:
        left = deadline - clock()
        try:
            client.ping(session, instance)
            found = client.pending(session, wait=max(0.0, min(POLL_SECONDS, left)))
            heard = clock()
            for delivery in found:
                if not wanted(delivery):
                    continue
                try:
                    return client.claim(delivery["id"], instance)
                except ApiRefused as refused:
                    if refused.code not in TAKEN:
                        raise
        except WrongService:
            raise
        except ServiceUnreachable:
            if clock() - heard > PATIENCE_SECONDS:
                raise
            found = []
        left = deadline - clock()
        if left <= 0:
            return None
        # A poll comes back at once as long as anything lies there that is not ours to take, and while the
        # gateway is off or away.
        sleep(min(PAUSE_SECONDS, left))
