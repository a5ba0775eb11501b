"""What ties the service to its machine: the lock, its sockets, the service manager, the passing of time."""

import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from mailgateway.daemons.instance_lock import FILE, Holder, InstanceLock, take_lock
from mailgateway.daemons.listening import Listening, PortTaken, bind
from mailgateway.daemons.service_manager import Watchdog, inherited_sockets, notify
from mailgateway.errors import ConfigError
from mailgateway.settings import Daemon

reactor: Any = global_reactor
ROOT = Path(__file__).parent.parent.parent


def python(code: str, **options: Any) -> "subprocess.Popen[str]":
    """A child that runs this; one line of its output is waited for by whoever needs it."""
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True, **options
    )


class LockTests(SynchronousTestCase):
    """One service for one state directory."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp())
        self.folder.mkdir()

    def take(self, port: int = 4177) -> InstanceLock:
        """Take the lock, which must be free."""
        lock = take_lock(self.folder, port)
        assert isinstance(lock, InstanceLock), lock
        return lock

    def test_a_second_one_is_told_where_the_first_is(self) -> None:
        """So that it can look whether the first is well."""
        lock = self.take(4321)
        self.assertEqual(take_lock(self.folder, 4177), Holder(os.getpid(), 4321))
        lock.release()
        self.take().release()

    def test_a_killed_holder_leaves_nothing_to_clear_away(self) -> None:
        """The kernel gives the lock back."""
        child = python(
            "import pathlib, sys, time\n"
            "from mailgateway.daemons.instance_lock import take_lock\n"
            f"lock = take_lock(pathlib.Path({str(self.folder.absolute())!r}), 1)\n"
            "print('held', flush=True)\n"
            "time.sleep(60)\n"
        )
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        assert child.stdout is not None
        self.addCleanup(child.stdout.close)
        self.assertEqual(child.stdout.readline(), "held\n")
        self.assertEqual(take_lock(self.folder, 4177), Holder(child.pid, 1))
        child.kill()
        child.wait()
        self.take().release()

    def test_a_holder_that_has_not_written_yet(self) -> None:
        """Whatever stands in the file, the lock is what counts."""
        for told in ("", "null", "{", '{"pid": []}'):
            lock = self.take()
            (self.folder / FILE).write_text(told, encoding="utf-8")
            self.assertEqual(take_lock(self.folder, 4177), Holder(0, 0), told)
            lock.release()

    def test_a_directory_that_is_none(self) -> None:
        """The operator is told which setting to mend."""
        error = self.assertRaises(ConfigError, take_lock, self.folder / "missing", 4177)
        self.assertEqual(error.problems[0].path, "daemon.state_dir")

    def test_nobody_else_reads_it(self) -> None:
        """It tells a pid and a port only, and still is nobody's business."""
        lock = self.take()
        self.assertEqual(stat.S_IMODE((self.folder / FILE).stat().st_mode), 0o600)
        lock.release()


class ListeningTests(TestCase):
    """The sockets of the API."""

    def setUp(self) -> None:
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        # an address of a unix socket has no room for a long path
        self.path = Path(os.path.relpath(self.folder / "s"))

    def daemon(self, **values: Any) -> Daemon:
        """Settings for the sockets."""
        facts: dict[str, Any] = {"port": 0, "state_dir": self.folder}
        return Daemon(**facts | values)

    def taken(self, daemon: Daemon) -> str:
        """The sentence about a socket that cannot be bound."""
        error: PortTaken = self.assertRaises(PortTaken, bind, daemon, {})
        return error.sentence

    def test_a_port_of_another_program(self) -> None:
        """It is known before the service has done anything, and the sentence names the setting."""
        with socket.create_server(("127.0.0.1", 0)) as foreign:
            port = foreign.getsockname()[1]
            sentence = self.taken(self.daemon(port=port))
        self.assertIn(str(port), sentence)
        self.assertIn("daemon.port", sentence)

    def test_an_address_that_is_not_ours(self) -> None:
        """Another mistake has another word."""
        self.assertNotIn("another program", self.taken(self.daemon(host="192.0.2.1", port=4177)))

    async def test_a_unix_socket_is_for_its_owner(self) -> None:
        """And is gone in the end."""
        listening = bind(self.daemon(socket=self.path), {})
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        factory = Factory.forProtocol(Protocol)
        listening.open(reactor, lambda: factory)
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.path))
        await listening.close()
        self.assertFalse(self.path.exists())

    async def test_a_unix_socket_of_the_service_manager_stays_as_it_is(self) -> None:
        """Its mode is not widened, it answers, and it is there for the next start."""
        manager = socket.socket(socket.AF_UNIX)
        self.addCleanup(manager.close)
        manager.bind(str(self.path))
        self.path.chmod(0o620)
        manager.listen()
        listening = Listening((manager.dup(),))
        greeted: Deferred[None] = Deferred()

        class Greeter(Protocol):
            def connectionMade(self) -> None:
                assert self.transport is not None
                self.transport.loseConnection()
                greeted.callback(None)

        factory = Factory.forProtocol(Greeter)
        listening.open(reactor, lambda: factory)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(self.path))
            await greeted
        await listening.close()
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o620)

    def test_a_socket_that_a_crash_left_behind_is_replaced(self) -> None:
        """One that answers is not."""
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(self.path))
        listening = bind(self.daemon(socket=self.path), {})
        self.assertIn("daemon.socket", self.taken(self.daemon(socket=self.path)))
        for bound in listening.sockets:
            bound.close()

    def test_a_file_in_the_way_is_left_alone(self) -> None:
        """Nothing is deleted that is no socket."""
        self.path.write_text("precious", encoding="utf-8")
        self.taken(self.daemon(socket=self.path))
        self.assertEqual(self.path.read_text(encoding="utf-8"), "precious")

    def test_an_unknown_group(self) -> None:
        """The sentence says so, and no socket is open to anybody."""
        self.taken(self.daemon(socket=self.path, socket_group="no-such-group"))


