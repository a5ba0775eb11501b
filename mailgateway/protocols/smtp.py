"""The SMTP submission client: a burst of mails over one connection, an outcome for each recipient.

Policy: a connection never retries anything.  It says what happened to each recipient, and whether the final
dot was written; whoever owns the queue decides when a mail goes again.  What goes out are the bytes that were
handed in, with the dots doubled, or nothing.  It does not know what a mail means.
"""

from collections.abc import Sequence
from functools import partial
from io import BytesIO
from typing import Any, Final, cast

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory
from twisted.protocols.basic import FileSender

from mailgateway.errors import PeerError
from mailgateway.protocols.dial import Peer, dial
from mailgateway.protocols.smtp_session import ANY_CODE, DEADLINES, SmtpSession
from mailgateway.wire import esmtp
from mailgateway.wire.dot_stuffing import DotStuffing, bare_line_end
from mailgateway.wire.sasl import Credential
from mailgateway.wire.smtp_outcome import (
    Accepted,
    Outcome,
    Phase,
    Rejected,
    SubmissionResult,
    TryLater,
    Unclear,
    outcome,
    refusal,
)
from mailgateway.wire.submission import Submission

MAX_MAILS: Final = 20
"""Mails that one connection takes; providers answer 421 to many more."""

_LOGIN_REQUIRED: Final = frozenset({530, 534, 535, 538})


