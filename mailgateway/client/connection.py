"""One connection to the service, over TCP, TLS or a unix socket; proved before it carries a key.

A local port can be taken by anybody once the service is down, so whoever answers there must first show that
it knows the key, by an HMAC over a challenge of ours.  The connection that gave the proof is the one that
the key is sent on: it is never silently opened anew.
"""

import hmac
import http.client
import json
import os
import socket
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen

from mailgateway.client.failures import ApiRefused, ServiceUnreachable, WrongService
from mailgateway.contract import proof_of

CONNECT_SECONDS = 5.0
LARGEST_ANSWER = 32 * 1024 * 1024


@frozen
class Base:
    """Where the service is: a unix socket, or a host and a port, perhaps behind TLS."""

    host: str = ""
    port: int = 0
    tls: bool = False
    socket: Path | None = None

    def __str__(self) -> str:
        """Render as a person would write it."""
        if self.socket is not None:
            return f"unix:{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"


def base_of(text: str) -> Base:
    """Read ``unix:/path``, ``http://host:port`` or ``https://host``; ``ValueError`` when it is none."""
    if text.startswith("unix:"):
        return Base(socket=Path(text.removeprefix("unix:")))
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError("must start with http://, https:// or unix:")
    tls = parts.scheme == "https"
    return Base(host=parts.hostname, port=parts.port or (443 if tls else 4177), tls=tls)


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of to a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def connect(base: Base) -> http.client.HTTPConnection:
    """Open a connection, or raise ``ServiceUnreachable``; it will not open itself again when it breaks."""
    connection: http.client.HTTPConnection
    if base.socket is not None:
        connection = UnixConnection(base.socket, CONNECT_SECONDS)
    elif base.tls:
        connection = http.client.HTTPSConnection(
            base.host, base.port, timeout=CONNECT_SECONDS, context=ssl.create_default_context()
        )
    else:
        connection = http.client.HTTPConnection(base.host, base.port, timeout=CONNECT_SECONDS)
    try:
        connection.connect()
    except OSError as error:
        connection.close()
        reason = error.strerror or type(error).__name__
        raise ServiceUnreachable(f"no answer at {base}: {reason}") from None
    connection.auto_open = 0
    return connection


@frozen
class Answer:
    """What came back: the status, and the whole body."""

    status: int
    body: bytes = field(repr=False)


def exchange(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    *,
    headers: dict[str, str],
    body: bytes | None = None,
    seconds: float,
) -> Answer:
    """Send one request and read the whole answer, or raise ``ServiceUnreachable``."""
    try:
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        data = response.read(LARGEST_ANSWER + 1)
    except TimeoutError:
        connection.close()
        raise ServiceUnreachable(f"no answer of mailgateway within {seconds:g} seconds") from None
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        raise ServiceUnreachable(f"the connection to mailgateway broke ({type(error).__name__})") from None
    if len(data) > LARGEST_ANSWER:
        connection.close()
        raise WrongService("the answer is larger than mailgateway ever gives")
    return Answer(response.status, data)


def json_of(answer: Answer) -> dict[str, Any]:
    """The JSON object of an answer, or ``WrongService``: mailgateway answers with nothing else."""
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise WrongService(
            "what answers there does not speak as mailgateway does: another program has that port, so stop "
            "it or set another daemon.port"
        )
    return value


def refusal_of(answer: Answer) -> ApiRefused:
    """The error that an answer of 400 and more tells."""
    fields = json_of(answer)
    code, message = fields.pop("error", ""), fields.pop("message", "")
    if not isinstance(code, str) or not code:
        code = f"http_{answer.status}"
    return ApiRefused(code, str(message) or f"the service answered {answer.status}", answer.status, fields)


def demand_proof(
    connection: http.client.HTTPConnection, base: Base, key: str, *, seconds: float
) -> dict[str, Any]:
    """Let the other side prove that it knows the key, or raise ``WrongService``; the health it answered with.

    Names no version of the API: a service of any version answers.
    """
    challenge = os.urandom(16).hex()
    answer = exchange(connection, "GET", f"/health?challenge={challenge}", headers={}, seconds=seconds)
    health = json_of(answer)
    shown = health.get("proof")
    if not isinstance(shown, str) or not hmac.compare_digest(
        shown.encode(), proof_of(key, challenge).encode()
    ):
        connection.close()
        raise WrongService(
            f"what answers at {base} does not prove to be the mailgateway of these settings; "
            "the key was not sent there"
        )
    return health