class ServiceManagerTests(SynchronousTestCase):
    """sd_notify(3) and sd_listen_fds(3)."""

    def receiver(self, address: str) -> socket.socket:
        """Where a service manager listens."""
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(address)
        manager.settimeout(5)
        return manager

    def test_it_is_told(self) -> None:
        """By a path, and by an abstract address."""
        path = self.mktemp()
        name = f"mailgateway-test-{os.getpid()}"
        for address, shown in ((path, path), (f"\0{name}", f"@{name}")):
            manager = self.receiver(address)
            notify({"NOTIFY_SOCKET": shown}, "READY=1")
            self.assertEqual(manager.recv(100), b"READY=1")

    def test_nobody_there(self) -> None:
        """Without a service manager nothing happens, and one that has gone is its own loss."""
        notify({}, "READY=1")
        notify({"NOTIFY_SOCKET": self.mktemp()}, "READY=1")

    def test_the_watchdog_is_fed_twice_in_each_interval(self) -> None:
        """From the reactor's own clock, so that a reactor that hangs is found out."""
        path, clock = self.mktemp(), Clock()
        manager = self.receiver(path)
        manager.setblocking(False)
        watchdog = Watchdog(clock, {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000000"})
        watchdog.startService()
        clock.pump([15.0, 15.0])
        self.assertEqual([manager.recv(100) for _ in range(3)], [b"WATCHDOG=1"] * 3)
        watchdog.stopService()
        self.assertEqual(clock.getDelayedCalls(), [])
        self.assertRaises(BlockingIOError, manager.recv, 100)

    def test_no_watchdog_unless_it_is_asked_for(self) -> None:
        """No timer turns for nobody."""
        clock = Clock()
        watchdog = Watchdog(clock, {})
        watchdog.startService()
        self.assertEqual(clock.getDelayedCalls(), [])
        watchdog.stopService()

    def test_sockets_for_another_process_are_not_ours(self) -> None:
        """The variables are inherited by children that they do not concern."""
        self.assertEqual(inherited_sockets({"LISTEN_PID": "1", "LISTEN_FDS": "1"}), ())
        self.assertEqual(inherited_sockets({}), ())

    def test_a_socket_that_was_opened_for_us(self) -> None:
        """A child finds it as descriptor 3 and answers on it; the settings' own port is not bound."""
        with socket.create_server(("127.0.0.1", 0)) as opened:
            port = opened.getsockname()[1]
            number = opened.fileno()
            child = python(
                "import os, pathlib\n"
                f"os.dup2({number}, 3)\n"
                "os.environ |= {'LISTEN_PID': str(os.getpid()), 'LISTEN_FDS': '1'}\n"
                "from mailgateway.daemons.listening import bind\n"
                "from mailgateway.settings import Daemon\n"
                "listening = bind(Daemon(port=1, state_dir=pathlib.Path('/')), os.environ)\n"
                "(bound,) = listening.sockets\n"
                "bound.accept()[0].sendall(b'from the child')\n",
                pass_fds=(number,),
            )
            self.addCleanup(child.wait)
            self.addCleanup(child.kill)
            assert child.stdout is not None
            self.addCleanup(child.stdout.close)
            with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
                client.settimeout(20)
                self.assertEqual(client.recv(100), b"from the child")
