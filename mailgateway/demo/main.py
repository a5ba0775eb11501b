"""Runs the demo: a question goes out by mail, a person's reply comes back, a session claims and acks it.

Every step has a deadline, and whatever happens the service is stopped by its process and the folder removed.
"""

import os
import secrets
import sys
import tempfile
from collections.abc import Coroutine
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as DeadlineReached
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from mailgateway.client import ApiRefused, Base, Client, ServiceUnreachable, WrongService
from mailgateway.demo.mailbox import SEEN, Letter
from mailgateway.demo.person import Person
from mailgateway.demo.server import AUTHSERV_ID, MailServer
from mailgateway.demo.service import Service
from mailgateway.demo.story import Story
from mailgateway.errors import ConfigError

AGENT: Final = "agent@agents.example"
ROBIN: Final = "robin@people.example"
STEP_SECONDS: Final = 20
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
    _running: "Deferred[Any] | None" = None

    def __attrs_post_init__(self) -> None:
        self.server = MailServer(self.passwords)
        self.service = Service(self.reactor, self.folder)
        base = Base(host="127.0.0.1", port=self.service.port)
        self.client = Client(base, self.service.key_path, timeout=STEP_SECONDS)

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
        await self.step("the session could not take the reply over", self.claim_and_ack(delivery))
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

    async def poll(self) -> dict[str, Any]:
        """Let the session's long poll bring the reply."""
        deliveries = await deferToThread(self.client.pending, SESSION, wait=STEP_SECONDS)
        if not deliveries:
            raise StepFailed("the long poll came back empty")
        delivery: dict[str, Any] = dict(deliveries[0])
        words = str(delivery["body"]).strip()
        if words != TYPED:
            raise StepFailed(f"the session got other words than Robin typed: {words!r}")
        choice = f" (the choice: {delivery['choice']})" if delivery.get("choice") else ""
        self.story.tell("session", f'gets the reply, and only what Robin typed: "{words}"{choice}')
        return delivery

    async def claim_and_ack(self, delivery: dict[str, Any]) -> None:
        """Let the session claim the reply, act on it, and ack."""
        await deferToThread(self.client.claim, delivery["id"], INSTANCE, pid=os.getpid())
        self.story.tell("session", f"claims {delivery['id']}: nobody else can take it now")
        await deferToThread(self.client.ack, delivery["id"], INSTANCE)
        self.story.tell("session", "acks it: the reply is journaled and will never be delivered again")
        left = await deferToThread(self.client.pending, SESSION)
        if left:
            raise StepFailed("the acked reply is still pending")

    async def wait_for_seen(self, letter: Letter) -> None:
        """Wait until the message is read, which must not have been so before the ack."""
        await self.server.mailboxes[AGENT].until(lambda _: SEEN in letter.flags)
        self.story.tell("mail server", f"the reply is now {SEEN} in the INBOX of {AGENT}")

    def where_to_look(self) -> str:
        """Tell where everything is, for whoever wants to play on."""
        return "\n".join(
            (
                f"API:          {self.service.url}  (key: {self.service.key_path})",
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
        if self.person is not None:
            await self.person.close()
        await self.server.stop()


async def _play(reactor: Any, story: Story, *, keep: bool) -> int:
    """Play the demo in a folder of its own; the exit code."""
    with tempfile.TemporaryDirectory(prefix="mailgateway-demo-", ignore_cleanup_errors=True) as folder:
        demo = Demo(reactor, Path(folder), story, 0 if keep else IDLE_EXIT_SECONDS)
        story.heading(
            "mailgateway demo: a session asks, a person replies by mail, the session gets the words."
        )
        try:
            await demo.run()
            if keep:
                story.end(done=True, text="It keeps running until Ctrl-C.", details=demo.where_to_look())
                await Deferred()
            story.end(done=True, text="Done: asked, answered by mail, claimed, acked, \\Seen.")
            return 0
        except StepFailed as failed:
            tail = demo.service.log_tail()
            story.end(done=False, text=f"Failed: {failed}.", details=f"The end of the service's log:\n{tail}")
            return 1
        finally:
            await demo.close()


def main(*, keep: bool = False, json: bool = False) -> int:
    """Run the demo to its end and return its exit code: 0 when the story was told to its end.

    ``keep`` leaves everything running until Ctrl-C and says where to look; ``json`` tells each step as one
    JSON object a line.  It runs the global reactor, so it works once in a process.
    """
    from twisted.internet import reactor as global_reactor  # noqa: PLC0415 - nobody else may choose it for us

    reactor: Any = global_reactor

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    codes: list[int] = []
    story = Story(say, reactor.seconds, json)
    playing: list[Deferred[Any]] = []

    def broken(failure: Failure) -> None:
        story.end(done=False, text=f"Failed: {failure.getErrorMessage()}.")
        codes.append(1)

    def begin() -> None:
        run = Deferred.fromCoroutine(_play(reactor, story, keep=keep))
        run.addCallback(codes.append)
        run.addErrback(lambda failure: failure.trap(CancelledError))
        run.addErrback(broken)
        playing.append(run)
        run.addBoth(lambda _: reactor.callLater(0, _stop, reactor))

    def cancel() -> Deferred[Any] | None:
        """Let a running demo clean up before the reactor stops."""
        if not playing or playing[0].called:
            return None
        over: Deferred[None] = Deferred()
        playing[0].addBoth(lambda _: over.callback(None))
        playing[0].cancel()
        return over

    reactor.callWhenRunning(begin)
    reactor.addSystemEventTrigger("before", "shutdown", cancel)
    reactor.run()
    if codes:
        return codes[0]
    return 0 if keep else 1


def _stop(reactor: Any) -> None:
    """Stop the reactor unless it is stopping already."""
    if reactor.running:
        reactor.stop()
