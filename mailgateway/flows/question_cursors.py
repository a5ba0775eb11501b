"""Cursors: where the next page begins, as a short text that its reader keeps and does not read.

Nothing is kept here for it.  It belongs to one query: with another one it is refused, since a page of another
list would look right and be wrong.
"""

import base64
import hashlib
import json
from collections.abc import Sequence

from mailgateway.errors import Refusal

LONGEST = 1_024


def cursor_of(query: Sequence[object], position: Sequence[int | str]) -> str:
    """The cursor of a position in a query; at most 1,024 characters."""
    said = json.dumps([_digest(query), *position], separators=(",", ":"))
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def position_of(query: Sequence[object], cursor: str, *kinds: type) -> tuple[int | str, ...]:
    """The position of a cursor, of values of these kinds; ``Refusal("invalid")`` for one of another query."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        digest, *position = json.loads(base64.b64decode(padded, b"-_", validate=True))
    except (ValueError, TypeError, RecursionError):
        raise _foreign() from None
    if digest != _digest(query) or [type(each) for each in position] != [*kinds]:
        raise _foreign()
    if any(isinstance(each, int) and not 0 <= each < 2**62 for each in position):
        raise _foreign()
    return tuple(position)


def _digest(query: Sequence[object]) -> str:
    return hashlib.sha256(repr([str(each) for each in query]).encode()).hexdigest()[:16]


def _foreign() -> Refusal:
    return Refusal(
        "invalid",
        "`cursor` is not one of this query; ask without it, or with the same parameters as before",
        {"field": "cursor"},
    )
