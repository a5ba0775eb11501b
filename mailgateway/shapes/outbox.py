"""What is asked and told of mails on their way out, beyond one mail's state."""

from typing import Annotated

from attrs import frozen

from mailgateway.shapes.answers import OutboxRow
from mailgateway.shapes.kinds import FLAG, choice_kind
from mailgateway.shapes.questions import CURSOR, count_kind

MOST_ON_PAGE = 200
USUAL_ON_PAGE = 50

OPEN = "open"
"""Every state in which a mail still waits for something."""
STATES = (OPEN, "queued", "sending", "sent", "failed", "cancelled", "unclear", "carried")


@frozen
class OutboxQuery:
    """Which mails of the outbox; without ``state`` all of them."""

    state: Annotated[str | None, choice_kind(*STATES)] = None
    cursor: Annotated[str | None, CURSOR] = None
    limit: Annotated[int, count_kind(1, MOST_ON_PAGE)] = USUAL_ON_PAGE


@frozen
class RetryRequest:
    """Try a mail now; ``unclear`` allows that the person gets it twice."""

    unclear: Annotated[bool, FLAG] = False


@frozen
class OutboxPage:
    """Mails, the last submitted first; ``next_cursor`` leads to more."""

    mails: tuple[OutboxRow, ...]
    next_cursor: str | None = None
