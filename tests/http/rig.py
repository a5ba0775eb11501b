"""A client and the real site on one clock: bytes in, answers out, no socket."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from attrs import define, field, frozen
from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure

from mailgateway.domain.identity import Identity
from mailgateway.flows import start
from mailgateway.flows.bell import Bell
from mailgateway.flows.submit import Sender
from mailgateway.http.api import make_site
from mailgateway.http.doors import Doors
from mailgateway.http.keys import Keys, NamedKey
from mailgateway.http.limits import Connections
from mailgateway.ids import AccountName, MachineId, SessionId
from mailgateway.settings import Role, Settings, parse
from tests.fakes.control import FakeControl
from tests.fakes.database import ImmediateDatabase

KEY = "s" * 64
PERSON = "p" * 64
BOUND = "b" * 64
"""The key of another machine that speaks for the session ``theirs`` alone."""
BOUND_PERSON = "q" * 64
"""A key of a person's that speaks for the session ``theirs`` alone."""

PORT = 4177
HOST = f"127.0.0.1:{PORT}"

BASE: dict[str, dict[str, Any]] = {
    "daemon": {"state_dir": "/nonexistent", "public_url": "https://gate.example.org"},
    "accounts": {
        "main": {
            "address": "agent@example.org",
            "watch": ["INBOX"],
            "imap": {"host": "imap.example.org", "password_env": "PW"},
            "smtp": {"host": "smtp.example.org"},
        }
    },
    "people": {"allowed": ["robin@example.org"], "notify": "robin@example.org"},
}


def settings(**daemon: Any) -> Settings:
    """Settings with some keys of ``[daemon]`` changed."""
    table = {**BASE, "daemon": {**BASE["daemon"], **daemon}}
    return parse(table, {"PW": "x", "HOME": "/nonexistent"}, host_name="bench")


@frozen
class Answer:
    """One HTTP answer, taken apart."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The error code."""
        return str(self.json.get("error", ""))


class Wire(StringTransport):
    """A transport that notes its end."""

    def __init__(self, *, unix: bool = False, peer: str = "127.0.0.1") -> None:
        here = UNIXAddress("/run/mg.sock") if unix else IPv4Address("TCP", "127.0.0.1", PORT)
        there = UNIXAddress("") if unix else IPv4Address("TCP", peer, 50000)
        super().__init__(hostAddress=here, peerAddress=there)

    def setTcpNoDelay(self, enabled: bool) -> None:
        """As TCP has it."""


@define(eq=False)
class Client:
    """One connection to the site."""

    wire: Wire
    channel: Any
    taken: int = 0

    def feed(self, data: bytes) -> None:
        """Send bytes, as long as the connection is open."""
        if not (self.wire.disconnecting or self.wire.disconnected):
            self.channel.dataReceived(data)

    def hang_up(self) -> None:
        """Close from our side."""
        self.channel.connectionLost(Failure(ConnectionDone()))

    @property
    def closed(self) -> bool:
        """Whether the site has closed the connection."""
        return bool(self.wire.disconnecting or self.wire.disconnected)

    def text(self) -> bytes:
        """Everything that came and was not taken as an answer yet."""
        return bytes(self.wire.value())[self.taken :]

    def answer(self) -> Answer | None:
        """Take the next complete answer."""
        head, found, rest = self.text().partition(b"\r\n\r\n")
        if not found:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return None
        self.taken += len(head) + 4 + length
        return Answer(int(first.split(" ")[1]), headers, rest[:length])


IDENTITY = Identity(MachineId("a" * 32), "bench", "0123456789abcdef")


def fresh_folder() -> Path:
    """An empty folder below the one that trial runs in, and empties."""
    folder = Path.cwd() / f"uploads-{os.urandom(4).hex()}"
    folder.mkdir()
    return folder


@define(eq=False)
class Rig:
    """The service's HTTP half in memory."""

    settings: Settings = field(factory=settings)
    connections: Connections = field(factory=Connections)
    clock: Clock = field(factory=Clock)
    database: ImmediateDatabase = field(factory=ImmediateDatabase)
    bell: Bell = field(factory=Bell)
    control: FakeControl = field(factory=FakeControl)
    identity: Identity = IDENTITY
    uploads: Path = field(factory=fresh_folder)
    doors: Doors = field(init=False)
    site: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        theirs = frozenset({SessionId("theirs")})
        named = {
            "their machine": NamedKey(BOUND, Role.SESSION, theirs),
            "their person": NamedKey(BOUND_PERSON, Role.PERSON, theirs),
        }
        keys = Keys(KEY, PERSON, named)
        self.doors = Doors(
            reactor=self.clock,
            database=self.database,
            bell=self.bell,
            identity=self.identity,
            settings=lambda: self.settings,
            keys=lambda: keys,
            control=self.control,
            sender=sender,
            uploads=self.uploads,
            mint=os.urandom,
            connections=self.connections,
        )
        self.site = make_site(self.doors)
        done(start.introduce(self.database, self.identity.machine_id, self.identity.name))

    def connect(self, *, unix: bool = False, peer: str = "127.0.0.1") -> Client:
        """Open a connection; an assertion when it is refused."""
        wire = Wire(unix=unix, peer=peer)
        channel = self.site.buildProtocol(wire.getPeer())
        assert channel is not None, "no room"
        channel.makeConnection(wire)
        return Client(wire, channel)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = KEY,
        headers: dict[str, str] | None = None,
        client: Client | None = None,
    ) -> Answer:
        """Ask on a fresh connection and take the answer, which must be there at once."""
        client = client or self.connect()
        client.feed(request(method, path, body, key=key, headers=headers))
        answer = client.answer()
        assert answer is not None, f"no answer to {method} {path}: {client.text()!r}"
        return answer


def request(
    method: str,
    path: str,
    body: Any = None,
    *,
    key: str | None = KEY,
    headers: dict[str, str] | None = None,
) -> bytes:
    """The bytes of a request."""
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    fields = {"Host": HOST, **({"Authorization": f"Bearer {key}"} if key is not None else {})}
    if raw or method in {"POST", "DELETE"}:
        fields["Content-Length"] = str(len(raw))
    fields |= headers or {}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("latin-1") + raw


def sender() -> Sender:
    """The account that sends."""
    return Sender(
        account=AccountName("main"),
        address="agent@example.org",
        from_name="Coding agents",
        domain="example.org",
        tag="mg",
        recipient="robin@example.org",
        budget_per_minute=10,
        route_ttl=timedelta(hours=168),
    )


def done(awaitable: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    results: list[Any] = []
    Deferred.fromCoroutine(awaitable).addBoth(results.append)
    assert results, "it waits"
    if isinstance(results[0], Failure):
        results[0].raiseException()
    return results[0]
