"""The whole exception tree, by who must act.

::

    MailgatewayError
      ConfigError            the operator must edit the settings
      Refusal(code)          the caller must change the request
      PeerError              a mail server (or what lies before it) failed us
        Unreachable          no connection, or it was lost; trying later helps
        LoginRefused         the password is wrong; trying again does harm
        LoginUnavailable     the server cannot say now whether the login is right
        Throttled            the server asks us to slow down
        TokenUnavailable     the token source could not give a token now
        TlsRefused           the connection cannot be made as safe as the settings require
        CommandRefused       the server answered NO or BAD to one command
        ProtocolViolation    the server broke the rules of its protocol
      StoreError             our own ground shook
        StaleWrite           somebody else moved the row first; read again
        SchemaTooNew         the database belongs to a newer mailgateway
        StoreUnavailable     the database cannot be reached or written now
      Fault                  a defect of ours; the log says where

What is expected in normal work (a mail from a stranger, a refused recipient) is a value and not an
exception.  Texts of these errors may be shown and logged: they never hold a credential, a key, a token
or the body of a message.  Texts of foreign exceptions may hold anything: of those, only the class and
the place are logged (``place_of``).  Only a door (``http``, ``cli``) knows status numbers and exit codes.
"""

import traceback
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from attrs import frozen


class MailgatewayError(Exception):
    """The root; never raised itself."""


@frozen
class Problem:
    """One thing that is wrong in the settings: the dotted path of the key, and what to do."""

    path: str
    message: str

    def __str__(self) -> str:
        """Render as ``path: message``."""
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(MailgatewayError):
    """The settings are wrong; every problem at once, so that one edit mends them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


class Refusal(MailgatewayError):
    """The caller must change the request.

    ``code`` is one of the stable codes of the API; ``details`` are further JSON fields of the answer
    (``retryAfter``, ``field``).  The transaction in which it is raised is rolled back: a refused
    mutation has changed nothing.
    """

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.details: Mapping[str, Any] = details or {}


class PeerError(MailgatewayError):
    """A mail server, or what lies before it, failed us.

    ``text`` is what the server said, already free of credentials; ``retry_after`` is the server's own hint
    in seconds, where it gave one.
    """

    transient: ClassVar[bool] = True

    def __init__(self, text: str, *, code: str = "", retry_after: float | None = None) -> None:
        super().__init__(text)
        self.text = text
        self.code = code
        self.retry_after = retry_after


ENDED = "ENDED"
"""The code of an ``Unreachable`` whose server said that the session is over: idle, autologout, token."""


class Unreachable(PeerError):
    """The connection could not be made, or was lost, or fell silent past its deadline."""


class LoginRefused(PeerError):
    """The server says that the credential is wrong.  Trying again does harm: providers lock accounts."""

    transient = False


class LoginUnavailable(PeerError):
    """The server could not check the login now (``[UNAVAILABLE]``, 454); the password may be right."""


class Throttled(PeerError):
    """Too many connections or commands; wait as long as the server says, or a minute and more."""


class TokenUnavailable(PeerError):
    """The token command or the token endpoint gave nothing usable now; the mail server was not asked."""


class TlsRefused(PeerError):
    """TLS is required and cannot be had: not offered, a certificate that does not match, injected bytes."""

    transient = False


class CommandRefused(PeerError):
    """One command was answered NO or BAD; the connection itself is well.  ``code`` is the response code."""


class ProtocolViolation(PeerError):
    """The server's bytes cannot be understood; nothing more of this connection is to be trusted."""


class StoreError(MailgatewayError):
    """The database failed; the transaction did not happen."""


class StaleWrite(StoreError):
    """The row was moved by somebody else between reading and writing; read again and decide anew."""


class SchemaTooNew(StoreError):
    """A newer mailgateway has upgraded this database; this version must not touch it."""


class StoreUnavailable(StoreError):
    """The database cannot be reached, or its disk is full, or it is read-only; it may heal by itself."""


class Fault(MailgatewayError):
    """A defect of ours stopped a piece of work.  Whoever owns the work tries again later, and says so."""


def place_of(error: BaseException) -> str:
    """An error's class and the way to it, innermost first, without its text, which may quote anything."""
    frames = traceback.extract_tb(error.__traceback__)
    way = " < ".join(f"{frame.filename}:{frame.lineno} {frame.name}" for frame in reversed(frames[-8:]))
    return f"{type(error).__name__} at {way}"