class SmtpConnection(SmtpSession):
    """One connection to a submission server, good for up to ``MAX_MAILS`` mails one after the other.

    Made by ``connect``.  While it is ``usable``, ``send`` takes a mail; end it by ``quit`` or ``abort``.
    """

    mails = 0
    """Mails that it has taken."""

    dot_written = False
    """Whether the final dot of the current, or else the last, mail went out."""

    _submission: Submission
    _sender: esmtp.Path
    _outcomes: list[Outcome | None]
    _stuffing: DotStuffing
    _result: "Deferred[SubmissionResult] | None" = None
    _leaving: "Deferred[None] | None" = None

    @property
    def usable(self) -> bool:
        """Whether it can take another mail now."""
        return self.idle and self.mails < MAX_MAILS

    async def send(self, submission: Submission) -> SubmissionResult:
        """Hand over one mail and say how it fared for each recipient.

        What cannot be sent as it stands (an address that SMTP cannot carry, a bare CR or LF, a message larger
        than the server takes) is ``Rejected`` with a code of ours, without asking the server.

        Raises a ``PeerError`` if the connection was lost, or the server wants a login that it did not get,
        before the final dot was written: then no recipient has got the mail.  A loss after the dot is
        ``Unclear``.  Cancelling aborts the connection; ``dot_written`` tells whether that came too late.
        """
        if self.error is not None:
            raise self.error
        if not self.usable:
            raise RuntimeError("the connection is not ready for another mail")
        self.dot_written = False
        self._submission = submission
        self._outcomes, paths = self._plan(submission)
        if not paths:
            return self._summary("nothing was sent")
        self._paths = paths
        result = self._result = Deferred(lambda _: self._cancelled())
        self.mails += 1
        if self.mails == 1:
            self.smtpState_from(250, b"")
        else:
            self.command(Phase.RSET, b"RSET", [250], self.smtpState_from, self.refused)
        return await result

    async def quit(self) -> None:
        """Take leave and wait until the connection is gone, for twice ten seconds at most; never fails."""
        if self.error is not None:
            return
        if not self.idle:
            self.abort()
            return
        leaving = self._leaving = Deferred(lambda _: self._cancelled())
        self.command(Phase.QUIT, b"QUIT", ANY_CODE, self.smtpState_disconnect, self.smtpState_disconnect)
        await leaving

    def smtpState_disconnect(self, code: int, resp: bytes) -> None:
        """QUIT was answered: close, and do not wait for ever until the other side has closed, too."""
        self.setTimeout(DEADLINES[Phase.QUIT])
        super().smtpState_disconnect(code, resp)

    # Before the first command.

    def _plan(self, submission: Submission) -> tuple[list[Outcome | None], list[tuple[int, esmtp.Path]]]:
        """The outcomes that are known without asking, and the recipients (by index) to ask for."""
        outcomes: list[Outcome | None] = [self._unsendable(submission)] * len(submission.recipients)
        paths: list[tuple[int, esmtp.Path]] = []
        for index, recipient in enumerate(submission.recipients):
            path = esmtp.path(recipient)
            if outcomes[index] is None:
                if path is None:
                    outcomes[index] = Rejected(553, "5.1.3 the recipient's address cannot be written in SMTP")
                elif path.utf8 and not self.offered.utf8:
                    outcomes[index] = Rejected(553, "5.6.7 the server does not take non-ASCII addresses")
                else:
                    paths.append((index, path))
        return outcomes, paths

    def _unsendable(self, submission: Submission) -> Rejected | None:
        """Why the mail as a whole cannot be sent to this server."""
        sender = esmtp.path(submission.sender)
        if sender is None:
            return Rejected(553, "5.1.7 the sender's address cannot be written in SMTP")
        if sender.utf8 and not self.offered.utf8:
            return Rejected(553, "5.6.7 the server does not take non-ASCII addresses")
        self._sender = sender
        size, limit = len(submission.message), self.offered.size
        if limit is not None and size > limit:
            return Rejected(552, f"5.3.4 the message has {size} bytes, the server takes at most {limit}")
        at = bare_line_end(submission.message)
        if at is not None:
            return Rejected(554, f"5.6.0 the message has a bare CR or LF at byte {at}")
        return None

    # MAIL, RCPT, DATA.

    def smtpState_from(self, code: int, resp: bytes) -> None:  # noqa: ARG002 - the base's
        """Begin a transaction."""
        utf8 = self._sender.utf8 or any(path.utf8 for _, path in self._paths)
        line = esmtp.mail_command(self._sender, self._submission.message, self.offered, utf8=utf8)
        self.command(Phase.MAIL, line, [250], self.smtpState_to, self.smtpTransferFailed)

    def getMailTo(self) -> Sequence[tuple[int, esmtp.Path]]:
        """The recipients to ask for, as the stock client's RCPT loop wants them."""
        return self._paths

    def smtpState_toOrData(self, code: int, resp: bytes) -> None:
        """Note the answer for one recipient and ask for the next, or go on with those that were accepted."""
        if self.lastAddress is not None:
            if code == 421 or code in _LOGIN_REQUIRED:
                self.smtpTransferFailed(code, resp)
                return
            self._outcomes[self.lastAddress[0]] = outcome(Phase.RCPT, self.reply(code, resp))
        self.lastAddress = next(self.toAddresses, None)
        if self.lastAddress is not None:
            line = b"RCPT TO:" + bytes(self.lastAddress[1])
            self.command(Phase.RCPT, line, ANY_CODE, self.smtpState_toOrData, self.refused)
        elif any(isinstance(known, Accepted) for known in self._outcomes):
            self.command(Phase.DATA, b"DATA", [354], self.smtpState_data, self.smtpTransferFailed)
        else:
            self._conclude(None, str(self.reply(code, resp)))

    def smtpTransferFailed(self, code: int, resp: bytes) -> None:
        """MAIL or DATA was refused, or the server closes: nobody gets this mail now."""
        reply = self.reply(code, resp)
        if code in _LOGIN_REQUIRED:
            self.refused(code, resp)
            return
        verdict = outcome(self.phase, reply)
        if isinstance(verdict, Accepted):  # a yes to another question than ours
            self.fail(refusal(self.phase, reply))
            return
        self._conclude(verdict, str(reply), refusal(self.phase, reply) if code == 421 else None)

    def smtpState_data(self, code: int, resp: bytes) -> None:  # noqa: ARG002 - the base's
        """Write the message; an answer before its end can only be a refusal."""
        self._stuffing = DotStuffing()
        self.expect(Phase.BODY, ANY_CODE, self._answered_early, self._answered_early)
        sending = FileSender().beginFileTransfer(
            BytesIO(self._submission.message), self.transport, self.transformChunk
        )
        sending.addCallbacks(self.finishedFileTransfer, lambda _: None)  # connectionLost tells more

    def transformChunk(self, chunk: bytes) -> bytes:
        """Double the dots; each block that the transport asks for starts the deadline anew."""
        self.setTimeout(DEADLINES[Phase.BODY])
        return self._stuffing.feed(chunk)

    def finishedFileTransfer(self, lastsent: bytes) -> None:  # noqa: ARG002 - the base's
        """Write the final dot: from now on the server may have the mail."""
        if self.error is not None:
            return
        self.dot_written = True
        self.expect(Phase.END, ANY_CODE, self.smtpState_msgSent, self.smtpState_msgSent)
        self.transport.write(self._stuffing.end())

    def _answered_early(self, code: int, resp: bytes) -> None:
        """The server refuses in the middle of the message: there is no way on but to hang up."""
        reply = self.reply(code, resp)
        verdict, over = outcome(Phase.BODY, reply), refusal(Phase.BODY, reply)
        if isinstance(verdict, Accepted):
            self.fail(over)
        else:
            self._conclude(verdict, str(reply), over)

    def smtpState_msgSent(self, code: int, resp: bytes) -> None:
        """The answer to the final dot decides for all recipients that were accepted."""
        reply = self.reply(code, resp)
        over = refusal(Phase.END, reply) if code == 421 else None
        self._conclude(outcome(Phase.END, reply), reply.text, over)

    # The result.

    def _conclude(self, verdict: Outcome | None, text: str, over: PeerError | None = None) -> None:
        """Tell the result; ``verdict`` holds for those recipients of whom no refusal is known.

        ``over`` ends the connection; it does so first, since the owner may go on at once with the next mail.
        """
        if verdict is not None:
            self._outcomes = [
                verdict if known is None or isinstance(known, Accepted) else known for known in self._outcomes
            ]
        result, self._result = self._result, None
        if over is None:
            self.wait_idle()
        else:
            self.fail(over)
        if result is not None:
            result.callback(self._summary(text))

    def _summary(self, text: str) -> SubmissionResult:
        known = (each or TryLater(0, "not asked for") for each in self._outcomes)
        return SubmissionResult(tuple(known), text, self.dot_written)

    def ended(self, error: PeerError) -> None:
        """The connection is gone: what is under way is unclear after the final dot, and undone before it."""
        leaving, self._leaving = self._leaving, None
        if leaving is not None:
            leaving.callback(None)
        if self._result is not None and self.dot_written:
            self._conclude(Unclear(error.text), error.text, error)
        elif self._result is not None:
            result, self._result = self._result, None
            result.errback(error)

    def _cancelled(self) -> None:
        """The owner no longer waits; its Deferred fails by itself."""
        self._result = self._leaving = None
        super()._cancelled()


async def connect(
    reactor: Any, peer: Peer, credential: Credential | None, hostname: str, seconds: float = 30
) -> SmtpConnection:
    """Dial a submission server, secure the connection and log in.

    ``hostname`` is how we call ourselves in EHLO.  Raises what ``dial`` and ``SmtpConnection.opened`` raise;
    the connection has to stand within ``seconds``, each later step has its own deadline, and cancelling ends
    the attempt.
    """
    factory = Factory.forProtocol(partial(SmtpConnection, reactor, peer, credential, hostname))
    factory.noisy = False
    connection = cast("SmtpConnection", await dial(reactor, peer, factory, seconds))
    await connection.opened()
    return connection
