"""What a thousand mailboxes cost in one process: memory, the time until all of them idle, CPU at rest.

    mailboxes.py [COUNT]

A server of a few lines, in a process of its own, speaks IMAP over TLS with as many accounts as are asked
for; each has ten mails that are there already.  The service is the real one with the real settings: a table
for each account, its password in the environment.  What an account costs is the difference to the same
service with one, which stands in the column of the plain alternative.
"""

# ruff: noqa: N802 (Twisted's names)
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from _world import (
    AGENT,
    PASSWORD,
    ROBIN,
    ROOT,
    SECRET,
    Service,
    cpu_seconds,
    folder,
    resident_mb,
    row,
    show_help,
    switches,
)
from attrs import define

from mailgateway.demo.service import free_port

COUNT = 1_000
IDLE_SECONDS = 20.0
LONGEST = 180.0
SCANNING = 20
"""So many with an interval of a second are scanned as often as a thousand are: once a second in all."""


# --- the server, in a process of its own --------------------------------------------------------------------


def serve(certificate: str) -> None:
    """Serve until killed; prints the port of IMAP and the one that tells how many clients idle."""
    from twisted.internet import epollreactor  # noqa: PLC0415 (before anything else installs one)

    epollreactor.install()
    from twisted.internet import reactor as installed  # noqa: PLC0415 (as above)
    from twisted.internet.protocol import Factory, Protocol  # noqa: PLC0415 (as above)
    from twisted.internet.ssl import PrivateCertificate  # noqa: PLC0415 (as above)
    from twisted.protocols.basic import LineOnlyReceiver  # noqa: PLC0415 (as above)

    reactor: Any = installed
    idling: set[object] = set()
    selected = (
        b"* 10 EXISTS\r\n* OK [UIDVALIDITY 7] good\r\n* OK [UIDNEXT 11] next\r\n* FLAGS (\\Seen)"
        b"\r\n* OK [PERMANENTFLAGS (\\Seen)] good"
    )
    said = {b"SELECT": selected, b"CAPABILITY": b"* CAPABILITY IMAP4rev1 IDLE ID SASL-IR LITERAL+ ESEARCH"}

    class Imap(LineOnlyReceiver):
        tag = b""

        def say(self, line: bytes) -> None:
            transport: Any = self.transport
            transport.write(line + b"\r\n")

        def connectionMade(self) -> None:
            self.say(b"* OK [CAPABILITY IMAP4rev1 IDLE ID SASL-IR LITERAL+ ESEARCH AUTH=PLAIN] ready")

        def lineReceived(self, line: bytes) -> None:
            if line == b"DONE":
                idling.discard(self)
                self.say(self.tag + b" OK idled")
                return
            tag, _, command = line.partition(b" ")
            verb = command.split(b" ", 1)[0].upper()
            if verb == b"IDLE":
                self.tag = tag
                idling.add(self)
                self.say(b"+ idling")
                return
            if verb in said:
                self.say(said[verb])
            self.say(tag + b" OK done")

        def connectionLost(self, reason: object = None) -> None:  # noqa: ARG002 (Twisted's signature)
            idling.discard(self)

    class Count(Protocol):
        def connectionMade(self) -> None:
            transport: Any = self.transport
            transport.write(b"%d" % len(idling))
            transport.loseConnection()

    context = PrivateCertificate.loadPEM(Path(certificate).read_bytes()).options()
    ports = (
        reactor.listenSSL(0, Factory.forProtocol(Imap), context, backlog=4096, interface="127.0.0.1"),
        reactor.listenTCP(0, Factory.forProtocol(Count), interface="127.0.0.1"),
    )
    print(*(port.getHost().port for port in ports), flush=True)
    reactor.run()


