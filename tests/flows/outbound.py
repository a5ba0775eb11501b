"""A gateway on a database in memory whose clock moves when told: the stage of the outbound tests."""

import itertools
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, field
from sqlalchemy import Engine
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from mailgateway.domain.identity import Identity
from mailgateway.domain.outbox import MailKind, OutboxState, RecipientOutcome, RecipientVerdict
from mailgateway.errors import Refusal
from mailgateway.flows import outbox, sessions, start, submit
from mailgateway.flows.bell import Bell, Event, EventKind
from mailgateway.flows.outbox import Claimed
from mailgateway.flows.sessions import Ping
from mailgateway.flows.submit import Sender, SendRequest, Submitted
from mailgateway.ids import AccountName, InstanceId, MachineId, SessionId
from mailgateway.store.database import Tx, Work, sqlite_database_engine
from mailgateway.store.tables import metadata
from tests.fakes.database import ImmediateDatabase

T = TypeVar("T")

IDENTITY = Identity(MachineId("machine-one"), "laptop", "1f" * 16)
ACCOUNT = AccountName("main")
PERSON = "robin@example.org"
SENDER = Sender(
    account=ACCOUNT,
    address="agent@example.org",
    from_name="Coding agents",
    domain="example.org",
    tag="mg",
    recipient=PERSON,
    budget_per_minute=10,
    route_ttl=timedelta(hours=168),
)
S1 = SessionId("session-one")
S2 = SessionId("session-two")
I1 = InstanceId("instance-one")


class Interrupted(Exception):
    """The power went out in the middle of a transaction."""


@define(eq=False)
class ContestedDatabase(ImmediateDatabase):
    """Somebody else may be faster, and the power may go out."""

    before_writing: list[Callable[[], None]] = field(factory=list)
    """Each is called once, before the next writing transaction."""
    interrupted: bool = False
    """Whether the next writing transaction is killed when all its statements are done, before the commit."""

    def run(self, work: Work[T]) -> Deferred[T]:
        """Run ``work`` in one transaction, after whoever is faster."""
        while self.before_writing:
            self.before_writing.pop()()
        if not self.interrupted:
            return ImmediateDatabase.run(self, work)
        self.interrupted = False

        def killed(tx: Tx) -> T:
            work(tx)
            raise Interrupted

        return ImmediateDatabase.run(self, killed)


@define(eq=False)
class Gateway:
    """One gateway of the tests; ``rung`` holds what the bell told since it was emptied last."""

    database: ContestedDatabase
    identity: Identity = IDENTITY
    sender: Sender = SENDER
    bell: Bell = field(factory=Bell)
    timers: Any = field(factory=Clock)
    rung: list[Event] = field(factory=list)
    files: dict[str, bytes] = field(factory=dict)
    drawn: list[bytes] = field(factory=list)
    """What is minted first; afterwards fresh bytes."""
    numbers: Iterator[int] = field(factory=lambda: itertools.count(1))

    def __attrs_post_init__(self) -> None:
        self.bell.subscribe(lambda numbered: self.rung.append(numbered.event))

    def mint(self, size: int) -> bytes:
        """Bytes that were never minted before, spread so that their heads differ."""
        if self.drawn:
            return self.drawn.pop(0)
        number: int = (next(self.numbers) * 2_654_435_761) % 256**size
        return number.to_bytes(size, "big")

    def later(self, **how: float) -> None:
        """Let time go by on the database's clock."""
        self.database.advance(**how)

    def rows(self, work: Work[T]) -> T:
        """Look into the database."""
        return self.database.now(work)

    def read_upload(self, path: str) -> bytes:
        """The bytes of a file that was uploaded."""
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def kinds(self) -> list[EventKind]:
        """What was rung since the last look."""
        rung, self.rung[:] = list(self.rung), []
        return [event.kind for event in rung]


