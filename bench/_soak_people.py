"""Who is at work during a soak: sessions with their claims and acks, subscribers, and everybody who writes.

Each is a thread of its own with a client of its own, and goes on when the service is away for a moment.
"""

import contextlib
import os
import random
import smtplib
import threading
import time
from collections import deque
from collections.abc import Callable

from _soak_book import Book
from _soak_mail import MIX, Asked, Letter, write
from _world import AGENT, ROBIN
from attrs import define, field

from mailgateway.client import ApiRefused, Client, ServiceUnreachable
from mailgateway.client.answers import Delivery
from tests.fakes.dovecot import Dovecot

LIFE_SECONDS = 75.0
"""After so long a session says bye, and another one begins."""
PATIENCE_SECONDS = 120.0
"""How long a request is repeated while the service is away."""
DUPLICATE_SECONDS = 15.0


@define(eq=False)
class Stop:
    """Two steps to the end: first nothing new begins, then everybody goes home."""

    calm: threading.Event = field(factory=threading.Event)
    """Nothing new begins, no claim is abandoned."""
    over: threading.Event = field(factory=threading.Event)


def chance_of(seed: int, name: str) -> random.Random:
    """The chance that somebody acts by: the same for the same seed."""
    return random.Random(f"{seed} {name}")  # noqa: S311 (it repeats a run, and hides nothing)


