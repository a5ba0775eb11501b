"""The stage of the tests of an IMAP line: a scripted server, and a person who has been asked."""

from typing import Any

from twisted.internet.defer import Deferred

from mailgateway.daemons.line import ImapLine
from mailgateway.errors import PeerError
from mailgateway.flows import deliver
from mailgateway.flows.filing import FilingRules
from mailgateway.flows.scan import Scanned, Scanner, ScanRules
from mailgateway.wire.sasl import Password
from tests.daemons.world import KEY, PASSWORD, Network, Run
from tests.fakes.imap_script import CAPABILITIES, ScriptedServer
from tests.flows.inbound import OWN, TTL, letter
from tests.flows.outbound import IDENTITY, S1, OutboundTestCase

STRANGER = b"From: somebody@elsewhere.example\r\nSubject: sale\r\n\r\n"


class LineTestCase(OutboundTestCase):
    """A line to a scripted server; the test is the server."""

    def setUp(self) -> None:
        super().setUp()
        self.ping()
        self.sent = self.submit()
        self.scans: list[Scanned] = []
        self.news: list[str] = []
        self.lost: list[PeerError] = []
        self.flags_due = False
        self.begin()

    def begin(self, capabilities: bytes = CAPABILITIES) -> None:
        """A new connection, greeted."""
        gateway = self.gateway
        self.server = ScriptedServer().opened(capabilities)
        self.logins = Run(Network(), gateway.database)
        self.now(self.logins.load())
        rules = ScanRules(FilingRules(IDENTITY, OWN, KEY), TTL)

        async def in_thread(judging: Any) -> Any:
            return judging()

        self.line = ImapLine(
            gateway.database,
            self.logins.logins,
            "INBOX",
            Scanner(gateway.database, gateway.bell, rules, in_thread),
            self.scans.append,
            lambda: None,
            lambda: self.flags_due,
            self.server.connection,
            Password("agent", PASSWORD),
        )
        self.line.listen(lambda: self.news.append("news"), self.lost.append)

    def run_line(self, work: Any) -> "Deferred[None]":
        """Run one of the line's coroutines as far as it goes."""
        return Deferred.fromCoroutine(work)

    def prepare(self, *, uid_next: int | None = 1, exists: int = 0) -> None:
        """Log in and select."""
        running = self.run_line(self.line.prepare())
        self.server.expect(b"AUTHENTICATE PLAIN")
        self.server.say(b"TAG OK [CAPABILITY " + CAPABILITIES + b"] welcome")
        if self.line.connection.supports("ID"):
            self.server.expect(b"ID (", b'"mailgateway"')
            self.server.say(b"* ID NIL", b"TAG OK")
        self.server.expect(b"SELECT INBOX")
        told = [b"* %d EXISTS" % exists, b"* OK [UIDVALIDITY 7] ok"]
        if uid_next is not None:
            told.append(b"* OK [UIDNEXT %d] ok" % uid_next)
        self.server.say(*told, b"TAG OK [READ-WRITE] selected")
        if uid_next is None and exists:
            self.server.expect(b"FETCH")
            self.server.say(b"* %d FETCH (UID 41)" % exists, b"TAG OK")
        self.successResultOf(running)

    def resting(self, **facts: Any) -> None:
        """Bring the line to IDLE in a mailbox where everything is known."""
        self.prepare(**facts)
        self.successResultOf(self.run_line(self.line.catch_up()))  # the first look only sets the cursor
        self.server.silent()
        self.rest()

    def rest(self) -> None:
        """Enter IDLE."""
        running = self.run_line(self.line.rest())
        self.server.expect(b"IDLE")
        self.server.raw(b"+ idling\r\n")
        self.successResultOf(running)

    def leave_idle(self) -> "Deferred[None]":
        """Begin to catch up: the client ends IDLE and asks in the same segment, which is to be expected."""
        running = self.run_line(self.line.catch_up())
        done, asked = self.server.transport.value()[:6], self.server.transport.value()[6:]
        self.assertEqual(done, b"DONE\r\n")
        self.server.transport.clear()
        self.server.transport.write(asked)
        self.server.say(b"TAG OK idle is over")
        return running

    def asked(self, *news: bytes) -> None:
        """The server has told of nothing and is asked."""
        self.server.expect(b"NOOP")
        self.server.say(*news, b"TAG OK")

    def give(self, uid: int, raw: bytes) -> None:
        """Answer a FETCH of header fields with one mail, whole."""
        header = raw.split(b"\r\n\r\n", 1)[0] + b"\r\n\r\n"
        self.server.raw(
            b"* 1 FETCH (UID %d RFC822.SIZE %d FLAGS () BODY[HEADER.FIELDS (FROM)] {%d}\r\n"
            % (uid, len(raw), len(header))
            + header
            + b" BODY[]<0> {%d}\r\n" % len(raw)
            + raw
            + b")\r\n"
        )

    def reply(self) -> bytes:
        """A person's answer to the mail that was sent."""
        return letter("Yes, do it.", subject=f"Re: {self.sent.subject}", replies_to=self.sent.message_id)

    def pending(self) -> Any:
        """What waits for the session."""
        return self.now(deliver.pending(self.gateway.database, IDENTITY, session=S1, kind=None))
