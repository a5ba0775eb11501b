"""A name server of its own process, on a loopback address, and the way to have it in a child's resolv.conf.

    python -m tests.fakes.name_server FOLDER ADDRESS

It answers as FOLDER/zone.json says, which is read at each question, and notes each question in FOLDER/asked.
"""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from enum import StrEnum, unique
from pathlib import Path
from typing import Any, cast

from attrs import define, field
from twisted.internet.defer import Deferred, fail, succeed
from twisted.names import dns, server
from twisted.names.error import DomainError

from tests.fakes.dovecot import eventually

TOP = Path(__file__).parent.parent.parent
SECONDS = 15
PORT = 53  # resolv.conf(5) knows no other
INSIDE = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'


@unique
class Mood(StrEnum):
    """What it does with questions."""

    ANSWERS = "answers"
    FAILS = "fails"
    SILENT = "silent"


def _loopback_address() -> str:
    """An address of 127.0.0.0/8 that nobody else uses, as far as chance goes."""
    return "127." + ".".join(str(1 + secrets.randbelow(254)) for _ in range(3))


@define(eq=False)
class NameServer:
    """The server; ``texts`` are the TXT records by their names, any other name does not exist.

    ``addresses`` are IPv4 addresses of names, ``services`` the target and port of SRV records.
    """

    folder: Path
    texts: Mapping[str, bytes]
    mood: Mood = Mood.ANSWERS
    addresses: Mapping[str, str] = field(factory=dict)
    services: Mapping[str, tuple[str, int]] = field(factory=dict)
    address: str = field(factory=_loopback_address)
    _process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start, and wait until it listens."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "resolv.conf").write_text(f"nameserver {self.address}\n")
        self.turn(self.mood)
        with (self.folder / "out.log").open("ab") as out:
            process = self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fakes.name_server", str(self.folder), self.address],
                cwd=TOP,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )

        def listens() -> bool:
            log = (self.folder / "out.log").read_text("utf-8", "replace")
            assert process.poll() is None, f"the name server ended at once: {log[-800:]}"
            return (self.folder / "asked").exists()

        eventually("the name server listens", listens, SECONDS)

    def stop(self) -> None:
        """Stop."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(SECONDS)

    def turn(self, mood: Mood) -> None:
        """From the next question on, be like that."""
        self.mood = mood
        texts = {name: text.decode("ascii") for name, text in self.texts.items()}
        new = self.folder / "zone.new"
        zone = {"mood": mood, "texts": texts, "addresses": self.addresses, "services": self.services}
        new.write_text(json.dumps(zone))
        new.replace(self.folder / "zone.json")

    def asked(self) -> list[str]:
        """The names in the questions so far."""
        return (self.folder / "asked").read_text().split()

    @property
    def wrapper(self) -> tuple[str, ...]:
        """What runs a command, as root, in a mount namespace whose resolv.conf names this server alone."""
        return ("unshare", "-m", "sh", "-c", INSIDE, str(self.folder / "resolv.conf"))


@define(eq=False)
class _Zone:
    """The resolver of the child."""

    folder: Path

    def query(self, query: Any, timeout: object = None) -> "Deferred[Any]":
        """Answer one question, or not."""
        del timeout
        name = query.name.name.decode("ascii")
        zone = json.loads((self.folder / "zone.json").read_text())
        with (self.folder / "asked").open("a") as asked:
            asked.write(f"{name}\n")
        match Mood(zone["mood"]):
            case Mood.SILENT:
                return Deferred()
            case Mood.FAILS:
                return fail(RuntimeError(name))  # SERVFAIL; an error of DNS would be no such name
            case Mood.ANSWERS if query.type == dns.A and name in zone["addresses"]:
                return self._said(name, dns.A, dns.Record_A(zone["addresses"][name], ttl=600))
            case Mood.ANSWERS if query.type == dns.AAAA and name in zone["addresses"]:
                return succeed(([], [], []))
            case Mood.ANSWERS if query.type == dns.SRV and name in zone["services"]:
                target, port = zone["services"][name]
                return self._said(name, dns.SRV, dns.Record_SRV(0, 0, port, target.encode(), ttl=600))
            case Mood.ANSWERS if name in zone["texts"]:
                text = zone["texts"][name].encode("ascii")
                strings = [text[at : at + 255] for at in range(0, len(text), 255)]
                return self._said(name, dns.TXT, dns.Record_TXT(*strings))
            case Mood.ANSWERS:
                return fail(DomainError())

    def _said(self, name: str, kind: int, payload: Any) -> "Deferred[Any]":
        """One record."""
        return succeed(([dns.RRHeader(name.encode(), kind, ttl=600, payload=payload, auth=True)], [], []))


def main(folder: Path, address: str) -> None:
    """Be the server until somebody ends it."""
    from twisted.internet import reactor  # noqa: PLC0415 (of the child alone)

    net = cast("Any", reactor)
    factory = server.DNSServerFactory(clients=[_Zone(folder)])
    net.listenTCP(PORT, factory, interface=address)
    net.listenUDP(PORT, dns.DNSDatagramProtocol(controller=factory), interface=address)
    parent = os.getppid()

    def go_with_the_parent() -> None:
        if os.getppid() != parent:
            net.stop()
        else:
            net.callLater(1, go_with_the_parent)

    net.callWhenRunning((folder / "asked").touch)
    net.callWhenRunning(go_with_the_parent)
    net.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
