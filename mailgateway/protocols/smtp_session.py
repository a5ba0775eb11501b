"""A session with a submission server up to the login: Twisted's ``ESMTPClient``, with a bound on every wait.

What stays of the stock client are its dialogue (greeting, EHLO, STARTTLS, EHLO, AUTH) and the way it puts
replies together.  What is replaced: the guard against bytes injected before the TLS handshake, reading of
EHLO, authentication (one attempt, the mechanisms shared with IMAP), and deadlines that all end in
``abortConnection``.

Policy: the first thing that goes wrong ends the session and is told once, in the words of the error tree.
Nothing of what the stock client would put into its exceptions is kept: AUTH lines hold the password.  This
module knows no mails; ``mailgateway.protocols.smtp`` sends them.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.protocol import connectionDone
from twisted.mail.smtp import ESMTPClient
from twisted.python.failure import Failure

from mailgateway.errors import LoginUnavailable, PeerError, ProtocolViolation, TlsRefused, Unreachable
from mailgateway.protocols.dial import Peer, TlsTrouble, client_tls, failure_of, is_loopback
from mailgateway.settings import Tls
from mailgateway.wire import esmtp
from mailgateway.wire.sasl import Credential, Mechanism, Password, choose
from mailgateway.wire.smtp_outcome import Phase, refusal

DEADLINES: Final = {
    Phase.GREETING: 60,
    Phase.EHLO: 60,  # the second one includes the TLS handshake
    Phase.STARTTLS: 60,
    Phase.AUTH: 60,
    Phase.MAIL: 60,
    Phase.RCPT: 60,
    Phase.DATA: 120,
    Phase.BODY: 180,  # for each block of the message
    Phase.END: 600,  # RFC 5321 section 4.5.3.2.6: a server may deliver before it answers
    Phase.RSET: 60,
    Phase.QUIT: 10,
}
"""Seconds to wait in each phase; the middle of a reply does not extend them."""

MAX_REPLY_LINES: Final = 200
MAX_AUTH_LINE: Final = 512
"""Octets of an AUTH line with its line end (RFC 4954 section 4)."""

ADVICE: Final = 'most providers take mail on port 465 as well, with tls = "implicit"'

ANY_CODE: Final = range(1000)
"""What to expect when the answer itself decides."""


class SmtpSession(ESMTPClient):
    """A connection to one server that greets, secures itself and logs in, and then waits idle.

    ``opened`` waits for that; ``abort`` ends it.
    """

    debug = False  # the stock log would collect AUTH lines
    heloFallback = False
    requireAuthentication = True
    transport: Any
    _expected: Any

    def __init__(self, reactor: Any, peer: Peer, credential: Credential | None, hostname: str) -> None:
        tls = client_tls(peer) if peer.tls is Tls.STARTTLS else None
        super().__init__(None, tls, esmtp.ehlo_name(hostname))
        self.requireTransportSecurity = peer.tls is not Tls.NONE
        self.offered = esmtp.Extensions()
        self._reactor = reactor
        self._peer = peer
        self._credential = credential
        self._secrets: list[str] = []
        self._logged_in = False
        self.phase = Phase.GREETING
        self.error: PeerError | None = None
        self._opening: Deferred[None] | None = None

    # What the owner calls.

    @property
    def idle(self) -> bool:
        """Whether it is logged in and nothing is under way."""
        return self.error is None and self.phase is Phase.IDLE

    async def opened(self) -> None:
        """Wait until the server is ready for the first mail.

        Raises the ``PeerError`` that says why it never will be: ``Unreachable``, ``TlsRefused``,
        ``LoginRefused``, ``LoginUnavailable``, ``Throttled``, ``CommandRefused`` or ``ProtocolViolation``.
        """
        if self.error is not None:
            raise self.error
        if self.phase is not Phase.IDLE:
            opening = self._opening = Deferred(lambda _: self._cancelled())
            await opening

    def abort(self) -> None:
        """Drop the connection at once; what is under way ends as if the connection had been lost."""
        self.fail(Unreachable(f"the connection to {self._peer} was dropped by us"))

    def _cancelled(self) -> None:
        """The owner no longer waits; its Deferred fails by itself."""
        self._opening = None
        self.abort()

    # How it ends.

    def fail(self, error: PeerError) -> None:
        """End the session because of ``error``; only the first one counts."""
        if self.error is not None:
            return
        self.error = error
        self._credential = None
        self.setTimeout(None)
        if self._failureReason is None:  # of the stock client: why the connection was lost
            self.transport.abortConnection()
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.errback(error)
        self.ended(error)

    def ended(self, error: PeerError) -> None:
        """The session is over, for a subclass that has more to tell its owner."""

    def callLater(self, period: float, func: Any) -> Any:
        """The clock of the one timer that TimeoutMixin keeps."""
        return self._reactor.callLater(period, func)

    def resetTimeout(self) -> None:
        """Leave the deadline as it is: half a reply is no progress."""

    def timeoutConnection(self) -> None:
        """The one deadline has passed."""
        seconds = DEADLINES[self.phase]
        self.fail(Unreachable(f"{self._peer} did not answer to {self.phase} within {seconds} s"))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The connection is gone, or its TLS handshake failed."""
        super().connectionLost(reason)
        error = failure_of(reason.value, self._peer)
        if isinstance(error, Unreachable):
            where = "while it was idle" if self.phase is Phase.IDLE else f"at {self.phase}"
            error = Unreachable(f"{error.text} ({where})")
        self.fail(error)

    def sendError(self, exc: Exception) -> None:
        """What the stock client reports; its exceptions may hold credentials and are not looked into."""
        self.fail(ProtocolViolation(f"{self._peer} broke off the dialogue ({type(exc).__name__})"))

    def lineLengthExceeded(self, line: bytes) -> None:
        """A reply line is longer than any server has a reason for."""
        self.fail(ProtocolViolation(f"{self._peer} sent {len(line)} bytes without a line end"))

    # How it speaks.

    def command(self, phase: Phase, line: bytes, expected: Sequence[int], then: Any, otherwise: Any) -> None:
        """Send a command and say what follows its answer."""
        self.expect(phase, expected, then, otherwise)
        self.sendLine(line)

    def expect(self, phase: Phase, expected: Sequence[int], then: Any, otherwise: Any) -> None:
        """Say what follows the next reply; the deadline of the phase starts."""
        self.phase = phase
        self._expected, self._okresponse, self._failresponse = expected, then, otherwise
        self.setTimeout(DEADLINES.get(phase))

    def sendLine(self, line: bytes) -> None:
        """Send a line; the deadline of the phase starts."""
        self.setTimeout(DEADLINES[self.phase])
        super().sendLine(line)

    def lineReceived(self, line: bytes) -> None:
        """One line of a reply; the stock client puts them together and finds the next step."""
        if self.error is not None:
            return
        if not esmtp.is_reply_line(line) or len(self.resp) >= MAX_REPLY_LINES:
            self.fail(ProtocolViolation(f"{self._peer} sent no valid reply to {self.phase}"))
            return
        if line[3:4] != b"-":
            self.setTimeout(None)
        super().lineReceived(line)

    def reply(self, code: int, resp: bytes) -> esmtp.Reply:
        """A reply that may be shown."""
        return esmtp.reply(code, resp, self._secrets)

    def refused(self, code: int = -1, resp: bytes = b"") -> None:
        """An answer after which this connection is of no use."""
        self.fail(refusal(self.phase, self.reply(code, resp)))

    # From the greeting to the login.

    def connectionMade(self) -> None:
        """Wait for the greeting; with implicit TLS the handshake comes first."""
        super().connectionMade()
        self._failresponse = self.refused
        self.setTimeout(DEADLINES[self.phase])

    def esmtpState_ehlo(self, code: int, resp: bytes) -> None:
        """Say EHLO: after the greeting, after TLS, and after the login, since the answer may differ."""
        self.phase = Phase.EHLO
        super().esmtpState_ehlo(code, resp)
        self._failresponse = self.refused

    def esmtpState_serverConfig(self, code: int, resp: bytes) -> None:
        """Read what the server offers, then secure the connection, log in, or start."""
        self.offered = esmtp.extensions(resp)
        if self._logged_in:
            self.wait_idle()
            return
        self.phase = Phase.STARTTLS
        self.tryTLS(code, resp, {b"STARTTLS": None} if self.offered.starttls else {})

    def esmtpTLSRequired(self, code: int = -1, resp: bytes | None = None) -> None:  # noqa: ARG002 - the base's
        """TLS is required and not offered."""
        told = f"{self._peer} does not offer STARTTLS, which the settings require; {ADVICE}"
        self.fail(TlsRefused(told, code=TlsTrouble.NOT_OFFERED))

    def esmtpTLSFailed(self, code: int = -1, resp: bytes | None = None) -> None:
        """STARTTLS was offered and then refused."""
        self.refused(code, resp or b"")

    def esmtpState_starttls(self, code: int, resp: bytes) -> None:
        """Start the handshake, unless somebody has slipped in bytes that TLS would seem to vouch for."""
        if self.clearLineBuffer():
            self.fail(TlsRefused(f"{self._peer} sent bytes between STARTTLS and the handshake"))
            return
        self.offered = esmtp.Extensions()  # what was said in clear counts for nothing
        super().esmtpState_starttls(code, resp)

    def authenticate(self, code: int, resp: bytes, items: object) -> None:  # noqa: ARG002 - the base's
        """Log in with the one credential, once."""
        credential = self._credential
        if credential is None:
            self.wait_idle()
            return
        self.phase = Phase.AUTH
        if not (self._tlsMode or self._local()):
            self.fail(TlsRefused(f"no password goes to {self._peer} without TLS"))
            return
        mechanism = choose(self.offered.mechanisms, credential)
        if mechanism is None:
            names = ", ".join(sorted(self.offered.mechanisms)) or "none"
            error = f"{self._peer} offers no login that fits the credential (offered: {names})"
            self.fail(LoginUnavailable(error[: esmtp.MAX_TEXT], code="no-mechanism"))
            return
        self._secrets = [credential.password if isinstance(credential, Password) else credential.token]
        line = b"AUTH " + mechanism.name.encode()
        # A token goes after the invitation always: it would make the line too long sooner or later.
        if isinstance(credential, Password) and (initial := mechanism.initial()) is not None:
            with_initial = line + b" " + self._encode(initial)
            if len(with_initial) + 2 <= MAX_AUTH_LINE:
                line = with_initial
            else:
                mechanism = choose([mechanism.name], credential) or mechanism  # one that is not spent yet
        self._mechanism: Mechanism = mechanism
        self.command(Phase.AUTH, line, [235, 334], self.smtpState_maybeAuthenticated, self.esmtpAUTHDeclined)

    def _local(self) -> bool:
        """Whether the other end is this machine, by its name and by its address, and TLS is not asked for."""
        address = getattr(self.transport.getPeer(), "host", "")
        return self._peer.tls is Tls.NONE and self._peer.loopback and is_loopback(address)

    def _encode(self, raw: bytes) -> bytes:
        """Base64 of an answer, which is remembered as one that must not be shown."""
        encoded = b64encode(raw)
        self._secrets.insert(0, encoded.decode("ascii"))
        return encoded

    def smtpState_maybeAuthenticated(self, code: int, resp: bytes) -> None:
        """The server accepts the login, or has something to ask."""
        if code == 235:
            self._logged_in = True
            self._credential = None
            self.esmtpState_ehlo(code, resp)
            self._expected = ANY_CODE
            self._okresponse = self._greeted_again
            return
        try:
            challenge = b64decode(resp.strip(), validate=True)
        except (Base64Error, ValueError):
            challenge = resp  # some servers invite in plain words; no mechanism here depends on them
        answer = self._mechanism.respond(challenge)
        line = b"*" if answer is None else self._encode(answer)
        self.command(Phase.AUTH, line, [235, 334], self.smtpState_maybeAuthenticated, self.esmtpAUTHDeclined)
        if answer is None:  # RFC 4954 asks for 501; a login that succeeds after all is none of ours
            self._expected = []

    def _greeted_again(self, code: int, resp: bytes) -> None:
        """The answer to EHLO after the login; a server that wants none there has said all before."""
        if code == 421:
            self.refused(code, resp)
            return
        if code == 250:
            self.offered = esmtp.extensions(resp)
        self.wait_idle()

    def esmtpAUTHDeclined(self, code: int = -1, resp: bytes = b"") -> None:
        """The login was refused, for good or for now."""
        self.fail(refusal(Phase.AUTH, self.reply(code, resp), self._mechanism.failure))

    def wait_idle(self) -> None:
        """Wait for the owner; whatever the server says now was not asked for."""
        self.expect(Phase.IDLE, [], self.refused, self.refused)
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.callback(None)
