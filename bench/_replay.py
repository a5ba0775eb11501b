"""An IMAP server that costs next to nothing: it replays prepared bytes, in a process of its own.

A measurement is about the client, so the server must be neither slow nor busy.  It knows the commands that a
careful client sends, and says exactly what a scan or a bare ``imaplib`` needs.  New mail is announced when
the measurement says so; the moment before the announcement is sent, and the moments at which the client
enters IDLE again, are kept by the monotonic clock, which all processes of a machine share.
"""

import multiprocessing
import re
import socket
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from attrs import define, field, frozen

_FORK = multiprocessing.get_context("fork")
_SPAN = re.compile(rb"UID FETCH (\d+)(?::(\d+|\*))? ")
_PART = re.compile(rb"BODY\.PEEK\[\](?:<0\.(\d+)>)?")
_DATE = b"30-Nov-2026 10:00:00 +0000"


@frozen
class Mail:
    """What the server has of one mail; its UID is its place in the list, from 1."""

    header: bytes = field(repr=False)
    """The nine fields of a scan, with their last empty line."""
    raw: bytes = field(default=b"", repr=False)


@define(eq=False)
class ReplayServer:
    """The server as its parent process sees it."""

    mails: Sequence[Mail] = field(repr=False)
    visible: int
    """How many of the mails are there in the beginning."""
    port: int = field(init=False)
    _control: Any = field(init=False)
    _process: Any = field(init=False)

    def start(self) -> "ReplayServer":
        """Listen on a free port of the loopback interface."""
        listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self.port = listener.getsockname()[1]
        self._control, theirs = _FORK.Pipe()
        served = _Served(self.mails, self.visible)
        self._process = _FORK.Process(target=served.run, args=(listener, theirs), daemon=True)
        self._process.start()
        listener.close()
        return self

    def announce(self, visible: int) -> float:
        """Let so many mails be there and tell the idling client; when, in monotonic seconds."""
        self._control.send(visible)
        moment: float = self._control.recv()
        return moment

    def idle_since(self, visible: int, seconds: float = 60) -> float:
        """Wait until the client idles and was told of so many mails; when it entered IDLE."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self._control.send(None)
            known, moment = self._control.recv()
            if moment and known == visible:
                return float(moment)
            time.sleep(0.02)
        raise AssertionError("the client does not come to rest")

    def stop(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join(5)


@define(eq=False)
class _Served:
    """The server in its own process."""

    mails: Sequence[Mail]
    visible: int
    lock: threading.Lock = field(factory=threading.Lock)
    idling: "dict[socket.socket, bytes]" = field(factory=dict)
    rest: float = 0.0
    known: int = 0

    def run(self, listener: socket.socket, control: Connection) -> None:
        threading.Thread(target=self.obey, args=(control,), daemon=True).start()
        while True:
            peer, _ = listener.accept()
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def obey(self, control: Connection) -> None:
        """Do what the measurement says."""
        while True:
            order = control.recv()
            with self.lock:
                if order is None:
                    control.send((self.known, self.rest if self.idling else 0.0))
                    continue
                self.visible, self.rest = order, 0.0
                moment = time.monotonic()
                for peer in self.idling:
                    peer.sendall(b"* %d EXISTS\r\n" % order)
            control.send(moment)

    def serve(self, peer: socket.socket) -> None:
        lines = peer.makefile("rb")
        peer.sendall(b"* OK [CAPABILITY IMAP4rev1 IDLE ID SASL-IR LITERAL+ ESEARCH AUTH=PLAIN] ready\r\n")
        try:
            for line in lines:
                self.answer(peer, line)
        except OSError:
            pass
        with self.lock:
            self.idling.pop(peer, None)

    def answer(self, peer: socket.socket, line: bytes) -> None:
        if line == b"DONE\r\n":
            with self.lock:
                tag = self.idling.pop(peer)
            peer.sendall(tag + b" OK idled\r\n")
            return
        tag, _, command = line.partition(b" ")
        verb = command.split()[0].upper()
        if verb == b"IDLE":
            with self.lock:
                peer.sendall(b"+ idling\r\n")
                self.idling[peer], self.known, self.rest = tag, self.visible, time.monotonic()
            return
        said = b""
        if verb in {b"SELECT", b"EXAMINE"}:
            said = b"* FLAGS (\\Seen)\r\n* %d EXISTS\r\n" % self.visible
            said += b"* OK [UIDVALIDITY 7] good\r\n* OK [UIDNEXT %d] next\r\n" % (self.visible + 1)
        elif verb == b"CAPABILITY":
            said = b"* CAPABILITY IMAP4rev1 IDLE ID SASL-IR LITERAL+ ESEARCH AUTH=PLAIN\r\n"
        elif verb == b"ID":
            said = b"* ID NIL\r\n"
        elif verb == b"UID" and (span := _SPAN.match(command)):
            said = self.fetched(command, int(span[1]), span[2])
        peer.sendall(said + tag + b" OK done\r\n")

    def fetched(self, command: bytes, first: int, last: bytes | None) -> bytes:
        """The answer to a UID FETCH."""
        end = first if last is None else self.visible if last == b"*" else min(int(last), self.visible)
        first = min(first, self.visible) if last == b"*" else first
        fields = b"HEADER.FIELDS" in command
        part = _PART.search(command)
        names = command[command.index(b"HEADER.FIELDS") : command.index(b"]") + 1] if fields else b""
        said = []
        for uid in range(max(first, 1), end + 1):
            mail = self.mails[uid - 1]
            said.append(
                b'* %d FETCH (UID %d RFC822.SIZE %d INTERNALDATE "%b"'
                % (uid, uid, len(mail.raw) or 2_000, _DATE)
            )
            if fields:
                said.append(b" BODY[%b {%d}\r\n%b" % (names, len(mail.header), mail.header))
            if part:
                text = mail.raw[: int(part[1])] if part[1] else mail.raw
                origin = b"<0>" if part[1] else b""
                said.append(b" BODY[]%b {%d}\r\n%b" % (origin, len(text), text))
            said.append(b")\r\n")
        return b"".join(said)
