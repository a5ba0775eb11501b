"""A provider of OAuth in memory: it answers forms with what was laid ready."""

import json
from collections import deque
from typing import Any

from twisted.internet.defer import Deferred

from mailgateway.wire.oauth import Request
from mailgateway.wire.oauth_answer import Answer


class Posts:
    """A provider in memory; who posts waits until it is told to answer, where it is slow."""

    def __init__(self) -> None:
        self.answers: deque[Answer | Exception] = deque()
        self.asked: list[str] = []
        self.slow = False
        self.waiting: list[Deferred[None]] = []

    def grants(self, access: str, refresh: str = "", seconds: Any = 3600) -> None:
        """Lay tokens ready."""
        facts = {"access_token": access, "expires_in": seconds}
        self.answers.append(Answer(200, json.dumps(facts | ({"refresh_token": refresh} if refresh else {}))))

    def says(self, status: int, error: str, retry_after: str = "") -> None:
        """Lay an error ready."""
        self.answers.append(Answer(status, json.dumps({"error": error}), retry_after))

    async def post(self, request: Request) -> Answer:
        """Answer with what was laid ready."""
        self.asked.append(request.body)
        if self.slow:
            self.waiting.append(Deferred())
            await self.waiting[-1]
        answer = self.answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer
