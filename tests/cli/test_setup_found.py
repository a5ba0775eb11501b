"""``setup`` that finds the servers: DNS, the domain's web server and both mail servers, by their real names.

The command runs, as root, where the system's name server is one of the tests; the web server has port 443
of a loopback address.  In the end the service starts with what was written.
"""

import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import rmtree
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from mailgateway.cli.service import client_of
from mailgateway.settings import Settings, load
from tests.cli.test_setup import PASSWORD, PROGRAM, SECONDS
from tests.fakes.authority import Authority
from tests.fakes.dovecot import Dovecot, eventually, require
from tests.fakes.name_server import NameServer
from tests.fakes.smtp_sink import SmtpSink, free_port

NAMES = ("imap.example.org", "smtp.example.org", "autoconfig.example.org", "mail.hoster.net")
SERVER = """<{kind}Server type="{door}"><hostname>{host}</hostname><port>{port}</port>
<socketType>SSL</socketType><username>%EMAILADDRESS%</username></{kind}Server>"""


class FoundTests(SynchronousTestCase):
    """One world, looked for in two ways."""

    def setUp(self) -> None:
        require("unshare", "util-linux")
        if os.getuid() != 0:
            raise SkipTest("only root can give a command another name server")
        self.folder = Path(tempfile.mkdtemp(prefix="mailgateway-test-"))
        self.addCleanup(rmtree, self.folder, ignore_errors=True)
        self.folder.chmod(0o755)
        self.authority = Authority.make(self.folder / "ca", *NAMES)
        self.dovecot = Dovecot(
            self.folder / "dovecot", {"agent@example.org": PASSWORD}, self.authority
        ).start()
        self.addCleanup(self.dovecot.stop, hard=True)
        self.sink = SmtpSink(
            {"agent@example.org": PASSWORD}, tls="implicit", authority=self.authority
        ).start()
        self.addCleanup(self.sink.stop)
        self.names = NameServer(self.folder / "dns", {})
        home = self.folder / "home"
        home.mkdir()
        self.environment = {
            **{
                name: text
                for name, text in os.environ.items()
                if not name.startswith(("MAILGATEWAY_", "XDG_"))
            },
            "HOME": str(home),
            "SSL_CERT_FILE": str(self.authority.anchor),
            "MAILGATEWAY_DAEMON__PORT": str(free_port()),
        }

    def serve(self, imap: str, smtp: str) -> None:
        """The domain's own document, at its own address."""
        servers = SERVER.format(kind="incoming", door="imap", host=imap, port=self.dovecot.imaps_port)
        servers += SERVER.format(kind="outgoing", door="smtp", host=smtp, port=self.sink.port)
        document = f"<clientConfig><emailProvider id='x'>{servers}</emailProvider></clientConfig>".encode()

        class Pages(BaseHTTPRequestHandler):
            """Answers each question with the document."""

            def do_GET(self) -> None:
                """Give it."""
                self.send_response(200)
                self.end_headers()
                self.wfile.write(document)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer((self.names.address, 443), Pages)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.authority.certificate, self.authority.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def command(self, *words: str, given: str = "") -> tuple[int, dict[str, Any]]:
        """Run a verb where the names are known."""
        done = subprocess.run(
            [*self.names.wrapper, sys.executable, "-c", PROGRAM, *words, "--json"],
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env=self.environment,
            check=False,
        )
        return done.returncode, json.loads(done.stdout or "{}") or {"stderr": done.stderr}

    def start_names(self, **more: Any) -> None:
        """Start the name server."""
        self.names.addresses = {
            "imap.example.org": "127.0.0.1",
            "smtp.example.org": "127.0.0.1",
            "mail.hoster.net": "127.0.0.1",
            "autoconfig.example.org": self.names.address,
        }
        self.names.services = more.get("services", {})
        self.names.start()
        self.addCleanup(self.names.stop)

    def test_by_the_document_of_the_domain(self) -> None:
        """Found, tried by TLS, agreed to by --yes, logged in, and watched by the service."""
        self.start_names()
        self.serve("imap.example.org", "smtp.example.org")
        flags = ["--yes", "--password-stdin", "--allow", "robin@example.org"]
        status, told = self.command("setup", "agent@example.org", *flags, given=PASSWORD)
        self.assertEqual((status, told.get("ok")), (0, True), told)
        self.assertEqual((told["imap"]["found"], told["smtp"]["found"]), ("autoconfig", "autoconfig"))
        self.assertNotIn("agent", " ".join(self.names.asked()))
        status, told = self.command("ensure")
        self.assertEqual((status, told.get("done")), (0, "started"), told)
        settings = load(None, self.environment)
        self.addCleanup(self.shut_down, settings)
        eventually("the service watches", lambda: self.dovecot.idling("agent@example.org"))

    def shut_down(self, settings: Settings) -> None:
        """End the service."""
        with client_of(settings) as client:
            client.shutdown()
        lock = settings.daemon.state_dir / "service.lock"
        eventually("the service is gone", lambda: not _held(lock))

    def test_a_name_that_only_dns_tells(self) -> None:
        """It is out of the domain: --yes does not do, the servers have to be named; nobody logged in."""
        self.start_names(
            services={
                "_imaps._tcp.example.org": ("mail.hoster.net", self.dovecot.imaps_port),
                "_submissions._tcp.example.org": ("mail.hoster.net", self.sink.port),
            }
        )
        flags = ["--yes", "--password-stdin", "--allow", "robin@example.org"]
        status, told = self.command("setup", "agent@example.org", *flags, given=PASSWORD)
        self.assertEqual((status, told.get("flag")), (2, "--imap"), told)
        self.assertIn("mail.hoster.net", told["message"])
        self.assertEqual(self.dovecot.logins(), 0)


def _held(lock: Path) -> bool:
    """Whether a service holds its lock."""
    import fcntl  # noqa: PLC0415 - for this one look

    with lock.open() as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
