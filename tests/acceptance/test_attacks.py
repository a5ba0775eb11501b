"""The API under attack: whatever comes over the loopback interface, the service stays healthy and small.

After each attack the service must be the same process, answer ``/health`` on its port and on its socket soon,
hold little more memory than before, and have logged no traceback.
"""

import contextlib
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from mailgateway.client import Base, Client
from tests.acceptance.harness import AGENT, PASSWORD, ROBIN, Gateway
from tests.fakes.dovecot import eventually
from tests.fakes.smtp_sink import free_port

GROWTH_MB = 24.0
"""How much an attack may cost; the allocator keeps some of what a large request needed."""
HEALTHY_SECONDS = 1.5

FLOOD = """
import resource, socket, sys, time
count, port = int(sys.argv[1]), int(sys.argv[2])
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []
for number in range(count):
    peer = socket.socket()
    try:
        peer.settimeout(5)
        peer.connect(("127.0.0.1", port))
        if number % 3:
            peer.sendall(b"GET /health HTTP/1.1\\r\\nX-Slow: ")
    except OSError:
        pass
    held.append(peer)
print(len(held), flush=True)
sys.stdin.read()
"""
"""Opens connections and holds them; a third is silent, the others have begun a request."""


class AttackTestCase(SynchronousTestCase):
    """A service whose mail servers do not answer: the doors of the API are what is tested."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-attack-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        secret = self.folder / "password"
        secret.touch(mode=0o600)
        secret.write_text(PASSWORD + "\n", encoding="utf-8")
        nowhere = {"host": "127.0.0.1", "tls": "none", "port": free_port(), "password_file": str(secret)}
        self.gateway = Gateway(
            self.folder / "gateway",
            {
                "daemon": {"socket": str(self.folder / "api.sock")},
                "device": {"name": "bench"},
                "accounts.main": {"address": AGENT, "watch": ["INBOX"]},
                "accounts.main.imap": nowhere,
                "accounts.main.smtp": {**nowhere, "port": free_port()},
                "people": {"allowed": [ROBIN], "notify": ROBIN},
                "security": {"authentication": "required", "trusted_authserv_ids": ["mx.example.org"]},
            },
        )
        self.addCleanup(self.gateway.close)
        self.addCleanup(self.gateway.client.close)
        self.start()
        self.addCleanup(self.assert_unharmed)

    def start(self) -> None:
        """Start the service, and note how large it is."""
        self.gateway.start()
        self.pid = self.gateway.pid
        self.assert_healthy()
        self.before = self.resident_mb()

    def assert_unharmed(self) -> None:
        """What must hold after each attack."""
        self.assert_healthy()
        self.assertEqual(self.gateway.pid, self.pid)
        self.assertLess(self.resident_mb() - self.before, GROWTH_MB)
        self.assertNotIn("Traceback", self.gateway.log())

    def assert_healthy(self) -> None:
        """Both doors answer, and soon."""
        for base in (
            Base(host="127.0.0.1", port=self.gateway.port),
            Base(socket=self.folder / "api.sock"),
        ):
            began = time.monotonic()
            with Client(base, self.gateway.state_dir / "secret.key", timeout=10) as client:
                client.proved_health()
            self.assertLess(time.monotonic() - began, HEALTHY_SECONDS, str(base))

    def resident_mb(self) -> float:
        """The memory of the service."""
        pages = int(Path(f"/proc/{self.gateway.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20

    def cpu_seconds(self) -> float:
        """The CPU that the service has used."""
        fields = Path(f"/proc/{self.gateway.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def key(self) -> str:
        """The key of sessions."""
        return (self.gateway.state_dir / "secret.key").read_text().strip()

    def head(self, line: str = "POST /ping", *fields: str, key: str | None = None) -> bytes:
        """The beginning of a request with a key and the right host."""
        known = [f"Host: 127.0.0.1:{self.gateway.port}", f"Authorization: Bearer {key or self.key}"]
        return "".join(f"{each}\r\n" for each in (f"{line} HTTP/1.1", *known, *fields)).encode()

    def connect(self) -> socket.socket:
        """A bare connection."""
        peer = socket.create_connection(("127.0.0.1", self.gateway.port), timeout=10)
        self.addCleanup(peer.close)
        return peer

    def send(self, raw: bytes, *, ending: bool = False) -> bytes:
        """Send bytes on a connection of their own; all that comes back until it closes or a second passes."""
        with closing(self.connect()) as peer:
            with contextlib.suppress(OSError):  # refused before it was all sent
                peer.sendall(raw)
                if ending:
                    peer.shutdown(socket.SHUT_WR)
            return read(peer)

    def status(self, raw: bytes) -> int:
        """The status that bytes are answered with; 0: closed without a word."""
        answer = self.send(raw)
        return int(answer.split(b" ", 2)[1]) if answer else 0

    @contextmanager
    def flood(self, count: int) -> Iterator[None]:
        """So many connections of another process, held meanwhile."""
        with subprocess.Popen(
            [sys.executable, "-c", FLOOD, str(count), str(self.gateway.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                self.assertEqual(int(process.stdout.readline()), count)
                yield
            finally:
                process.stdin.close()
                process.wait(20)

    def with_body(self, body: bytes, line: str = "POST /ping") -> tuple[int, str]:
        """Send a JSON body; status and code of the answer."""
        answer = self.send(
            self.head(line, f"Content-Length: {len(body)}", "Connection: close") + b"\r\n" + body
        )
        return int(answer.split(b" ", 2)[1]), str(json.loads(answer.partition(b"\r\n\r\n")[2]).get("error"))


def read(peer: socket.socket, seconds: float = 1.0) -> bytes:
    """All that comes until the other side closes, or is silent."""
    peer.settimeout(seconds)
    found = b""
    with contextlib.suppress(OSError):
        while data := peer.recv(65_536):
            found += data
    return found


class RequestTests(AttackTestCase):
    """Requests that are not what they seem."""

    def test_smuggling(self) -> None:
        """Whatever two readers could understand in two ways is refused, and the connection closes."""
        body = b'{"sessionId":"s","instanceId":"i"}'
        second = self.head("POST /shutdown", "Content-Length: 0") + b"\r\n"
        length = f"Content-Length: {len(body)}"
        for fields in (
            (length, "Transfer-Encoding: chunked"),
            ("Transfer-Encoding: chunked", length),
            (length, length),
            (length, "Content-Length: 0"),
            (f"Content-Length: {len(body)}, {len(body)}",),
            (f"Content-Length : {len(body)}",),
            (f"Content-Length: +{len(body)}",),
            ("Transfer-Encoding : chunked",),
            ("Transfer-Encoding: chunked, chunked",),
            ("Transfer-Encoding: xchunked",),
            ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
            ("X-Bare: a\nContent-Length: 0",),
            ("X-Nul: a\x00b",),
            ("X Space: a",),
        ):
            answer = self.send(self.head("POST /ping", *fields) + b"\r\n" + body + second)
            self.assertRegex(answer, rb"^HTTP/1\.1 4\d\d ", str(fields))
            self.assertEqual(len(re.findall(rb"HTTP/1\.1 \d\d\d ", answer)), 1, fields)

    def test_bare_line_feeds_and_old_versions(self) -> None:
        """Lines end as they must; a request without a version is none."""
        host = f"Host: 127.0.0.1:{self.gateway.port}"
        for raw in (
            f"GET /health HTTP/1.1\n{host}\n\n".encode(),
            b"GET /health\r\n\r\n",
            f"GET /health HTTP/1.1\r\n X-Folded: a\r\n{host}\r\n\r\n".encode(),
            b"GET /health HTTP/0.9\r\n\r\n",
            b"GET /health HTTP/2.0\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
            b"\r\n" * 5_000,
            b"\0" * 20_000,
        ):
            self.assertNotIn(b" 200 ", self.send(raw), raw[:40])

    def test_a_folded_field_is_one_field(self) -> None:
        """A line that goes on in the next is joined with a space (RFC 9112 5.2), and hides no length."""
        answer = self.send(
            self.head("POST /ping", "Transfer-Encoding:\r\n chunked", "Content-Length: 4") + b"\r\n"
        )
        self.assertRegex(answer, rb"^HTTP/1\.1 400 ")
        folded = self.head("GET /mode", "X-Long: a\r\n\tb", "Connection: close") + b"\r\n"
        self.assertEqual(self.status(folded), 200)

    def test_huge_headers(self) -> None:
        """Lines, numbers of fields and addresses are bounded."""
        for raw in (
            b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
            self.head("GET /mode", "X-Long: " + "a" * 100_000) + b"\r\n",
            self.head("GET /mode", *(f"X-{number}: v" for number in range(5_000))) + b"\r\n",
            self.head("GET /mode", *(["X: v"] * 5_000)) + b"\r\n",
            self.head("GET /mode", "X: " + "\r\n ".join(["v"] * 20_000)) + b"\r\n",
            b"G" * 1_000_000,
        ):
            self.assertIn(self.status(raw), {0, 400}, raw[:40])

    def test_rebound_names_and_foreign_pages(self) -> None:
        """A page of another site reaches nothing, by whatever name it asks, and is told nothing."""
        port = self.gateway.port
        for host in (
            f"evil.example:{port}",
            f"127.0.0.1.evil.example:{port}",
            "127.0.0.1",
            f"127.0.0.1:{port}:1",
        ):
            raw = f"GET /mode HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {self.key}\r\n\r\n"
            self.assertEqual(self.status(raw.encode()), 421, host)
        for origin in ("null", "http://evil.example", f"http://127.0.0.1:{port}.evil.example", ""):
            answer = self.send(self.head("GET /mode", f"Origin: {origin}", "Connection: close") + b"\r\n")
            self.assertRegex(answer, rb"^HTTP/1\.1 403 ", origin)
            self.assertNotIn(b"access-control", answer.lower())

    def test_odd_json(self) -> None:
        """Depth, numbers, names twice, what is no number, half characters: refused in words."""
        who = '"sessionId":"s","instanceId":"i"'
        for body in (
            "[" * 100_000,
            '{"a":' * 100_000,
            "[" * 100_000 + "]" * 100_000,
            f'{{{who},"pid":{"9" * 5_000}}}',
            f'{{{who},"dirty":{"9" * 500_000}}}',
            f'{{{who},"title":NaN}}',
            f'{{{who},"title":Infinity}}',
            f'{{{who},"dirty":1e999}}',
            f'{{{who},"title":"\\ud800"}}',
            f'{{{who},"title":"a\\u0000b"}}',
            f'{{{who},"sessionId":"t"}}',
            f"{{{who}}} {{{who}}}",
            f"\ufeff{{{who}}}",
            "",
            "null",
            '"' + "a" * 900_000 + '"',
        ):
            status, code = self.with_body(body.encode())
            self.assertEqual(status, 400, body[:60])
            self.assertNotEqual(code, "None")
        for raw in (
            b"\xff\xfe{\x00",
            f'{{{who},"title":"\xff"}}'.encode("latin-1"),
            f"{{{who}}}".encode("utf-16"),
        ):
            self.assertEqual(self.with_body(raw)[0], 400, raw[:20])

    def test_guessed_keys(self) -> None:
        """Thousands of wrong keys are told the same, and the right one still opens."""
        wrong = [self.key[:-1] + ("0" if self.key[-1] != "0" else "1"), self.key * 2, "", "x" * 5_000]
        for key in wrong:
            raw = (
                self.head("GET /mode", "Connection: close").replace(self.key.encode(), key.encode()) + b"\r\n"
            )
            self.assertEqual(self.status(raw), 401, key[:10])
        for _ in range(5):
            with closing(self.connect()) as peer:
                peer.sendall((self.head("GET /mode", key="f" * 64) + b"\r\n") * 400)
                self.assertEqual(read(peer).count(b" 401 "), 400)
        self.gateway.client.ping("s", "i")


class BodyTests(AttackTestCase):
    """Bodies without an end."""

    def pour(self, head: bytes, piece: bytes, most: int) -> tuple[bytes, int]:
        """Send a piece again and again until the service has had enough; its answer, and how much it took."""
        with closing(self.connect()) as peer:
            peer.sendall(head)
            sent = 0
            with contextlib.suppress(OSError):
                while sent < most:
                    peer.sendall(piece)
                    sent += len(piece)
            return read(peer, 3), sent

    def test_chunks_without_end(self) -> None:
        """Large ones, tiny ones, their extensions, the trailer: each ends with a refusal."""
        chunked = self.head("POST /ping", "Transfer-Encoding: chunked") + b"\r\n"
        for piece, most in (
            (b"fffff\r\n" + b"x" * 0xFFFFF + b"\r\n", 40_000_000),
            (b"1\r\nx\r\n" * 10_000, 20_000_000),
            (b"1;" + b"e" * 60_000 + b"\r\nx\r\n", 20_000_000),
            (b"0\r\n" + b"X-Trailer: v\r\n" * 5_000, 20_000_000),
            (b"f" * 100_000, 20_000_000),
            (b"-1\r\n", 1_000_000),
        ):
            began = self.cpu_seconds()
            answer, sent = self.pour(chunked, piece, most)
            self.assertLess(sent, most, piece[:20])
            if answer:  # a reset may overtake it
                self.assertRegex(answer, rb"^HTTP/1\.1 4(00|13) ", str(piece[:20]))
            self.assertLess(self.cpu_seconds() - began, 5)

    def test_a_stranger_pours(self) -> None:
        """Without a key nothing is stored, and the end comes just as soon."""
        head = self.head("POST /ping", "Transfer-Encoding: chunked", key="f" * 64).decode() + "\r\n"
        began = self.cpu_seconds()
        _, sent = self.pour(head.encode(), b"1\r\nx\r\n" * 10_000, 20_000_000)
        self.assertLess(sent, 20_000_000)
        self.assertLess(self.cpu_seconds() - began, 5)

    def test_uploads_that_never_end(self) -> None:
        """They are cut off at their bound; broken off or cut off, they leave no file."""
        fields = ("Transfer-Encoding: chunked", "X-Session-Id: s", "X-Filename: endless")
        head = self.head("POST /attachments", *fields) + b"\r\n"
        piece = b"80000\r\n" + bytes(0x80000) + b"\r\n"
        _, sent = self.pour(head, piece, 60_000_000)
        self.assertLess(sent, 40_000_000)
        uploads = self.gateway.state_dir / "uploads"
        with ExitStack() as held:
            for _ in range(20):
                peer = held.enter_context(closing(self.connect()))
                peer.sendall(head + piece)
            eventually("the uploads are on their way", lambda: any(uploads.iterdir()))
            self.assert_healthy()
        eventually("nothing is left of them", lambda: not list(uploads.iterdir()))

    def test_large_bodies_at_once(self) -> None:
        """Two hundred, each just below its bound and never complete, wait on disk or are refused."""
        body = b'{"title":"' + b"a" * 900_000
        with ExitStack() as held:
            for _ in range(200):
                peer = held.enter_context(closing(self.connect()))
                peer.settimeout(2)
                with contextlib.suppress(OSError):
                    peer.sendall(self.head("POST /ping", "Content-Length: 950000") + b"\r\n" + body)
            self.assert_healthy()
            self.assertLess(self.resident_mb() - self.before, GROWTH_MB)


class ConnectionTests(AttackTestCase):
    """Many connections, and those that do not do their part."""

    def test_slow_loris(self) -> None:
        """Hundreds that dribble keep nobody from being served."""
        with ExitStack() as held:
            peers = [held.enter_context(closing(self.connect())) for _ in range(300)]
            for byte in (b"GET /health HTTP/1.1\r\nX: ", b"a", b"a", b"a"):
                for peer in peers:
                    peer.sendall(byte)
                self.assert_healthy()
            self.gateway.client.ping("s", "i")

    def test_ten_thousand_connections(self) -> None:
        """Those that wait longest make room; whoever asks is answered, on the port and on the socket."""
        began = self.cpu_seconds()
        with self.flood(10_000):
            self.assert_healthy()
            with self.gateway.another_client() as client:
                client.ping("s", "i")
            self.assertLess(len(list(Path(f"/proc/{self.pid}/fd").iterdir())), 1_200)
            idle = self.cpu_seconds()
            time.sleep(0.5)
            self.assertLess(self.cpu_seconds() - idle, 0.2)
        self.assertLess(self.cpu_seconds() - began, 20)
        eventually("the connections are gone", lambda: len(list(Path(f"/proc/{self.pid}/fd").iterdir())) < 60)

    def test_pipelined_without_reading(self) -> None:
        """Whoever asks thousands of times and reads nothing is not read from any more."""
        ask = self.head("GET /openapi.json") + b"\r\n"
        with closing(self.connect()) as peer:
            peer.settimeout(0.5)
            sent = 0
            with contextlib.suppress(OSError):
                while sent < 50_000_000:
                    sent += peer.send(ask * 100)
            self.assertLess(sent, 30_000_000)
            self.assertLess(self.resident_mb() - self.before, GROWTH_MB)
            self.assert_healthy()

    def test_half_closed_streams(self) -> None:
        """A subscriber that says nothing more, or reads nothing, costs no place for long."""
        ask = self.head("GET /events") + b"\r\n"
        for _ in range(3):
            with ExitStack() as held:
                for number in range(60):
                    peer = held.enter_context(closing(self.connect()))
                    peer.sendall(ask)
                    peer.recv(100)
                    if number % 2:
                        peer.shutdown(socket.SHUT_WR)
                self.assertLessEqual(self.gateway.client.health()["subscribers"], 60)
            eventually("no subscriber is left", lambda: not self.gateway.client.health()["subscribers"], 10)


class FewDescriptorsTests(AttackTestCase):
    """A service that may open few files only."""

    def test_a_flood_within_a_small_bound(self) -> None:
        """The number of connections keeps below the number of files: everybody else is served."""
        self.gateway.stop()
        self.gateway.wrapper = ("prlimit", "--nofile=256:256")
        self.start()
        ask = self.head("GET /mode") + b"\r\n"
        with closing(self.connect()) as known:
            known.sendall(ask)
            self.assertRegex(read(known), b" 200 ")
            with self.flood(2_000):
                self.assert_healthy()
                known.sendall(ask)
                self.assertRegex(read(known), b" 200 ", "strangers push out only strangers")

    def test_out_of_descriptors(self) -> None:
        """When none is left at all nothing spins, and all is well as soon as there are some again."""
        pid = self.pid
        usual = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = max(int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir())
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 1, usual[1]))
        with self.flood(300):
            began = self.cpu_seconds()
            time.sleep(1)
            self.assertLess(self.cpu_seconds() - began, 0.5)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, usual)
        eventually("it serves again", self.serves, 10)

    def serves(self) -> bool:
        """Whether the port answers."""
        with contextlib.suppress(Exception):
            return self.gateway.client.health()["status"] != ""
        return False
