"""A submission server that follows a script: it behaves well until a rule says otherwise.

::

    script = Script(users={"agent": "secret"})
    script.answer("MAIL", "451 4.3.0 later")     # the next MAIL gets this, the one after it a normal answer
    script.answer("END", DROP)                   # take the message, close without an answer
    script.answer("RCPT", HANG)                  # say nothing any more

Points are GREETING EHLO STARTTLS AUTH CONTINUE (a question inside AUTH) LOGIN (its end) MAIL RCPT DATA BODY
(each line of a message) END (the final dot) RSET QUIT.  A reply that begins with 421 closes the connection.
"""

from base64 import b64decode
from enum import Enum
from typing import Any

from attrs import define, field
from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import ISSLTransport
from twisted.internet.protocol import Factory
from twisted.protocols.basic import LineReceiver
from twisted.test.iosim import FakeTransport, IOPump, connect


class Odd(Enum):
    """What a server can do instead of answering."""

    DROP = "close the connection"
    HANG = "say nothing any more"


DROP, HANG = Odd.DROP, Odd.HANG

Action = str | bytes | Odd


@define(eq=False)
class Taken:
    """One message that arrived, dots undone."""

    sender: str
    recipients: list[str]
    message: bytes
    mail_line: bytes
    connection: int


@define(eq=False)
class Script:
    """What the server knows, how it shall misbehave, and what it has seen."""

    users: dict[str, str] = field(factory=lambda: {"agent": "secret"})
    tokens: dict[str, str] = field(factory=dict)
    extensions: list[str] = field(factory=lambda: ["SIZE 1000000", "8BITMIME", "AUTH PLAIN LOGIN"])
    tls: Any = None
    after_tls: list[str] | None = None

    commands: list[bytes] = field(factory=list, init=False)
    taken: list[Taken] = field(factory=list, init=False)
    logins: int = field(default=0, init=False)
    connections: int = field(default=0, init=False)
    rules: dict[str, list[Action]] = field(factory=dict, init=False)

    def answer(self, point: str, *actions: Action) -> None:
        """Do this at the next arrivals at a point."""
        self.rules.setdefault(point, []).extend(actions)

    def verbs(self) -> list[str]:
        """The commands that came, without their arguments."""
        return [line.split(b" ")[0].decode("latin-1").upper() for line in self.commands]

    def factory(self) -> Factory:
        """For a listening port."""
        return Factory.forProtocol(lambda: SmtpServer(self))


