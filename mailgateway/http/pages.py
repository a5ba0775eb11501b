"""The door to people's pages: their part of the code is loaded when the first person comes.

Klein, its router and the templates take a third of a second and ten megabytes, which a service that nobody
visits need not pay; they are loaded on another thread, so that sessions do not wait for it either.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from attrs import define, field
from twisted.python.failure import Failure

from mailgateway.http.doors import Doors
from mailgateway.http.request import LimitedRequest

APP = "mailgateway.http.inbox.app"


@define(eq=False)
class Pages:
    """Hands requests on to people's pages, and lets the first ones wait until those are loaded."""

    _doors: Doors
    _serve: Callable[[LimitedRequest], None] | None = None
    _waiting: list[LimitedRequest] = field(factory=list)

    def answer(self, request: LimitedRequest) -> None:
        """Answer a request to one of people's pages."""
        if self._serve is not None:
            self._serve(request)
            return
        self._waiting.append(request)
        if len(self._waiting) == 1:
            loading = self._doors.in_thread(lambda: import_module(APP))
            loading.addCallback(self._loaded).addErrback(self._failed)

    def _loaded(self, module: Any) -> None:
        self._serve = module.serve_with(self._doors)
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            if not request.is_gone():
                self.answer(request)

    def _failed(self, failure: Failure) -> None:
        """Something is not installed as it should be; the next request tries again."""
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            if not request.is_gone():
                request.processingFailed(failure)
