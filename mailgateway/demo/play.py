"""The demo's scenes: a question goes out by mail, a person's reply comes back, a session claims and acks it.

Every step has a deadline, and becomes one sentence when it fails.
"""

import os
import secrets
from collections.abc import Coroutine
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeadlineReached
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from mailgateway.client import ApiRefused, Base, Client, ServiceUnreachable, WrongService
from mailgateway.client.answers import Delivery
from mailgateway.demo.mailbox import SEEN, Letter
from mailgateway.demo.person import Person
from mailgateway.demo.server import AUTHSERV_ID, MailServer
from mailgateway.demo.service import CLEANLY, Service
from mailgateway.demo.story import Story
from mailgateway.errors import ConfigError

AGENT: Final = "agent@agents.example"
ROBIN: Final = "robin@people.example"
STEP_SECONDS: Final = 20
LONG_POLL_SECONDS: Final = 45
"""The session waits while the question travels, is read and is answered."""

IDLE_EXIT_SECONDS: Final = 900
"""The service ends by itself when the demo was killed and could not stop it."""

SESSION, INSTANCE = "demo-session", "demo-instance"
SUBJECT = "Shall I deploy release 2.4 now?"
TEXT = """All tests pass and the *staging* system has run it for a day.

Deploying takes about two minutes; I can also wait until tonight.
"""
TYPED = "yes, go ahead. But not the database migration, please."

T = TypeVar("T")


class StepFailed(Exception):
    """A step of the demo did not come to its end; the sentence says which."""


