"""A stand-in of the service: the few routes that a client test needs, over TCP or a unix socket.

It answers with what the test put into ``answers`` and remembers every request with its headers, so that a
test can say which of them carried the key.
"""

import hashlib
import hmac
import json
import socketserver
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attrs import Factory, define, frozen

from mailgateway.client import Base

KEY = "5f" * 32
HEALTH: Mapping[str, Any] = {
    "status": "ok",
    "version": "0.1.0",
    "apiVersion": 1,
    "capabilities": [],
    "instance": "abc",
    "mode": "on",
    "pending": 2,
    "registry": 1,
    "sessions": 1,
    "clients": 3,
    "lastPingAt": "2026-11-30T12:00:00Z",
    "subscribers": 0,
    "configLoadedAt": "2026-11-30T11:00:00Z",
    "lastScan": {
        "at": "2026-11-30T12:00:00Z",
        "examined": 12,
        "routed": 1,
        "refused": {"automatic": 2, "other-device": 1},
    },
    "accounts": [{"state": "refused", "since": "2026-11-30T11:59:00Z", "nextAttemptAt": None}],
}


@frozen
class Request:
    """One request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


Reply = tuple[int, Any] | Callable[[Request], tuple[int, Any]]


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@define(eq=False)
class StandIn:
    """A running stand-in.  ``answers`` maps ``METHOD /path`` to status and JSON, or to a function."""

    answers: dict[str, Reply] = Factory(dict)
    key: str = KEY
    proves: bool = True
    hangs_up: bool = False
    requests: list[Request] = Factory(list)
    base: Base = Factory(Base)
    _server: socketserver.BaseServer | None = None

    def start(self, path: Path | None = None) -> None:
        """Listen on the unix socket, or on a free port."""
        door = _door_of(self)
        if path is None:
            server = ThreadingHTTPServer(("127.0.0.1", 0), door)
            self.base = Base(host="127.0.0.1", port=server.server_port)
            self._server = server
        else:
            self._server = _UnixServer(str(path), door)
            self.base = Base(socket=path)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def answer(self, request: Request) -> tuple[int, Any]:
        """Find the answer to one request."""
        self.requests.append(request)
        path, _, query = request.path.partition("?")
        if f"{request.method} {path}" in self.answers:
            reply = self.answers[f"{request.method} {path}"]
            return reply(request) if callable(reply) else reply
        if path == "/health":
            if query and self.proves:
                challenge = query.removeprefix("challenge=").encode()
                shown = hmac.new(self.key.encode(), b"mailgateway-health-1\0" + challenge, hashlib.sha256)
                return 200, {**HEALTH, "proof": shown.hexdigest()}
            return 200, dict(HEALTH)
        return 404, {"error": "not_found", "message": "There is no such route."}

    @property
    def with_key(self) -> list[str]:
        """Name the requests that carried an authorization."""
        return [f"{r.method} {r.path}" for r in self.requests if "authorization" in r.headers]


def _door_of(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            raw = self.rfile.read(length)
            kind = self.headers.get("Content-Type", "")
            body = json.loads(raw) if raw and kind == "application/json" else raw
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answer = stand_in.answer(Request(self.command, self.path, headers, body))
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if stand_in.hangs_up:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _any  # noqa: N815 - the names that http.server looks for

        def address_string(self) -> str:
            return ""

        def log_message(self, *_: object) -> None:
            pass

    return Door
