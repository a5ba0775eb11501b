"""Commands that print a secret: bounded in time and size, and silent about what they print."""

import sys
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ProcessDone, ProcessTerminated
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from mailgateway.errors import TokenUnavailable
from mailgateway.protocols.process import run_command

reactor: Any = global_reactor


class Fork(Clock):
    """A reactor whose processes are played by the test."""

    def __init__(self) -> None:
        super().__init__()
        self.killed = False
        self.closed = False

    def spawnProcess(self, protocol: Any, path: str, words: list[str], env: Any) -> None:  # noqa: ARG002
        """Begin one."""
        self.words = words
        self.process = protocol
        protocol.makeConnection(self)

    def closeStdin(self) -> None:
        """It gets no input."""

    def signalProcess(self, name: str) -> None:
        """It is to be killed."""
        self.killed = name == "KILL"

    def loseConnection(self) -> None:
        """Its output does not matter any more."""
        self.closed = True


class PlayedTests(SynchronousTestCase):
    """Time and endings, with a clock that the test moves."""

    def begin(self, command: str | list[str]) -> tuple[Fork, Deferred[str]]:
        """A command that runs."""
        fork = Fork()
        return fork, Deferred.fromCoroutine(run_command(fork, command, 30, 100))

    def test_deadline(self) -> None:
        """A command that hangs is killed, and its output let go; no timer is left."""
        fork, running = self.begin(["true"])
        fork.advance(29)
        self.assertNoResult(running)
        fork.advance(1)
        error = self.failureResultOf(running, TokenUnavailable).value
        self.assertIn("30 s", str(error))
        self.assertTrue(fork.killed and fork.closed)
        self.assertEqual(fork.getDelayedCalls(), [])
        fork.process.processEnded(Failure(ProcessTerminated(signal=9)))

    def test_too_much(self) -> None:
        """A command that prints without end is killed."""
        fork, running = self.begin(["true"])
        fork.process.outReceived(b"x" * 60)
        self.assertNoResult(running)
        fork.process.outReceived(b"x" * 60)
        self.failureResultOf(running, TokenUnavailable)
        self.assertTrue(fork.killed)
        self.assertEqual(fork.getDelayedCalls(), [])

    def test_cancel(self) -> None:
        """So is one that nobody waits for any more."""
        fork, running = self.begin(["true"])
        running.cancel()
        self.failureResultOf(running, CancelledError)
        self.assertTrue(fork.killed)
        self.assertEqual(fork.getDelayedCalls(), [])

    def test_endings(self) -> None:
        """A status or a signal is named; what was printed is not."""
        for reason, why in (
            (ProcessTerminated(exitCode=3), "status 3"),
            (ProcessTerminated(signal=11), "signal"),
        ):
            fork, running = self.begin(["true"])
            fork.process.outReceived(b"hunter2")
            fork.process.errReceived(b"bad password hunter2")
            fork.process.processEnded(Failure(reason))
            error = self.failureResultOf(running, TokenUnavailable).value
            self.assertIn(why, str(error))
            self.assertNotIn("hunter2", str(error))

    def test_first_line(self) -> None:
        """Password stores print notes below the password; blanks belong to it."""
        for printed, secret in (
            (b"hunter2", "hunter2"),
            (b"hunter2\n", "hunter2"),
            (b" hunter2 \r\nlogin: me\n", " hunter2 "),
            ("pässword\n".encode(), "pässword"),
        ):
            fork, running = self.begin(["true"])
            for at in range(len(printed)):
                fork.process.outReceived(printed[at : at + 1])
            fork.process.processEnded(Failure(ProcessDone(0)))
            self.assertEqual(self.successResultOf(running), secret)

    def test_nothing_usable(self) -> None:
        """An empty line is no secret, and neither are bytes that are no text, or that colour it."""
        for printed in (b"", b"\n", b"\nhunter2\n", b"\xff\n", b"\x1b[32mhunter2\n"):
            fork, running = self.begin(["true"])
            fork.process.outReceived(printed)
            fork.process.processEnded(Failure(ProcessDone(0)))
            error = self.failureResultOf(running, TokenUnavailable).value
            self.assertNotIn("hunter2", str(error))

    def test_shell_only_for_a_line(self) -> None:
        """A list of words is never looked at by a shell; a missing command is named without its arguments."""
        fork, _ = self.begin("pass show mail | head -1")
        self.assertEqual(fork.words, ["/bin/sh", "-c", "pass show mail | head -1"])
        fork, _ = self.begin(["echo", "$HOME; rm"])
        self.assertEqual(fork.words, ["echo", "$HOME; rm"])
        for words in (["/no/such/command", "hunter2"], []):
            error = self.failureResultOf(self.begin(words)[1], TokenUnavailable).value
            self.assertNotIn("hunter2", str(error))


class RealTests(TestCase):
    """Real processes."""

    timeout = 30

    async def test_prints(self) -> None:
        """Words and a line of the shell, with the environment and without input."""
        self.assertEqual(await run_command(reactor, [sys.executable, "-c", "print('a b')"]), "a b")
        self.assertEqual(await run_command(reactor, 'cat; printf "%s" "${PATH:+x}"; echo y'), "xy")

    async def test_fails(self) -> None:
        """The status is told, and the complaint is not."""
        with self.assertRaises(TokenUnavailable) as caught:
            await run_command(reactor, "echo hunter2; echo hunter2 >&2; exit 7")
        self.assertIn("status 7", str(caught.exception))
        self.assertNotIn("hunter2", str(caught.exception))

    async def test_endless(self) -> None:
        """A command without end is stopped by its size."""
        with self.assertRaises(TokenUnavailable):
            await run_command(reactor, "yes")

    async def test_hangs(self) -> None:
        """A command that sleeps is stopped by its time, even if a child holds its output open."""
        with self.assertRaises(TokenUnavailable):
            await run_command(reactor, "sleep 20 & sleep 20", seconds=0.2)
