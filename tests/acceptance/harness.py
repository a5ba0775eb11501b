"""A world for one test: a private Dovecot, an SMTP sink, and the service between them as a child process."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from attrs import define, field
from twisted.trial.unittest import SynchronousTestCase

import mailgateway
from mailgateway.client import Base, Client, ServiceUnreachable
from mailgateway.client.answers import Delivery, Fate
from mailgateway.demo.person import reply_to
from mailgateway.demo.service import settings_text
from mailgateway.errors import ConfigError
from mailgateway.store.faults import VARIABLE
from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot, eventually, require_dovecot
from tests.fakes.smtp_sink import Received, SinkTls, SmtpSink, free_port

AGENT = "agent@example.org"
ROBIN = "robin@example.net"
PASSWORD = "correct-horse-7Qx9vw"  # also looked for in logs
AUTHSERV_ID = "mx.example.org"
RESULTS = f"{AUTHSERV_ID}; dkim=pass header.d=example.net; dmarc=pass header.from=example.net"
START_SECONDS = 20
STOP_SECONDS = 15
VERB = "from mailgateway.cli.main import main; main()"
TWISTD = (sys.executable, "-c", "from twisted.scripts.twistd import run; run()")


@define(eq=False)
class Gateway:
    """The service in ``folder``; it is started, killed and started again with the same state."""

    folder: Path
    settings: Mapping[str, Mapping[str, object]]
    port: int = field(factory=free_port)
    fault: str = ""
    """Where the next process is to die (``mailgateway.store.faults``)."""
    wrapper: tuple[str, ...] = ()
    """A command that runs the service, with its arguments: it must become the service (as ``exec`` does)."""
    client: Client = field(init=False)
    _process: "subprocess.Popen[bytes] | None" = None

    def __attrs_post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.client = self.another_client()

    def another_client(self) -> Client:
        """Make a client for another thread."""
        return Client(Base(host="127.0.0.1", port=self.port), self.state_dir / "secret.key", timeout=20)

    @property
    def state_dir(self) -> Path:
        """Where the service keeps its state."""
        return self.folder / "state"

    @property
    def log_path(self) -> Path:
        """Where it writes."""
        return self.folder / "service.log"

    def log(self) -> str:
        """Read what it wrote, over all its lives."""
        return self.log_path.read_text("utf-8", "replace") if self.log_path.exists() else ""

    def launch(self) -> "subprocess.Popen[bytes]":
        """Start the process, and wait for nothing."""
        daemon = {
            "host": "127.0.0.1",
            "port": self.port,
            "state_dir": str(self.state_dir),
            **self.settings.get("daemon", {}),
        }
        path = self.folder / "mailgateway.toml"
        path.write_text(settings_text({**self.settings, "daemon": daemon}), encoding="utf-8")
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        kept = ("PATH", "LANG", "LC_ALL", "TZ", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
        environment = {name: os.environ[name] for name in kept if name in os.environ}
        environment |= {
            "HOME": str(home),
            "PYTHONPATH": str(Path(mailgateway.__file__).parent.parent),
            "PYTHONUNBUFFERED": "1",
        }
        if self.fault:
            environment[VARIABLE], self.fault = self.fault, ""
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.wrapper, *TWISTD, "-n", "mailgateway", "--config", str(path)],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self._process

    def start(self) -> "Gateway":
        """Start the process and wait until it has proved itself healthy."""
        process = self.launch()
        self.client.close()  # a connection to an earlier life would prove nothing

        def tail() -> str:
            return "\n".join(self.log().splitlines()[-25:])

        def healthy() -> bool:
            assert process.poll() is None, f"the service ended with {process.returncode}:\n{tail()}"
            try:
                self.client.prove()
            except (ServiceUnreachable, ConfigError):
                return False
            return True

        try:
            eventually("the service is healthy", healthy, START_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{tail()}") from None
        return self

    def stop(self) -> int:
        """Ask it to stop; its exit status, within the deadline."""
        process, self._process = self._process, None
        assert process is not None
        process.terminate()
        try:
            return process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the service did not stop within {STOP_SECONDS} s") from None

    def kill(self) -> None:
        """Kill it where it stands."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
        self.client.close()

    def wait_killed(self) -> None:
        """Wait until it has died by the fault that it was started with."""
        process, self._process = self._process, None
        assert process is not None
        try:
            status = process.wait(START_SECONDS)
        finally:
            process.kill()
            process.wait()
            self.client.close()
        assert status == -signal.SIGKILL, f"the service ended with {status}, and not by its fault"

    def run_verb(self, *words: str) -> tuple[int, dict[str, Any]]:
        """Run a verb for JSON as an operator does; its status, and what it told."""
        done = subprocess.run(
            [sys.executable, "-c", VERB, *words, "--config", str(self.folder / "mailgateway.toml"), "--json"],
            capture_output=True,
            timeout=120,
            check=False,
            env={**os.environ, "HOME": str(self.folder / "home")},
        )
        assert PASSWORD.encode() not in done.stdout + done.stderr, "the password was told"
        return done.returncode, json.loads(done.stdout)

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    @property
    def running(self) -> bool:
        """Whether there is a process of it."""
        return self._process is not None

    @property
    def stopped(self) -> bool:
        """Whether its process sleeps by SIGSTOP."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def close(self) -> None:
        """Leave no process behind."""
        if self._process is not None:
            with contextlib.suppress(AssertionError):
                self.stop()


@define(eq=False)
class Asked:
    """A question that has reached the person's mail server."""

    session: str
    instance: str
    received: Received

    @property
    def question(self) -> EmailMessage:
        """The mail."""
        return self.received.mail