class Worker(threading.Thread):
    """A thread whose fault fails the soak."""

    def __init__(self, book: Book, stop: Stop, chance: random.Random, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.book, self.stop, self.chance = book, stop, chance

    def run(self) -> None:
        """Work until the end."""
        try:
            self.work()
        except Exception as error:  # noqa: BLE001 (whatever it is, the soak has to end with it)
            self.book.violate(f"{self.name} ended with {type(error).__name__}: {error}")

    def work(self) -> None:
        """What it does."""
        raise NotImplementedError


class Session(Worker):
    """Sessions of one agent, one after the other: they ask, wait, claim, ack, and sometimes behave badly."""

    def __init__(
        self,
        book: Book,
        stop: Stop,
        seed: int,
        number: int,
        connect: Callable[[], Client],
        asking_seconds: float,
        *,
        silent: bool,
    ) -> None:
        super().__init__(book, stop, chance_of(seed, f"session {number}"), f"session {number}")
        self.number, self.connect, self.asking_seconds = number, connect, asking_seconds
        self.silent = silent
        """Whether some claims are abandoned without a word about the process, and end by their lease only."""
        self.life = 0
        self.ghosts: dict[str, float] = {}

    def work(self) -> None:
        """Live, and live again."""
        with self.connect() as client:
            self.client = client
            while not self.stop.over.is_set():
                self.live()

    def patiently(self, what: Callable[[], object], *fine: str) -> object:
        """Ask again while the service is away; an answer with one of these codes is as good as any."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return what()
            except ServiceUnreachable:
                self.client.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
            except ApiRefused as refused:
                if refused.code in {"store_unavailable", "too_many_waiting"} and time.monotonic() < end:
                    time.sleep(0.2)
                    continue
                if refused.code in fine:
                    self.book.figures[f"refused {refused.code}"] += 1
                    return None
                raise

    def live(self) -> None:
        """One session from its first ping to its bye."""
        self.life += 1
        session, instance = f"s{self.number}-{self.life}", f"i{self.number}-{self.life}"
        client, began = self.client, time.monotonic()
        self.ghosts.clear()
        self.patiently(lambda: client.ping(session, instance, title="soak", state="working"))
        pinged = asked = began - self.asking_seconds * self.chance.random()
        until = began + LIFE_SECONDS * (0.5 + self.chance.random())
        while not self.stop.over.is_set():
            now = time.monotonic()
            leaving = now > until or self.stop.calm.is_set()
            if leaving:
                self.book.forget_session(session)
            if now - pinged > 10:
                pinged = now
                self.patiently(lambda: client.ping(session, instance))
            if not leaving and now - asked > self.asking_seconds:
                asked = now
                self.ask(session, instance)
            if now > until and not self.stop.calm.is_set() and not self.book.owed(session):
                break
            found = self.patiently(lambda: client.pending(session, wait=1.0))
            taken = sum(self.take(session, instance, each) for each in found)  # type: ignore[attr-defined]
            if found and not taken:
                time.sleep(0.3)  # all of it is claimed by somebody who is gone
        self.patiently(lambda: client.bye(session, instance))
        self.book.figures["byes"] += 1

    def ask(self, session: str, instance: str) -> None:
        """Send a mail that is to be answered."""
        client, chance = self.client, self.chance
        files: tuple[str, ...] = ()
        if chance.random() < 0.1:
            size = chance.randrange(1, 200_000)
            name = self.patiently(lambda: client.upload("notes.txt", bytes(size), session), "store_full")
            files = (str(name),) if name is not None and chance.random() < 0.7 else ()
        key = f"{session} {time.monotonic()}"
        if chance.random() < 0.1:
            self.patiently(lambda: client.settle(session, instance, f"Turn of {session} is over."))
        decision = chance.random() < 0.3
        sent = self.patiently(
            lambda: client.send(
                "decision" if decision else "notification",
                session,
                f"Question of {session}",
                "This or that?",
                options=("This", "That") if decision else (),
                attachments=files,
                idempotency_key=key,
            ),
            "decision_outstanding",
            "smtp_failed",
            "send_budget",
        )
        if isinstance(sent, dict):
            self.book.figures["sends"] += 1
            asked = Asked(session, str(sent["messageId"]), str(sent["subject"]))
            self.book.can_be_answered(asked, 1 if decision else chance.randrange(2, 6))

    def take(self, session: str, instance: str, delivery: Delivery) -> bool:
        """Do something with a delivery; whether something was done."""
        client, chance, which = self.client, self.chance, delivery["id"]
        number = self.book.offered(session, delivery)
        if self.ghosts.get(which, 0) > time.monotonic() and delivery["state"] == "claimed":
            return False
        way = chance.random()
        if way < 0.04 and not self.stop.calm.is_set():
            self.abandon(session, instance, which)
            return True
        claimed = self.patiently(lambda: client.claim(which, instance), "already_claimed", "stale-space")
        if claimed is None:
            return False
        if way < 0.12:
            self.patiently(lambda: client.release(which, instance))
            self.book.figures["releases"] += 1
            return True
        for part in delivery["attachments"][:1]:
            data = self.patiently(lambda part=part: client.attachment(which, part["id"], instance))  # type: ignore[misc]
            if data is not None and len(data) != part["size"]:  # type: ignore[arg-type]
                self.book.violate(f"an attachment of letter {number} has another size")
        self.book.acking(number)
        self.patiently(lambda: client.ack(which, instance))
        self.book.acked(number)
        if way < 0.16:
            self.patiently(lambda: client.ack(which, instance))
        return True

    def abandon(self, session: str, instance: str, which: str) -> None:
        """Claim as somebody who dies: by a process that is gone, or by one that tells nothing."""
        client, ghost = self.client, f"{instance}-ghost"
        self.patiently(lambda: client.ping(session, ghost))
        pid = None if self.silent and self.chance.random() < 0.5 else os.getpid()
        started = 1.0 if pid is not None else None
        if self.patiently(lambda: client.claim(which, ghost, pid=pid, started=started), "already_claimed"):
            self.book.figures["claims abandoned"] += 1
            self.ghosts[which] = time.monotonic() + 120
        self.patiently(lambda: client.bye(session, ghost))


class Subscriber(Worker):
    """Somebody who reads the stream of events for a while, hangs up without a word, and comes again."""

    def __init__(self, book: Book, stop: Stop, seed: int, connect: Callable[[], Client]) -> None:
        super().__init__(book, stop, chance_of(seed, "subscriber"), "subscriber")
        self.connect = connect

    def work(self) -> None:
        """Read, and go."""
        while not self.stop.over.is_set():
            end = time.monotonic() + self.chance.random() * 10
            with contextlib.suppress(ServiceUnreachable, ApiRefused), self.connect() as client:
                for _ in client.events():
                    self.book.figures["events read"] += 1
                    if time.monotonic() > end or self.stop.over.is_set():
                        break
            self.stop.over.wait(0.2)


class Writer(Worker):
    """Everybody who writes to the agent, at a steady rate."""

    def __init__(self, book: Book, stop: Stop, seed: int, rate: float, dovecot: Dovecot) -> None:
        super().__init__(book, stop, chance_of(seed, "writer"), "writer")
        self.rate, self.dovecot = rate, dovecot
        self.number = 0
        self.recent: deque[tuple[float, Letter]] = deque(maxlen=200)
        self.kinds, self.weights = list(MIX), list(MIX.values())

    def work(self) -> None:
        """Write; what was missed while the server was away is made up for at twice the rate."""
        due = time.monotonic()
        while not self.stop.calm.is_set():
            now = time.monotonic()
            due = max(due + 1 / self.rate, now - 30)
            if due > now:
                self.stop.calm.wait(due - now)
            else:
                self.stop.calm.wait(0.5 / self.rate)
            self.write(self.chance.choices(self.kinds, self.weights)[0])

    def write(self, kind: str) -> None:
        """Write one mail."""
        if kind == "duplicate":
            fresh = [each for at, each in self.recent if time.monotonic() - at < DUPLICATE_SECONDS]
            if fresh:
                self.book.figures["posted duplicate"] += 1
                self.deliver(self.chance.choice(fresh).raw)
            return
        answerable = self.book.answerable()
        if not answerable and kind != "stranger":
            return
        asked = self.chance.choice(answerable) if answerable else Asked("", "<none@example.org>", "none")
        if kind == "bounce":
            if not self.book.has_left(asked):
                return
            if not self.book.first_bounce(asked):
                kind = "second bounce"
        self.number += 1
        letter = write(kind, self.number, asked, self.chance)
        self.book.posted(letter)
        self.deliver(letter.raw)
        if kind == "reply":
            self.recent.append((time.monotonic(), letter))

    def deliver(self, raw: bytes) -> None:
        """Hand a mail over, again and again while the server is away: a copy too many is a duplicate."""
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self.dovecot.deliver(AGENT, raw, ROBIN)
                return
            except (OSError, smtplib.SMTPException):
                if time.monotonic() > end:
                    raise
                self.book.figures["deliveries repeated"] += 1
                time.sleep(0.2)