@define(eq=False)
class Demo:
    """One run, in a folder that the caller removes."""

    reactor: Any
    folder: Path
    story: Story
    idle_exit_seconds: int = IDLE_EXIT_SECONDS
    passwords: dict[str, str] = field(
        init=False,
        repr=False,
        factory=lambda: {AGENT: secrets.token_urlsafe(12), ROBIN: secrets.token_urlsafe(12)},
    )
    server: MailServer = field(init=False)
    service: Service = field(init=False)
    client: Client = field(init=False)
    person: Person | None = None
    _polling: "Deferred[list[Delivery]] | None" = None
    _running: "Deferred[Any] | None" = None

    def __attrs_post_init__(self) -> None:
        self.server = MailServer(self.passwords)
        self.service = Service(self.reactor, self.folder)
        self.client = self.new_client()

    def new_client(self) -> Client:
        """Make a client of the API, for one thread at a time."""
        base = Base(host="127.0.0.1", port=self.service.port)
        return Client(base, self.service.key_path, timeout=STEP_SECONDS)

    async def run(self) -> None:
        """Tell the whole story, or raise ``StepFailed``."""
        self.open_mailboxes()
        await self.step("the person's mail program could not log in", self.open_person())
        await self.step("the service did not become healthy", self.start_service())
        await self.step("the service did not open its mailbox", self.wait_for_watcher())
        await self.step("the session could not ask", self.ask())
        question = await self.step("the question did not reach the person", self.receive())
        letter = await self.step("the reply could not be sent", self.reply(question))
        delivery = await self.step("the reply did not reach the session", self.poll())
        await self.step("the session could not take the reply over", self.claim_and_ack(delivery, letter))
        await self.step("the message was not marked as read", self.wait_for_seen(letter))

    async def step(self, failed: str, work: Coroutine[Any, Any, T]) -> T:
        """Do one step; a sentence instead of a traceback when it fails or takes too long."""
        running: Deferred[T] = Deferred.fromCoroutine(work).addTimeout(STEP_SECONDS, self.reactor)
        self._running = running
        try:
            return await running
        except CancelledError:
            if not self.service.how_it_ended:
                raise
            raise StepFailed(f"{failed}: the service ended with {self.service.how_it_ended}") from None
        except DeadlineReached:
            raise StepFailed(f"{failed} within {STEP_SECONDS} seconds") from None
        except StepFailed as why:
            raise StepFailed(f"{failed}: {why}") from None
        except ApiRefused as refused:
            raise StepFailed(f"{failed}: {refused.code}: {refused.message}") from None
        except Exception as error:  # whatever it is, the reader gets a sentence and the service's log
            raise StepFailed(f"{failed}: {type(error).__name__}: {error}") from error
        finally:
            self._running = None

    async def keep(self) -> None:
        """Wait until it is cancelled or the service was stopped; ``StepFailed`` when the service broke."""
        forever: Deferred[None] = Deferred()
        self._running = forever
        try:
            await forever
        except CancelledError:
            if not self.service.how_it_ended:
                raise
            if self.service.how_it_ended == CLEANLY:
                return  # Ctrl-C reaches the service as well, and it may be the first to end
            raise StepFailed(f"the service ended with {self.service.how_it_ended}") from None

    def open_mailboxes(self) -> None:
        """Start the mail server, and leave the passwords where the settings name them."""
        for address, password in self.passwords.items():
            path = self.password_path(address)
            path.touch(mode=0o600)
            path.write_text(password + "\n", encoding="utf-8")
        self.server.start(self.reactor)
        where = f"IMAP 127.0.0.1:{self.server.imap_port}, SMTP 127.0.0.1:{self.server.smtp_port}"
        self.story.tell("mail server", f"has mailboxes for {AGENT} and {ROBIN} ({where})")

    def password_path(self, address: str) -> Path:
        """Where a mailbox's password lies."""
        return self.folder / f"{address.partition('@')[0]}.password"

    async def open_person(self) -> None:
        """Let Robin's mail program log in."""
        ports = self.server.imap_port, self.server.smtp_port
        self.person = Person(self.reactor, ROBIN, "Robin", self.passwords[ROBIN], *ports)
        await self.person.open()

    async def start_service(self) -> None:
        """Start the service and wait for it to prove itself."""

        def died(_: str) -> None:
            if self._running is not None:
                self._running.cancel()

        self.service.start(self.settings()).addCallback(died)
        while True:
            try:
                await deferToThread(self.client.prove)
                break
            except WrongService:
                raise
            except (ServiceUnreachable, ConfigError):  # not there yet, or its key is not yet written
                await deferLater(self.reactor, 0.05)
        health = await deferToThread(self.client.health)
        self.story.tell("service", f"mailgateway {health['version']} is healthy at {self.service.url}")

    def settings(self) -> dict[str, dict[str, object]]:
        """Return the settings of the service; TLS is off, which it allows on loopback only."""
        server: dict[str, object] = {"host": "127.0.0.1", "tls": "none"}
        password: dict[str, object] = {"password_file": str(self.password_path(AGENT))}
        return {
            "daemon": self.service.place() | {"idle_exit_seconds": self.idle_exit_seconds},
            "device": {"name": "demo"},
            "accounts.main": {"address": AGENT, "watch": ["INBOX"]},
            "accounts.main.imap": {**server, **password, "port": self.server.imap_port},
            "accounts.main.smtp": {**server, "port": self.server.smtp_port},
            "people": {"allowed": [ROBIN], "notify": ROBIN},
            "security": {"authentication": "required", "trusted_authserv_ids": [AUTHSERV_ID]},
        }

    async def wait_for_watcher(self) -> None:
        """Wait until the service has selected its folder: what arrives from now on is news to it."""
        await self.server.mailboxes[AGENT].until(lambda mailbox: mailbox.watched)
        self.story.tell("service", f"watches the INBOX of {AGENT}")

    async def ask(self) -> None:
        """Let a session register and ask for a decision."""
        await deferToThread(self.client.ping, SESSION, INSTANCE, title="demo", state="working")
        await deferToThread(self.client.set_mode, "on")
        self.story.tell("session", "registers, and asks a question that it cannot go on without")
        sent = await deferToThread(
            self.client.send, "decision", SESSION, SUBJECT, TEXT, options=("yes", "no"), recommendation="yes"
        )
        self.story.tell("service", f"has {sent['state']} it as mail: {sent['subject']}")
        self._polling = deferToThread(self.new_client().pending, SESSION, wait=LONG_POLL_SECONDS)
        self.story.tell("session", "waits for the answer in a long poll")

    async def receive(self) -> EmailMessage:
        """Let Robin read the question."""
        if self.person is None:
            raise RuntimeError("the person has no mail program yet")
        question = await self.person.next_mail(lambda mail: SUBJECT in str(mail["Subject"]))
        self.story.tell("Robin", f"finds the question in the inbox: {question['Subject']}")
        return question

    async def reply(self, question: EmailMessage) -> Letter:
        """Let Robin reply above the quoted original."""
        if self.person is None:
            raise RuntimeError("the person has no mail program yet")
        mailbox = self.server.mailboxes[AGENT]
        answer = await self.person.answer(question, TYPED)
        await mailbox.until(lambda box: bool(box.letters))
        letter = mailbox.letters[-1]
        size = f"{len(letter.raw):,} bytes with the quoted original"
        self.story.tell("Robin", f"sends a reply, {size}: {answer.subject}")
        return letter

    async def poll(self) -> Delivery:
        """Let the session's long poll bring the reply."""
        if self._polling is None:
            raise StepFailed("the session does not wait for it")
        deliveries = await self._polling
        if not deliveries:
            raise StepFailed("the long poll came back empty")
        delivery = deliveries[0]
        words = delivery["body"].strip()
        if words != TYPED:
            raise StepFailed(f"the session got other words than Robin typed: {words!r}")
        choice = f" (the choice: {delivery['choice']})" if delivery.get("choice") else ""
        self.story.tell("session", f'gets the reply, and only what Robin typed: "{words}"{choice}')
        return delivery

    async def claim_and_ack(self, delivery: Delivery, letter: Letter) -> None:
        """Let the session claim the reply, act on it, and ack; only then may the message be touched."""
        await deferToThread(self.client.claim, delivery["id"], INSTANCE, pid=os.getpid())
        self.story.tell("session", f"claims {delivery['id']}: nobody else can take it now")
        if letter.flags:
            raise StepFailed("the message was flagged before the ack")
        await deferToThread(self.client.ack, delivery["id"], INSTANCE)
        self.story.tell("session", "acks it: the reply is journaled and will never be delivered again")
        left = await deferToThread(self.client.pending, SESSION)
        if left:
            raise StepFailed("the acked reply is still pending")

    async def wait_for_seen(self, letter: Letter) -> None:
        """Wait until the message is marked as read."""
        await self.server.mailboxes[AGENT].until(lambda _: SEEN in letter.flags)
        self.story.tell("mail server", f"the reply is now {SEEN} in the INBOX of {AGENT}")

    def where_to_look(self) -> str:
        """Tell where everything is, for whoever wants to play on."""
        return "\n".join(
            (
                f"API:          {self.service.url}  (key: {self.service.key_path})",
                f"web inbox:    {self.service.url}/inbox",
                f"  to log in:  mailgateway login --config {self.folder / 'mailgateway.toml'}",
                f"IMAP:         127.0.0.1:{self.server.imap_port}, no TLS",
                f"SMTP:         127.0.0.1:{self.server.smtp_port}, no TLS",
                *(f"mailbox:      {user}  (password: {self.password_path(user)})" for user in self.passwords),
                f"settings:     {self.folder / 'mailgateway.toml'}",
                f"log:          {self.service.log_path}",
            )
        )

    async def close(self) -> None:
        """Stop everything, the service first, so that it can say goodbye to the mail server."""
        await self.service.stop()
        if self._polling is not None:
            self._polling.addErrback(lambda _: None)  # the service is gone, so the poll has broken off
        if self.person is not None:
            await self.person.close()
        await self.server.stop()
