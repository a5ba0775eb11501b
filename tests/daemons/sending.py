"""The stage of the sender's tests: a gateway whose outbox leads to a scripted server in memory."""

from typing import Any

from mailgateway.daemons.sender import Sender
from mailgateway.flows.submit import Submitted
from mailgateway.ids import SessionId
from tests.daemons.world import PASSWORD, SMTP_PORT, Network, Run
from tests.fakes.smtp_script import Script, SmtpServer
from tests.flows.outbound import OutboundTestCase

THINK = ""
"""A server that takes its time: it says nothing until the test answers for it."""


class SenderTestCase(OutboundTestCase):
    """A gateway whose outbox leads to a scripted server in memory."""

    def setUp(self) -> None:
        super().setUp()
        self.network = Network()
        self.script = Script(users={"agent": PASSWORD})
        self.listen()
        self.senders: list[Sender] = []
        self.run_ = self.begin()

    def listen(self) -> None:
        """Let the server be there."""
        self.network.servers[SMTP_PORT] = lambda: SmtpServer(self.script)

    def begin(self, password: str = PASSWORD, *, remembering: bool = True) -> Run:
        """A new process on the same database, which sends."""
        gateway = self.gateway
        run = Run(self.network, gateway.database, environ={"IMAP_PASSWORD": password})
        if remembering:
            self.now(run.load())
        sender = Sender(
            self.network, gateway.database, gateway.bell, gateway.identity, run.logins, "box.example"
        )
        self.senders.append(sender)
        sender.startService()
        self.network.settle()
        self.addCleanup(self.end, sender)
        return run

    def end(self, sender: Sender) -> None:
        """Stop a sender; nothing of it may be left."""
        if sender.running:
            stopping = sender.stopService()
            self.network.settle()
            self.successResultOf(stopping)

    def restart(self) -> Run:
        """Stop cleanly and begin anew."""
        self.end(self.senders[-1])
        self.start()
        return self.begin()

    def later(self, seconds: float) -> None:
        """Let time pass for everybody."""
        self.gateway.database.advance(seconds=seconds)
        self.network.advance(seconds)
        self.network.settle()

    def submit(self, kind: str = "notification", session: SessionId | Any = "", **fields: Any) -> Submitted:
        """Submit a mail and let everything flow."""
        number = next(self.gateway.numbers)
        submitted = super().submit(kind, session or SessionId(f"session-{number}"), **fields)
        self.network.settle()
        return submitted

    def answer(self, line: bytes, connection: int = -1) -> None:
        """Let a server that took its time answer."""
        self.network.accepted[connection].transport.write(line + b"\r\n")
        self.network.settle()

    def state(self, submitted: Submitted) -> str:
        """Where a mail stands."""
        return str(self.row(submitted).state)

    def copies(self) -> int:
        """How many mails the server has taken."""
        return len(self.script.taken)