class OutboundTestCase(SynchronousTestCase):
    """Tests with a gateway that has started."""

    def make_engine(self) -> Engine:
        """An engine on an empty database with its tables; here SQLite in memory."""
        engine = sqlite_database_engine(None)
        self.addCleanup(engine.dispose)
        metadata.create_all(engine)
        return engine

    def contested_engine(self) -> Engine:
        """The same for many threads at once; here SQLite on a file."""
        engine = sqlite_database_engine(Path(self.mktemp()))
        self.addCleanup(engine.dispose)
        metadata.create_all(engine)
        return engine

    def at_once(self, number: int, act: Callable[[int], None]) -> None:
        """Let so many threads act at the same moment, and wait for all of them."""
        gate = threading.Barrier(number)

        def go(index: int) -> None:
            gate.wait(30)
            act(index)

        workers = [threading.Thread(target=go, args=(index,)) for index in range(number)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)

    def setUp(self) -> None:
        engine = self.make_engine()
        self.gateway = Gateway(ContestedDatabase(engine))
        self.start()
        self.gateway.kinds()

    def start(self) -> None:
        """Start (again): what a process does first."""
        self.now(start.introduce(self.gateway.database, self.gateway.identity.machine_id, "laptop"))

    def now(self, coroutine: Coroutine[Deferred[Any], Any, T]) -> T:
        """The result of a flow that has nothing to wait for."""
        result: T = self.successResultOf(Deferred.fromCoroutine(coroutine))
        return result

    def refused(self, coroutine: Coroutine[Deferred[Any], Any, Any]) -> Refusal:
        """The refusal that a flow ends with."""
        failure = self.failureResultOf(Deferred.fromCoroutine(coroutine), Refusal)
        refusal: Refusal = failure.value
        return refusal

    def ping(self, session: SessionId = S1, instance: InstanceId = I1, **facts: Any) -> sessions.Presence:
        """A session pings."""
        gateway = self.gateway
        return self.now(
            sessions.ping(gateway.database, gateway.bell, gateway.identity, Ping(session, instance, **facts))
        )

    def submitting(
        self, kind: str = "notification", session: SessionId = S1, **fields: Any
    ) -> Coroutine[Deferred[Any], Any, Submitted]:
        """The flow that submits a mail, not yet run."""
        gateway = self.gateway
        values: dict[str, Any] = {"subject": "Which database?", "text": "SQLite or PostgreSQL?"}
        request = SendRequest(kind=MailKind(kind), session=session, **values | fields)
        return submit.submit(
            gateway.database,
            gateway.bell,
            gateway.identity,
            gateway.sender,
            request,
            mint=gateway.mint,
            read_upload=gateway.read_upload,
        )

    def submit(self, kind: str = "notification", session: SessionId = S1, **fields: Any) -> Submitted:
        """Submit a mail."""
        return self.now(self.submitting(kind, session, **fields))

    def claim(self) -> Claimed:
        """Take the next mail that is due; there must be one."""
        claimed = self.claim_next()
        assert claimed is not None, "no mail is due"
        return claimed

    def claim_next(self) -> Claimed | None:
        """Take the next mail that is due."""
        gateway = self.gateway
        return self.now(outbox.claim_next(gateway.database, gateway.identity, ACCOUNT, lease_seconds=900))

    def conclude(
        self,
        claimed: Claimed,
        verdict: str = "accepted",
        code: int | None = 250,
        outcomes: Sequence[RecipientOutcome] | None = None,
        error: str = "",
    ) -> OutboxState:
        """Say how an attempt went, the same for every recipient unless ``outcomes`` are given."""
        gateway = self.gateway
        if outcomes is None:
            outcomes = [
                RecipientOutcome(address, RecipientVerdict(verdict), code, f"{code} said the server")
                for address in claimed.recipients
            ]
        return self.now(outbox.conclude(gateway.database, gateway.bell, claimed, outcomes, error=error))

    def row(self, submitted: Submitted) -> Any:
        """The mail as the API shows it."""
        return self.now(outbox.row(self.gateway.database, submitted.outbox_id))

    def at(self) -> datetime:
        """The time by the database's clock."""

        def work(tx: Tx) -> datetime:
            return tx.now

        return self.gateway.rows(work)
