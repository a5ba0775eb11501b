"""A submission server for tests, of another make than what is tested: aiosmtpd on a thread of its own.

It records what it accepts, and gives the answers that a test has laid ready for it.
"""

import base64
import logging
import re
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Literal

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session
from attrs import Factory, define, field, frozen

from tests.fakes.authority import Authority

SinkTls = Literal["none", "starttls", "implicit"]
_BEARER = re.compile(rb"auth=Bearer ([^\x01]+)\x01")


def free_port() -> int:
    """Find a port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@frozen
class Received:
    """One accepted mail, and under which circumstances it came."""

    sender: str
    recipients: tuple[str, ...]
    raw: bytes = field(repr=False)
    login: str
    mechanism: str
    encrypted: bool

    @property
    def mail(self) -> EmailMessage:
        """The mail, parsed."""
        return message_from_bytes(self.raw, policy=policy.default)


@define(eq=False)
class _Takes:
    """What aiosmtpd calls."""

    sink: "SmtpSink"

    async def handle_MAIL(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Ask for a login, where there are users."""
        del server
        if (
            self.sink.users or self.sink.tokens or self.sink.checks is not None
        ) and not session.authenticated:
            return "530 5.7.0 log in first"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 fine"

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        """Answer RCPT with what was laid ready for this address."""
        del server, session, options
        if address in self.sink.refused:
            return self.sink.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 fine"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        """Record the mail, or give the next answer that was laid ready."""
        del server
        with self.sink.changed:
            if self.sink.answers:
                return self.sink.answers.popleft()
            login, mechanism = session.auth_data or ("", "")
            self.sink.mails.append(
                Received(
                    envelope.mail_from or "",
                    tuple(envelope.rcpt_tos),
                    bytes(envelope.original_content or b""),
                    login,
                    mechanism,
                    session.ssl is not None or self.sink.tls == "implicit",
                )
            )
            self.sink.changed.notify_all()
            if self.sink.on_mail is not None:
                self.sink.on_mail()
            return f"250 2.0.0 queued as Q{len(self.sink.mails)}"

    async def auth_XOAUTH2(self, server: Any, args: list[str]) -> AuthResult:
        """Take a bearer token in Google's form."""
        return await self._bearer(server, args, rb"user=([^\x01]+)\x01")

    async def auth_OAUTHBEARER(self, server: Any, args: list[str]) -> AuthResult:
        """Take a bearer token in the form of RFC 7628."""
        return await self._bearer(server, args, rb"n,a=([^,]+),\x01")

    async def _bearer(self, server: Any, args: list[str], user: bytes) -> AuthResult:
        raw = base64.b64decode(args[1]) if len(args) > 1 else await server.challenge_auth("")
        name, token = re.match(user, raw), _BEARER.search(raw)
        if name is None or token is None:
            return AuthResult(success=False, handled=False)
        login = name[1].decode()
        if not self.sink.accepts(login, token[1].decode()):
            self.sink.logins_refused += 1
            return AuthResult(success=False, handled=False)
        return AuthResult(success=True, auth_data=(login, args[0]))


@define(eq=False)
class SmtpSink:
    """The server.

    ``users`` are names with passwords, ``tokens`` names with bearer tokens; without both nobody has to log
    in.  ``refused`` maps recipients to the answer that RCPT gets; ``answers`` are given to the next DATA
    commands, each once.
    """

    users: Mapping[str, str] = field(factory=dict, repr=False)
    tokens: Mapping[str, str] = field(factory=dict, repr=False)
    tls: SinkTls = "none"
    authority: Authority | None = None
    refused: dict[str, str] = Factory(dict)
    answers: deque[str] = Factory(deque)
    mails: list[Received] = field(factory=list, init=False)
    logins_refused: int = 0
    checks: Callable[[str], bool] | None = None
    """Says of any bearer token whether it is good; on the sink's own thread."""
    on_mail: Callable[[], None] | None = None
    """Called when a mail has been recorded and not yet been answered; on the sink's own thread."""
    changed: threading.Condition = field(factory=threading.Condition, init=False, repr=False)
    port: int = field(factory=free_port)
    _controller: Controller | None = field(default=None, init=False)

    def start(self) -> "SmtpSink":
        """Listen."""
        logging.getLogger("mail.log").setLevel(logging.ERROR)  # aiosmtpd warns of what tests do on purpose
        context = None
        if self.authority is not None and self.tls != "none":
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(self.authority.certificate, self.authority.key)
        self._controller = Controller(
            _Takes(self),
            hostname="127.0.0.1",
            port=self.port,
            ready_timeout=10,
            server_hostname="sink.example",
            ssl_context=context if self.tls == "implicit" else None,
            tls_context=context if self.tls == "starttls" else None,
            require_starttls=self.tls == "starttls",
            auth_require_tls=self.tls == "starttls",
            authenticator=self._check,
        )
        self._controller.start()
        return self

    def stop(self) -> None:
        """Stop listening; it may be started again on the same port."""
        if self._controller is not None:
            self._controller.stop()
            self._controller = None

    def accepts(self, login: str, token: str) -> bool:
        """Whether a bearer token lets this user in."""
        return self.checks(token) if self.checks is not None else self.tokens.get(login) == token

    def _check(self, server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        """Check a password."""
        del server, session, envelope
        if isinstance(given, LoginPassword):
            name = given.login.decode()
            if name in self.users and self.users[name] == given.password.decode():
                return AuthResult(success=True, auth_data=(name, mechanism))
        self.logins_refused += 1
        return AuthResult(success=False, handled=False)

    def wait(self, wanted: Callable[[Received], bool] = lambda _: True, seconds: float = 20) -> Received:
        """Wait for the first mail that is wanted; ``AssertionError`` when none comes in time."""

        def found() -> Received | None:
            return next((mail for mail in self.mails if wanted(mail)), None)

        with self.changed:
            mail = self.changed.wait_for(found, seconds)
        assert mail is not None, f"no such mail within {seconds:g} s; {len(self.mails)} others came"
        return mail
