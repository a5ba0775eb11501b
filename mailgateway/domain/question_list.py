"""Which questions somebody wants to see, and from whose place."""

from datetime import datetime
from enum import StrEnum

from attrs import frozen

from mailgateway.domain.question import QuestionStatus
from mailgateway.ids import QuestionId, SessionId


class Scope(StrEnum):
    """Whose questions, as seen from one session; never a name of the caller's making."""

    OWN = "own"
    FEATURE = "feature"
    """Of all sessions on the same branch of the same project."""
    WORKTREE = "worktree"
    """Of all sessions in the same working tree of the same machine."""
    REPOSITORY = "repository"
    """Of all sessions of the same project."""
    GLOBAL = "global"


@frozen
class Wanted:
    """Which questions; every condition that is given holds."""

    session: SessionId | None
    """From whose place; ``None``: from nobody's, so of all."""
    scope: Scope
    status: QuestionStatus | None = None
    read: bool | None = None
    """Of answered questions alone: whether a session has read the answer."""
    among: frozenset[SessionId] = frozenset()
    """The sessions that may be seen; none named: all."""

    @property
    def ended(self) -> bool:
        """Whether it asks for what is over, the newest first; else for what waits, the most urgent first."""
        return self.read is not None or self.status not in {None, QuestionStatus.OPEN}


@frozen
class Position:
    """Where a row stands in its order."""

    urgency: int
    created_at: datetime
    id: QuestionId
