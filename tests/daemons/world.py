"""A world in memory for daemons: a reactor that is a clock, servers behind it, and a gateway's database.

``Network.settle`` lets all bytes flow and all calls that are due now happen; whoever moves the
reactor's clock moves the database's with it.  Nothing sleeps, and nothing leaves the process.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionRefusedError as Refused
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.test.iosim import IOPump

from mailgateway.daemons.health import DoorHealth
from mailgateway.daemons.logins import Logins
from mailgateway.daemons.tasks import Tasks
from mailgateway.ids import AccountName
from mailgateway.secrets import PasswordEnv
from mailgateway.settings import Account, ServerSettings, Tls
from mailgateway.store.database import Work
from tests.fakes.database import ImmediateDatabase
from tests.fakes.smtp_script import in_memory

T = TypeVar("T")

IMAP_PORT, SMTP_PORT = 143, 587
PASSWORD = "correct-horse-7Qx9vw"
ENVIRON = {"IMAP_PASSWORD": PASSWORD, "SMTP_PASSWORD": PASSWORD}
KEY = "5e" * 32


class Network(MemoryReactorClock):
    """A reactor whose connections lead to servers in memory; a port without one refuses."""

    def __init__(self) -> None:
        super().__init__()
        self.servers: dict[int, Callable[[], Any]] = {}
        """Makes the server's protocol for a connection to this port."""
        self.dialled: list[int] = []
        """The ports of all attempts."""
        self.accepted: list[Any] = []
        """The server's protocol of each connection."""
        self._pumps: list[IOPump] = []

    def connectTCP(
        self,
        host: str,
        port: int,
        factory: Any,
        timeout: float = 30,
        bindAddress: object = None,  # noqa: N803 (Twisted's)
    ) -> Any:
        """Connect at once, or refuse at once."""
        connector = super().connectTCP(host, port, factory, timeout, bindAddress)
        self.dialled.append(port)
        factory.doStart()
        make = self.servers.get(port)
        if make is None:
            factory.clientConnectionFailed(connector, Failure(Refused()))
            return connector
        client = factory.buildProtocol(IPv4Address("TCP", host, port))
        server = make()
        self.accepted.append(server)
        self._pumps.append(in_memory(client, server, self))
        return connector

    def settle(self) -> None:
        """Let everything flow until nothing moves any more."""
        self.advance(0)
        moved = True
        while moved:
            moved = any(pump.flush() for pump in tuple(self._pumps))


def server(port: int, variable: str, **changes: Any) -> ServerSettings:
    """A server on the loopback interface, without TLS."""
    values: dict[str, Any] = {
        "host": "127.0.0.1",
        "port": port,
        "tls": Tls.NONE,
        "ca_file": None,
        "username": "agent",
        "secret": PasswordEnv(variable),
    }
    return ServerSettings(**values | changes)


def account(**changes: Any) -> Account:
    """An account with one watched folder."""
    values: dict[str, Any] = {
        "tag": AccountName("main"),
        "address": "agent@example.org",
        "from_name": "Coding agents",
        "watch": ("INBOX",),
        "sent_folder": "",
        "plus_address": False,
        "imap": server(IMAP_PORT, "IMAP_PASSWORD"),
        "smtp": server(SMTP_PORT, "IMAP_PASSWORD"),
    }
    return Account(**values | changes)


def settings_of(folder: Path, **sections: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """Good settings, whose servers are on this machine's loopback interface."""
    password = folder / "password"
    password.touch(mode=0o600)
    password.write_text(f"{PASSWORD}\n", encoding="utf-8")
    server = {"host": "127.0.0.1", "tls": "none"}
    return {
        "device": {"name": "laptop"},
        "accounts.main": {"address": "agent@example.org", "watch": ["INBOX"]},
        "accounts.main.imap": {**server, "port": IMAP_PORT, "password_file": str(password)},
        "accounts.main.smtp": {**server, "port": SMTP_PORT},
        "people": {"allowed": ["robin@example.net"]},
        "security": {"trusted_authserv_ids": ["mx.example.org"]},
        **sections,
    }


@define(eq=False)
class SlowDatabase(ImmediateDatabase):
    """A database whose transactions wait for the test when it is ``slow``."""

    slow: bool = False
    writes: int = 0
    waiting: list[Deferred[None]] = field(factory=list)

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work``, now or when it is let go."""
        self.writes += 1
        if not self.slow:
            return ImmediateDatabase.run(self, work)
        gate: Deferred[None] = Deferred()
        self.waiting.append(gate)
        return gate.addCallback(lambda _: ImmediateDatabase.run(self, work))

    def let_go(self) -> None:
        """Let everything that waits happen, and wait no more."""
        self.slow = False
        while self.waiting:
            self.waiting.pop(0).callback(None)


@define(eq=False)
class Run:
    """One run of a process as far as an account's logins go; another one begins with the same database."""

    network: Network
    database: ImmediateDatabase
    account: Account = field(factory=account)
    environ: dict[str, str] = field(factory=lambda: dict(ENVIRON), repr=False)
    tasks: Tasks = field(factory=Tasks)
    imap: DoorHealth = field(init=False)
    smtp: DoorHealth = field(init=False)
    logins: Logins = field(init=False)

    def __attrs_post_init__(self) -> None:
        tag = self.account.tag
        self.imap = DoorHealth(tag, self.database, self.tasks, self.now)
        self.smtp = DoorHealth(AccountName(f"{tag}:smtp"), self.database, self.tasks, self.now)
        self.logins = Logins(self.network, self.account, KEY, self.imap, self.smtp, self.environ, self.now)

    def now(self) -> datetime:
        """The time by the database's clock, which tests move."""
        return datetime.now(UTC) + self.database.offset

    async def load(self) -> "Run":
        """Take up what the runs before have learned."""
        await self.imap.load()
        await self.smtp.load()
        return self
