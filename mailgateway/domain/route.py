"""A route: where the answer to a mail of ours belongs."""

from datetime import datetime
from enum import StrEnum, unique

from attrs import frozen

from mailgateway.ids import MachineId, QuestionId, RouteId, SessionId


@unique
class Purpose(StrEnum):
    """What the mail behind a route was."""

    SESSION = "session"
    QUESTION = "question"
    APPROVAL = "approval"
    DIGEST = "digest"
    """Words of several sessions in one mail: a reply to it as a whole belongs to none of them."""


@frozen(kw_only=True)
class Route:
    """One route.  ``id`` is the short id, never issued twice; '' for a route made by a signed token.

    ``recipient`` is the address that our mail went to; ``revision`` is that of the question as it was
    mailed.  After ``expires_at`` the route resolves to nothing.
    """

    id: RouteId
    purpose: Purpose
    session_id: SessionId
    machine_id: MachineId
    recipient: str
    expires_at: datetime
    question_id: QuestionId | None = None
    revision: int | None = None