class WorldTestCase(SynchronousTestCase):
    """A test with a Dovecot, a sink and a service, all gone in the end."""

    imap_tls = "none"
    smtp_tls: SinkTls = "none"
    names: tuple[str, ...] = ()
    """Other names for the servers' certificate than those that fit."""

    def setUp(self) -> None:
        require_dovecot()
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.folder.chmod(0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.authority = Authority.make(self.folder / "ca", *self.names)
        self.dovecot = Dovecot(self.folder / "dovecot", {AGENT: PASSWORD}, self.authority)
        self.sink = self.make_sink()
        self.gateway = Gateway(self.folder / "gateway", self.make_settings())
        self.threads = ThreadPoolExecutor(4)
        self.sessions = 0
        # in the end the service stops first, then what it talks to, then the threads that waited for it
        self.addCleanup(self.threads.shutdown)
        self.addCleanup(self.sink.stop)
        self.addCleanup(self.dovecot.stop, hard=True)
        self.addCleanup(self.gateway.close)
        self.dovecot.start()
        self.sink.start()
        self.start_watching()

    def make_sink(self) -> SmtpSink:
        """Make the submission server."""
        return SmtpSink({AGENT: PASSWORD}, tls=self.smtp_tls, authority=self.authority)

    def make_settings(self) -> dict[str, dict[str, object]]:
        """Make the settings, but for ``[daemon]``."""
        port = self.dovecot.imaps_port if self.imap_tls == "implicit" else self.dovecot.imap_port
        anchor = {"ca_file": str(self.authority.anchor)}
        imap = {"host": "127.0.0.1", "port": port, "tls": self.imap_tls, **self.secret(), **anchor}
        smtp = {"host": "127.0.0.1", "port": self.sink.port, "tls": self.smtp_tls}
        return {
            "device": {"name": "bench"},
            "accounts.main": {"address": AGENT, "watch": ["INBOX"]},
            "accounts.main.imap": imap,
            "accounts.main.smtp": smtp,
            "people": {"allowed": [ROBIN], "notify": ROBIN},
            "security": {"authentication": "required", "trusted_authserv_ids": [AUTHSERV_ID]},
            "notify": {"budget_per_minute": 100},
        }

    def secret(self) -> dict[str, object]:
        """Lay the credential where the settings name it."""
        path = self.folder / "password"
        path.touch(mode=0o600)
        path.write_text(PASSWORD + "\n", encoding="utf-8")
        return {"password_file": str(path)}

    def start_watching(self) -> None:
        """Start the service and wait until it sits in IDLE."""
        self.gateway.start()
        self.gateway.client.set_mode("on")
        self.dovecot.wait_idle(AGENT)

    # What the person at this machine is told

    def person(self) -> Client:
        """Make a client of the person at this machine."""
        state = self.gateway.state_dir
        base = Base(host="127.0.0.1", port=self.gateway.port)
        client = Client(base, state / "person.key", 20, proof_path=state / "secret.key")
        self.addCleanup(client.close)
        return client

    def fates(self) -> list[Fate]:
        """What the person is told of their mail, oldest first."""
        return self.person().inbound()[::-1]

    def wait_fates(self, *steps: tuple[str, str]) -> None:
        """Wait until these are the verdicts and steps of all mail."""
        found: list[tuple[str, str]] = []

        def reached() -> bool:
            found[:] = [(fate["verdict"], fate["step"]) for fate in self.fates()]
            return found == list(steps)

        try:
            eventually(f"the fates are {steps}", reached)
        except AssertionError as error:
            raise AssertionError(f"{error}; they are {found}") from None

    # What sessions and people do

    def ask(self, subject: str = "Which database?") -> Asked:
        """Let a new session ask for a decision; the question as the person's server got it."""
        self.sessions += 1
        session, instance = f"session-{self.sessions}", f"instance-{self.sessions}"
        self.gateway.client.ping(session, instance, title="acceptance")
        sent = self.gateway.client.send("decision", session, subject, "SQLite or PostgreSQL?")
        received = self.sink.wait(lambda mail: mail.mail["Message-ID"] == sent["messageId"])
        return Asked(session, instance, received)

    def reply(self, asked: Asked, typed: str, *, results: str = RESULTS) -> tuple[bytes, str]:
        """Write a reply as a mail program does, with the receiving server's verdict; raw, and Message-ID."""
        reply = reply_to(asked.question, typed, "Robin", ROBIN, datetime.now(UTC))
        raw = reply.as_bytes().replace(b"\n", b"\r\n")
        return f"Authentication-Results: {results}\r\n".encode() + raw, str(reply["Message-ID"])

    def deliver_reply(self, asked: Asked, typed: str) -> str:
        """Deliver a reply; its Message-ID."""
        raw, message_id = self.reply(asked, typed)
        self.dovecot.deliver(AGENT, raw, ROBIN)
        return message_id

    def poll(self, asked: Asked, wait: float = 20) -> Delivery:
        """Long-poll for the one delivery of a session."""
        deliveries = self.gateway.client.pending(asked.session, wait=wait)
        self.assertEqual(len(deliveries), 1, f"deliveries for {asked.session}: {deliveries}")
        return deliveries[0]

    def polling(self, asked: Asked, wait: float = 30) -> "Future[tuple[float, list[Delivery]]]":
        """Long-poll on a thread; when it came back, by the monotonic clock, and with what."""

        def blocking() -> tuple[float, list[Delivery]]:
            with self.gateway.another_client() as client:
                deliveries = client.pending(asked.session, wait=wait)
                return time.monotonic(), deliveries

        return self.threads.submit(blocking)

    def take(self, asked: Asked, delivery: Delivery) -> None:
        """Claim and ack a delivery."""
        self.gateway.client.claim(delivery["id"], asked.instance)
        self.gateway.client.ack(delivery["id"], asked.instance)

    def seen(self, message_id: str) -> bool:
        r"""Say whether a mail is ``\Seen``."""
        return "\\Seen" in self.dovecot.flags(AGENT).get(message_id, set())

    def wait_seen(self, message_id: str) -> None:
        r"""Wait until a mail is ``\Seen``."""
        eventually(f"{message_id} is \\Seen", lambda: self.seen(message_id))

    def wait_account(self, *states: str) -> None:
        """Wait until the account is in one of these states."""

        def reached() -> bool:
            return any(account["state"] in states for account in self.gateway.client.health()["accounts"])

        eventually(f"the account is {' or '.join(states)}", reached)

    def assert_nothing_pending(self, asked: Asked) -> None:
        """No delivery is left for the session."""
        self.assertEqual(self.gateway.client.pending(asked.session), [])

    def words(self, delivery: Delivery) -> str:
        """What the person typed, as delivered."""
        body: Any = delivery["body"]
        return str(body).strip()