@define(eq=False)
class Server:
    """The server as the measurement sees it."""

    port: int
    told: int
    process: "subprocess.Popen[str]"

    @classmethod
    def start(cls, certificate: Path) -> "Server":
        """Start it, with the certificate and its key."""
        process = subprocess.Popen(
            [sys.executable, __file__, "serve", str(certificate)], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        assert process.stdout is not None
        port, told = map(int, process.stdout.readline().split())
        return cls(port, told, process)

    def idling(self) -> int:
        """How many clients are in IDLE now."""
        import socket  # noqa: PLC0415 (for this one question)

        with socket.create_connection(("127.0.0.1", self.told), timeout=30) as asking:
            return int(asking.recv(20))

    def until_idle(self, count: int, began: float) -> float:
        """Seconds from ``began`` until so many idle."""
        most = 0
        while time.monotonic() < began + LONGEST:
            most = max(most, now := self.idling())
            if now >= count:
                return time.monotonic() - began
            time.sleep(0.1)
        raise AssertionError(f"only {most} of {count} came to rest within {LONGEST:g} s")


# --- the service --------------------------------------------------------------------------------------------


@define(eq=False)
class Many(Service):
    """The service with many accounts."""

    accounts: int = 1
    trust: Path = Path()
    scan_interval: int = 60

    def settings(self) -> Mapping[str, Mapping[str, object]]:
        """A table for each account."""
        settings = dict(super().settings())
        del settings["accounts.main"], settings["accounts.main.imap"], settings["accounts.main.smtp"]
        server = {"host": "localhost", "port": self.imap_port, "tls": "implicit", "ca_file": str(self.trust)}
        smtp = {"host": "localhost", "port": free_port(), "tls": "none"}
        for number in range(self.accounts):
            name = f"accounts.a{number}"
            settings[name] = {"address": f"{number}-{AGENT}", "watch": ["INBOX"]}
            settings[f"{name}.imap"] = {**server, "password_env": SECRET}
            settings[f"{name}.smtp"] = smtp
        settings["daemon"] = {**settings["daemon"], "scan_interval_seconds": self.scan_interval}
        settings["people"] = {"allowed": [ROBIN], "notify": ROBIN}
        return settings


def measure(count: int, scan_interval: int = 60) -> dict[str, float]:
    """Start the service with so many accounts, and let it come to rest."""
    import trustme  # noqa: PLC0415 (not for the server's process)

    with folder() as path:
        authority = trustme.CA()
        issued = authority.issue_cert("localhost", "127.0.0.1")
        authority.cert_pem.write_to_path(path / "trust.pem")
        pem = issued.private_key_pem.bytes() + issued.cert_chain_pems[0].bytes()
        (path / "server.pem").write_bytes(pem)
        server = Server.start(path / "server.pem")
        service = Many(
            path, server.port, accounts=count, trust=path / "trust.pem", scan_interval=scan_interval
        )
        try:
            began = service.launch()
            healthy = service.wait_healthy(60) - began
            seconds = server.until_idle(count, began)
            spent = cpu_seconds(service.pid)
            time.sleep(5)
            cpu, slept = cpu_seconds(service.pid), switches(service.pid)
            time.sleep(IDLE_SECONDS)
            return {
                "healthy": healthy,
                "idle after": seconds,
                "cpu until idle": spent,
                "rss": resident_mb(service.pid),
                "cpu": (cpu_seconds(service.pid) - cpu) / IDLE_SECONDS * 100,
                "wakes": (switches(service.pid) - slept) / IDLE_SECONDS,
                "idling": server.idling(),
            }
        finally:
            service.stop()
            server.process.kill()
            server.process.wait()


def main(count: int) -> None:
    """Measure one account and many."""
    os.environ[SECRET] = PASSWORD
    one, many, scanning = measure(1), measure(count), measure(SCANNING, 1)
    name = f"{count:,} mailboxes"
    row(f"{name}, all in IDLE", f"{many['idle after']:.1f} s", aims="aim 60 s")
    row("  CPU until then", f"{many['cpu until idle']:.1f} s", plain=f"{one['cpu until idle']:.1f} s")
    row("  healthy after", f"{many['healthy']:.2f} s", plain=f"{one['healthy']:.2f} s")
    row(
        "  resident",
        f"{many['rss']:.1f} MB",
        plain=f"{one['rss']:.1f} MB",
        aims="must 150 MB (5,000: aim 450)",
    )
    each = (many["rss"] - one["rss"]) / max(count - 1, 1) * 1024
    row("  of each", f"{each:.1f} kB", aims="aim 64 kB")
    row("  CPU at rest", f"{many['cpu']:.2f} %", plain=f"{one['cpu']:.2f} %", aims="aim 0.5 %")
    row("  and while scans go on", f"{scanning['cpu']:.2f} %", aims="aim 0.5 %")
    row("  wake-ups at rest", f"{many['wakes']:.1f} /s", plain=f"{one['wakes']:.1f} /s")
    row("  still in IDLE", f"{many['idling']:.0f}", plain="")


if __name__ == "__main__":
    show_help(__doc__)
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else COUNT)
