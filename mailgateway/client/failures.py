"""How a call of the API fails, by what the caller can do about it."""

from collections.abc import Mapping
from typing import Any

from mailgateway.errors import MailgatewayError


class ServiceUnreachable(MailgatewayError):
    """Nobody answers, or the answer broke off: start the service, or try again later."""


class WrongService(ServiceUnreachable):
    """Somebody answers who is not this service, or cannot prove to be it; no key was sent there."""


class ApiRefused(MailgatewayError):
    """The service answered with an error.

    ``code`` is one of the stable codes of the API, ``status`` the HTTP status, ``details`` the further
    fields of the answer (``retryAfter``, ``field``, ``smtpCode``).
    """

    def __init__(self, code: str, message: str, status: int, details: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.details = details
