"""A submission client and a scripted server in memory, with a clock that tests move."""

from collections.abc import Coroutine
from typing import Any, TypeVar

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.errors import (
    PeerError,
)
from mailgateway.protocols.dial import Peer
from mailgateway.protocols.smtp import SmtpConnection
from mailgateway.settings import Tls
from mailgateway.wire.sasl import BearerToken, Credential, Password
from mailgateway.wire.smtp_outcome import (
    SubmissionResult,
)
from mailgateway.wire.submission import Submission
from tests.fakes.smtp_script import Script, SmtpServer, in_memory

T = TypeVar("T")

AGENT = Password("agent", "secret")
TOKEN = BearerToken("agent", "smtp.example", 465, "good-token")
LOCAL = Peer("127.0.0.1", 587, Tls.NONE)
REMOTE = Peer("smtp.example", 587, Tls.STARTTLS)
MESSAGE = b"Subject: hi\r\n\r\n.hello\r\n..\r\nbye\r\n"


def mail(*recipients: str, message: bytes = MESSAGE, sender: str = "agent@example.org") -> Submission:
    """One mail, to bob unless told otherwise."""
    return Submission(sender, recipients or ("bob@example.org",), message)


class Talk:
    """A client and a scripted server, joined in memory."""

    def __init__(
        self, script: Script | None = None, credential: Credential | None = AGENT, peer: Peer = LOCAL
    ) -> None:
        self.script = script or Script()
        self.clock = Clock()
        self.client = SmtpConnection(self.clock, peer, credential, "box.example")
        self.server = SmtpServer(self.script)
        self.pump = in_memory(self.client, self.server, self.clock)

    def start(self, work: Coroutine[Any, Any, T]) -> Deferred[T]:
        """Begin something and let all bytes flow."""
        running = Deferred.fromCoroutine(work)
        self.pump.flush()
        return running

    def gone(self) -> bool:
        """Whether the client has let go of the connection, and of its timer."""
        return bool(self.pump.clientIO.disconnecting) and not self.clock.getDelayedCalls()


def bare_client() -> tuple[SmtpConnection, StringTransport, Clock]:
    """A client that waits for its first mail, and whose server is the test itself."""
    client = SmtpConnection(clock := Clock(), LOCAL, None, "box")
    transport = StringTransport(peerAddress=IPv4Address("TCP", "127.0.0.1", 587))
    client.makeConnection(transport)
    client.dataReceived(b"220 hi\r\n250 hi\r\n")
    return client, transport, clock


class TalkTestCase(SynchronousTestCase):
    """What the tests below share."""

    def open(self, script: Script | None = None, credential: Credential | None = AGENT) -> Talk:
        """A talk that has come to the first mail."""
        talk = Talk(script, credential)
        self.successResultOf(talk.start(talk.client.opened()))
        return talk

    def sent(self, talk: Talk, submission: Submission | None = None) -> SubmissionResult:
        """How a mail fared."""
        return self.successResultOf(talk.start(talk.client.send(submission or mail())))

    def unsent(self, talk: Talk, submission: Submission | None = None) -> PeerError:
        """Why a mail could not be sent."""
        return self.error_of(talk.start(talk.client.send(submission or mail())))

    def unopened(self, talk: Talk) -> PeerError:
        """Why the connection did not come to its first mail."""
        error = self.error_of(talk.start(talk.client.opened()))
        self.assertTrue(talk.gone())
        return error

    def error_of(self, running: Deferred[Any]) -> PeerError:
        """The error that ended it."""
        error = self.failureResultOf(running).value
        assert isinstance(error, PeerError), error
        return error
