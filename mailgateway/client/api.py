"""The client: one method for each route of the API, plain dictionaries as answers.

Not safe to share between threads.  Reads are tried once more when an old connection turns out to be dead;
anything else is not, since it may have happened.
"""

import json
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Literal, Self, cast
from urllib.parse import quote

from mailgateway.client.answers import (
    Delivery,
    Event,
    Fate,
    Health,
    LoginLink,
    Mode,
    Outbox,
    OutboxPage,
    Presence,
    Reloaded,
    Sent,
)
from mailgateway.client.connection import Answer, Base, connect, demand_proof, exchange, json_of, refusal_of
from mailgateway.client.events import read_events
from mailgateway.client.failures import ServiceUnreachable, WrongService
from mailgateway.client.paths import query
from mailgateway.client.questions import QuestionCalls
from mailgateway.contract import API_VERSION, LONGEST_WAIT
from mailgateway.secrets import read_key

VERSION_HEADER = {"Mailgateway-Api": str(API_VERSION)}
SEND_SECONDS = 75.0
"""A decision waits up to a minute for the mail server's word."""
STALE_SECONDS = 5.0
"""A connection that was idle for longer may have been closed by the service: a new one is cheaper."""


class Client(QuestionCalls):
    """A session's, or a person's, way to the service.

    ``key_path`` is the file of the key; it is read when the first call needs it.  ``prove=False`` is for
    a key that the service does not prove itself with (one of ``[keys]``): then only a unix socket or TLS
    says who answers, and plain HTTP is refused.  ``proof_path`` is the key that the service proves itself
    with, where that is another than ours (``secret.key``, for a person).  ``timeout`` is in seconds and
    counts for each call, on top of what a long poll waits.

    Every method may raise ``ServiceUnreachable``, ``WrongService``, ``ApiRefused``, and ``ConfigError`` when
    the key cannot be read.
    """

    def __init__(
        self,
        base: Base,
        key_path: Path,
        timeout: float = 10.0,
        *,
        prove: bool = True,
        proof_path: Path | None = None,
    ) -> None:
        self.base = base
        self.key_path = key_path
        self.proof_path = proof_path or key_path
        self.timeout = timeout
        self._prove = prove
        self._key = ""
        self._connection: HTTPConnection | None = None
        self._used = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the next call opens one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Health and life of the service

    def health(self) -> Health:
        """What the service says about itself; asked without a key, and proves nothing."""
        connection = connect(self.base)
        try:
            answer = exchange(connection, "GET", "/health", headers=VERSION_HEADER, seconds=self.timeout)
        finally:
            connection.close()
        if answer.status >= 400:
            raise refusal_of(answer)
        return cast("Health", json_of(answer))

    def prove(self) -> None:
        """Make sure that the service is the one that knows our key."""
        self._open()

    def proved_health(self) -> Health:
        """What the service of our key says about itself, of whatever version of the API it is."""
        connection = connect(self.base)
        try:
            key = read_key(self.key_path, own=self._prove)
            return cast("Health", demand_proof(connection, self.base, key, seconds=self.timeout))
        finally:
            connection.close()

    def reload(self) -> Reloaded:
        """Let the service read its settings again."""
        return cast("Reloaded", self._call("POST", "/reload", seconds=30))

    def prime(self) -> dict[str, Any]:
        """Let the service watch from now on, and leave alone what lies there already."""
        return self._call("POST", "/prime", seconds=30)

    def shutdown(self) -> None:
        """Let the service stop, of whatever version of the API it is."""
        self._request("POST", "/shutdown", None, any_version=True)
        self.close()

    def metrics(self) -> str:
        """The metrics, as Prometheus text."""
        return self._request("GET", "/metrics").body.decode("utf-8", "replace")

    def mode(self) -> Mode:
        """The mode of this machine."""
        return cast("Mode", self._call("GET", "/mode")["mode"])

    def set_mode(self, mode: Mode) -> Mode:
        """Set the mode of this machine; the one that holds then."""
        return cast("Mode", self._call("POST", "/mode", {"mode": mode})["mode"])

    def login_link(self) -> LoginLink:
        """Make a link that logs a person in to the web inbox, once; or have it mailed to the person."""
        return cast("LoginLink", self._call("POST", "/logins"))

    # Sessions

    def ping(self, session: str, instance: str, **facts: str | bool | None) -> Presence:
        """Say that the session lives; ``facts`` are the optional fields (``title``, ``cwd`` ...)."""
        known = {name: value for name, value in facts.items() if value is not None}
        return cast("Presence", self._call("POST", "/ping", _who(session, instance) | known))

    def bye(self, session: str, instance: str) -> None:
        """Say that the instance ends."""
        self._call("POST", "/bye", _who(session, instance))

    def register(self, session: str, instance: str) -> dict[str, Any]:
        """Reserve the session's one blocking decision."""
        return self._call("POST", "/register", _who(session, instance))

    def unregister(self, session: str, instance: str) -> dict[str, Any]:
        """Free the reservation."""
        return self._call("DELETE", "/register", _who(session, instance))

    def settle(self, session: str, instance: str, summary: str, *, aborted: bool = False) -> dict[str, Any]:
        """Say that the session's turn is over, and what came of it."""
        fields = {"summary": summary, "aborted": aborted}
        return self._call("POST", "/settle", _who(session, instance) | fields)

    # Deliveries

    def pending(
        self, session: str | None = None, *, kind: str | None = None, wait: float = 0
    ) -> list[Delivery]:
        """What waits for the session, oldest first; ``wait`` up to 60 seconds for the first to come."""
        asked = query(session=session, kind=kind, wait=_seconds(wait))
        answer = self._call("GET", f"/pending{asked}", seconds=self.timeout + wait)
        return cast("list[Delivery]", answer["deliveries"])

    def claim(
        self, delivery: str, instance: str, *, pid: int | None = None, started: float | None = None
    ) -> Delivery:
        """Claim a delivery by its id or a prefix; with ``pid`` and start time the claim dies with us."""
        fields = {"pid": pid, "processStartedAt": started}
        given = {name: value for name, value in fields.items() if value is not None}
        return cast("Delivery", self._call("POST", "/claim", _what(delivery, instance) | given))

    def release(self, delivery: str, instance: str) -> None:
        """Give a claim back."""
        self._call("POST", "/release", _what(delivery, instance))

    def ack(self, delivery: str, instance: str) -> None:
        """Say that the delivery was taken over, for good."""
        self._call("POST", "/ack", _what(delivery, instance))

    def attachment(self, delivery: str, attachment: str, instance: str) -> bytes:
        """The bytes of an attachment of a claimed delivery."""
        path = f"/deliveries/{quote(delivery, safe='')}/attachments/{quote(attachment, safe='')}"
        answer = self._request("GET", path, headers={"X-Instance-Id": instance}, seconds=60)
        return answer.body

    # Mail that leaves

    def send(
        self,
        kind: Literal["notification", "settle", "decision"],
        session: str,
        subject: str,
        text: str,
        *,
        options: tuple[str, ...] = (),
        recommendation: str | None = None,
        attachments: tuple[str, ...] = (),
        idempotency_key: str | None = None,
    ) -> Sent:
        """Send a mail to the person; a decision waits for the mail server's first word."""
        body: dict[str, Any] = {"kind": kind, "sessionId": session, "subject": subject, "text": text}
        optional = {
            "options": list(options),
            "recommendation": recommendation,
            "attachments": list(attachments),
            "idempotencyKey": idempotency_key,
        }
        body |= {name: value for name, value in optional.items() if value}
        return cast("Sent", self._call("POST", "/send", body, seconds=SEND_SECONDS))

    def upload(self, filename: str, data: bytes, session: str) -> str:
        """Upload a file for a mail to come; the id to send it with, within an hour."""
        headers = {
            "X-Filename": quote(filename),
            "X-Session-Id": session,
            "Content-Type": "application/octet-stream",
        }
        answer = self._request("POST", "/attachments", data, headers=headers, seconds=60)
        return cast("str", json_of(answer)["attachmentId"])

    def outbox(self, outbox: str) -> Outbox:
        """How far a mail of ours has come."""
        return cast("Outbox", self._call("GET", f"/outbox/{quote(outbox, safe='')}"))

    def outbox_list(
        self, state: str | None = None, *, limit: int | None = None, cursor: str | None = None
    ) -> OutboxPage:
        """The mails of this machine in a state (``open``: that wait for something), the last one first."""
        wanted = query(state=state, limit=None if limit is None else str(limit), cursor=cursor)
        return cast("OutboxPage", self._call("GET", f"/outbox{wanted}"))

    def retry(self, outbox: str, *, unclear: bool = False) -> Outbox:
        """Have a mail tried now; ``unclear`` allows that the person gets it twice."""
        body = {"unclear": True} if unclear else {}
        return cast("Outbox", self._call("POST", f"/outbox/{quote(outbox, safe='')}/retry", body))

    def drop(self, outbox: str) -> Outbox:
        """Have a mail tried no more."""
        return cast("Outbox", self._call("POST", f"/outbox/{quote(outbox, safe='')}/drop", {}))

    def inbound(self, since: str | None = None) -> list[Fate]:
        """The fates of mail that came in since a time, newest first (with ``person.key``)."""
        return cast("list[Fate]", self._call("GET", f"/inbound{query(since=since)}")["fates"])

    def events(self, session: str | None = None, last_event_id: str | None = None) -> Iterator[Event]:
        """The stream of events, until the service ends it or is silent for a minute."""
        connection = self._open()
        headers = {"Accept": "text/event-stream", **VERSION_HEADER, **self._authorization()}
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        self._connection = None  # the stream has this connection for itself
        yield from read_events(connection, f"/events{query(session=session)}", headers)

    # One request

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, seconds: float | None = None
    ) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        return json_of(self._request(method, path, data, headers=headers, seconds=seconds))

    def _request(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        *,
        headers: dict[str, str] | None = None,
        seconds: float | None = None,
        any_version: bool = False,
    ) -> Answer:
        """Ask, and ask a read once more when the connection was an old one that has died."""
        reused = self._connection is not None
        headers = (headers or {}) | ({} if any_version else VERSION_HEADER)
        try:
            answer = self._attempt(method, path, data, headers, seconds or self.timeout)
        except WrongService:
            raise
        except ServiceUnreachable:
            self.close()
            if not reused or method != "GET":
                raise
            answer = self._attempt(method, path, data, headers, seconds or self.timeout)
        if answer.status >= 400:
            raise refusal_of(answer)
        return answer

    def _attempt(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], seconds: float
    ) -> Answer:
        connection = self._open()
        sent = headers | self._authorization()
        answer = exchange(connection, method, path, headers=sent, body=data, seconds=seconds)
        self._used = time.monotonic()
        return answer

    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"}

    def _open(self) -> HTTPConnection:
        """Find a connection whose other end has proved itself."""
        connection = self._connection
        if connection is not None:
            if connection.sock is not None and time.monotonic() - self._used < STALE_SECONDS:
                return connection
            self.close()
        if not self._prove and self.base.socket is None and not self.base.tls:
            raise WrongService("a key of another machine is sent over TLS or a unix socket only")
        connection = connect(self.base)
        try:
            self._key = read_key(self.key_path, own=self._prove)
            if self._prove and not self.base.tls:
                proof = read_key(self.proof_path, own=True) if self.proof_path != self.key_path else self._key
                demand_proof(connection, self.base, proof, seconds=self.timeout)
                if connection.sock is None:
                    raise WrongService(f"what answers at {self.base} closes the connection after its proof")
        except BaseException:
            connection.close()
            raise
        self._connection, self._used = connection, time.monotonic()
        return connection


def _who(session: str, instance: str) -> dict[str, Any]:
    return {"sessionId": session, "instanceId": instance}


def _what(delivery: str, instance: str) -> dict[str, Any]:
    return {"id": delivery, "instanceId": instance}


def _seconds(wait: float) -> str | None:
    return f"{min(wait, LONGEST_WAIT):g}" if wait > 0 else None