class SmtpServer(LineReceiver):
    """One connection of a scripted server."""

    transport: Any
    MAX_LENGTH = 100_000

    def __init__(self, script: Script) -> None:
        self.script = script
        self._hung = False
        self._reset()

    def _reset(self) -> None:
        self._sender = ""
        self._mail_line = b""
        self._recipients: list[str] = []
        self._message: bytes | None = None
        self._ask: Any = None

    # What the script says.

    def at(self, point: str, usual: str) -> bool:
        """Do what the rule for this point says, or else the usual; True if it was the usual."""
        rules = self.script.rules.get(point)
        action = rules.pop(0) if rules else usual
        if action is DROP:
            self.transport.loseConnection()
        elif action is HANG:
            self._hung = True
        elif isinstance(action, bytes):
            self.transport.write(action)
        elif isinstance(action, str) and action:
            self.transport.write(action.encode() + b"\r\n")
            if action.startswith("421"):
                self.transport.loseConnection()
        return action == usual

    def connectionMade(self) -> None:
        self.script.connections += 1
        self.at("GREETING", "220 script.example ESMTP")

    def lineReceived(self, line: bytes) -> None:
        if self._hung:
            return
        if self._message is not None:
            self._body(line)
            return
        self.script.commands.append(line)
        if self._ask is not None:
            ask, self._ask = self._ask, None
            ask(line)
            return
        verb, _, rest = line.partition(b" ")
        getattr(self, "on_" + verb.decode("latin-1").upper(), self._unknown)(rest)

    def _unknown(self, _: bytes) -> None:
        self.at("UNKNOWN", "500 5.5.2 what?")

    # Commands.

    def on_EHLO(self, _: bytes) -> None:
        secure = ISSLTransport.providedBy(self.transport)
        names = self.script.extensions
        if secure and self.script.after_tls is not None:
            names = self.script.after_tls
        lines = ["script.example", *names]
        self.at("EHLO", "\r\n".join([*(f"250-{each}" for each in lines[:-1]), f"250 {lines[-1]}"]))

    def on_STARTTLS(self, _: bytes) -> None:
        if self.at("STARTTLS", "220 2.0.0 go ahead"):
            self.transport.startTLS(self.script.tls)

    def on_AUTH(self, rest: bytes) -> None:
        self.script.logins += 1
        mechanism, _, initial = rest.partition(b" ")
        follow = {b"PLAIN": self._plain, b"LOGIN": self._login}.get(mechanism, self._token)
        if initial:
            if not self.script.rules.get("AUTH") or self.at("AUTH", ""):
                follow(initial)
        elif mechanism == b"LOGIN":
            if self.at("AUTH", "334 VXNlcm5hbWU6"):
                self._ask = follow
        elif self.at("AUTH", "334 "):
            self._ask = follow

    def _plain(self, line: bytes) -> None:
        _, user, password = b64decode(line).decode().split("\0")
        self._decide(self.script.users.get(user) == password)

    def _login(self, line: bytes) -> None:
        user = b64decode(line).decode()

        def check(line: bytes) -> None:
            self._decide(self.script.users.get(user) == b64decode(line).decode())

        if self.at("CONTINUE", "334 UGFzc3dvcmQ6"):
            self._ask = check

    def _token(self, line: bytes) -> None:
        text = b64decode(line).decode()
        if any(f"auth=Bearer {token}\x01" in text for token in self.script.tokens.values()):
            self._decide(True)
            return
        # {"status":"401","schemes":"Bearer"}
        self.at("CONTINUE", "334 eyJzdGF0dXMiOiI0MDEiLCJzY2hlbWVzIjoiQmVhcmVyIn0=")
        self._ask = lambda _: self._decide(False)

    def _decide(self, good: bool) -> None:
        self.at("LOGIN", "235 2.7.0 welcome" if good else "535 5.7.8 authentication failed")

    def on_MAIL(self, rest: bytes) -> None:
        if self.at("MAIL", "250 2.1.0 ok"):
            self._mail_line = b"MAIL " + rest
            self._sender = rest.partition(b"<")[2].partition(b">")[0].decode()

    def on_RCPT(self, rest: bytes) -> None:
        if self.at("RCPT", "250 2.1.5 ok"):
            self._recipients.append(rest.partition(b"<")[2].partition(b">")[0].decode())

    def on_DATA(self, _: bytes) -> None:
        if self.at("DATA", "354 end with a dot"):
            self._message = b""

    def _body(self, line: bytes) -> None:
        assert self._message is not None
        if self.script.rules.get("BODY"):
            self.at("BODY", "")
            return
        if line != b".":
            self._message += line.removeprefix(b".") + b"\r\n"
            return
        taken = Taken(self._sender, self._recipients, self._message, self._mail_line, self.script.connections)
        self._reset()
        self.script.taken.append(taken)
        self.at("END", f"250 2.0.0 queued as Q{len(self.script.taken)}")

    def on_RSET(self, _: bytes) -> None:
        self._reset()
        self.at("RSET", "250 2.0.0 ok")

    def on_QUIT(self, _: bytes) -> None:
        if self.at("QUIT", "221 2.0.0 bye"):
            self.transport.loseConnection()


def in_memory(client: Any, server: Any, clock: Any) -> IOPump:
    """Join two protocols without sockets; nothing moves until the pump is flushed."""
    here, there = IPv4Address("TCP", "127.0.0.1", 50_000), IPv4Address("TCP", "127.0.0.1", 587)
    client_side = FakeTransport(client, isServer=False, hostAddress=here, peerAddress=there)
    server_side = FakeTransport(server, isServer=True, hostAddress=there, peerAddress=here)
    pump: IOPump = connect(server, server_side, client, client_side, greet=False, clock=clock)
    return pump
